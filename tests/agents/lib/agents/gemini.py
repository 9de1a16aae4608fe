"""Gemini CLI. Needs Node."""
import json

from lib.agent import Agent
from lib.model import call, calls, says


class Gemini(Agent):
    name = "gemini"
    program = "gemini"
    settings_file = ".gemini/settings.json"
    acp = ["--acp"]
    secret_file = "secrets.yaml"
    untrusted_options = ("--skip-trust",)
    odd_settings = '{\n    "theme":"x" ,\n\t"hooks" : { "BeforeTool":[ {"matcher":"x", "hooks":[{"type":"command",' \
                   '"command":"true"}]} ] },"ui":{ }\n}'
    waiting = r"Executing Hook: cra"
    working = r"esc to cancel"

    def binary(self):
        return self.modules / ".bin/gemini"

    def environment(self, workspace):
        return {"GEMINI_API_KEY": "sk-test-fake", "GOOGLE_GEMINI_BASE_URL": workspace.model.url,
                "GEMINI_MODEL": "gemini-2.5-pro"}

    def prepare(self, workspace):
        self.edit(workspace, lambda known: known.update({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "telemetry": {"enabled": False}}))

    @staticmethod
    def edit(workspace, change, name="settings.json"):
        path = workspace.home / ".gemini" / name
        path.parent.mkdir(exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        change(known)
        path.write_text(json.dumps(known, indent=2))

    def trust(self, workspace, project, how="TRUST_FOLDER"):
        self.edit(workspace, lambda known: known.update({str(project): how}), "trustedFolders.json")

    def headless(self, prompt, *options):
        return [self.binary(), "--yolo", *options, "-p", prompt]

    def interactive(self, workspace, project):
        return [self.binary()]

    def await_prompt(self, screen):
        screen.wait(r"Type your message")

    def confirm(self, screen):
        screen.wait(r"Allow once|ALL DONE")
        if not screen.shows("ALL DONE"):
            screen.keys("Enter")

    def shell(self, command):
        return call("run_shell_command", {"command": command, "description": "a test"})

    def write(self, path, text):
        return call("write_file", {"file_path": str(path), "content": text})

    def read(self, path):
        return call("read_file", {"file_path": str(path)})

    def search(self, path, pattern):
        return call("grep_search", {"pattern": pattern, "dir_path": str(path.parent), "include_pattern": path.name})

    def mcp(self, arguments):
        return call("mcp_suite_touch", arguments)

    def connect_mcp(self, workspace, project):
        command, *arguments = workspace.mcp_server()
        self.edit(workspace, lambda known: known.update({
            "mcpServers": {"suite": {"command": command, "args": arguments}}}))
        return []

    def subagent(self, prompt):
        return [calls(call("invoke_agent", {"agent_name": "generalist", "prompt": prompt})), says("done")]

    def end_of_subagent(self):
        return calls(call("complete_task", {"result": {"response": "done"}}))

    def more_tools(self, project):
        edit = {"file_path": str(project / "new.txt"), "old_string": "one", "new_string": "two", "instruction": "a test"}
        return [call("replace", edit), call("list_directory", {"dir_path": str(project)}),
                call("glob", {"pattern": "*.txt"}),
                call("update_topic", {"title": "t", "summary": "s", "strategic_intent": "i"})]
