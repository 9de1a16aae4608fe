"""opencode. Its plugins ask cra."""
import json

from lib.agent import Agent, machine
from lib.model import call, calls, says


class OpenCode(Agent):
    name = "opencode"
    program = "opencode"
    settings_file = ".opencode/plugin/cra.js"

    working = r"esc interrupt"
    tells_end_of_session = False
    without = {
        "disconnect_restores_the_file_byte_for_byte": "the file is of cra alone",
        "sessions_of_subagents_end": "it does not tell the end of a session",
    }

    def binary(self):
        return self.modules / f"opencode-linux-{machine()}/bin/opencode"

    def environment(self, workspace):
        return {"NO_COLOR": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def prepare(self, workspace):
        self.settle(workspace.home / ".config/opencode")
        options = {"baseURL": f"{workspace.model.url}/v1", "apiKey": "sk-test-fake"}
        model = {"name": "Mock", "limit": {"context": 100000, "output": 8000}}
        self.edit(workspace, lambda known: known.update({
            "model": "mock/mock-model", "small_model": "mock/mock-model", "autoupdate": False, "share": "disabled",
            "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options,
                                  "models": {"mock-model": model}}}}))

    def prepare_project(self, workspace, project):
        self.settle(project / ".opencode")

    def settle(self, folder):
        """Makes a folder of settings look complete. opencode installs a package beside its plugins, and tries for
        more than a minute where there is no network."""
        (folder / "node_modules").mkdir(parents=True)
        lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": self.version}}}}
        (folder / "package-lock.json").write_text(json.dumps(lock))

    @staticmethod
    def edit(workspace, change):
        path = workspace.home / ".config/opencode/opencode.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        change(known)
        path.write_text(json.dumps(known, indent=2))

    def headless(self, prompt, *options):
        return [self.binary(), "run", "--auto", *options, prompt]

    def interactive(self, workspace, project):
        return [self.binary()]

    def await_prompt(self, screen):
        screen.wait(r"Ask anything|commands")

    def shell(self, command):
        return call("bash", {"command": command, "description": "a test"})

    def write(self, path, text):
        return call("write", {"filePath": str(path), "content": text})

    def read_before_write(self, path):
        return self.read(path)

    def read(self, path):
        return call("read", {"filePath": str(path)})

    def search(self, path, pattern):
        return call("grep", {"pattern": pattern, "path": str(path.parent), "include": path.name})

    def mcp(self, arguments):
        return call("suite_touch", arguments)

    def connect_mcp(self, workspace, project):
        server = {"type": "local", "command": workspace.mcp_server(), "enabled": True}
        self.edit(workspace, lambda known: known.update({"mcp": {"suite": server}}))
        return []

    def subagent(self, prompt):
        return [calls(call("task", {"description": "a part", "prompt": prompt, "subagent_type": "general"})),
                says("done")]

    def more_tools(self, project):
        edit = {"filePath": str(project / "new.txt"), "oldString": "one", "newString": "two"}
        return [call("edit", edit), call("glob", {"pattern": "*.txt"}), call("todowrite", {"todos": []})]
