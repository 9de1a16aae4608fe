#!/usr/bin/env python3
"""An MCP server on standard input and output with one tool, `touch {path}`: the file shows whether the tool ran."""
import json
import sys

TOOL = {"name": "touch", "description": "Makes an empty file",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}},
                "serverInfo": {"name": "suite", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        path = params["arguments"]["path"]
        open(path, "w", encoding="utf-8").close()
        return {"content": [{"type": "text", "text": f"made {path}"}], "isError": False}
    empty = {"ping": {}, "resources/list": {"resources": []}, "prompts/list": {"prompts": []},
             "resources/templates/list": {"resourceTemplates": []}}
    return empty.get(method)


for line in sys.stdin:
    request = json.loads(line) if line.strip() else {}
    if "id" not in request or "method" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
