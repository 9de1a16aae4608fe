"""An agent of the Agent Client Protocol that plays a script, for the tests of `cra acp-proxy`.

The text of a prompt is a JSON list of messages. The agent sends them one after the other, waits for the response to each
request, and ends its turn with a message that holds all responses.
"""
import json
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def play(session, messages):
    responses = []
    for number, message in enumerate(messages):
        message.setdefault("params", {})["sessionId"] = session
        if "update" in message["params"]:
            send(message)
            continue
        send({"id": number, **message})
        while True:
            answer = receive()
            if answer.get("id") == number and "method" not in answer:
                break
            if answer.get("method") == "session/cancel":
                responses.append({"cancelled": True})
        responses.append({key: answer[key] for key in ("result", "error") if key in answer})
    return responses


while True:
    request = receive()
    method, params = request.get("method"), request.get("params", {})
    if method == "initialize":
        send({"id": request["id"], "result": {"protocolVersion": 1, "told": params["clientCapabilities"]}})
    elif method == "session/new":
        modes = {"currentModeId": sys.argv[1], "availableModes": []} if len(sys.argv) > 1 else None
        send({"id": request["id"], "result": {"sessionId": "s-1", "modes": modes}})
    elif method == "session/prompt":
        texts = [block["text"] for block in params["prompt"]]
        responses = play(params["sessionId"], json.loads(texts[0]))
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": json.dumps([responses, texts[1:]])}}
        send({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": said}})
        send({"id": request["id"], "result": {"stopReason": "end_turn"}})
    elif "id" in request and method:
        send({"id": request["id"], "result": {"took": method}})
