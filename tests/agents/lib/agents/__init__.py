"""Every agent that the suite knows."""
from lib.agents.claude_code import ClaudeCode
from lib.agents.codex import Codex, CodexCodeMode

AGENTS = [ClaudeCode, Codex, CodexCodeMode]
