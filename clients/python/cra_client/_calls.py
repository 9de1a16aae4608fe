"""The calls of a session, without input and output.

Each call is a generator that yields requests and gets their results. A driver sends them: one blocks, the other uses
asyncio. So both clients make exactly the same calls, retries and refusals.
"""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Generator, List, Mapping, Optional, Sequence, TypeVar, Union

from ._wire import ConnectionLost, JsonObject, exact_text, plain_copy
from .errors import AnswersRejected, ConsoleUnavailable, Denied, QuestionsAsked
from .types import (
    Accepted,
    Allowed,
    Answered,
    Given,
    Resolution,
    Started,
    Turned,
    accepted_in,
    answered_in,
    given_in,
    resolution_in,
    started_in,
    turned_in,
)

T = TypeVar("T")

Answers = Mapping[str, Mapping[str, Any]]

# Time that the console has for an answer after the deadline that it was told.
GRACE_S = 5.0

# The console takes reports of at most 64 KiB.
MAX_REPORT_BYTES = 60_000
_CUT = " ... (cut by the client)"

# Answers of the agent to one gate, until the client gives up.
MAX_ANSWERS = 3

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


class Call:
    """A request to send. `retry` tells whether it may be sent again when the connection was lost on the way."""

    def __init__(self, method: str, params: JsonObject, timeout: float, retry: bool) -> None:
        self.method = method
        self.params = params
        self.timeout = timeout
        self.retry = retry
        self.was_repeated = False


@dataclass(frozen=True)
class AskAgent:
    """Questions that the agent has to answer. The result is the answers, or None."""

    asked: QuestionsAsked


Flow = Generator[Union[Call, AskAgent], Any, T]


class Attempts:
    """Decides whether a call is sent again after its connection was lost, and until when."""

    def __init__(self, call: Call, reconnect: float) -> None:
        self._call = call
        self._reconnect = reconnect
        self._lost_at: Optional[float] = None
        self._pause = _FIRST_PAUSE_S
        self.deadline = time.monotonic() + call.timeout

    def pause_after(self, lost: ConnectionLost) -> float:
        """Returns how long to wait before the next attempt, or raises the reason why there is none."""
        if lost.sent and not self._call.retry:
            reason = f"{lost}; the console may have taken `{self._call.method}`"
            raise ConsoleUnavailable(reason) from lost
        now = time.monotonic()
        self._lost_at = now if self._lost_at is None or lost.sent else self._lost_at
        if lost.sent:
            self._call.was_repeated = True
            self._pause = _FIRST_PAUSE_S
        end = min(self._lost_at + self._reconnect, self.deadline)
        if now + self._pause >= end:
            raise ConsoleUnavailable(str(lost)) from lost
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_S)
        return pause


def new_reference() -> str:
    """Returns a name for a run that no other run has."""
    return f"run-{uuid.uuid4().hex}"


def report_text(value: Any) -> str:
    """Returns a value as the text of a report. Long texts are cut."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = exact_text(plain_copy(value))
        except Exception:
            text = repr(value)
    # Text that is not Unicode must not keep a run from being reported.
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > MAX_REPORT_BYTES:
        return encoded[:MAX_REPORT_BYTES].decode("utf-8", "ignore") + _CUT
    return encoded.decode("utf-8")


def _deadline(timeout: float) -> str:
    try:
        at = datetime.now(timezone.utc) + timedelta(seconds=timeout)
    except OverflowError:
        at = datetime.max.replace(tzinfo=timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _without_none(params: JsonObject) -> JsonObject:
    return {name: value for name, value in params.items() if value is not None}


@dataclass(frozen=True)
class Identity:
    """Names of an agent and its session."""

    agent: str
    session_id: str
    key: str
    intent: Optional[str] = None
    version: Optional[str] = None
    api_key: Optional[str] = None


def new_identity(
    agent: str,
    intent: Optional[str],
    version: Optional[str],
    api_key: Optional[str],
    session_id: Optional[str],
    key: Optional[str],
) -> Identity:
    """Creates an identity. The client chooses name and key, so that a lost `session.start` can be repeated."""
    if key is not None and session_id is None:
        raise ValueError("a key belongs to a session: give its `session_id`, too")
    return Identity(
        agent, session_id or uuid.uuid4().hex, key or secrets.token_hex(16), intent, version, api_key
    )


class SessionCalls:
    """The calls of one session."""

    def __init__(self, identity: Identity, call_timeout: float) -> None:
        self.identity = identity
        self._call_timeout = call_timeout

    def _call(self, method: str, params: JsonObject, retry: bool, timeout: Optional[float] = None) -> Call:
        whole = _without_none(params)
        whole["session"] = self.identity.session_id
        whole["key"] = self.identity.key
        return Call(method, whole, self._call_timeout if timeout is None else timeout, retry)

    def start(self) -> Flow[Started]:
        """Starts the session, or resumes it."""
        me = self.identity
        params = {"agent": me.agent, "intent": me.intent, "version": me.version, "api_key": me.api_key}
        result: JsonObject = yield self._call("session.start", params, retry=True)
        return started_in(result)

    def end(self, status: str, summary: Optional[str]) -> Flow[Given]:
        """Ends the session. Ending it twice is no error."""
        try:
            result: JsonObject = yield self._call(
                "session.end", {"status": status, "summary": summary}, retry=True
            )
        except Denied as denied:
            if denied.code != "ended":
                raise
            return Given()
        return given_in(result)

    def request(
        self,
        action: str,
        params: JsonObject,
        timeout: float,
        reference: str,
        resolution: Optional[str],
    ) -> Flow[Allowed]:
        """Asks to run an action, answers questions to the agent, and returns the permission."""
        end = time.monotonic() + timeout
        deadline = _deadline(timeout)
        while True:
            left = max(end - time.monotonic(), 0.0)
            asking = self._call(
                "action.request",
                {
                    "action": action,
                    "params": params,
                    "deadline": deadline,
                    "reference": reference,
                    "resolution": resolution,
                },
                retry=True,
                timeout=left + GRACE_S,
            )
            try:
                result: JsonObject = yield asking
            except QuestionsAsked as asked:
                result = yield from self._answer(asked, end)
                if "execution" not in result:
                    if time.monotonic() >= end:
                        raise Denied("the time of the request is up", "expired", gate=asked.gate) from None
                    continue
            return _allowed_in(result)

    def _answer(self, asked: QuestionsAsked, end: float) -> Flow[JsonObject]:
        for _ in range(MAX_ANSWERS):
            answers = yield AskAgent(asked)
            if answers is None:
                break
            params = {"gate": asked.gate, "answers": plain_copy(answers)}
            left = max(end - time.monotonic(), 0.0)
            try:
                result: JsonObject = yield self._call(
                    "checkpoint.answer", params, retry=False, timeout=left + GRACE_S
                )
            except AnswersRejected as rejected:
                asked = QuestionsAsked(str(rejected), asked.asked, rejected.problems)
                continue
            return result
        raise asked

    def complete(self, execution: str, outcome: JsonObject) -> Flow[Given]:
        """Reports the result of a run."""
        call = self._call("action.completed", {"execution": execution, **outcome}, retry=True)
        try:
            result: JsonObject = yield call
        except Denied as denied:
            # The first of two reports was taken, and its answer was lost.
            if call.was_repeated and denied.code == "bad_request":
                return Given()
            raise
        return given_in(result)

    def input(self, text: str, source: str, timeout: Optional[float]) -> Flow[Accepted]:
        """Reports what the agent was given to do."""
        result: JsonObject = yield self._call(
            "input", {"text": text, "source": source}, retry=False, timeout=timeout
        )
        return accepted_in(result)

    def context(
        self, hints: Sequence[str], query: Optional[str], checkpoint: Optional[str]
    ) -> Flow[Accepted]:
        """Asks for contexts."""
        params = {"hints": list(hints) or None, "query": query, "checkpoint": checkpoint}
        result: JsonObject = yield self._call("context.request", params, retry=checkpoint is None)
        return accepted_in(result)

    def feedback(
        self, context_id: str, helpful: bool, reason: Optional[str], usage_outcome: Optional[str]
    ) -> Flow[None]:
        """Says whether a context helped."""
        params = {
            "context_id": context_id,
            "helpful": helpful,
            "reason": reason,
            "usage_outcome": usage_outcome,
        }
        yield self._call("context.feedback", params, retry=False)

    def resolve(
        self, actions: Optional[Sequence[Mapping[str, Any]]], text: Optional[str]
    ) -> Flow[Resolution]:
        """Asks what the agent may do now."""
        listed: Optional[List[Any]] = None if actions is None else plain_copy(list(actions))
        result: JsonObject = yield self._call("resolve", {"actions": listed, "input": text}, retry=True)
        return resolution_in(result)

    def answer_checkpoint(self, gate: str, answers: Answers) -> Flow[Answered]:
        """Answers a gate. The answers release the identical request, when it is sent again."""
        params = {"gate": gate, "answers": plain_copy(answers), "release": "repeat"}
        result: JsonObject = yield self._call("checkpoint.answer", params, retry=False)
        return answered_in(result)

    def turn(self, turn: Mapping[str, Any], thread: Optional[str]) -> Flow[Turned]:
        """Takes a turn of a thread."""
        result: JsonObject = yield self._call(
            "turn", {"turn": plain_copy(turn), "thread": thread}, retry=False
        )
        return turned_in(result)

    def hand_over(self, to: str, thread: Optional[str]) -> Flow[None]:
        """Hands a thread over to another session."""
        yield self._call("thread.hand_over", {"to": to, "thread": thread}, retry=False)

    def error(
        self,
        error_type: str,
        message: str,
        error_code: Optional[str],
        recoverable: bool,
        stack_trace: Optional[str],
    ) -> Flow[Accepted]:
        """Reports an error."""
        params = {
            "error_type": error_type,
            "message": report_text(message),
            "error_code": error_code,
            "recoverable": recoverable,
            "stack_trace": None if stack_trace is None else report_text(stack_trace),
        }
        result: JsonObject = yield self._call("error", params, retry=False)
        return accepted_in(result)

    def recovered(self, error: str, method: str, success: bool) -> Flow[None]:
        """Says that an error was dealt with."""
        params: Dict[str, Any] = {"error": error, "method": method, "success": success}
        yield self._call("error.recovered", params, retry=False)

    def output(self, text: str, output_type: str, contains_action: bool) -> Flow[None]:
        """Reports what the agent produced."""
        params = {"text": text, "output_type": output_type, "contains_action": contains_action}
        yield self._call("output", params, retry=False)


def _allowed_in(result: JsonObject) -> Allowed:
    execution = result.get("execution")
    if not isinstance(execution, str) or not execution:
        raise ConsoleUnavailable("the answer names no execution, so nothing is allowed")
    approved_by = result.get("approved_by")
    return Allowed(execution, given_in(result), approved_by if isinstance(approved_by, str) else None)
