"""What is particular to Qwen Code."""
from cases.claude_code import second_agent, tools_are_not_held
from cases.shared import start_delete
from lib.cases import case
from lib.model import call
from lib.wait import happens

AGENT = "qwen"


@case(AGENT)
def default_timer_is_not_read_as_milliseconds(w):
    """Qwen Code reads timers from 1000 on as milliseconds. With the default timer a call is held for longer."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    row = w.check_held(run)
    ran = happens(lambda: not precious.exists() or run.ended(), 6)
    w.check("it does not run while it is held", not ran)
    w.console.deny(row["id"])
    run.finish()
    w.check("it does not run after the denial", precious.exists())


@case(AGENT, variants={"in another folder": "cd ~ && qwen --yolo -p '[[inner]] go on'"})
def second_agent_without_hooks_is_held(w, variant):
    """An agent that starts itself without hooks, by an ordinary command, is held."""
    second_agent(w, variant)


@case(AGENT, variants={
    "get_goal": call("get_goal", {}), "update_goal": call("update_goal", {"status": "complete"}),
    "list_agents": call("list_agents", {}), "skill": call("skill", {"skill": "none"}),
    "tool_search": call("tool_search", {"query": "mcp"}),
})
def everyday_tool_is_not_held(w, variant):
    """A tool that the agent keeps its own work with is known, and not held."""
    tools_are_not_held(w, variant)
