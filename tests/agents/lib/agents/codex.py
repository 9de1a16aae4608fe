"""Codex CLI, in its two ways to use tools: as functions, and from JavaScript that the model writes ("code mode")."""
import json
import subprocess

from lib.agent import Agent, machine
from lib.model import call, calls, says

CONFIG = """model = "{model}"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""
# What is below this line is written by `trust`.
TRUST = "\n# What the user trusts\n"
TRIPLE = {"x64": "x86_64-unknown-linux-musl", "arm64": "aarch64-unknown-linux-musl"}


class Codex(Agent):
    name = "codex"
    program = "codex"
    model = "gpt-5.5"
    settings_file = ".codex/hooks.json"
    # `codex exec` prints that a prompt was blocked, and not why.
    shows_reason_of_blocked_prompt = False
    has_read_tool = False
    odd_settings = '{"hooks":{ "Stop":[{"hooks":[{"type":"command",\t"command":"true"}]}] } }'
    waiting = r"Waiting for the operator"
    working = r"esc to interrupt|Waiting|Working"
    without = {
        "reading_secrets_is_held": "it reads files by the shell alone",
        "searching_secrets_is_held": "it searches by the shell alone",
        "failed_tool_is_recorded_as_over": "a command that fails is a result like any other",
    }

    def binary(self):
        folder = self.modules / f"@openai/codex-linux-{machine()}/vendor"
        return folder / TRIPLE.get(machine(), machine()) / "bin/codex"

    def environment(self, workspace):
        return {"OPENAI_API_KEY": "sk-test-fake"}

    def config(self, workspace):
        return workspace.home / ".codex/config.toml"

    def prepare(self, workspace):
        self.config(workspace).parent.mkdir()
        self.config(workspace).write_text(CONFIG.format(model=self.model, url=workspace.model.url))

    def edit(self, workspace, tables, trust):
        """Writes the configuration anew: what it had, more tables, and what the user trusts at its end."""
        config = self.config(workspace)
        kept = config.read_text().split(TRUST)[0]
        config.write_text(kept + tables + TRUST + trust)

    def trust(self, workspace, project):
        """Trusts the folder and then each hook, by the hash that Codex itself tells."""
        self.trusted = [*getattr(self, "trusted", []), str(project)]
        folders = "".join(f'\n[projects."{folder}"]\ntrust_level = "trusted"\n' for folder in dict.fromkeys(self.trusted))
        self.edit(workspace, "", folders)
        known = {hook["key"]: hook["currentHash"] for folder in self.trusted for hook in self.hooks(workspace, folder)}
        hooks = "".join(f'\n[hooks.state."{key}"]\ntrusted_hash = "{value}"\n' for key, value in known.items())
        self.edit(workspace, "", folders + hooks)

    def hooks(self, workspace, project):
        """The hooks of that folder and their state, as Codex tells them to an editor."""
        requests = [{"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "suite", "version": "1"}}},
                    {"method": "initialized"}, {"id": 2, "method": "hooks/list", "params": {"cwds": [str(project)]}}]
        server = subprocess.Popen([self.binary(), "app-server"], env=workspace.env, cwd=project, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            server.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == 2:
                    return [hook for folder in answer["result"]["data"] for hook in folder["hooks"]]
            raise AssertionError("Codex did not list its hooks")
        finally:
            server.kill()
            server.wait()

    def headless(self, prompt, *options):
        return [self.binary(), "exec", "--dangerously-bypass-approvals-and-sandbox", *options, prompt]

    def interactive(self, workspace, project):
        # With an older model it begins by offering a newer one.
        return [self.binary(), "--no-daemon", "-m", CodexCodeMode.model, "--dangerously-bypass-approvals-and-sandbox"]

    def await_prompt(self, screen):
        screen.wait(r"Ask Codex|›")

    def shell(self, command, **more):
        return call("exec_command", {"cmd": command, **more})

    def patch(self, text):
        return call("apply_patch", freeform=text)

    def write(self, path, text):
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return self.patch(f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")

    def mcp(self, arguments):
        return call("touch", arguments, namespace="mcp__suite")

    def connect_mcp(self, workspace, project):
        command, *arguments = workspace.mcp_server()
        self.edit(workspace, f"\n[mcp_servers.suite]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n", "")
        return []

    def subagent(self, prompt):
        wait = {"targets": [r"{{re:agent_id\W+([0-9a-f-]{36})}}"], "timeout_ms": 15000}
        return [calls(call("spawn_agent", {"message": prompt}, namespace="multi_agent_v1")),
                calls(call("wait_agent", wait, namespace="multi_agent_v1")), says("done")]

    def more_tools(self, project):
        return [call("update_plan", {"plan": [{"step": "a", "status": "pending"}]}),
                call("view_image", {"path": "readme.txt"}), call("list_mcp_resources", {})]

    # A model that has the tools to work with subagents.
    subagent_options = ("-m", "gpt-5.1-codex")


class CodexCodeMode(Codex):
    name = "codex-code-mode"
    installed_as = connects_as = "codex"
    model = "gpt-6.1-sol"
    in_short_set = False
    subagent_options = ()

    @staticmethod
    def script(body):
        return call("exec", freeform=body)

    def shell(self, command, **more):
        told = json.dumps({"cmd": command, **more})
        return self.script(f"const r = await tools.exec_command({told}); text(r);")

    def side_by_side(self, *commands):
        parts = ", ".join(f"tools.exec_command({json.dumps({'cmd': command})})" for command in commands)
        return calls(self.script(f"text(await Promise.allSettled([{parts}]));"))

    def patch(self, text):
        return self.script(f"const r = await tools.apply_patch({json.dumps(text)}); text(r);")

    def mcp(self, arguments):
        return self.script(f"text(await tools.mcp__suite__touch({json.dumps(arguments)}));")

    def more_tools(self, project):
        return []

    def subagent(self, prompt):
        spawn = {"message": prompt, "task_name": "tidy"}
        return [calls(call("spawn_agent", spawn, namespace="collaboration")),
                calls(call("wait_agent", {"timeout_ms": 15000}, namespace="collaboration")), says("done")]
