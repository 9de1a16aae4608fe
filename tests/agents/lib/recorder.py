"""Records what real agents tell their hooks, and writes it as fixtures without paths, ids and times of this machine."""
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from lib.model import calls, says
from lib.workspace import LIB, ROOT

FIXTURES = ROOT / "tests/data/agent-payloads"
MANIFEST = FIXTURES / "manifest.json"
EVENTS = {
    "claude-code": [
        "SessionStart", "Setup", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PermissionRequest",
        "PermissionDenied", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "SubagentStart",
        "SubagentStop", "Stop", "StopFailure", "InstructionsLoaded", "ConfigChange", "CwdChanged", "PreCompact",
        "PostCompact", "SessionEnd"],
    "codex": [
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
        "PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt", "SessionEnd"],
    "gemini": [
        "SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "Notification", "PreCompress",
        "SessionEnd"],
    "copilot": [
        "sessionStart", "userPromptSubmitted", "preToolUse", "permissionRequest", "postToolUse",
        "postToolUseFailure", "preMcpToolCall", "agentStop", "subagentStart", "subagentStop", "errorOccurred",
        "notification", "sessionEnd"],
    "qwen": [
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure",
        "Notification", "SubagentStart", "SubagentStop", "Stop", "PreCompact", "SessionEnd"],
}
EVENTS["codex-code-mode"] = EVENTS["codex"]


# --- Hooks that listen ----------------------------------------------------------------------------------------------

def listen(w, project, folder):
    """Makes a spy the hook of every event."""
    agent = w.agent.connects_as
    if agent == "opencode":
        plugin = project / ".opencode/plugin/spy.js"
        plugin.parent.mkdir(parents=True)
        plugin.write_text((LIB / "spy_plugin.js").read_text().replace("FOLDER", str(folder)))
        return

    def command(event, *answer):
        return shlex.join([sys.executable, str(LIB / "spy_hook.py"), str(folder), event, *answer])
    if agent == "copilot":
        hooks = {event: [{"type": "command", "bash": command(event, "{}"), "timeoutSec": 30}] for event in EVENTS[agent]}
        settings = {"version": 1, "hooks": hooks}
    else:
        answer = ("{}",) if agent == "gemini" else ()
        timeout = 30000 if agent == "gemini" else 30
        settings = {"hooks": {event: [{"hooks": [{"type": "command", "command": command(event, *answer),
                                                  "timeout": timeout}]}] for event in EVENTS[agent]}}
    path = project / w.agent.settings_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


def record(w, folder):
    """Lets an agent use each kind of tool once, and writes the fixtures into the folder."""
    told = w.made("told")
    project = w.project()
    options = w.agent.connect_mcp(w, project)
    listen(w, project, told)
    w.agent.trust(w, project)
    steps = [
        w.agent.shell("echo hello > out.txt"), w.agent.shell("ls no-such-file"), w.agent.write(project / "new.txt", "one\n"),
        w.agent.mcp({"path": str(project / "touched")}), *w.agent.more_tools(project)]
    if w.agent.has_read_tool:
        steps += [w.agent.read(project / "readme.txt"), w.agent.search(project / "readme.txt", "hello"),
                  w.agent.read(project / "missing.txt")]
    w.model.play(main=[*[calls(step) for step in steps], says("done")],
                 team=w.agent.subagent("[[part]] please say hello"),
                 part=[calls(w.agent.shell("echo part > part.txt")), w.agent.end_of_subagent()])
    w.start("[[main]] please do everything", project, *options).finish()
    w.start("[[team]] please share the work", project, *w.agent.subagent_options, *options).finish()
    asking = w.agent.asking("[[main]] please do everything")
    if asking:
        # What an agent tells when it would ask its own user.
        w.start_command(asking, project).finish()
    fixtures(w, told, Path(folder))


def fixtures(w, told, folder):
    """Writes one fixture for each event and tool: the first one of its kind."""
    scrub = Scrub(w)
    for path in sorted(told.iterdir()):
        entry = json.loads(path.read_text())
        tool = tool_of(entry["payload"])
        name = "-".join([part for part in (entry["event"], tool) if part])
        target = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.json"
        payload = scrub.value(entry["payload"])
        if not target.exists():
            target.write_text(json.dumps(payload, indent=2, ensure_ascii=False) + "\n")


def tool_of(payload):
    """The tool that a payload is about."""
    inner = payload.get("input") if isinstance(payload.get("input"), dict) else payload
    for key in ("tool_name", "toolName", "tool"):
        if isinstance(inner.get(key), str):
            return inner[key]
    return None


class Scrub:
    """Replaces what is of this machine and this run. Equal values stay equal."""

    UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
    ID = re.compile(r"\b(toolu|call|fc|msg|ses|prt|per|resp|evt|agent)_[0-9A-Za-z_]{6,}\b")
    AGENT_ID = re.compile(r"\b(a)[0-9a-f]{16}\b")
    TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d[:-]\d\d(?:[:-]\d\d(?!\d)(?:\.\d+)?Z?)?")
    DAY = re.compile(r"/20\d\d/\d\d/\d\d/")
    NUMBERS = re.compile(r"(?i)(time|duration|elapsed|created|updated|start|end|pid|_ms)")

    def __init__(self, w):
        self.paths = [(str(w.home), "/home/tester"), (str(w.folder), "/tmp/tester"), (str(LIB), "/opt/suite"),
                      (str(w.agent.folder), "/opt/agent"), (sys.executable, "/usr/bin/python3"),
                      (w.model.url, "http://127.0.0.1:8080")]
        # Agents name folders after paths.
        self.paths += [(re.sub(r"[^A-Za-z0-9]", "-", path), name.replace("/", "-")) for path, name in self.paths[:2]]
        self.names = {}

    def text(self, text):
        for path, name in self.paths:
            text = text.replace(path, name)
        text = self.UUID.sub(lambda found: self.named("uuid", found.group()), text)
        text = self.ID.sub(lambda found: self.named(found.group(1), found.group()), text)
        text = self.AGENT_ID.sub(lambda found: self.named("a", found.group()), text)
        text = re.sub(r"(Process Group PGID: |pid:? ?)\d+", r"\g<1>100", text)
        # The name of a transcript may end with the beginning of an id, or hold a time.
        text = re.sub(r"-[0-9a-f]{8}\.jsonl", "-00000000.jsonl", text)
        text = re.sub(r"\b1[78]\d{11}\b", "1767225600000", text)
        return self.TIME.sub("2026-01-01T00:00:00.000Z", self.DAY.sub("/2026/01/01/", text))

    def named(self, kind, value):
        number = self.names.setdefault(value, sum(1 for name in self.names.values() if name[0] == kind) + 1)
        if not isinstance(number, tuple):
            number = self.names[value] = (kind, number)
        if kind == "uuid":
            return f"00000000-0000-4000-8000-{number[1]:012}"
        return f"a{number[1]:016}" if kind == "a" else f"{kind}_{number[1]:012}"

    def value(self, value, key=""):
        if isinstance(value, dict):
            return {self.text(name): self.value(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, key) for one in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and self.NUMBERS.search(key):
            # A point in time or a duration.
            return 1767225600000 if value > 10**11 else 1767225600 if value > 10**9 else 100 if key.lower() == "pid" else 1
        return value


# --- The whole set --------------------------------------------------------------------------------------------------

def install_fixtures(agent, folder):
    """Replaces the fixtures of an agent, and tells the version in the manifest."""
    target = FIXTURES / agent.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(Path(folder).glob("*.json")):
        shutil.copyfile(path, target / path.name)
    manifest = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    manifest[agent.name] = {"package": agent.package, "version": agent.version,
                            "payloads": [path.name for path in sorted(target.glob("*.json"))]}
    MANIFEST.write_text(json.dumps(dict(sorted(manifest.items())), indent=2) + "\n")
    return len(manifest[agent.name]["payloads"])
