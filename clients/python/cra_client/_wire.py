"""Requests and answers as bytes."""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Dict, Mapping, Optional

from ._proof import AnswerKey, new_challenge
from .errors import (
    AnswersRejected,
    ConsoleUnavailable,
    CraError,
    Denied,
    InvalidRequest,
    QuestionsAsked,
    UnverifiedAnswer,
)

JsonObject = Dict[str, Any]

# The console's own limits.
MAX_REQUEST_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64

# An answer carries contexts of an Atlas. Another process at the socket cannot fill the memory beyond this.
MAX_ANSWER_BYTES = 64 * 1024 * 1024

_DENIED = -32001
_ANSWER_FIRST = -32002
_INVALID_ANSWERS = -32003
_BUSY = -32004
_MALFORMED = (-32700, -32600, -32601, -32602)


class ConnectionLost(ConsoleUnavailable):
    """The connection failed. `sent` is False when the console cannot have taken the request."""

    def __init__(self, reason: str, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


def plain_copy(value: Any, path: str = "", depth: int = 0) -> Any:
    """Copies a JSON value. A value that JSON cannot carry unchanged is refused, with its path."""
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"`{path}` is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        # The console refuses other integers, and cannot sign a refusal of JSON that it cannot read exactly.
        if not -(2**63) <= value < 2**64:
            raise InvalidRequest(f"`{path}` is an integer of more than 64 bits: send it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequest(f"`{path}` is {value!r}, which JSON has no number for: send it as text")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [plain_copy(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
    if isinstance(value, Mapping):
        copied: JsonObject = {}
        for name, item in value.items():
            if not isinstance(name, str):
                raise InvalidRequest(f"the key {name!r} at `{path}` is not text")
            copied[str(name)] = plain_copy(item, f"{path}.{name}" if path else name, depth + 1)
        return copied
    raise InvalidRequest(f"`{path}` is of type {type(value).__name__}, which is no JSON value")


def exact_text(value: Any) -> str:
    """Returns JSON text that tells any two different values apart: `1`, `1.0` and `true`, too."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


class Request:
    """One request with its challenge, for one sending."""

    def __init__(self, number: int, method: str, params: JsonObject, key: AnswerKey) -> None:
        self._number = number
        self._key = key
        self._challenge = new_challenge()
        message = {
            "jsonrpc": "2.0",
            "id": number,
            "method": method,
            "params": params,
            "challenge": base64.b64encode(self._challenge).decode(),
        }
        try:
            text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            self._line = text.encode("utf-8")
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"the request cannot be written as JSON: {error}") from None
        if len(self._line) > MAX_REQUEST_BYTES:
            raise InvalidRequest(f"a request must have at most {MAX_REQUEST_BYTES} bytes")

    @property
    def line(self) -> bytes:
        """The request with its line feed."""
        return self._line + b"\n"

    def read(self, line: bytes) -> JsonObject:
        """Returns the verified result, or raises the reason why there is none."""
        if not line.endswith(b"\n"):
            raise ConnectionLost("the console closed the connection", sent=True)
        line = line[:-1]
        if _is_busy(line):
            # Unsigned, so that it says nothing but "not now".
            raise ConnectionLost("the console has too many connections", sent=False)
        answer = _object(self._key.verify(self._challenge, self._line, line))
        if answer is None or answer.get("id") != self._number:
            raise UnverifiedAnswer("the answer belongs to another request")
        if "error" in answer:
            raise fault(answer["error"])
        result = answer.get("result")
        if not isinstance(result, dict):
            raise ConsoleUnavailable("the answer has no result that this client knows")
        return result


def _object(text: bytes) -> Optional[JsonObject]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _is_busy(line: bytes) -> bool:
    answer = _object(line)
    if answer is None or answer.get("id") is not None:
        return False
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") == _BUSY


def fault(error: Any) -> CraError:
    """Returns the exception for an error of the console. Every error denies."""
    if not isinstance(error, dict):
        return ConsoleUnavailable("the answer has no error that this client knows")
    code, reason = error.get("code"), str(error.get("message", ""))
    found = error.get("data")
    data: JsonObject = found if isinstance(found, dict) else {}
    gate = data.get("gate")
    gate = gate if isinstance(gate, str) else None
    if code == _ANSWER_FIRST and isinstance(data.get("asked"), dict):
        return QuestionsAsked(reason, data["asked"])
    if code == _INVALID_ANSWERS:
        problems = data.get("problems")
        listed = problems if isinstance(problems, list) else []
        return AnswersRejected(reason, gate, [one for one in listed if isinstance(one, dict)])
    if code == _BUSY:
        return ConsoleUnavailable(reason)
    if code in _MALFORMED:
        return InvalidRequest(reason)
    help = data.get("help")
    deny_code = data.get("code")
    return Denied(
        reason or "denied",
        deny_code if code == _DENIED and isinstance(deny_code, str) else "denied",
        help if isinstance(help, str) else None,
        gate,
    )
