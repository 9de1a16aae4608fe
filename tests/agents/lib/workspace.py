"""A place of its own for one case: home, project, model, console, agent; and readers of what happened."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from lib.checks import Checks
from lib.console import Console, Screen, Tmux
from lib.model import Model
from lib.wait import PATIENCE, TimedOut, until

ROOT = Path(__file__).resolve().parents[3]
LIB = Path(__file__).resolve().parent
CODING_AGENTS = ROOT / "assets/atlas/coding-agents.yaml"


class Run:
    """An agent at work, without a terminal."""

    def __init__(self, workspace, argv, cwd, env, number):
        self.workspace = workspace
        self.out_path = workspace.folder / f"agent-{number}.out"
        with open(self.out_path, "wb") as out:
            self.process = subprocess.Popen([str(word) for word in argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    def ended(self):
        return self.process.poll() is not None

    def finish(self, seconds=2 * PATIENCE):
        """Waits until the agent ends, and returns its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimedOut(f"waited {seconds} s for the agent to end") from None

    def kill(self):
        """Ends the agent, and processes of the same program that it became; not the hooks that it started."""
        own = program_of(self.process.pid)
        same = [pid for pid in descendants(self.process.pid) if program_of(pid) == own]
        for pid in (self.process.pid, *same):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def program_of(pid):
    """The file that a process runs; None if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def descendants(pid):
    """The processes below a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    found = [int(child) for child in children]
    return found + [below for child in found for below in descendants(child)]


class Workspace:
    def __init__(self, agent, folder, cra):
        self.agent, self.folder = agent, Path(folder)
        self.checks = Checks(self.report)
        self.home = self.made("home")
        self.bin = self.made("bin")
        self.cra = self.bin / "cra"
        try:
            os.link(os.path.realpath(cra), self.cra)
        except OSError:
            shutil.copy2(cra, self.cra)
        # By the name that a user types: cra and the agents' own scripts look for it there.
        (self.bin / agent.program).symlink_to(agent.binary())
        self.model = Model()
        self.runs, self.screens = [], []
        self.env = {
            "PATH": ":".join(dict.fromkeys([str(self.bin), agent.node_folder(), "/usr/local/bin", "/usr/bin", "/bin"])),
            "HOME": str(self.home), "USER": "tester", "LOGNAME": "tester", "SHELL": "/bin/bash",
            "TERM": "xterm-256color", "LANG": "C.UTF-8", "TMPDIR": str(self.made("tmp")),
            # A commit asks for no name, and nothing waits at a pager.
            "GIT_AUTHOR_NAME": "tester", "GIT_AUTHOR_EMAIL": "tester@localhost", "GIT_COMMITTER_NAME": "tester",
            "GIT_COMMITTER_EMAIL": "tester@localhost", "GIT_PAGER": "cat", "PAGER": "cat",
            **agent.environment(self),
        }
        # Some agents run commands in a login shell.
        (self.home / ".profile").write_text(f'export PATH="{self.env["PATH"]}"\n')
        self.tmux = Tmux(self.folder / "tmux", self.env)
        self.console = None
        agent.prepare(self)

    def made(self, name):
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    # --- Checks

    def check(self, what, good, seen=""):
        return self.checks.check(what, good, seen)

    def report(self):
        """All that helps to understand a failure."""
        parts = []
        for screen in self.screens:
            if not screen.closed:
                rows = [row for row in screen.text().splitlines() if row.strip(" │╭╮╰╯─")]
                parts.append((f"screen of {screen.name}", "\n".join(rows)))
        for run in self.runs[-2:]:
            state = "runs" if not run.ended() else f"exit {run.process.returncode}"
            parts.append((f"output of the agent ({state})", run.out[-2500:]))
        parts.append(("last requests to the model", "\n".join(map(str, self.model.requests()[-6:]))))
        for words in (["queue"], ["doctor", self.agent.connects_as], ["trace", "list"]):
            done = self.run_cra(*words, cwd=self.home / "project")
            parts.append((f"cra {' '.join(words)} (exit {done.returncode})", (done.stdout + done.stderr)[:3000]))
        recorded = [f"{event['event_type']} {json.dumps(event.get('payload'))[:260]}" for event in self.events()[-40:]]
        parts.append(("the record", "\n".join(recorded)))
        return "\n".join(f"--- {name}\n{text}" for name, text in parts if text.strip())

    # --- cra

    def run_cra(self, *words, cwd=None, seconds=60, stdin=""):
        cwd = cwd if cwd and Path(cwd).is_dir() else self.home
        return subprocess.run([str(self.cra), *map(str, words)], cwd=cwd, env=self.env, capture_output=True, text=True,
                              timeout=seconds, input=stdin)

    def cra_json(self, *words):
        done = self.run_cra(*words, "--json")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")] \
            if not done.stdout.startswith("[") else json.loads(done.stdout)

    def console_answers(self):
        with socket.socket(socket.AF_UNIX) as door:
            try:
                door.connect(str(self.home / ".local/share/cra/run/console.sock"))
                return True
            except OSError:
                return False

    def start_console(self, atlas=None, name=None):
        """Starts a console with an operator at its keys. `atlas` is a path, a text, or the rules for coding agents."""
        if isinstance(atlas, str):
            path = self.folder / "atlas.yaml"
            path.write_text(atlas)
            lint = self.run_cra("atlas", "lint", path)
            assert lint.returncode == 0, lint.stdout + lint.stderr
            atlas = path
        name = name or f"console-{len(self.screens)}"
        self.console = Console(self, [atlas or CODING_AGENTS], name)
        self.screens.append(self.console)
        return self.console

    def queue(self, gate=None):
        """The held requests, or the one with that id, as a list."""
        done = self.run_cra("queue", "--json")
        rows = json.loads(done.stdout) if done.stdout.startswith("[") else []
        return [row for row in rows if row["state"] == "open" and gate in (None, row["id"])]

    def doctor(self, project=None):
        """What `cra doctor AGENT` says in that project: the exit code and the text."""
        done = self.run_cra("doctor", self.agent.connects_as, cwd=project or self.home / "project")
        return done.returncode, done.stdout + done.stderr

    # --- The record

    def sessions(self):
        return self.cra_json("trace", "list")

    def events(self):
        """Every event on record: this store is of this case alone."""
        sessions = sorted(self.sessions(), key=lambda session: session["started_at"])
        return [event for session in sessions for event in self.cra_json("trace", "show", session["session"])]

    def types(self):
        return [event["event_type"] for event in self.events()]

    def actions(self):
        """The actions that were asked for, by their names in the Atlas."""
        return [event["payload"].get("action_type") for event in self.events()
                if event["event_type"] == "action_attempted"]

    def check_record(self, *types, without=()):
        """Checks that events of these types are on record, that others are not, and that the record verifies."""
        seen = self.types()
        for one in types:
            self.check(f"the record has `{one}`", one in seen, seen)
        for one in without:
            self.check(f"the record has no `{one}`", one not in seen, seen)
        verify = self.run_cra("trace", "verify")
        self.check("the record verifies", verify.returncode == 0, verify.stdout + verify.stderr)

    # --- Projects and files

    def project(self, name="project", git=True):
        path = self.home / name
        path.mkdir(parents=True)
        if git:
            subprocess.run(["git", "init", "-q", str(path)], env=self.env, check=True)
        (path / "readme.txt").write_text("hello\n")
        self.agent.prepare_project(self, path)
        return path

    def connect(self, project, *options):
        done = self.run_cra("connect", self.agent.connects_as, "--yes", *options, cwd=project)
        if not self.check(f"`cra connect {self.agent.connects_as}` succeeds", done.returncode == 0,
                          done.stdout[-500:] + done.stderr[-500:]):
            raise AssertionError("the agent is not connected, so nothing can be looked at")
        return done

    def connected_project(self, *options, name="project", git=True, console=True, atlas=None):
        """A project whose agent asks cra, and that its user trusts. The console has to have run once for that."""
        if self.console is None:
            self.start_console(atlas)
        project = self.project(name, git)
        self.connect(project, *options)
        self.agent.trust(self, project)
        if not console:
            self.console.quit()
        return project

    def precious(self, name="precious"):
        """A folder in the home that an agent tries to delete. The rules for coding agents hold that."""
        folder = self.home / name
        folder.mkdir(exist_ok=True)
        (folder / "file").write_text("precious\n")
        return folder

    # --- The agent

    def start(self, prompt, cwd, *options, **environment):
        return self.start_command(self.agent.headless(prompt, *options), cwd, **environment)

    def start_command(self, argv, cwd, **environment):
        run = Run(self, argv, cwd, {**self.env, **environment}, len(self.runs))
        self.runs.append(run)
        return run

    def start_screen(self, argv, cwd, name="agent"):
        screen = Screen(self.tmux, name, argv, cwd)
        self.screens.append(screen)
        return screen

    def held(self, run=None, count=1, seconds=2 * PATIENCE):
        """Waits until something is held. Returns nothing if the agent ended before that."""
        def probe():
            # The order matters: an agent may ask and end between the two.
            ended = run is not None and run.ended()
            rows = self.queue()
            return (rows,) if len(rows) >= count or ended else None
        return until(f"{count} held requests", probe, seconds, every=0.2)[0]

    def check_held(self, run, what="the call is held"):
        """Waits for the request, and ends the case if the agent ends before one is held."""
        rows = self.held(run)
        if not self.check(what, rows):
            raise AssertionError("nothing was held, so the case ends here")
        return rows[0]

    def deny_all(self, run, reason="denied by the test suite"):
        """Denies what is asked for until the agent ends. Returns what was held."""
        seen = []
        while True:
            rows = self.held(run)
            if not rows:
                return seen
            seen.append(rows[0])
            self.console.deny(rows[0]["id"], reason)

    def hooks(self):
        """The processes of `cra hook` that still run."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 1 and words[0].endswith(b"/cra") and words[1] == b"hook":
                found.append(int(entry.name))
        return found

    def mcp_server(self):
        """The command of an MCP server with one tool, `touch {path}`, which makes a file."""
        return [sys.executable, str(LIB / "mcp_server.py")]
