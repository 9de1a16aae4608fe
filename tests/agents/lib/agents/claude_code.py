"""Claude Code. Its binary needs no Node."""
import json
import os

from lib.agent import Agent, machine
from lib.model import call, calls, says


class ClaudeCode(Agent):
    name = "claude-code"
    program = "claude"
    settings_file = ".claude/settings.local.json"
    odd_settings = '{\n\t"permissions": { "allow": ["Bash(ls:*)"],   "deny": [] },\n\t"hooks": {"PreToolUse": [ ' \
                   '{"matcher":"Bash", "hooks":[{"type":"command","command":"true"}]} ]},\n\t"model": "opus"}'
    waiting = r"Waiting for the operator"
    working = r"esc to interrupt|Waiting|❯ \[\[main\]\]"

    def binary(self):
        return self.modules / f"@anthropic-ai/claude-code-linux-{machine()}/claude"

    def environment(self, workspace):
        more = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}
        return {
            "ANTHROPIC_BASE_URL": workspace.model.url, "ANTHROPIC_API_KEY": "sk-test-fake",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1", "DISABLE_BUG_COMMAND": "1", **more,
        }

    def prepare(self, workspace):
        # What the first start asks: the theme, and whether to use the key.
        self.edit(workspace, lambda known: known.update({
            "hasCompletedOnboarding": True, "theme": "dark", "numStartups": 3,
            "customApiKeyResponses": {"approved": ["sk-test-fake"], "rejected": []}}))

    def trust(self, workspace, project):
        self.edit(workspace, lambda known: known.setdefault("projects", {}).update({
            str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}))

    @staticmethod
    def edit(workspace, change):
        path = workspace.home / ".claude.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        change(known)
        path.write_text(json.dumps(known))

    def headless(self, prompt, *options):
        return [self.binary(), "-p", prompt, "--dangerously-skip-permissions", *options]

    def interactive(self, workspace, project):
        return [self.binary(), "--permission-mode", "default"]

    def await_prompt(self, screen):
        screen.wait(r"\? for shortcuts|bypass permissions|❯")

    def shell(self, command, **more):
        return call("Bash", {"command": command, "description": "a test", **more})

    def write(self, path, text):
        return call("Write", {"file_path": str(path), "content": text})

    def read_before_write(self, path):
        return self.read(path)

    def read(self, path):
        return call("Read", {"file_path": str(path)})

    def search(self, path, pattern):
        # The native build has no Grep tool of its own: it searches by the shell.
        return self.shell(f"grep {pattern} {path}")

    def mcp(self, arguments):
        return call("mcp__suite__touch", arguments)

    def connect_mcp(self, workspace, project):
        command, *arguments = workspace.mcp_server()
        server = {"command": command, "args": arguments}
        return ["--mcp-config", json.dumps({"mcpServers": {"suite": server}})]

    def subagent(self, prompt):
        return [calls(call("Agent", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose",
                                     "run_in_background": False})), says("done")]

    def more_tools(self, project):
        return [call("Edit", {"file_path": str(project / "new.txt"), "old_string": "one", "new_string": "two"}),
                call("TaskList", {}), call("WebFetch", {"url": "http://127.0.0.1:9/x", "prompt": "what is there?"})]

    def asking(self, prompt):
        return [self.binary(), "-p", prompt]
