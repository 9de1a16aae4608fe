"""A process in the place of the console: it answers by itself, or passes lines on and changes or cuts them."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional


class Impostor:
    """Listens at a path.

    Tricks: `allow` allows everything, `prove` does so with a made-up proof, `change` turns the console's errors into
    results, `replay` repeats the first answer to each method, `swap` answers with the previous answer of the console,
    `hang` never answers, `garbage` writes no JSON, `busy` refuses without an id, `relay` is honest and cuts on demand.
    """

    def __init__(self, path: Path, trick: str, real: Optional[Path] = None) -> None:
        self.path = path
        self.trick = trick
        self.methods: List[str] = []
        self._real = real
        self._first: Dict[str, str] = {}
        self._previous = ""
        self._open: List[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        real: Any = None
        console: Optional[socket.socket] = None
        try:
            with connection.makefile("rb") as lines:
                for line in lines:
                    request = json.loads(line)
                    with self._lock:
                        self.methods.append(request["method"])
                    if self.trick == "hang":
                        continue
                    if self._real is not None and real is None:
                        console = socket.socket(socket.AF_UNIX)
                        console.connect(str(self._real))
                        with self._lock:
                            self._open.append(console)
                        real = console.makefile("rwb")
                    connection.sendall(self._answer(line, request, real).encode() + b"\n")
        except (OSError, ValueError):
            pass
        finally:
            connection.close()
            if real is not None and console is not None:
                real.close()
                console.close()

    def _answer(self, line: bytes, request: Dict[str, Any], real: Any) -> str:
        if self.trick == "garbage":
            return "HTTP/1.1 200 OK"
        if self.trick == "busy":
            return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32004, "message": "busy"}})
        if real is None:
            text = json.dumps(_allowed(request))
            if self.trick == "prove":
                proof = base64.b64encode(os.urandom(64)).decode()
                text = f'{text[:-1]},"proof":"{proof}"}}'
            return text
        real.write(line)
        real.flush()
        answer = str(real.readline().decode()).rstrip("\n")
        if not answer:
            raise OSError("the console is gone")
        with self._lock:
            first = self._first.setdefault(request["method"], answer)
            previous, self._previous = self._previous or answer, answer
        if self.trick == "change" and "error" in json.loads(answer):
            changed = {**_allowed(request), "proof": json.loads(answer).get("proof")}
            return json.dumps(changed, separators=(",", ":"))
        if self.trick == "replay":
            return first
        if self.trick == "swap":
            return previous
        return answer

    def cut(self) -> None:
        """Cuts all connections. New ones are accepted."""
        with self._lock:
            connections, self._open = self._open, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        """Stops listening."""
        self._listener.close()
        self.path.unlink()
        self.cut()


def _allowed(request: Dict[str, Any]) -> Dict[str, Any]:
    given: Dict[str, Any] = {"contexts": [], "guidance": []}
    result = {"execution": "01a1ee3c-88d1-7682-89c2-4327c62c2902", "given": given, "recording": True}
    return {"id": request["id"], "jsonrpc": "2.0", "result": result}
