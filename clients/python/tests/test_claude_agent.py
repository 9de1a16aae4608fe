"""The bridge to the Claude Agent SDK, with the agent that the SDK brings along and a scripted model."""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

try:
    import claude_agent_sdk
except ImportError:
    raise unittest.SkipTest("claude-agent-sdk is not installed") from None

from . import ROOT
from .support import Background, ConsoleTest, wait_until
from console import TestConsole

from cra_client import InvalidRequest
from cra_client.claude_agent import claude_action, gate_options

# The agent needs several seconds to start on a slow machine.
DEADLINE_S = 120


def namespace() -> List[str]:
    """Returns the command that begins a network namespace, or skips the test where the system refuses it."""
    command = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        raise unittest.SkipTest("this system lets us make no network namespace")
    return command


class ClaudeAgent(ConsoleTest):
    def play(self, console: TestConsole, *replies: Dict[str, Any], **more: Any) -> Dict[str, Any]:
        """Runs the agent to its end."""
        folder = console.folder / f"agent-{self.id().split('.')[-1]}"
        (folder / "home").mkdir(parents=True)
        (folder / "work").mkdir()
        task = {
            "socket": str(console.socket),
            "key": console.key,
            "cwd": str(folder / "work"),
            "prompt": "go",
            "script": replies,
            **more,
        }
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
        }
        done = subprocess.run(
            [*namespace(), sys.executable, str(ROOT / "tests" / "claude_agent_run.py")],
            input=json.dumps(task),
            env=environment,
            cwd=str(folder / "work"),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        outcome: Dict[str, Any] = json.loads(done.stdout)
        return outcome

    def work(self, console: TestConsole) -> Path:
        return console.folder / f"agent-{self.id().split('.')[-1]}" / "work"

    @staticmethod
    def bash(command: str) -> Dict[str, Any]:
        return {"tools": [{"name": "Bash", "input": {"command": command, "description": "x"}}]}

    def test_calls_are_held_passed_and_denied(self) -> None:
        target = self.work(self.console) / "precious"
        running = Background(
            lambda: self.play(
                self.console,
                self.bash("echo harmless"),
                self.bash(f"touch {target} && rm {target} && echo removed"),
                self.bash("rm -rf /tmp/no-such-folder && echo gone"),
                {"tools": [{"name": "Write", "input": {"file_path": str(target), "content": "x"}}]},
            )
        )
        with running:
            [gate] = self.console.wait_for_held()
            [held] = self.console.held()
            self.assertEqual(held["action"], "shell.run")
            self.assertFalse(target.exists())
            self.console.pass_request(gate)
            wait_until("the next call", lambda: any(held["id"] != gate for held in self.console.held()))
            self.console.deny_request("keep that folder")
            self.console.wait_for_held(1, "file.write")
            [held] = self.console.held()
            self.assertEqual(held["subject"]["action"]["params"]["path"], str(target))
            self.console.deny_request("no files today")
        outcome = running.result
        harmless, removed, kept, unwritten = outcome["tools"]
        self.assertIn("harmless", harmless["text"])
        self.assertIn("removed", removed["text"])
        self.assertIn("keep that folder", kept["text"])
        self.assertIn("no files today", unwritten["text"])
        self.assertTrue(kept["is_error"] and unwritten["is_error"])
        self.assertFalse(target.exists())
        self.assertEqual(outcome["result"], "bye")
        done = self.console.payloads(outcome["session"], "action_completed")
        self.assertEqual([payload["action_type"] for payload in done], ["shell.run", "shell.run"])
        self.assertIn("removed", done[1]["result_summary"])

    def test_tools_that_the_agent_allows_itself_are_held_too(self) -> None:
        running = Background(
            lambda: self.play(
                self.console, self.bash("rm -f x && echo gone"), allowed_tools=["Bash", "Write"]
            )
        )
        with running:
            self.console.deny_request("not that way")
        [kept] = running.result["tools"]
        self.assertIn("not that way", kept["text"])

    def test_bypassed_permissions_are_held_too(self) -> None:
        running = Background(
            lambda: self.play(
                self.console, self.bash("rm -f x && echo gone"), permission_mode="bypassPermissions"
            )
        )
        with running:
            self.console.deny_request("not that way either")
        [kept] = running.result["tools"]
        self.assertIn("not that way either", kept["text"])

    def test_a_console_that_is_gone_denies(self) -> None:
        with TestConsole() as own:
            running = Background(lambda: self.play(own, self.bash("rm -f x && echo gone")))
            with running:
                own.wait_for_held()
                own.kill()
            [kept] = running.result["tools"]
            self.assertRegex(kept["text"], "cra: (no console listens|the console closed)")


class Translation(unittest.TestCase):
    def test_tools_become_the_actions_of_coding_agents(self) -> None:
        cases: List[Tuple[str, Dict[str, Any], str, str, str]] = [
            ("Bash", {"command": "ls"}, "shell.run", "command", "ls"),
            ("Read", {"file_path": "a/../b"}, "file.read", "path", "/w/b"),
            ("NotebookEdit", {"notebook_path": "/n"}, "file.write", "path", "/n"),
            ("Glob", {"pattern": "*.py", "path": "src"}, "file.read", "path", "/w/src/*.py"),
            ("Grep", {"pattern": "x"}, "file.read", "path", "/w"),
            ("WebFetch", {"url": "https://x"}, "web.fetch", "url", "https://x"),
            ("Task", {"prompt": "do"}, "agent.run", "prompt", "do"),
            ("mcp__files__read.all", {}, "mcp.files.read_all", "tool", "mcp__files__read.all"),
            ("TodoWrite", {}, "tool.TodoWrite", "tool", "TodoWrite"),
        ]
        for name, arguments, action, key, value in cases:
            found, params = claude_action(name, arguments, "/w")
            self.assertEqual((found, params[key]), (action, value))
        _, params = claude_action("Bash", {"command": "ls", "cwd": "/etc"}, "/w")
        self.assertEqual((params["cwd"], params["asked_cwd"]), ("/w", "/etc"))
        wrong: List[Tuple[str, Dict[str, Any]]] = [("Bash", {}), ("Read", {"file_path": 3}), ("WebFetch", {"url": ""})]
        for name, arguments in wrong:
            with self.assertRaises(InvalidRequest):
                claude_action(name, arguments, "/w")

    def test_two_decisions_are_not_combined(self) -> None:
        options = claude_agent_sdk.ClaudeAgentOptions(can_use_tool=lambda *_: None)  # type: ignore[arg-type]
        with self.assertRaises(InvalidRequest):
            gate_options(options, session=None)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
