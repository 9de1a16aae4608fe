"""Bridge to the Claude Agent SDK: every tool call waits for the console.

    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
    from cra_client.claude_agent import gate_options

    async with ClaudeSDKClient(gate_options(ClaudeAgentOptions(...), session=session)) as client:
        await client.query("Remove the build folder")

`gate_options` sets `can_use_tool`, which asks the console. The agent would skip `can_use_tool` for tools that its own
rules allow, so a `PreToolUse` hook sends every call there; if that hook fails, the call is blocked. Other hooks report
results. Actions are named as by `cra connect claude-code`: `shell.run`, `file.read`, `file.write`, `web.fetch`,
`web.search`, `agent.run`, `mcp.SERVER.TOOL` and `tool.NAME`.
"""

from __future__ import annotations

import json
import os
import posixpath
from dataclasses import replace
from typing import Any, Dict, List, Optional, cast

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from ._async import AsyncSession
from ._tools import ToolAction, ToolActions, ToolGate, safe_name
from ._wire import JsonObject
from .errors import CraError, InvalidRequest

__all__ = ["gate_options"]

_SHELLS = ("Bash", "PowerShell")
_READERS = ("Read", "NotebookRead")
_WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_FINDERS = {"Glob": "pattern", "Grep": "glob", "LS": ""}
_AGENTS = ("Agent", "Task")

# The hook only sends the call on, so that it never takes long.
_HOOK_TIMEOUT_S = 60.0


def gate_options(
    options: Optional[ClaudeAgentOptions] = None,
    *,
    session: AsyncSession,
    actions: Optional[ToolActions] = None,
    timeout: Optional[float] = None,
) -> ClaudeAgentOptions:
    """Returns options with which every tool call asks the console.

    `actions` names the action of a tool, or computes action and parameters. `timeout` is how long a call may be held.
    """
    options = options or ClaudeAgentOptions()
    if options.can_use_tool is not None:
        raise InvalidRequest("`can_use_tool` is set already: the console decides, or the other function does")
    cwd = os.path.abspath(os.fspath(options.cwd) if options.cwd else os.getcwd())

    def action_of(name: str, arguments: JsonObject) -> ToolAction:
        if callable(actions):
            return actions(name, arguments)
        if actions and name in actions:
            return actions[name], arguments
        return claude_action(name, arguments, cwd)

    gate = ToolGate(session, action_of, timeout)

    async def can_use_tool(
        name: str, arguments: Dict[str, Any], context: ToolPermissionContext
    ) -> "PermissionResultAllow | PermissionResultDeny":
        call_id = context.tool_use_id or ""
        try:
            reason = await gate.ask(call_id, name, arguments)
        except Exception as error:
            # The agent must not go on because of a mistake in `actions`.
            return PermissionResultDeny(message=f"cra: {type(error).__name__}: {error}")
        if reason is not None:
            return PermissionResultDeny(message=reason)
        return PermissionResultAllow(updated_input=arguments)

    async def before_tool(payload: Any, call_id: Optional[str], context: Any) -> Any:
        # "ask" makes the agent call `can_use_tool` also where its own rules would allow the call.
        return _decision("ask", "the cra console decides")

    async def after_tool(payload: Any, call_id: Optional[str], context: Any) -> Any:
        try:
            if payload.get("hook_event_name") == "PostToolUse":
                await gate.complete(str(payload.get("tool_use_id")), _text_of(payload.get("tool_response")))
            else:
                await gate.fail(str(payload.get("tool_use_id")), str(payload.get("error")))
        except CraError as error:
            return {"systemMessage": f"cra: {error}"}
        return {}

    hooks: Dict[str, List[HookMatcher]] = {
        name: list(matchers) for name, matchers in cast(Dict[str, Any], options.hooks or {}).items()
    }
    before = HookMatcher(hooks=[before_tool], timeout=_HOOK_TIMEOUT_S, on_failure="block")
    hooks.setdefault("PreToolUse", []).insert(0, before)
    for event in ("PostToolUse", "PostToolUseFailure"):
        hooks.setdefault(event, []).append(HookMatcher(hooks=[after_tool], timeout=_HOOK_TIMEOUT_S))
    return replace(options, can_use_tool=can_use_tool, hooks=cast(Any, hooks))


def _decision(decision: str, reason: str) -> Dict[str, Any]:
    specific = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }
    return {"hookSpecificOutput": specific}


def _text_of(response: Any) -> str:
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False, default=repr)


def claude_action(name: str, arguments: JsonObject, cwd: str) -> ToolAction:
    """Returns the action of a tool of Claude Code."""
    if name.startswith("mcp__"):
        server, _, tool = name[len("mcp__") :].partition("__")
        return f"mcp.{safe_name(server)}.{safe_name(tool)}", _params(arguments, tool=name, cwd=cwd)
    if name in _SHELLS:
        return "shell.run", _params(arguments, tool=name, cwd=cwd, command=_needed(name, arguments, "command"))
    if name in _READERS or name in _WRITERS:
        key = "notebook_path" if "notebook_path" in arguments else "file_path"
        path = _located(_needed(name, arguments, key), cwd)
        kind = "file.read" if name in _READERS else "file.write"
        return kind, _params(arguments, tool=name, cwd=cwd, path=path)
    if name in _FINDERS:
        folder = _located(arguments.get("path") or cwd, cwd)
        pattern = arguments.get(_FINDERS[name]) or ""
        return "file.read", _params(arguments, tool=name, cwd=cwd, path=_located(pattern, folder))
    if name == "WebFetch":
        return "web.fetch", _params(arguments, tool=name, cwd=cwd, url=_needed(name, arguments, "url"))
    if name == "WebSearch":
        return "web.search", _params(arguments, tool=name, cwd=cwd, query=_needed(name, arguments, "query"))
    if name in _AGENTS:
        prompt = _needed(name, arguments, "prompt")
        return "agent.run", _params(arguments, tool=name, cwd=cwd, prompt=prompt)
    return f"tool.{safe_name(name)}", _params(arguments, tool=name, cwd=cwd)


def _needed(tool: str, arguments: JsonObject, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"`{tool}` has no `{name}`")
    return value


def _located(path: Any, folder: str) -> str:
    if not isinstance(path, str):
        raise InvalidRequest("a path is not text")
    if path.startswith("~"):
        return posixpath.normpath(path)
    return posixpath.normpath(posixpath.join(folder, path))


def _params(arguments: JsonObject, **known: str) -> JsonObject:
    """Returns the arguments with values that are reliable. A different value of the model is kept as `asked_NAME`."""
    params = dict(arguments)
    for name, value in known.items():
        if name in params and params[name] != value:
            params[f"asked_{name}"] = params[name]
        params[name] = value
    return params
