"""A client of the Agent Client Protocol, as an editor is: it starts an agent, sends prompts, and does what it is asked."""
import json
import subprocess
import threading

from lib.wait import PATIENCE, TimedOut, until


class Editor:
    """An editor that answers every question of the agent with yes, and keeps what it was asked."""

    def __init__(self, workspace, argv, cwd, answer="allow"):
        self.workspace, self.cwd, self.answer = workspace, str(cwd), answer
        self.asked = []  # (method, params) of the agent's requests
        self.updates = []  # what the agent told about its work
        self.results, self.next_id = {}, 0
        self.terminals = {}
        self.lock = threading.Lock()
        self.err_path = workspace.folder / "editor.err"
        with open(self.err_path, "wb") as err:
            self.agent = subprocess.Popen([str(word) for word in argv], cwd=cwd, env=workspace.env, text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                          start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()

    # --- The line

    def send(self, message):
        with self.lock:
            try:
                self.agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                self.agent.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass  # It ended. The request that waits says so.

    def read(self):
        for line in self.agent.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" in message and "id" in message:
                threading.Thread(target=self.serve, args=(message,), daemon=True).start()
            elif "method" in message:
                self.updates.append(message)
            elif "id" in message:
                self.results[message["id"]] = message

    def begin(self, method, params):
        """Sends a request and returns its number."""
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": params})
        return self.next_id

    def wait(self, number, what, seconds=2 * PATIENCE):
        def answered():
            return number in self.results or self.agent.poll() is not None
        until(what, answered, seconds)
        if number not in self.results:
            err = self.err_path.read_text(errors="replace")
            raise TimedOut(f"the agent ended ({self.agent.returncode}) before it answered `{what}`: {err[-600:]}")
        message = self.results[number]
        if "error" in message:
            raise TimedOut(f"`{what}` failed: {json.dumps(message['error'])[:600]}")
        return message["result"]

    # --- What an editor does

    def open(self):
        """Begins a session."""
        can = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        self.wait(self.begin("initialize", {"protocolVersion": 1, "clientCapabilities": can}), "initialize")
        self.session = self.wait(self.begin("session/new", {"cwd": self.cwd, "mcpServers": []}), "session/new")["sessionId"]
        return self

    def prompt(self, text):
        """Sends a prompt. `finish` waits for the end of its turn."""
        self.turn = self.begin("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})

    def ended(self):
        return self.turn in self.results or self.agent.poll() is not None

    def finish(self):
        try:
            return self.wait(self.turn, "session/prompt")["stopReason"]
        finally:
            self.close()

    def close(self):
        self.agent.kill()
        self.agent.wait()

    def methods(self):
        return [method for method, _ in self.asked]

    # --- What it is asked

    def serve(self, message):
        params = message.get("params") or {}
        self.asked.append((message["method"], params))
        try:
            outcome = {"result": getattr(self, "serve_" + message["method"].replace("/", "_"))(params)}
        except AttributeError:
            outcome = {"error": {"code": -32601, "message": "no such method"}}
        except OSError as error:
            outcome = {"error": {"code": -32000, "message": str(error)}}
        self.send({"id": message["id"], **outcome})

    def serve_session_request_permission(self, params):
        fit = [option for option in params["options"] if option["kind"].startswith(self.answer)]
        return {"outcome": {"outcome": "selected", "optionId": fit[0]["optionId"]} if fit else {"outcome": "cancelled"}}

    def serve_fs_read_text_file(self, params):
        with open(params["path"], encoding="utf-8") as text:
            return {"content": text.read()}

    def serve_fs_write_text_file(self, params):
        with open(params["path"], "w", encoding="utf-8") as text:
            text.write(params["content"])
        return {}

    def serve_terminal_create(self, params):
        words = [params["command"], *params.get("args", [])]
        # A whole command line comes as one word from some agents.
        command = words if len(words) > 1 else ["sh", "-c", words[0]]
        more = {one["name"]: one["value"] for one in params.get("env") or []}
        name = f"terminal-{len(self.terminals) + 1}"
        self.terminals[name] = subprocess.Popen(command, cwd=params.get("cwd") or self.cwd, text=True,
                                                env={**self.workspace.env, **more}, stdin=subprocess.DEVNULL,
                                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return {"terminalId": name}

    def status(self, terminal):
        return {"exitCode": terminal.returncode, "signal": None}

    def serve_terminal_wait_for_exit(self, params):
        terminal = self.terminals[params["terminalId"]]
        terminal.printed = terminal.communicate()[0]
        return self.status(terminal)

    def serve_terminal_output(self, params):
        terminal = self.terminals[params["terminalId"]]
        ended = terminal.poll() is not None
        return {"output": getattr(terminal, "printed", ""), "truncated": False,
                **({"exitStatus": self.status(terminal)} if ended else {})}

    def serve_terminal_kill(self, params):
        self.terminals[params["terminalId"]].kill()
        return {}

    def serve_terminal_release(self, _params):
        return {}
