"""Every agent that the suite knows."""
from lib.agents.claude_code import ClaudeCode

AGENTS = [ClaudeCode]
