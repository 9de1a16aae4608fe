"""A real console in a pseudo-terminal, worked line by line as an operator does it.

Tests in Python import `TestConsole`. Tests in other languages start this file and send it one JSON command on each line:
`{"do": "pass", "gate": "c-1"}`. It answers each with one line.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

HERE = Path(__file__).resolve().parent
ATLAS = HERE / "atlas.yaml"

# Longest wait for a state, on the slowest machine. A test that passes never waits for it.
DEADLINE_S = 60.0


def find_program() -> str:
    """Returns the program to test."""
    return os.environ.get("CRA_BIN") or str(HERE.parent.parent / "target" / "release" / "cra")


class TestConsole:
    """A console with a data folder of its own."""

    # No test class, although its name begins like one.
    __test__ = False

    def __init__(self, *options: str, atlas: Path = ATLAS) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cra-clients-"))
        self.data = self.folder / "data"
        self.socket = self.data / "run" / "console.sock"
        self._options = [*options, "--atlas", str(atlas)]
        (self.folder / "home").mkdir()
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._master = -1
        self._changed = threading.Condition()
        self._text = ""
        self._is_over = True
        self._reader: Optional[threading.Thread] = None
        self.start()
        self.key = self.run("trace", "key", "--answers").strip()

    def _environment(self) -> Dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder),
        }

    def start(self) -> None:
        """Starts the console, also after `kill`."""
        master, slave = pty.openpty()
        command = [find_program(), "--linear", "--operator", "op-1", "--data-dir", str(self.data), *self._options]
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._environment(),
            cwd=str(self.folder / "home"),
            start_new_session=True,
        )
        os.close(slave)
        self._master = master
        self._text = ""
        self._is_over = False
        self._reader = threading.Thread(target=self._read, args=(master,), daemon=True)
        self._reader.start()
        self.wait_for("Type help for the commands")
        self._wait_until("its socket", self.socket.exists)

    def _read(self, master: int) -> None:
        while True:
            try:
                some = os.read(master, 1 << 16)
            except OSError:
                some = b""
            with self._changed:
                if not some:
                    self._is_over = True
                else:
                    self._text += some.decode("utf-8", "replace").replace("\r", "")
                self._changed.notify_all()
            if not some:
                return

    def wait_for(self, pattern: str, since: int = 0) -> "re.Match[str]":
        """Waits until the console has written a text that matches."""
        deadline = time.monotonic() + DEADLINE_S
        with self._changed:
            while True:
                found = re.search(pattern, self._text[since:])
                if found:
                    return found
                left = deadline - time.monotonic()
                if self._is_over or left <= 0:
                    why = "the console ended" if self._is_over else "time is up"
                    raise AssertionError(f"{why}, and never `{pattern}`:\n{self._text[since:]}")
                self._changed.wait(left)

    @staticmethod
    def _wait_until(what: str, is_true: Any) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not is_true():
            assert time.monotonic() < deadline, f"time is up, and never: {what}"
            time.sleep(0.02)

    def _mark(self) -> int:
        with self._changed:
            return len(self._text)

    def _type(self, line: str, wanted: str) -> "re.Match[str]":
        since = self._mark()
        os.write(self._master, line.encode() + b"\r")
        return self.wait_for(wanted, since)

    def run(self, *arguments: str) -> str:
        """Runs a command on the same store, and returns its output."""
        done = subprocess.run(
            [find_program(), *arguments, "--data-dir", str(self.data)],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def held(self) -> List[Dict[str, Any]]:
        """Returns the held requests, as `cra queue` lists them."""
        listed = json.loads(self.run("queue", "--json"))
        return list(listed)

    def wait_for_held(self, count: int = 1, action: Optional[str] = None) -> List[str]:
        """Waits until this many requests are held, and returns their names."""
        found: List[str] = []

        def enough() -> bool:
            found[:] = [
                str(held["id"]) for held in self.held() if action is None or held["action"] == action
            ]
            return len(found) == count

        self._wait_until(f"{count} held requests", enough)
        return found

    def wait_for_joined(self, times: int) -> None:
        """Waits until the only held request was joined this many times."""
        self._wait_until(f"joined {times} times", lambda: [held["joined"] for held in self.held()] == [times])

    def pass_request(self, gate: Optional[str] = None) -> str:
        """Passes a request, as an operator does it."""
        gate = gate or self.wait_for_held()[0]
        self._type(f"pass {gate}", r"Question 1 of 1")
        self._type("understood", rf"Type pass to let {gate} pass")
        self._type("pass", rf"Recorded\. {gate}\b")
        return gate

    def deny_request(self, reason: str, gate: Optional[str] = None) -> str:
        """Denies a request, with a reason."""
        gate = gate or self.wait_for_held()[0]
        self._type(f"deny {gate}", r"Enter the reason")
        self._type(reason, rf"Type deny to deny {gate}")
        self._type("deny", rf"Recorded\. {gate}\b")
        return gate

    def events(self, session: str) -> List[Dict[str, Any]]:
        """Returns the record of a session."""
        lines = self.run("trace", "show", session, "--json").rstrip("\n").split("\n")
        return [_with_numbers(json.loads(line)) for line in lines]

    def payloads(self, session: str, event_type: str) -> List[Dict[str, Any]]:
        """Returns the payloads of one type of event."""
        return [event["payload"] for event in self.events(session) if event["event_type"] == event_type]

    def kill(self) -> None:
        """Ends the console at once, without a word to agents."""
        assert self._process is not None and self._reader is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join(DEADLINE_S)
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def pause(self) -> None:
        """Stops the console, so that it is there and does not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused console go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends the console and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "TestConsole":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_numbers(event: Dict[str, Any]) -> Dict[str, Any]:
    """Returns an event with its numbers. The record writes numbers that other readers would round as text."""
    payload = event["payload"]
    for path in payload.get("numbers_as_text", []):
        *parts, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        place: Any = payload
        for part in parts:
            place = place[part]
        place[last] = json.loads(place[last])
    return event


def _perform(console: TestConsole, command: Dict[str, Any]) -> Any:
    do = command["do"]
    if do == "pass":
        return console.pass_request(command.get("gate"))
    if do == "deny":
        return console.deny_request(command["reason"], command.get("gate"))
    if do == "held":
        return console.wait_for_held(command.get("count", 1), command.get("action"))
    if do == "list":
        return console.held()
    if do == "texts":
        [attempt] = console.payloads(command["session"], "action_attempted")
        return {name: str(value) for name, value in attempt["action_params"].items()}
    if do == "joined":
        return console.wait_for_joined(command["times"])
    if do == "payloads":
        return console.payloads(command["session"], command["type"])
    if do in ("start", "kill", "pause", "resume"):
        getattr(console, do)()
        return None
    raise ValueError(f"unknown command `{do}`")


def main() -> None:
    """Serves commands until the standard input ends."""
    with TestConsole() as console:
        ready = {"socket": str(console.socket), "key": console.key, "folder": str(console.folder)}
        print(json.dumps(ready), flush=True)
        for line in sys.stdin:
            try:
                answer = {"ok": _perform(console, json.loads(line))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
