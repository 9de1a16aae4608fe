"""A model on loopback that plays a script, in the format of Anthropic's Messages API."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Tuple

Reply = Dict[str, Any]


def serve(script: List[Reply]) -> Tuple[int, List[Dict[str, Any]]]:
    """Starts the model in a thread. Returns its port, and a list that gets every request with tools.

    A reply is `{"text": ...}` or `{"tools": [{"name": ..., "input": ...}]}`. The reply that is played has the number of
    the assistant's messages so far.
    """
    requests: List[Dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            pass

        def send_json(self, value: Any, status: int = 200) -> None:
            raw = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        def do_HEAD(self) -> None:
            self.send_json({})

        def do_GET(self) -> None:
            self.send_json({"data": [], "has_more": False})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            path = self.path.split("?")[0]
            if path.endswith("/count_tokens"):
                return self.send_json({"input_tokens": 100})
            if path != "/v1/messages":
                return self.send_json({"type": "error", "error": {"type": "not_found_error", "message": "?"}}, 404)
            reply: Reply = {"text": "ok"}
            # Side questions, such as titles, come without tools.
            if body.get("tools"):
                requests.append(body)
                spoken = sum(message["role"] == "assistant" for message in body["messages"])
                reply = script[spoken] if spoken < len(script) else {"text": "bye"}
            self.answer(body, reply, len(requests))

        def answer(self, body: Dict[str, Any], reply: Reply, number: int) -> None:
            blocks: List[Dict[str, Any]] = []
            if "text" in reply:
                blocks.append({"type": "text", "text": reply["text"]})
            for at, tool in enumerate(reply.get("tools", [])):
                call = {"id": f"toolu_{number:04d}{at:02d}", "name": tool["name"], "input": tool["input"]}
                blocks.append({"type": "tool_use", **call})
            stop = "tool_use" if reply.get("tools") else "end_turn"
            usage = {"input_tokens": 10, "output_tokens": 10}
            message = {
                "id": f"msg_{number:06d}",
                "type": "message",
                "role": "assistant",
                "model": body.get("model", "mock"),
                "content": blocks,
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": usage,
            }
            if not body.get("stream"):
                return self.send_json(message)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            self.event("message_start", message={**message, "content": [], "stop_reason": None})
            for at, block in enumerate(blocks):
                if block["type"] == "text":
                    empty: Dict[str, Any] = {"type": "text", "text": ""}
                    delta = {"type": "text_delta", "text": block["text"]}
                else:
                    empty = {**block, "input": {}}
                    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                self.event("content_block_start", index=at, content_block=empty)
                self.event("content_block_delta", index=at, delta=delta)
                self.event("content_block_stop", index=at)
            ended = {"stop_reason": stop, "stop_sequence": None}
            self.event("message_delta", delta=ended, usage={"output_tokens": 10})
            self.event("message_stop")

        def event(self, name: str, **fields: Any) -> None:
            data = json.dumps({"type": name, **fields})
            self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1], requests


def tool_results(requests: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Returns what the model was told about its tool calls: text and whether it is an error."""
    found: Dict[str, Dict[str, Any]] = {}
    for body in requests:
        for message in body["messages"]:
            content = message["content"] if isinstance(message["content"], list) else []
            for part in content:
                if part.get("type") == "tool_result":
                    text = part.get("content")
                    if isinstance(text, list):
                        text = " ".join(str(block.get("text")) for block in text)
                    found[part["tool_use_id"]] = {"text": str(text), "is_error": bool(part.get("is_error"))}
    return list(found.values())
