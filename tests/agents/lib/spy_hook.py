#!/usr/bin/env python3
"""A hook that decides nothing and keeps what the agent told it. Usage in a hook's command: spy_hook.py FOLDER EVENT"""
import json
import os
import sys
import time

folder, event = sys.argv[1:3]
text = sys.stdin.read()
path = os.path.join(folder, f"{time.time_ns()}-{os.getpid()}.json")
with open(path, "w", encoding="utf-8") as out:
    json.dump({"event": event, "payload": json.loads(text)}, out)
if len(sys.argv) > 3:
    print(sys.argv[3])
