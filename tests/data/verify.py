"""Verifies exported TRACE events (JSON Lines), knowing nothing of the program that wrote them.

Prints `ok N` for N events whose chains hold, or the first fault, and exits with 0 or 1.
"""

import hashlib
import json
import sys

FIELDS = {"trace_version", "event_id", "trace_id", "span_id", "session_id", "sequence",
          "timestamp", "event_type", "payload", "previous_hash", "hash"}


def canonical(value):
    """RFC 8785, as far as the events of the tests need it: no fractions, no astral keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fault(line, event, previous):
    """What is wrong with an event that follows `previous`, or None."""
    if canonical(event) != line:
        return "is not in canonical form"
    if set(event) - {"parent_span_id"} != FIELDS:
        return "has other fields than an envelope"
    if event["trace_version"] != "1.0":
        return "is of another version"
    expected = (0, "0" * 64) if previous is None else (previous["sequence"] + 1, previous["hash"])
    if (event["sequence"], event["previous_hash"]) != expected:
        return "does not follow the event before it"
    names = ("event_id", "trace_id", "span_id", "parent_span_id", "session_id", "sequence",
             "timestamp", "event_type")
    parts = ["1.0"] + [str(event.get(name, "")) for name in names]
    text = ":".join(parts + [canonical(event["payload"]), event["previous_hash"]])
    if hashlib.sha256(text.encode()).hexdigest() != event["hash"]:
        return "does not have the hash it claims"
    return None


def main():
    last, count = {}, 0
    for count, line in enumerate(open(sys.argv[1], encoding="utf-8", newline="\n"), 1):
        try:
            event = json.loads(line)
            found = fault(line.rstrip("\n"), event, last.get(event["session_id"]))
        except (ValueError, TypeError, KeyError) as error:
            found = f"is no event: {error}"
        if found:
            print(f"line {count} {found}")
            sys.exit(1)
        last[event["session_id"]] = event
    print(f"ok {count}")


main()
