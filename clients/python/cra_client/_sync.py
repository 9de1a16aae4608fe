"""The client that blocks. All of it may be used from several threads."""

from __future__ import annotations

import functools
import os
import select
import socket
import threading
import time
from types import TracebackType
from typing import Any, Callable, List, Mapping, Optional, Sequence, Type, TypeVar, Union, cast

from ._arguments import ActionArguments
from ._calls import (
    Answers,
    AskAgent,
    Attempts,
    Call,
    Flow,
    SessionCalls,
    new_identity,
    new_reference,
    report_text,
)
from ._settings import Settings, make_settings
from ._wire import MAX_ANSWER_BYTES, ConnectionLost, JsonObject, Request, plain_copy
from .errors import ConsoleUnavailable, CraError, InvalidRequest, NotReported, QuestionsAsked
from .types import Accepted, Allowed, Answered, Given, Resolution, Started, Turned

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

OnQuestions = Callable[[QuestionsAsked], Optional[Answers]]

_TIMED_OUT = "the console did not answer in time"


class _Connection:
    """One connection. It carries one call at a time, so that leaving a call means closing it."""

    def __init__(self, path: str, deadline: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.connect(path)
        except socket.timeout:
            self.close()
            raise ConsoleUnavailable(_TIMED_OUT) from None
        except OSError as error:
            self.close()
            raise ConnectionLost(f"no console listens at `{path}` ({error.strerror or error})", sent=False) from None
        except BaseException:
            self.close()
            raise

    def is_idle(self) -> bool:
        """Returns whether the console has neither closed the connection nor said anything unasked."""
        try:
            return not select.select([self._socket], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def exchange(self, line: bytes, deadline: float) -> bytes:
        received = bytearray()
        # A request that was not sent to its end has no line feed, so the console cannot have taken it.
        is_sent = False
        try:
            self._socket.settimeout(_left(deadline))
            try:
                self._socket.sendall(line)
                is_sent = True
            except (BrokenPipeError, ConnectionResetError):
                # Perhaps the console said why before it closed.
                pass
            while not received.endswith(b"\n"):
                self._socket.settimeout(_left(deadline))
                some = self._socket.recv(1 << 16)
                if not some:
                    raise ConnectionLost("the console closed the connection", is_sent)
                received += some
                if len(received) > MAX_ANSWER_BYTES:
                    raise ConsoleUnavailable("the answer is too long")
        except socket.timeout:
            raise ConsoleUnavailable(_TIMED_OUT) from None
        except OSError:
            raise ConnectionLost("the console closed the connection", is_sent) from None
        return bytes(received)

    def close(self) -> None:
        self._socket.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ConsoleUnavailable(_TIMED_OUT)
    return left


class _Transport:
    """Connections to one console."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: List[_Connection] = []
        self._number = 0
        self._is_closed = False

    def call(self, call: Call, reconnect: Optional[float] = None) -> JsonObject:
        attempts = Attempts(call, self._settings.reconnect if reconnect is None else reconnect)
        while True:
            try:
                return self._attempt(call, attempts.deadline)
            except ConnectionLost as lost:
                pause = attempts.pause_after(lost)
            time.sleep(pause)

    def _attempt(self, call: Call, deadline: float) -> JsonObject:
        request = Request(self._next_number(), call.method, call.params, self._settings.key)
        connection = self._take(deadline)
        try:
            line = connection.exchange(request.line, deadline)
        except BaseException:
            connection.close()
            raise
        # A wrong or unsigned answer closes the connection, too: the next line might answer this request.
        try:
            result = request.read(line)
        except (ConsoleUnavailable, MemoryError):
            connection.close()
            raise
        except CraError:
            self._put_back(connection)
            raise
        self._put_back(connection)
        return result

    def _next_number(self) -> int:
        with self._lock:
            if self._is_closed:
                raise ConsoleUnavailable("this client was closed")
            self._number += 1
            return self._number

    def _take(self, deadline: float) -> _Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return _Connection(str(self._settings.socket), deadline)
            if connection.is_idle():
                return connection
            connection.close()

    def _put_back(self, connection: _Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class Console:
    """A client of a console. Make one with `Console.connect`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._transport = _Transport(settings)

    @classmethod
    def connect(
        cls,
        socket: Union[str, "os.PathLike[str]", None] = None,
        *,
        key: Optional[str] = None,
        action_timeout: float = 1800.0,
        call_timeout: float = 30.0,
        reconnect: float = 10.0,
    ) -> "Console":
        """Connects to the console, and verifies that it has the key.

        `socket` is by default where `cra` listens. `key` is the text that `cra trace key --answers` prints, by default
        from the variable CRA_ANSWER_KEY. Get it from the operator, never from the socket. After `action_timeout`
        seconds a request that is still held counts as denied. A lost connection is tried again for `reconnect` seconds.
        """
        console = cls(make_settings(socket, key, action_timeout, call_timeout, reconnect))
        try:
            console.status()
        except BaseException:
            console.close()
            raise
        return console

    def status(self) -> Optional[str]:
        """Returns None if the console can record, or its problem. A console that cannot record denies everything."""
        call = Call("status", {}, self._settings.call_timeout, retry=True)
        result = self._transport.call(call, reconnect=0.0)
        if result.get("recording") is True:
            return None
        return str(result.get("problem") or "the console does not record")

    def session(
        self,
        agent: str,
        *,
        intent: Optional[str] = None,
        version: Optional[str] = None,
        api_key: Optional[str] = None,
        session_id: Optional[str] = None,
        key: Optional[str] = None,
        on_questions: Optional[OnQuestions] = None,
        end_on_exit: bool = True,
    ) -> "Session":
        """Returns a session of an agent. It starts as a context manager, or with `start`.

        `session_id` and `key` resume a session. `on_questions` answers questions that the Atlas asks the agent.
        """
        identity = new_identity(agent, intent, version, api_key, session_id, key)
        calls = SessionCalls(identity, self._settings.call_timeout)
        return Session(self._transport, calls, self._settings, on_questions, end_on_exit)

    def close(self) -> None:
        """Closes the connections. Sessions stay open."""
        self._transport.close()

    def __enter__(self) -> "Console":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Session:
    """A session of an agent."""

    def __init__(
        self,
        transport: _Transport,
        calls: SessionCalls,
        settings: Settings,
        on_questions: Optional[OnQuestions],
        end_on_exit: bool,
    ) -> None:
        self._transport = transport
        self._calls = calls
        self._settings = settings
        self._on_questions = on_questions
        self._end_on_exit = end_on_exit
        self._lock = threading.Lock()
        self._given = Given()

    @property
    def session_id(self) -> str:
        """Name of the session in the record."""
        return self._calls.identity.session_id

    @property
    def key(self) -> str:
        """Secret of the session. Another process needs it to go on with the session."""
        return self._calls.identity.key

    def _run(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    value = self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(value)
        except StopIteration as stop:
            return cast(T, stop.value)

    def _perform(self, effect: Union[Call, AskAgent]) -> Any:
        if isinstance(effect, Call):
            return self._transport.call(effect)
        return None if self._on_questions is None else self._on_questions(effect.asked)

    def _keep(self, given: Given) -> None:
        if given:
            with self._lock:
                self._given += given

    def take_given(self) -> Given:
        """Returns the contexts and guidance that came since the last time, for the next prompt."""
        with self._lock:
            given, self._given = self._given, Given()
        return given

    def start(self) -> Started:
        """Starts the session, or resumes it."""
        started = self._run(self._calls.start())
        self._keep(started.given)
        return started

    def end(self, status: str = "completed", summary: Optional[str] = None) -> Given:
        """Ends the session: `completed`, `cancelled`, `error` or `timeout`."""
        given = self._run(self._calls.end(status, summary))
        self._keep(given)
        return given

    def __enter__(self) -> "Session":
        self.start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if not self._end_on_exit:
            return
        try:
            self.end("completed" if error is None else "error")
        except CraError:
            # The error of the block is the one that the caller needs.
            if error is None:
                raise

    def request(
        self,
        action: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        reference: Optional[str] = None,
        resolution: Optional[str] = None,
    ) -> "Run":
        """Asks to run an action, and waits while it is held. Only a returned run is a permission, for one run.

        Call `complete` or `fail` of the run afterwards. `action` does that automatically.
        """
        copied: JsonObject = plain_copy({} if params is None else params)
        wait = self._settings.action_timeout if timeout is None else timeout
        name = reference or new_reference()
        allowed = self._run(self._calls.request(action, copied, wait, name, resolution))
        self._keep(allowed.given)
        return Run(self, action, copied, name, allowed)

    def action(
        self,
        action: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        reference: Optional[str] = None,
        resolution: Optional[str] = None,
    ) -> "Action":
        """Returns a context manager that asks to run an action, and reports its outcome at the end of the block."""
        return Action(
            lambda: self.request(action, params, timeout=timeout, reference=reference, resolution=resolution)
        )

    def gate(
        self,
        action: str,
        *,
        timeout: Optional[float] = None,
        params: Optional[Callable[..., Mapping[str, Any]]] = None,
    ) -> Callable[[F], F]:
        """Decorates a function: each call asks first, with the arguments as parameters.

        `params` computes other parameters from the arguments. A denied call raises, and the function does not run.
        """

        def decorate(function: F) -> F:
            arguments = ActionArguments(function, params)

            @functools.wraps(function)
            def gated(*args: Any, **kwargs: Any) -> Any:
                with self.action(action, arguments.params(args, kwargs), timeout=timeout) as run:
                    arguments.check_unchanged(args, kwargs, run.params)
                    result = function(*args, **kwargs)
                    run.result(result)
                    return result

            return cast(F, gated)

        return decorate

    def input(self, text: str, source: str = "user", *, timeout: Optional[float] = None) -> Accepted:
        """Reports what the agent was given to do. Use `modified_input`, where there is one, in its place."""
        accepted = self._run(self._calls.input(text, source, timeout))
        self._keep(accepted.given)
        return accepted

    def context(
        self, *hints: str, query: Optional[str] = None, checkpoint: Optional[str] = None
    ) -> Accepted:
        """Asks for contexts by name or by words, or fires an interactive checkpoint."""
        accepted = self._run(self._calls.context(hints, query, checkpoint))
        self._keep(accepted.given)
        return accepted

    def feedback(
        self,
        context_id: str,
        helpful: bool,
        *,
        reason: Optional[str] = None,
        usage_outcome: Optional[str] = None,
    ) -> None:
        """Says whether a context helped."""
        self._run(self._calls.feedback(context_id, helpful, reason, usage_outcome))

    def resolve(
        self, actions: Optional[Sequence[Mapping[str, Any]]] = None, *, input: Optional[str] = None
    ) -> Resolution:
        """Asks what the agent may do now. It permits nothing."""
        return self._run(self._calls.resolve(actions, input))

    def answer_checkpoint(self, gate: str, answers: Answers) -> Answered:
        """Answers a gate that the agent may answer. Send the identical request again afterwards."""
        answered = self._run(self._calls.answer_checkpoint(gate, answers))
        self._keep(answered.given)
        return answered

    def turn(
        self, message: str, *, message_id: str, thread: Optional[str] = None, **fields: Any
    ) -> Turned:
        """Takes a turn of a thread. `cra turn --help` lists the fields."""
        turn = {"message_id": message_id, "message": message, **fields}
        turned = self._run(self._calls.turn(turn, thread))
        self._keep(turned.given)
        return turned

    def hand_over(self, to: str, thread: Optional[str] = None) -> None:
        """Hands a thread over to another session."""
        self._run(self._calls.hand_over(to, thread))

    def error(
        self,
        error_type: str,
        message: str,
        *,
        error_code: Optional[str] = None,
        recoverable: bool = False,
        stack_trace: Optional[str] = None,
    ) -> Accepted:
        """Reports an error. `recovered` takes the `error` of the result."""
        accepted = self._run(self._calls.error(error_type, message, error_code, recoverable, stack_trace))
        self._keep(accepted.given)
        return accepted

    def recovered(self, error: str, method: str, success: bool = True) -> None:
        """Says that a reported error was dealt with."""
        self._run(self._calls.recovered(error, method, success))

    def output(self, text: str, *, output_type: str = "text", contains_action: bool = False) -> None:
        """Reports what the agent produced. The record keeps a hash and a size."""
        self._run(self._calls.output(text, output_type, contains_action))

    def _report(self, execution: str, outcome: JsonObject) -> Given:
        try:
            given = self._run(self._calls.complete(execution, outcome))
        except CraError as error:
            raise NotReported(f"the run `{execution}` was not reported: {error}") from error
        self._keep(given)
        return given


class Run:
    """Permission for one run of an action. `params` is a copy of the parameters that were allowed."""

    def __init__(
        self, session: Session, action: str, params: JsonObject, reference: str, allowed: Allowed
    ) -> None:
        self._session = session
        self.action = action
        self.params = params
        self.reference = reference
        self.execution = allowed.execution
        self.given = allowed.given
        self.approved_by = allowed.approved_by
        self._result: Any = None
        self._is_reported = False

    def result(self, value: Any) -> None:
        """Keeps the result for the report at the end of the block."""
        self._result = value

    def complete(self, result: Any = None) -> Given:
        """Reports that the action ran. Later reports of the run do nothing."""
        return self._send({"result": report_text(self._result if result is None else result)})

    def fail(self, message: str, code: str = "error") -> Given:
        """Reports that the action failed. Later reports of the run do nothing."""
        return self._send({"error": {"code": report_text(code)[:200], "message": report_text(message)}})

    def _send(self, outcome: JsonObject) -> Given:
        if self._is_reported:
            return Given()
        self._is_reported = True
        return self._session._report(self.execution, outcome)


class Action:
    """Context manager of one action."""

    def __init__(self, ask: Callable[[], Run]) -> None:
        self._ask = ask
        self._run: Optional[Run] = None

    def __enter__(self) -> Run:
        if self._run is not None:
            raise InvalidRequest("one permission is one run: make a new action")
        self._run = self._ask()
        return self._run

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        assert self._run is not None
        if error is None:
            self._run.complete()
            return
        try:
            self._run.fail(str(error), type(error).__name__)
        except CraError:
            # The error of the block is the one that the caller needs.
            pass
