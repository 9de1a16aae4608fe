"""Importing this package fills the list of cases."""
from cases import claude_code, codex, copilot, editors, gemini, opencode, qwen, shared  # noqa: F401
