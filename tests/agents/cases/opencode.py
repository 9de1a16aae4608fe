"""What is particular to opencode."""
from cases.claude_code import second_agent, tools_are_not_held
from cases.shared import DONE
from lib.cases import case
from lib.model import call, calls

AGENT = "opencode"


@case(AGENT, variants={
    "without plugins": "opencode --pure run --auto '[[inner]] go on'",
    "in another folder": "cd ~ && opencode run --auto '[[inner]] go on'",
})
def second_agent_without_hooks_is_held(w, variant):
    """An agent that starts itself without plugins, by an ordinary command, is held."""
    second_agent(w, variant)


@case(AGENT, variants={"todowrite": call("todowrite", {"todos": []}), "skill": call("skill", {"name": "none"})})
def everyday_tool_is_not_held(w, variant):
    """A tool that the agent keeps its own work with is known, and not held."""
    tools_are_not_held(w, variant)


@case(AGENT)
def settings_that_drop_plugins_are_guarded(w):
    """An agent that removes the folder of its plugins is held."""
    project = w.connected_project("--scope", "project")
    w.model.play(main=[calls(w.agent.shell("mv .opencode .opencode-old")), DONE])
    held = w.deny_all(w.start("[[main]] please move it", project))
    w.check("it is held", held)
    w.check("the plugin is still there", (project / w.agent.settings_file).exists())
