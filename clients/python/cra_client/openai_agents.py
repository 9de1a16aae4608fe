"""Bridge to the OpenAI Agents SDK: tool calls that need approval wait for the console.

    from agents import Agent, function_tool
    from cra_client.openai_agents import run

    @function_tool(needs_approval=True)
    def refund(amount: int) -> str: ...

    result = await run(agent, "Refund 5 euros", session=session, actions={"refund": "payments.refund"})

The SDK stops before a tool with `needs_approval`. `run` asks the console about each stopped call, approves or rejects it
in the SDK, and resumes. The model gets the reason of a denial. A tool without `needs_approval` runs without asking:
`require_approval` returns copies of tools that all need it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple

from agents import Agent, FunctionTool, RunHooks, Runner, RunResult
from agents.items import ToolApprovalItem
from agents.run_state import RunState
from agents.tool_context import ToolContext

from ._async import AsyncSession
from ._tools import ToolActions, ToolGate

__all__ = ["require_approval", "run"]


def require_approval(tools: Sequence[FunctionTool]) -> List[FunctionTool]:
    """Returns copies of the tools that need approval."""
    return [replace(tool, needs_approval=True) for tool in tools]


async def run(
    agent: "Agent[Any]",
    input: Any,
    *,
    session: AsyncSession,
    actions: Optional[ToolActions] = None,
    timeout: Optional[float] = None,
    hooks: Optional["RunHooks[Any]"] = None,
    **options: Any,
) -> RunResult:
    """Runs an agent as `Runner.run` does, and asks the console about each call that needs approval.

    `actions` names the action of each tool, by default `tool.NAME`. `options` go to `Runner.run`.
    """
    gate = ToolGate(session, actions, timeout)
    reporting = _Hooks(gate, hooks)
    try:
        result = await Runner.run(agent, input, hooks=reporting, **options)
        while result.interruptions:
            state = result.to_state()
            await asyncio.gather(*(_decide(gate, state, item) for item in result.interruptions))
            result = await Runner.run(agent, state, hooks=reporting, **options)
        return result
    finally:
        await gate.fail_rest()


async def _decide(gate: ToolGate, state: "RunState[Any, Any]", item: ToolApprovalItem) -> None:
    call_id, arguments = _call_of(item)
    reason = await gate.ask(call_id, item.name or "", arguments)
    if reason is None:
        state.approve(item)
    else:
        state.reject(item, rejection_message=reason)


def _call_of(item: ToolApprovalItem) -> Tuple[str, Any]:
    raw = item.raw_item
    call_id = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
    return str(call_id or ""), _arguments(item.arguments)


def _arguments(text: Optional[str]) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        # Not an object, so that the call is denied.
        return text


class _Hooks(RunHooks[Any]):
    """Checks that each call that starts was allowed, and reports its result."""

    def __init__(self, gate: ToolGate, inner: Optional["RunHooks[Any]"]) -> None:
        self._gate = gate
        self._inner: RunHooks[Any] = inner or RunHooks()

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        # A function decides call by call, so that a call without permission is possible there.
        always = getattr(tool, "needs_approval", False) is True
        if isinstance(context, ToolContext) and (always or self._gate.knows(context.tool_call_id)):
            self._gate.start(context.tool_call_id, context.tool_name, _arguments(context.tool_arguments))
        await self._inner.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if isinstance(context, ToolContext):
            await self._gate.complete(context.tool_call_id, result)
        await self._inner.on_tool_end(context, agent, tool, result)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        await self._inner.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._inner.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        await self._inner.on_handoff(context, from_agent, to_agent)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        await self._inner.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self._inner.on_llm_end(context, agent, response)
