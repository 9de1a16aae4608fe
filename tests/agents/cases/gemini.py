"""What is particular to Gemini CLI."""
from cases.claude_code import second_agent, tools_are_not_held
from cases.shared import DONE, hold_or_report
from lib.cases import case
from lib.model import call, calls, says
from lib.wait import happens, until

AGENT = "gemini"


@case(AGENT)
def skipped_trust_is_held(w):
    """With `--skip-trust` in a folder that is not trusted, a call is held: the hooks are not only the project's."""
    w.start_console()
    project = w.project()
    w.connect(project)
    held = hold_or_report(w, project, "--skip-trust")
    w.check("it is held", held)


@case(AGENT)
def doctor_reports_a_distrusted_folder(w):
    """`cra doctor` reports a folder that the user told Gemini not to trust, or calls are held there."""
    w.start_console()
    project = w.project()
    w.connect(project, "--scope", "project")
    w.agent.trust(w, project, "DO_NOT_TRUST")
    hold_or_report(w, project, "--skip-trust")


@case(AGENT)
def distrusted_folder_is_held_in_a_terminal(w):
    """In a terminal, in a folder that the user told Gemini not to trust, reading a file of secrets is held."""
    w.start_console()
    project = w.project()
    w.connect(project)
    w.agent.trust(w, project, "DO_NOT_TRUST")
    screen = prompt_in_terminal(w, project)
    held = until("a held request, or the end of the turn", lambda: w.queue() or screen.shows("ALL DONE"))
    w.check("it is held", held is not True and w.queue())
    w.check("the secret does not reach the model", "the-secret-value" not in w.model.everything())


@case(AGENT)
def call_that_its_user_cancels_is_closed(w):
    """When the user of the terminal cancels a call while it is held, no operator decides about it any more."""
    project = w.connected_project()
    screen = prompt_in_terminal(w, project)
    w.held()
    screen.wait(w.agent.waiting)
    screen.press("Escape", r"(?i)cancelled|canceled|Type your message")
    w.check("the request is closed, or an alarm is shown",
            happens(lambda: not w.queue() or w.console.shows(r"(?i)ALARM|agent (has )?left"), 20), w.queue())
    w.check("the secret does not reach the model", "the-secret-value" not in w.model.everything())


def prompt_in_terminal(w, project):
    """Lets an agent in a terminal read a file of secrets."""
    secret = project / w.agent.secret_file
    secret.write_text("TOKEN=the-secret-value\n")
    w.model.play(main=[calls(w.agent.read(secret)), says("ALL DONE")])
    screen = w.start_screen(w.agent.interactive(w, project), project)
    w.agent.await_prompt(screen)
    screen.type("[[main]] please look")
    screen.keys("Enter")
    return screen


@case(AGENT)
def doctor_tells_that_editors_are_not_covered(w):
    """`cra doctor` says that Gemini inside an editor does not ask its hooks."""
    project = w.connected_project()
    _, text = w.doctor(project)
    w.check("the text names editors", "editor" in text or "--acp" in text, text)


LIST = ".gemini/trustedFolders.json"


@case(AGENT, variants={
    "list of trusted folders, by the shell": lambda w: w.agent.shell(f"echo '{{}}' > ~/{LIST}"),
    "extension, by the shell": lambda w: w.agent.shell(
        "mkdir -p ~/.gemini/extensions/x && echo '{}' > ~/.gemini/extensions/x/a.json"),
    "settings of the user, after cd": lambda w: w.agent.shell("cd ~/.gemini && echo '{}' > settings.json"),
})
def switch_of_the_hooks_is_guarded(w, variant):
    """An agent that writes a file which decides whether hooks run is held."""
    project = w.connected_project()
    w.model.play(main=[calls(variant(w)), DONE])
    held = w.deny_all(w.start("[[main]] please change it", project))
    w.check("it is held", held, w.model.results())


EVERYDAY = {
    "update_topic": {"title": "t", "summary": "s", "strategic_intent": "i"},
    "write_todos": {"todos": []},
    "enter_plan_mode": {"reason": "a test"},
    "list_background_processes": {},
    "read_background_output": {"pid": 1},
    "activate_skill": {"name": "none"},
}


@case(AGENT, variants={name: call(name, arguments) for name, arguments in EVERYDAY.items()})
def everyday_tool_is_not_held(w, variant):
    """A tool that the agent keeps its own work with is known, and not held."""
    tools_are_not_held(w, variant)


@case(AGENT, variants={
    "in another folder": "cd ~ && gemini --skip-trust --yolo -p '[[inner]] go on'",
    "without its hooks' folder": "cd /tmp && gemini --skip-trust --yolo -p '[[inner]] go on'",
})
def second_agent_without_hooks_is_held(w, variant):
    """An agent that starts itself without hooks, by an ordinary command, is held."""
    second_agent(w, variant)
