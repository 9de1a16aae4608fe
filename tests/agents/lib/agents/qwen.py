"""Qwen Code. Needs Node."""
import json

from lib.agent import Agent
from lib.model import call, calls, says


class Qwen(Agent):
    name = "qwen"
    program = "qwen"
    settings_file = ".qwen/settings.json"

    odd_settings = '{\n    "theme":"x" ,\n\t"hooks" : { "PreToolUse":[ {"matcher":"x", "hooks":[{"type":"command",' \
                   '"command":"true"}]} ] },"ui":{ }\n}'
    working = r"esc to cancel"
    tells_end_of_session = False
    shows_reason_of_blocked_prompt = False
    rewrites_settings = True
    without = {"sessions_of_subagents_end": "it does not tell the end of a session"}

    def binary(self):
        return self.modules / ".bin/qwen"

    def environment(self, workspace):
        return {"OPENAI_API_KEY": "sk-test-fake", "OPENAI_BASE_URL": f"{workspace.model.url}/v1",
                "OPENAI_MODEL": "mock-model"}

    def prepare(self, workspace):
        self.edit(workspace, lambda known: known.update({
            "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False}}))

    @staticmethod
    def edit(workspace, change):
        path = workspace.home / ".qwen/settings.json"
        path.parent.mkdir(exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        change(known)
        path.write_text(json.dumps(known, indent=2))

    def headless(self, prompt, *options):
        return [self.binary(), "--yolo", *options, "-p", prompt]

    def interactive(self, workspace, project):
        return [self.binary()]

    def await_prompt(self, screen):
        screen.wait(r"Type your message")

    def shell(self, command):
        return call("run_shell_command", {"command": command, "description": "a test", "is_background": False})

    def write(self, path, text):
        return call("write_file", {"file_path": str(path), "content": text})

    def read_before_write(self, path):
        return self.read(path)

    def read(self, path):
        return call("read_file", {"file_path": str(path)})

    def search(self, path, pattern):
        return call("grep_search", {"pattern": pattern, "path": str(path.parent), "glob": path.name})

    def mcp(self, arguments):
        return call("mcp__suite__touch", arguments)

    def connect_mcp(self, workspace, project):
        command, *arguments = workspace.mcp_server()
        self.edit(workspace, lambda known: known.update({
            "mcpServers": {"suite": {"command": command, "args": arguments, "trust": True}}}))
        return []

    def subagent(self, prompt):
        return [calls(call("agent", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose"})),
                says("done")]

    def more_tools(self, project):
        edit = {"file_path": str(project / "new.txt"), "old_string": "one", "new_string": "two"}
        return [self.read(project / "new.txt"), call("edit", edit), call("glob", {"pattern": "*.txt"})]

    def asking(self, prompt):
        return [self.binary(), "-p", prompt]
