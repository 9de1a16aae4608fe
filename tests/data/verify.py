"""Verifies exported TRACE events (JSON Lines), knowing nothing of the program that wrote them.

    python3 verify.py EXPORT [HEAD]

Looks at the form of every line, at every hash, at how events follow one another, at what the log over
all sessions says about them, and at the root of the log's tree. Prints `ok N` for N events that hold,
then name, size and root of the log; or the first fault. HEAD is a file with a head that was kept
elsewhere, as `cra trace head` prints it: the log must begin as it says. There is no Ed25519 in Python's
own library, so the signature of a head is not looked at; nor is it looked at whether the log accounts
for content that was pruned.
"""
import base64, functools, hashlib, json, sys

NAMES = "event_id trace_id span_id parent_span_id session_id sequence timestamp event_type".split()
FIELDS = {"trace_version", "payload", "previous_hash", "hash", *NAMES}
# RFC 8785, as far as records need it that have no fractions and no astral keys.
canonical = functools.partial(json.dumps, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def root(leaves):  # RFC 6962: split at the largest power of two below the size.
    if len(leaves) < 2:
        return hashlib.sha256(b"\0" * len(leaves) + b"".join(leaves)).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root(leaves[:split]) + root(leaves[split:])).digest()


def fault(line, event, last, grown):  # `last` is how each chain ends, `grown` are those the log owes.
    if canonical(event) != line:
        return "is not in canonical form"
    if not FIELDS >= set(event) >= FIELDS - {"parent_span_id", "payload"}:
        return "has other fields than an envelope"
    count, previous, before = last.get(event["session_id"], (0, "0" * 64, ""))
    if (event["sequence"], event["previous_hash"]) != (count, previous) or event["timestamp"] < before:
        return "does not follow the event before it"
    parts = [event["trace_version"], *(str(event.get(name, "")) for name in NAMES)]
    text = ":".join([*parts, canonical(event.get("payload")), event["previous_hash"]])
    if "payload" in event and hashlib.sha256(text.encode()).hexdigest() != event["hash"]:
        return "does not have the hash it claims"
    said = event["payload"]["sessions"] if event["event_type"] == "log_sealed" else None
    if said is not None and {one["session"]: (one["count"], one["hash"]) for one in said} != {one: last[one][:2] for one in grown}:
        return "says other things about the sessions than they do"


def main(export, head=None):
    last, grown, log, leaves, number = {}, set(), None, [], 0
    for number, line in enumerate(open(export, encoding="utf-8", newline="\n"), 1):
        event = json.loads(line)
        if found := fault(line.removesuffix("\n"), event, last, grown):
            sys.exit(f"line {number} {found}")
        session, kind = event["session_id"], event["event_type"]
        log = session if kind == "log_started" and log is None else log
        last[session] = (event["sequence"] + 1, event["hash"], event["timestamp"])
        grown = set() if kind == "log_sealed" else grown | {session} - {log}
        leaves += [bytes.fromhex(event["hash"])] if session == log else []
    name, size, *rest = open(head, encoding="utf-8").read().split("\n") if head else [f"cra/{log}", len(leaves)]
    if name != f"cra/{log}" or int(size) > len(leaves) or rest[:1] not in ([], [base64.b64encode(root(leaves[:int(size)])).decode()]):
        sys.exit("the log is not the one that the head is of")
    print(f"ok {number}\ncra/{log}\n{len(leaves)}\n{base64.b64encode(root(leaves)).decode()}")


main(*sys.argv[1:])
