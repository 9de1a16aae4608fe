"""Every agent that the suite knows."""
from lib.agents.claude_code import ClaudeCode
from lib.agents.codex import Codex, CodexCodeMode
from lib.agents.copilot import Copilot
from lib.agents.gemini import Gemini
from lib.agents.opencode import OpenCode
from lib.agents.qwen import Qwen

AGENTS = [ClaudeCode, Codex, CodexCodeMode, Gemini, Copilot, OpenCode, Qwen]
