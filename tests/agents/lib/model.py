"""A model that plays a script, on loopback. It speaks the APIs that coding agents use, streaming or not:

  Anthropic Messages   POST .../messages
  OpenAI Responses     POST .../responses
  OpenAI chat          POST .../chat/completions
  Gemini               POST .../models/MODEL:generateContent and :streamGenerateContent

A prompt names its script: a user's text with `[[NAME]]` plays `scripts[NAME]` from its first step. The newest mark
counts. A subagent gets a script of its own by a mark in the prompt that the scripted call hands over. A script is a
list of steps:

  calls(call("Bash", {"command": "ls"}), ...)    tool calls, side by side
  says("done")                                   a text, which ends the turn

The step is found from the request alone: it is the number of turns that the model has had since the mark. The server
keeps no state of conversations, so retries and parallel sessions disturb nothing. A request without tools (titles,
summaries) gets a short text. After the last step the answer is "end of script".

A text `{{re:PATTERN}}` in the arguments of a call becomes the first group of the pattern's last match in the
conversation, for ids that only the agent knows.
"""
import gzip
import json
import re
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARK = re.compile(r"\[\[([A-Za-z0-9_.-]+)\]\]")
END = {"text": "end of script"}


def calls(*tools):
    """A step in which the model calls these tools, side by side."""
    return {"calls": list(tools)}


def says(text):
    """A step in which the model says this and ends its turn."""
    return {"text": text}


def call(name, arguments=None, **more):
    """One tool call. `freeform` makes a custom call of the Responses API, `namespace` names a group of tools there."""
    return {"name": name, "args": arguments or {}, **more}


class Request:
    """A request that an agent sent to the model."""

    def __init__(self, number, path, body):
        self.number, self.path, self.body, self.at = number, path, body, time.monotonic()
        self.api = api_of(path)
        turns, self.tools = read(self.api, body) if self.api else ([], [])
        self.script, self.turn = position(turns)
        self.results = last_results(turns)
        self.answer = None
        # A request without tools is an aside (a title, a summary). Codex may keep its tools to itself.
        self.of_conversation = bool(self.tools) or self.api == "responses"

    @property
    def text(self):
        return json.dumps(self.body, ensure_ascii=False)

    def __repr__(self):
        results = [result[:400] for result in self.results]
        answer = json.dumps(self.answer, ensure_ascii=False)[:400]
        return f"#{self.number} {self.path} script {self.script} turn {self.turn} results {results} -> {answer}"


class Model:
    """The server, its scripts, and a log of the requests."""

    def __init__(self):
        self.scripts, self.log, self.lock = {}, [], threading.Lock()
        handler = type("Bound", (Handler,), {"model": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, **scripts):
        """Replaces the scripts."""
        self.scripts = scripts

    def mark(self):
        """A point in the log."""
        with self.lock:
            return len(self.log)

    def requests(self, since=0):
        """The requests of conversations."""
        with self.lock:
            return [entry for entry in self.log[since:] if entry.of_conversation]

    def everything(self, since=0):
        """The text of all that agents sent."""
        with self.lock:
            return "\n".join(entry.text for entry in self.log[since:])

    def results(self, since=0):
        """The results of tools that the model was told, in order."""
        found = []
        for entry in self.requests(since):
            found += [result for result in entry.results if result not in found]
        return found

    def told(self, since=0):
        """The results of tools that the model was told, as one text."""
        return "\n".join(self.results(since))

    def note(self, path, body):
        with self.lock:
            entry = Request(len(self.log), path, body)
            self.log.append(entry)
            return entry

    def step(self, entry):
        if not entry.of_conversation or entry.script is None:
            return {"text": "ok"}
        steps = self.scripts.get(entry.script, [])
        step = steps[entry.turn] if entry.turn < len(steps) else END
        if "calls" in step:
            conversation = entry.text
            filled = [{**one, "args": fill(one["args"], conversation)} for one in step["calls"]]
            step = {**step, "calls": filled}
        return step


def fill(value, conversation):
    """The value with each `{{re:PATTERN}}` replaced by what the conversation has there."""
    if isinstance(value, dict):
        return {name: fill(one, conversation) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, conversation) for one in value]
    pattern = re.fullmatch(r"\{\{re:(.*)\}\}", value) if isinstance(value, str) else None
    if not pattern:
        return value
    found = re.findall(pattern.group(1), conversation)
    text = found[-1] if found else ""
    return int(text) if text.isdigit() else text


# --- Reading requests ------------------------------------------------------------------------------------------------

def api_of(path):
    path = path.split("?")[0]
    if "enerateContent" in path:
        return "gemini"
    for end, api in (("/chat/completions", "chat"), ("/responses", "responses"), ("/messages", "anthropic")):
        if path.endswith(end):
            return api
    return None


def text_of(content):
    """The text of what an API calls content."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        # `encrypted_content`: Codex hands a prompt to a subagent in it. The mock wrote it, so it is plain text.
        for key in ("text", "content", "output", "input_text", "encrypted_content"):
            if content.get(key) is not None:
                return text_of(content[key])
    return ""


def read(api, body):
    """A request in common terms: a list of (who, text), who being user, model, tool or system; and the tools offered."""
    return {"gemini": read_gemini, "chat": read_chat, "responses": read_responses, "anthropic": read_anthropic}[api](body)


def read_gemini(body):
    turns = []
    for turn in body.get("contents", []):
        parts = turn.get("parts", [])
        words = "\n".join(part["text"] for part in parts if "text" in part)
        if turn.get("role") == "model":
            turns.append(("model", words))
            continue
        turns += [("tool", json.dumps(part["functionResponse"].get("response"), ensure_ascii=False))
                  for part in parts if "functionResponse" in part]
        if words:
            turns.append(("user", words))
    return turns, [one.get("name") for group in body.get("tools") or [] for one in group.get("functionDeclarations", [])]


def read_chat(body):
    who = {"assistant": "model", "tool": "tool", "system": "system", "developer": "system"}
    turns = [(who.get(turn.get("role"), "user"), text_of(turn.get("content"))) for turn in body.get("messages", [])]
    return turns, [(tool.get("function") or tool).get("name") for tool in body.get("tools") or []]


def read_responses(body):
    items = body.get("input", [])
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    turns, speaks = [], False
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            turns.append(("tool", text_of(item.get("output")) or json.dumps(item.get("output"))))
        elif kind == "agent_message" or (kind == "message" and item.get("role") != "assistant"):
            who = "system" if item.get("role") in ("system", "developer") else "user"
            turns.append((who, text_of(item.get("content"))))
        else:
            # Text, reasoning and calls that follow each other are one turn of the model.
            if not speaks:
                turns.append(("model", text_of(item.get("content"))))
            speaks = True
            continue
        speaks = False
    return turns, [tool.get("name") or tool.get("type") for tool in body.get("tools") or []]


def read_anthropic(body):
    turns = []
    for turn in body.get("messages", []):
        content = turn.get("content")
        if turn.get("role") == "assistant":
            if not turns or turns[-1][0] != "model":
                turns.append(("model", text_of(content)))
            continue
        for part in content if isinstance(content, list) else [content]:
            is_result = isinstance(part, dict) and part.get("type") == "tool_result"
            turns.append(("tool" if is_result else "user", text_of(part)))
    return turns, [tool.get("name") for tool in body.get("tools") or []]


def position(turns):
    """The newest script that a user named, and the number of turns that the model has had since."""
    name, count = None, 0
    for who, text in turns:
        marks = MARK.findall(text) if who == "user" else []
        if marks:
            name, count = marks[-1], 0
        elif who == "model":
            count += 1
    return name, count


def last_results(turns):
    """The results of tools since the model spoke last."""
    found = []
    for who, text in reversed(turns):
        if who == "model":
            break
        if who == "tool":
            found.insert(0, text)
    return found


# --- Answering -------------------------------------------------------------------------------------------------------

def unique(prefix):
    return f"{prefix}{uuid.uuid4().hex[:16]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        return body if isinstance(body, dict) else {"body": body}

    def send_json(self, value, status=200):
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def send_events(self, events, named):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            name = f"event: {event['type']}\n" if named else ""
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{name}data: {data}\n\n".encode())
            self.wfile.flush()

    def do_HEAD(self):
        self.send_json({})

    def do_GET(self):
        if "models" not in self.path:
            return self.send_json({})
        model = {"id": "mock-model", "object": "model", "owned_by": "mock", "name": "models/mock-model",
                 "supportedGenerationMethods": ["generateContent"], "inputTokenLimit": 100000, "outputTokenLimit": 8000}
        # Codex wants a list of `models` in a form of its own, and takes none for an answer.
        codex = "client_version" in self.path
        return self.send_json({"object": "list", "data": [model], "models": [] if codex else [model], "has_more": False})

    def do_POST(self):
        body = self.read_body()
        if "ountTokens" in self.path or self.path.split("?")[0].endswith("count_tokens"):
            return self.send_json({"totalTokens": 42, "input_tokens": 42})
        entry = self.model.note(self.path, body)
        if entry.api is None:
            return self.send_json({"error": {"type": "not_found_error", "message": "not here"}}, 404)
        entry.answer = self.model.step(entry)
        try:
            return getattr(self, f"answer_{entry.api}")(body, entry.answer)
        except (BrokenPipeError, ConnectionResetError):
            return None  # The agent was ended.

    def answer_gemini(self, body, step):
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            step = {"text": "{}"}
        parts = [{"text": step["text"]}] if "text" in step else []
        parts += [{"functionCall": {"name": one["name"], "args": one["args"]}} for one in step.get("calls", [])]
        whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                 "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
                 "modelVersion": "mock-model"}
        return self.send_events([whole], named=False) if "stream" in self.path else self.send_json(whole)

    def answer_chat(self, body, step):
        base = {"id": unique("chatcmpl-"), "created": int(time.time()), "model": body.get("model", "mock-model")}
        message = {"role": "assistant", "content": step.get("text")}
        if "calls" in step:
            message["tool_calls"] = [
                {"index": at, "id": unique("call_"), "type": "function",
                 "function": {"name": one["name"], "arguments": json.dumps(one["args"])}}
                for at, one in enumerate(step["calls"])]
        finish = "tool_calls" if "calls" in step else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not body.get("stream"):
            choices = [{"index": 0, "message": message, "finish_reason": finish}]
            return self.send_json({**base, "object": "chat.completion", "usage": usage, "choices": choices})
        chunk = {**base, "object": "chat.completion.chunk"}
        return self.send_events([
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
            "[DONE]"], named=False)

    def answer_responses(self, body, step):
        items = []
        if "text" in step:
            items.append({"type": "message", "id": unique("msg_"), "role": "assistant", "status": "completed",
                          "content": [{"type": "output_text", "text": step["text"], "annotations": []}]})
        for one in step.get("calls", []):
            item = {"id": unique("fc_"), "status": "completed", "call_id": unique("call_"), "name": one["name"]}
            if "freeform" in one:
                item.update(type="custom_tool_call", input=one["freeform"])
            else:
                item.update(type="function_call", arguments=json.dumps(one["args"]))
            if "namespace" in one:
                item["namespace"] = one["namespace"]
            items.append(item)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                 "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        whole = {"id": unique("resp_"), "object": "response", "created_at": int(time.time()), "status": "completed",
                 "model": body.get("model", "mock-model"), "output": items, "usage": usage}
        if not body.get("stream"):
            return self.send_json(whole)
        events = [{"type": "response.created",
                   "response": {**whole, "status": "in_progress", "output": [], "usage": None}}]
        for at, item in enumerate(items):
            part = {"item_id": item["id"], "output_index": at}
            begun = {**item, "status": "in_progress"}
            if item["type"] == "message":
                text, place = item["content"][0], {**part, "content_index": 0}
                events += [
                    {"type": "response.output_item.added", "output_index": at, "item": {**begun, "content": []}},
                    {"type": "response.content_part.added", **place, "part": {**text, "text": ""}},
                    {"type": "response.output_text.delta", **place, "delta": text["text"]},
                    {"type": "response.output_text.done", **place, "text": text["text"]},
                    {"type": "response.content_part.done", **place, "part": text}]
            elif item["type"] == "function_call":
                events += [
                    {"type": "response.output_item.added", "output_index": at, "item": {**begun, "arguments": ""}},
                    {"type": "response.function_call_arguments.delta", **part, "delta": item["arguments"]},
                    {"type": "response.function_call_arguments.done", **part, "arguments": item["arguments"],
                     "name": item["name"]}]
            else:
                events.append({"type": "response.output_item.added", "output_index": at, "item": begun})
            events.append({"type": "response.output_item.done", "output_index": at, "item": item})
        events.append({"type": "response.completed", "response": whole})
        return self.send_events([{**event, "sequence_number": at} for at, event in enumerate(events)], named=True)

    def answer_anthropic(self, body, step):
        blocks = [{"type": "text", "text": step["text"]}] if "text" in step else []
        blocks += [{"type": "tool_use", "id": unique("toolu_"), "name": one["name"], "input": one["args"]}
                   for one in step.get("calls", [])]
        stop = "tool_use" if "calls" in step else "end_turn"
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        whole = {"id": unique("msg_"), "type": "message", "role": "assistant", "model": body.get("model", "mock-model"),
                 "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return self.send_json(whole)
        events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
        for at, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [{"type": "content_block_start", "index": at, "content_block": empty},
                       {"type": "content_block_delta", "index": at, "delta": delta},
                       {"type": "content_block_stop", "index": at}]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
        return self.send_events(events, named=True)
