"""Programs in tmux, worked by keys: the console with its operator, and agents with their own screens."""
import os
import re
import shlex
import signal
import subprocess

from lib.wait import TimedOut, happens, until


class Tmux:
    """A tmux server of its own, with the environment of a workspace."""

    def __init__(self, socket, env):
        self.socket, self.env = str(socket), env
        # A session that stays, so that the server does not end between two others.
        self.run("new-session", "-d", "-s", "stays", "exec tail -f /dev/null")
        self.run("set-option", "-g", "remain-on-exit", "on")

    def run(self, *words):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=30).stdout


class Screen:
    """A program in a pane of tmux."""

    def __init__(self, tmux, name, argv, cwd, width=150, height=48):
        self.tmux, self.name = tmux, name
        self.closed = False
        tmux.run("new-session", "-d", "-x", str(width), "-y", str(height), "-s", name, "-c", str(cwd),
                 f"exec {shlex.join(map(str, argv))}")

    def text(self, colours=False):
        return self.tmux.run("capture-pane", "-p", *(["-e"] if colours else []), "-t", self.name)

    def value(self, name):
        return self.tmux.run("display-message", "-p", "-t", self.name, f"#{{{name}}}").strip()

    def pid(self):
        return int(self.value("pane_pid"))

    def ended(self):
        return self.value("pane_dead") != "0"

    def keys(self, *names):
        self.tmux.run("send-keys", "-t", self.name, *names)

    def type(self, text):
        """Types a text and waits until it is on the screen."""
        def count():
            # A narrow field breaks lines: compare without spaces and frames.
            return re.sub(r"[\s│]", "", self.text()).count(re.sub(r"[\s│]", "", text)[-20:])
        before = count()
        self.tmux.run("send-keys", "-t", self.name, "-l", text)
        until(f"`{text}` on the screen of {self.name}", lambda: count() > before, 20)

    def shows(self, pattern):
        return re.search(pattern, self.text())

    def wait(self, pattern, seconds=60):
        return until(f"/{pattern}/ on the screen of {self.name}", lambda: self.shows(pattern), seconds)

    def press(self, key, pattern, seconds=60, again=5.0):
        """Presses a key until the screen shows the pattern: a program may drop keys while it starts a dialog."""
        def pressed():
            if self.shows(pattern):
                return True
            self.keys(key)
            return happens(lambda: self.shows(pattern), again)
        return until(f"/{pattern}/ on the screen of {self.name} after {key}", pressed, seconds, every=0)

    def close(self):
        if not self.closed:
            self.closed = True
            self.tmux.run("kill-session", "-t", self.name)


class Console(Screen):
    """The console. An operator decides at its keys, as a person does."""

    def __init__(self, workspace, atlases, name):
        self.workspace = workspace
        words = [word for atlas in atlases for word in ("--atlas", atlas)]
        super().__init__(workspace.tmux, name, [workspace.cra, "--operator", "tester", *words], workspace.home)
        self.wait(r"Held requests")
        until("the console's socket to answer", workspace.console_answers)

    # --- Decisions

    def select(self, gate):
        """Puts the cursor of the queue on that request."""
        row, here = rf"\[.\]\s+{gate}\s", rf"> \[.\]\s+{gate}\s"

        def selected():
            if self.shows(here):
                return True
            if not self.shows(r"> \[.\]\s+c-\d+"):
                self.keys("Escape")
            elif not self.shows(row):
                self.keys("u")
            else:
                self.keys("Home")
                for _ in range(20):
                    if happens(lambda: self.shows(here), 0.3):
                        return True
                    self.keys("Down")
            return happens(lambda: self.shows(here), 0.5)
        until(f"the cursor of the queue on {gate}", selected, every=0.1)

    def focus_marks(self):
        """Marks on the screen that tell where the focus is: the button drawn in reverse, and the cursor."""
        reverse = re.findall(r"\x1b\[[0-9;]*\b7m(\[ [^\x1b\]]*\])", self.text(colours=True))
        return reverse, self.tmux.run("display-message", "-p", "-t", self.name,
                                      "#{cursor_flag} #{cursor_x} #{cursor_y}").strip()

    def focus(self, button):
        """Moves the focus to a button with the Tab key."""
        for _ in range(30):
            marks = self.focus_marks()
            if any(one.startswith(f"[ {button}") for one in marks[0]):
                return
            self.keys("Tab")
            happens(lambda: self.focus_marks() != marks, 2, every=0.03)
        raise TimedOut(f"no focus on the button `{button}`")

    def answer(self, questions, text):
        """Answers the questions of the dialog, the first of which has the focus."""
        for at, question in enumerate(questions):
            if at:
                marks = self.focus_marks()
                self.keys("Tab")
                happens(lambda: self.focus_marks() != marks, 2, every=0.03)
            if question["response_type"] == "acknowledgment":
                before = self.text()
                self.keys("Space")
                until("the acknowledgment to be ticked", lambda: self.text() != before, 10)
            else:
                self.type(text)

    def open(self, gate):
        self.select(gate)
        self.press("Enter", r"Request (exactly|\(exact\))")
        self.wait(r"\bREADY\b")
        for _ in range(20):
            if not self.shows(r"seen (?!100)\d+ %"):
                return
            before = self.text()
            self.keys("PgDn")
            happens(lambda: self.text() != before, 2)
        raise TimedOut(f"the request {gate} has no end")

    def approve(self, gate, answer="approved by the test suite"):
        """Opens a request, answers its questions, and lets it pass."""
        questions = [question for held in self.workspace.queue(gate) for asked in held["gates"]
                     for question in asked["questions"]]
        self.open(gate)
        self.answer(questions, answer)
        self.focus("Pass")
        self.keys("Enter")
        until(f"the review of {gate}, or its end",
              lambda: self.shows(r"Review: what will be written") or not self.workspace.queue(gate), 20)
        if self.workspace.queue(gate):
            self.wait(r"\bREADY\b")
            while self.shows(r"scroll down first"):
                before = self.text()
                self.keys("PgDn")
                until("another page of the review", lambda: self.text() != before, 10)
            confirm = self.shows(r"To confirm, type (\w+)")
            if confirm:
                self.type(confirm.group(1))
            self.focus("Pass now")
            self.keys("Enter")
        until(f"{gate} to leave the queue", lambda: not self.workspace.queue(gate), 20)

    def deny(self, gate, reason="denied by the test suite"):
        """Denies a request, with a reason."""
        self.select(gate)
        self.press("d", r"Reason, (required|optional)")
        self.wait(r"\bREADY\b")
        self.type(reason)
        self.focus("Deny now")
        self.keys("Enter")
        until(f"{gate} to leave the queue", lambda: not self.workspace.queue(gate), 20)

    # --- Its end

    def quit(self):
        """Ends the console by its keys."""
        self.press("q", r"Quit the console|^\s*$|Pane is dead")
        if self.shows(r"Quit the console"):
            self.focus("Quit")
            self.keys("Enter")
        until("the end of the console", self.ended)
        self.close()

    def signal(self, number):
        os.kill(self.pid(), number)

    def kill(self):
        """Ends the console without a chance to say goodbye."""
        self.signal(signal.SIGKILL)
        until("the end of the console", self.ended)
        self.close()
