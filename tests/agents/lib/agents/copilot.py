"""GitHub Copilot CLI, without an account: it works with a model of the user's own."""
import json

from lib.agent import Agent, machine
from lib.model import call, calls, says


class Copilot(Agent):
    name = "copilot"
    program = "copilot"
    settings_file = ".github/hooks/cra.json"
    acp = ["--acp"]
    without = {"disconnect_restores_the_file_byte_for_byte": "the file is of cra alone"}
    hides_environment = True
    working = r"Working|Esc to"

    def binary(self):
        return self.modules / f"@github/copilot-linux-{machine()}/copilot"

    def environment(self, workspace):
        return {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_PROVIDER_API_KEY": "sk-test-fake",
                "COPILOT_PROVIDER_BASE_URL": f"{workspace.model.url}/v1", "COPILOT_MODEL": "mock-model"}

    def trust(self, workspace, project):
        path = workspace.home / ".copilot/config.json"
        path.parent.mkdir(exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ["{}"]
        # Copilot writes comments above it.
        known = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
        known.setdefault("trustedFolders", []).append(str(project))
        path.write_text(json.dumps(known))

    def headless(self, prompt, *options):
        return [self.binary(), "--allow-all-tools", *options, "-p", prompt]

    def interactive(self, workspace, project):
        return [self.binary()]

    def await_prompt(self, screen):
        screen.wait(r"for commands|Enter @|❯")

    def shell(self, command):
        return call("bash", {"command": command, "description": "a test"})

    def write(self, path, text):
        return call("create", {"path": str(path), "file_text": text})

    def read(self, path):
        return call("view", {"path": str(path)})

    def search(self, path, pattern):
        return call("grep", {"pattern": pattern, "paths": str(path), "output_mode": "content"})

    def mcp(self, arguments):
        return call("suite-touch", arguments)

    def connect_mcp(self, workspace, project):
        command, *arguments = workspace.mcp_server()
        server = {"type": "local", "command": command, "args": arguments, "tools": ["*"]}
        return ["--additional-mcp-config", json.dumps({"mcpServers": {"suite": server}})]

    def subagent(self, prompt):
        return [calls(call("task", {"name": "part", "prompt": prompt, "agent_type": "task", "description": "a part"})),
                says("done")]

    def more_tools(self, project):
        return [call("edit", {"path": str(project / "new.txt"), "old_str": "one", "new_str": "two"}),
                call("glob", {"pattern": "*.txt"}), call("report_intent", {"intent": "a test"}),
                call("sql", {"description": "todo", "query": "select 1"})]

    def asking(self, prompt):
        return [self.binary(), "-p", prompt]
