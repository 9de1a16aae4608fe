"""Helpers of the tests."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Any, Callable, ClassVar, Optional

from console import DEADLINE_S, TestConsole

from cra_client import Console, Session


class ConsoleTest(unittest.TestCase):
    """Tests that share one console. Each test leaves no held request behind."""

    console: ClassVar[TestConsole]

    @classmethod
    def setUpClass(cls) -> None:
        cls.console = TestConsole()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.console.close()

    def connect(self, **options: Any) -> Console:
        """Returns a client of the console."""
        options.setdefault("key", self.console.key)
        options.setdefault("socket", self.console.socket)
        client = Console.connect(**options)
        self.addCleanup(client.close)
        return client

    def session(self, **options: Any) -> Session:
        """Returns a started session."""
        session = self.connect().session("bot", **options)
        session.start()
        return session


class Background:
    """A function in another thread. Leaving the block waits for it and raises what it raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error

    def __enter__(self) -> "Background":
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.join()

    def join(self) -> None:
        """Waits for the end."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "it never ended"
        if self.error is not None:
            raise self.error

    @property
    def is_running(self) -> bool:
        """True until the function has ended."""
        return self._thread.is_alive()


def wait_until(what: str, is_true: Callable[[], Any]) -> None:
    """Waits for a state."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline, f"time is up, and never: {what}"
        time.sleep(0.01)
