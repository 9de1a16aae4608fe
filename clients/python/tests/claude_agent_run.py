"""Runs the real agent of the Claude Agent SDK against a scripted model, in a network namespace with loopback only.

Reads one JSON object from standard input, and writes the outcome as one to standard output.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import struct
import sys
import warnings
from pathlib import Path
from typing import Any, Dict

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.scripted_model import serve, tool_results  # noqa: E402


def open_loopback() -> None:
    """Brings `lo` up, and refuses to go on where there is any other interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = b"lo".ljust(16, b"\0")
        answer = fcntl.ioctl(control, 0x8913, struct.pack("16sH", name, 0) + bytes(14))
        (flags,) = struct.unpack("16xH", answer[:18])
        fcntl.ioctl(control, 0x8914, struct.pack("16sH", name, flags | 1) + bytes(14))
    links = [name for _, name in socket.if_nameindex()]
    if links != ["lo"]:
        raise SystemExit(f"there are network interfaces: {links}")


async def play(task: Dict[str, Any]) -> Dict[str, Any]:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

    from cra_client import AsyncConsole
    from cra_client.claude_agent import gate_options

    port, requests = serve(task["script"])
    environment = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "sk-test-fake",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    stderr: list[str] = []
    options = ClaudeAgentOptions(
        cwd=task["cwd"],
        env=environment,
        max_turns=10,
        allowed_tools=task.get("allowed_tools", []),
        permission_mode=task.get("permission_mode"),
        setting_sources=[],
        stderr=stderr.append,
    )
    outcome: Dict[str, Any] = {"result": None}
    async with await AsyncConsole.connect(task["socket"], key=task["key"], reconnect=0.3) as console:
        async with console.session("claude-bot", end_on_exit=False) as session:
            async with ClaudeSDKClient(gate_options(options, session=session, timeout=60)) as client:
                await client.query(task["prompt"])
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        outcome["result"] = message.result
            outcome["session"] = session.session_id
    outcome["tools"] = tool_results(requests)
    outcome["stderr"] = stderr[-20:]
    return outcome


def main() -> None:
    open_loopback()
    # `allowed_tools` is set on purpose: the hook must send these calls to the console, too.
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(play(json.load(sys.stdin)))))


if __name__ == "__main__":
    os.umask(0o077)
    main()
