"""Bridge to LangChain and LangGraph: tool calls that interrupt the agent wait for the console.

    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from cra_client.langchain import invoke

    agent = create_agent(
        model,
        tools=[refund],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"refund": True})],
        checkpointer=InMemorySaver(),
    )
    result = invoke(agent, {"messages": [...]}, config, session=session, actions={"refund": "payments.refund"})

`HumanInTheLoopMiddleware` stops the agent before the tools that `interrupt_on` names. `invoke` asks the console about
each stopped call, and resumes with its decision. The model gets the reason of a denial. Both interrupt modes work.
A tool that `interrupt_on` does not name runs without asking.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command

from ._async import AsyncRun, AsyncSession
from ._sync import Run, Session
from ._tools import ToolActions, denial_text, tool_action
from ._wire import plain_copy
from .errors import CraError, InvalidRequest

__all__ = ["ainvoke", "invoke"]

# Calls of one turn that wait at a time.
_MAX_THREADS = 16


@dataclass(frozen=True)
class _Call:
    """One stopped tool call."""

    interrupt_id: str
    is_batched: bool
    name: str
    arguments: Any
    call_id: Optional[str]


_Outcome = Tuple[_Call, Union[Run, AsyncRun, str]]


def invoke(
    agent: Any,
    input: Any,
    config: Any = None,
    *,
    session: Session,
    actions: Optional[ToolActions] = None,
    timeout: Optional[float] = None,
    **options: Any,
) -> Any:
    """Runs an agent as its `invoke` does, and asks the console about each call that interrupts it."""

    def decide(call: _Call) -> Union[Run, str]:
        try:
            action, params = _action_of(actions, call)
            return session.request(action, params, timeout=timeout)
        except CraError as error:
            return denial_text(error)

    result = agent.invoke(input, config, **options)
    while True:
        calls = _stopped_calls(result)
        if not calls:
            return result
        with ThreadPoolExecutor(min(len(calls), _MAX_THREADS)) as threads:
            outcomes: List[_Outcome] = list(zip(calls, threads.map(decide, calls)))
        runs = [(call, run) for call, run in outcomes if isinstance(run, Run)]
        try:
            result = agent.invoke(Command(resume=_answers(outcomes)), config, **options)
        except BaseException:
            for _, run in runs:
                _ignore_errors(run)
            raise
        messages = _tool_messages(result)
        for call, run in runs:
            message = messages.get(call.call_id or "")
            if message is None:
                run.complete()
            elif message.status == "error":
                run.fail(_text_of(message))
            else:
                run.complete(_text_of(message))


def _ignore_errors(run: Run) -> None:
    try:
        run.fail("the tool did not return a result")
    except CraError:
        # The error of the agent is the one that the caller needs.
        pass


async def ainvoke(
    agent: Any,
    input: Any,
    config: Any = None,
    *,
    session: AsyncSession,
    actions: Optional[ToolActions] = None,
    timeout: Optional[float] = None,
    **options: Any,
) -> Any:
    """Runs an agent as its `ainvoke` does, and asks the console about each call that interrupts it."""

    async def decide(call: _Call) -> Union[AsyncRun, str]:
        try:
            action, params = _action_of(actions, call)
            return await session.request(action, params, timeout=timeout)
        except CraError as error:
            return denial_text(error)

    result = await agent.ainvoke(input, config, **options)
    while True:
        calls = _stopped_calls(result)
        if not calls:
            return result
        decided = await asyncio.gather(*(decide(call) for call in calls))
        outcomes: List[_Outcome] = list(zip(calls, decided))
        runs = [(call, run) for call, run in outcomes if isinstance(run, AsyncRun)]
        try:
            result = await agent.ainvoke(Command(resume=_answers(outcomes)), config, **options)
        except BaseException:
            failures = [run.fail("the tool did not return a result") for _, run in runs]
            await asyncio.gather(*failures, return_exceptions=True)
            raise
        messages = _tool_messages(result)
        for call, run in runs:
            message = messages.get(call.call_id or "")
            if message is None:
                await run.complete()
            elif message.status == "error":
                await run.fail(_text_of(message))
            else:
                await run.complete(_text_of(message))


def _action_of(actions: Optional[ToolActions], call: _Call) -> Tuple[str, Mapping[str, Any]]:
    copied = plain_copy(call.arguments)
    if not isinstance(copied, dict):
        raise InvalidRequest("the arguments of a tool must be an object")
    return tool_action(actions, call.name, copied)


def _answers(outcomes: Iterable[_Outcome]) -> Dict[str, Any]:
    answers: Dict[str, Any] = {}
    for call, outcome in outcomes:
        decision: Dict[str, Any] = {"type": "approve"}
        if isinstance(outcome, str):
            decision = {"type": "reject", "message": outcome}
        if call.is_batched:
            answers.setdefault(call.interrupt_id, {"decisions": []})["decisions"].append(decision)
        else:
            answers[call.interrupt_id] = decision
    return answers


def _values(result: Any) -> Mapping[str, Any]:
    values = getattr(result, "value", result)
    return values if isinstance(values, Mapping) else {}


def _messages(result: Any) -> List[Any]:
    messages = _values(result).get("messages")
    return list(messages) if isinstance(messages, (list, tuple)) else []


def _tool_messages(result: Any) -> Dict[str, ToolMessage]:
    found = [message for message in _messages(result) if isinstance(message, ToolMessage)]
    return {message.tool_call_id: message for message in found}


def _text_of(message: ToolMessage) -> str:
    return message.content if isinstance(message.content, str) else str(message.content)


def _stopped_calls(result: Any) -> List[_Call]:
    """Returns the calls that wait for a decision, in the order in which they must be answered."""
    interrupts = getattr(result, "interrupts", None)
    if interrupts is None:
        interrupts = _values(result).get("__interrupt__", ())
    calls: List[_Call] = []
    unused = [
        (str(call.get("name")), call.get("args"), call.get("id"))
        for message in _messages(result)
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]
    done = _tool_messages(result)
    for interrupt in interrupts:
        value = interrupt.value
        if not isinstance(value, Mapping):
            raise InvalidRequest("the agent was interrupted for another reason than a tool call")
        if value.get("type") == "tool_approval":
            call_id = value.get("tool_call_id")
            calls.append(_Call(interrupt.id, False, str(value.get("name")), value.get("args"), call_id))
        elif isinstance(value.get("action_requests"), list):
            for request in value["action_requests"]:
                name, arguments = str(request.get("name")), request.get("args")
                call_id = None
                for at, (known, args, known_id) in enumerate(unused):
                    if known == name and args == arguments and known_id not in done:
                        call_id = known_id
                        del unused[at]
                        break
                calls.append(_Call(interrupt.id, True, name, arguments, call_id))
        else:
            raise InvalidRequest("the agent was interrupted for another reason than a tool call")
    return calls
