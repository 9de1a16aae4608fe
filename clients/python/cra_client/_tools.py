"""Tool calls of a model as actions, for the bridges to agent frameworks."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from ._async import AsyncRun, AsyncSession
from ._wire import JsonObject, exact_text, plain_copy
from .errors import CraError, Denied, InvalidRequest

#: Action and parameters of a tool call.
ToolAction = Tuple[str, Mapping[str, Any]]

#: Names of actions by name of the tool, or a function that computes action and parameters.
ToolActions = Union[Mapping[str, str], Callable[[str, JsonObject], ToolAction]]


def safe_name(name: str) -> str:
    """Replaces characters that an action name cannot have."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def tool_action(actions: Optional[ToolActions], name: str, arguments: JsonObject) -> ToolAction:
    """Returns the action of a tool call. A tool without a name in `actions` is `tool.NAME`."""
    if callable(actions):
        return actions(name, arguments)
    return (actions or {}).get(name) or f"tool.{safe_name(name)}", arguments


def denial_text(error: CraError) -> str:
    """Returns the reason for the model."""
    reason = error.explanation if isinstance(error, Denied) else str(error)
    return f"cra: {reason}"


class ToolGate:
    """Asks the console about tool calls, and remembers what was allowed until it is reported."""

    def __init__(
        self, session: AsyncSession, actions: Optional[ToolActions], timeout: Optional[float]
    ) -> None:
        self._session = session
        self._actions = actions
        self._timeout = timeout
        self._allowed: Dict[str, Tuple[AsyncRun, str]] = {}
        self._started: Dict[str, AsyncRun] = {}

    async def ask(self, call_id: str, name: str, arguments: Any) -> Optional[str]:
        """Returns None when the call may run, or the reason why not."""
        try:
            if not call_id or call_id in self._allowed or call_id in self._started:
                raise InvalidRequest(f"the tool call `{call_id}` has no identifier of its own")
            copied = plain_copy(arguments)
            if not isinstance(copied, dict):
                raise InvalidRequest("the arguments of a tool must be an object")
            action, params = tool_action(self._actions, name, copied)
            run = await self._session.request(action, params, timeout=self._timeout)
        except CraError as error:
            return denial_text(error)
        self._allowed[call_id] = (run, _fingerprint(name, copied))
        return None

    def knows(self, call_id: str) -> bool:
        """Returns whether the call was allowed and not reported yet."""
        return call_id in self._allowed or call_id in self._started

    def start(self, call_id: str, name: str, arguments: Any) -> None:
        """Uses the permission of a call, once. Raises if there is none for exactly this call."""
        run, fingerprint = self._allowed.pop(call_id, (None, ""))
        if run is None:
            raise Denied(f"the console has not allowed this call of `{name}`", "withdrawn")
        self._started[call_id] = run
        if fingerprint != _fingerprint(name, plain_copy(arguments)):
            raise Denied(f"the call of `{name}` changed after it was allowed", "changed")

    async def complete(self, call_id: str, result: Any) -> None:
        """Reports the result of a call."""
        run = self._take(call_id)
        if run is not None:
            await run.complete(result)

    async def fail(self, call_id: str, message: str) -> None:
        """Reports the failure of a call."""
        run = self._take(call_id)
        if run is not None:
            await run.fail(message)

    async def fail_rest(self) -> None:
        """Reports allowed calls without a result as failed."""
        rest = [call_id for call_id in [*self._allowed, *self._started]]
        failures = [self.fail(call_id, "the tool did not return a result") for call_id in rest]
        await asyncio.gather(*failures, return_exceptions=True)

    def _take(self, call_id: str) -> Optional[AsyncRun]:
        allowed = self._allowed.pop(call_id, None)
        started = self._started.pop(call_id, None)
        return allowed[0] if allowed else started


def _fingerprint(name: str, arguments: Any) -> str:
    return exact_text([name, arguments])
