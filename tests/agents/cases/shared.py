"""What holds for every agent, written once."""
import re
import signal

from lib.cases import case
from lib.model import calls, says
from lib.wait import happens

DONE = says("done")


def start_delete(w, project):
    """Starts an agent that deletes a precious folder and ends its turn."""
    precious = w.precious()
    w.model.play(main=[calls(w.agent.delete(precious)), DONE])
    return precious, w.start("[[main]] please tidy up", project)


@case(short=True)
def harmless_command_runs(w):
    """A command that no gate names runs without a question, and is on record."""
    project = w.connected_project()
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    code, text = w.doctor(project)
    w.check("`cra doctor` finds no problem", code == 0, text)
    run = w.start("[[main]] please say hello", project)
    held = w.held(run)
    w.check("nothing is held", not held, held)
    code = run.finish()
    w.check("the command ran", (project / "out.txt").exists())
    w.check("the agent ends well", code == 0, run.out[-500:])
    w.check("the model is told the result", len(w.model.results()) == 1, w.model.results())
    end = ["session_ended"] if w.agent.tells_end_of_session else []
    w.check_record("session_started", "input_received", "action_attempted", "action_completed", *end,
                   without=["checkpoint_triggered", "action_blocked"])
    w.check("the action is called `shell.run`", w.actions() == ["shell.run"], w.actions())


@case(short=True)
def held_command_runs_after_pass(w):
    """A gated command is held, does not run while it is, and runs after the operator passed it."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    row = w.check_held(run)
    w.check("the gate is `destroy-files`",
            [gate["origin"]["checkpoint"]["checkpoint_id"] for gate in row["gates"]] == ["destroy-files"], row)
    w.check("nothing has run while it is held", precious.exists() and not run.ended())
    w.console.approve(row["id"])
    code = run.finish()
    w.check("it runs after the pass", not precious.exists())
    w.check("the agent ends well", code == 0, run.out[-500:])
    w.check_record("checkpoint_triggered", "checkpoint_response", "checkpoint_passed", "action_completed")


@case()
def guidance_of_a_gate_reaches_the_model(w):
    """When a gate is passed, the model is told the guidance of that gate."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    w.console.approve(w.check_held(run)["id"])
    run.finish()
    w.check("it runs after the pass", not precious.exists())
    w.check("the guidance reaches the model", "Check the path for variables" in w.model.everything())


@case(short=True)
def denied_command_does_not_run(w):
    """A denied command does not run, and the model is told the operator's reason."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    row = w.check_held(run)
    w.console.deny(row["id"], "keep the holiday pictures")
    run.finish()
    w.check("it does not run", precious.exists())
    w.check("the model is told the reason", "keep the holiday pictures" in w.model.told(), w.model.results())
    w.check_record("checkpoint_blocked", "action_blocked", without=["action_completed"])


@case(short=True)
def silence_denies_before_the_agents_timer(w):
    """When no operator answers, the call is denied before the agent stops waiting for its hook."""
    timer = 12
    project = w.connected_project("--timeout", str(timer))
    precious, run = start_delete(w, project)
    w.check_held(run)
    run.finish()
    w.check("it does not run", precious.exists())
    times = [request.at for request in w.model.requests() if request.script == "main"]
    waited = times[1] - times[0] if len(times) > 1 else 0
    w.check("the answer comes before the timer", 0 < waited < timer, f"{waited:.1f} s")
    w.check("the model is told that no answer came", "no answer within" in w.model.told(), w.model.results())
    w.check_record("action_blocked", without=["action_completed"])


@case(short=True)
def nothing_runs_without_a_console(w):
    """Without a console not even a harmless command runs, and the text says how to start one."""
    project = w.connected_project(console=False)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    run = w.start("[[main]] please say hello", project)
    run.finish()
    w.check("nothing runs", not (project / "out.txt").exists())
    if w.agent.shows_reason_of_blocked_prompt or w.model.requests():
        # A terminal breaks lines, and some agents read backticks as Markdown.
        said = " ".join((run.out + w.model.everything()).replace("`", "").split())
        w.check("the user or the model is told to start the console", "Start the console with cra" in said,
                run.out[-500:] + str(w.model.results()))
    code, text = w.doctor(project)
    w.check("`cra doctor` reports the missing console", code == 1 and "console" in text, text)
    w.start_console()
    w.start("[[main]] please say hello", project).finish()
    w.check("the same command runs once a console is there", (project / "out.txt").exists())


@case(short=True)
def own_settings_are_guarded(w):
    """An agent that writes over the file with its own hooks is held, by its write tool and by the shell."""
    project = w.connected_project("--scope", "project")
    settings = project / w.agent.settings_file
    before = settings.read_bytes()
    w.model.play(main=[calls(w.agent.read_before_write(settings)), calls(w.agent.write(settings, "{}")),
                       calls(w.agent.shell(f"echo '{{}}' > {w.agent.settings_file}")), DONE])
    run = w.start("[[main]] please change your settings", project)
    held = w.deny_all(run, "hands off the hooks")
    gates = [gate["origin"]["checkpoint"]["checkpoint_id"] for row in held for gate in row["gates"]]
    w.check("both ways are held", gates == ["edit-guards", "edit-guards-by-shell"], gates)
    if w.agent.rewrites_settings:
        code, text = w.doctor(project)
        w.check("the hooks are as they were", code == 0, text)
    else:
        w.check("the file is as it was", settings.read_bytes() == before)
    w.check_record("action_blocked")


# --- Consoles that go away, and agents that do

@case()
def killed_console_denies(w):
    """A console that is killed while a call is held denies it, and the model is told so."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    w.check_held(run)
    w.console.kill()
    run.finish()
    w.check("it does not run", precious.exists())
    w.check("the model is told of the console", "the console" in w.model.told(), w.model.results())


@case()
def request_of_a_denied_agent_is_closed_after_a_restart(w):
    """A request whose agent was denied because the console died is not open again in the next console."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    w.check_held(run)
    w.console.kill()
    run.finish()
    console = w.start_console()
    w.check("the request is closed, or an alarm says that its agent has left",
            happens(lambda: not w.queue() or console.shows(r"(?i)ALARM|agent (has )?left|gone"), 10), w.queue())
    w.check("it did not run", precious.exists())


@case()
def hanging_console_denies(w):
    """A console that hangs while a call is held does not make the agent go on."""
    project = w.connected_project("--timeout", "12")
    precious, run = start_delete(w, project)
    w.check_held(run)
    w.console.signal(signal.SIGSTOP)
    try:
        run.finish()
    finally:
        w.console.signal(signal.SIGCONT)
    w.check("it does not run", precious.exists(), w.model.results())


@case()
def missing_program_denies(w):
    """When the program of the hooks is gone, nothing runs."""
    project = w.connected_project()
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    moved = w.cra.with_name("moved")
    w.cra.rename(moved)
    try:
        w.start("[[main]] please say hello", project).finish()
    finally:
        moved.rename(w.cra)
    w.check("nothing runs", not (project / "out.txt").exists(), w.model.results())


@case()
def request_of_a_killed_agent_is_closed(w):
    """When an agent is killed while its call is held, no operator decides for it: the request closes, or an alarm
    says that the agent has left."""
    project = w.connected_project()
    precious, run = start_delete(w, project)
    w.check_held(run)
    run.kill()
    w.check("the request is closed, or an alarm is shown",
            happens(lambda: not w.queue() or w.console.shows(r"(?i)ALARM|agent (has )?left|gone"), 20), w.queue())
    w.check("no hook waits on", happens(lambda: not w.hooks(), 10), w.hooks())
    w.check("it did not run", precious.exists())


# --- Contexts, prompts and the start of a session

CONTEXTS = """
atlas_version: "1.0"
atlas_id: "org.cra.tests.contexts"
version: "1.0.0"
name: "Contexts"
description: "Hands over contexts that can be found in what the model is sent, and holds prompts about the payroll"
default_decision: allow
unknown_actions: allow
context_blocks:
  - { context_id: "start", name: "Start", content: "START-CONTEXT use tabs", inject_mode: on_demand }
  - { context_id: "word", name: "Word", content: "WORD-CONTEXT refunds need a ticket", inject_mode: on_demand }
  - { context_id: "act", name: "Act", content: "ACTION-CONTEXT commands run in a jail", inject_mode: on_demand }
checkpoint_config:
  session_start: { enabled: true, inject_contexts: [start] }
  keyword_match: { mappings: { "refund": [word] } }
  action_pre: { mappings: { "shell.run": { inject_contexts: [act] } } }
actions:
  - { action_id: "shell.run", name: "Run", risk_tier: medium }
checkpoints:
  - checkpoint_id: "payroll"
    name: "Prompts about the payroll"
    trigger: { type: keyword, patterns: ["payroll"] }
    mode: blocking
    questions: [ { question_id: "why", question: "Why?", response_type: text, validation: { min_length: 5 } } ]
"""

START_GATE = """
atlas_version: "1.0"
atlas_id: "org.cra.tests.start"
version: "1.0.0"
name: "Start"
description: "Holds every session at its start"
default_decision: allow
unknown_actions: allow
checkpoints:
  - checkpoint_id: "who-works-here"
    name: "Who works here today"
    trigger: { type: session_start }
    mode: blocking
    questions: [ { question_id: "who", question: "Who works with the agent?", response_type: text } ]
"""


@case()
def contexts_reach_the_model(w):
    """Contexts of the session's start and of a word in the prompt are in the model's request, and only those."""
    project = w.connected_project(atlas=CONTEXTS)
    w.model.play(main=[DONE])
    w.start("[[main]] please say hello", project).finish()
    sent = w.model.everything()
    w.check("the context of the start is there", "START-CONTEXT" in sent)
    w.check("the context of the word is not", "WORD-CONTEXT" not in sent)
    mark = w.model.mark()
    w.start("[[main]] I want a refund", project).finish()
    w.check("the context of the word is there, once the word was said", "WORD-CONTEXT" in w.model.everything(mark))
    w.check_record("context_injected")


@case()
def context_before_an_action_reaches_the_model(w):
    """A context that is recorded as given before an action is in the model's next request."""
    project = w.connected_project(atlas=CONTEXTS)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    w.start("[[main]] please say hello", project).finish()
    w.check("the command ran", (project / "out.txt").exists())
    given = [event for event in w.events() if event["event_type"] == "context_injected" and "act" in str(event["payload"])]
    told = "ACTION-CONTEXT" in w.model.everything()
    w.check("what the record says is what the model was told", told == bool(given), f"told {told}, recorded {given}")
    w.check("the model was told", told)


@case()
def denied_prompt_does_not_reach_the_model(w):
    """A prompt that a gate holds and the operator denies is not sent to the model, and nothing runs."""
    project = w.connected_project(atlas=CONTEXTS)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    run = w.start("[[main]] about the payroll", project)
    row = w.check_held(run, "the prompt is held")
    w.check("the model is not asked while it is held", not w.model.requests())
    w.console.deny(row["id"], "no payroll today")
    run.finish()
    w.check("the model is never asked", not w.model.requests(), w.model.requests())
    w.check("nothing runs", not (project / "out.txt").exists())
    w.check_record("checkpoint_blocked", without=["action_attempted"])


@case()
def passed_prompt_reaches_the_model(w):
    """A prompt that a gate holds is sent to the model after the operator passed it."""
    project = w.connected_project(atlas=CONTEXTS)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    run = w.start("[[main]] about the payroll", project)
    w.console.approve(w.check_held(run, "the prompt is held")["id"])
    run.finish()
    w.check("the command ran", (project / "out.txt").exists())
    w.check_record("checkpoint_passed", "action_completed")


@case()
def prompt_waits_for_the_gate_at_the_start(w):
    """While a gate holds a session at its start, the model is not asked. Afterwards the session goes on."""
    project = w.connected_project(atlas=START_GATE)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    run = w.start("[[main]] please say hello", project)
    row = w.check_held(run, "the session is held")
    # Until a tool waits as well, or for as long as an agent needs to ask its model.
    happens(lambda: w.model.requests(), 8)
    w.check("the model is not asked before the gate is passed", not w.model.requests(), w.model.requests())
    w.check("nothing has run", not (project / "out.txt").exists())
    w.console.approve(row["id"], "the test suite")
    run.finish()
    w.check("the command runs after the pass", (project / "out.txt").exists(), w.model.results())
    w.check_record("checkpoint_passed", "action_completed")


@case()
def unanswered_gate_at_the_start_gives_its_reason(w):
    """When no operator answers the gate at the start, nothing runs, and the reason given is that no answer came."""
    project = w.connected_project("--timeout", "12", atlas=START_GATE)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    run = w.start("[[main]] please say hello", project)
    w.check_held(run, "the session is held")
    run.finish()
    said = w.model.everything() + run.out
    w.check("nothing runs", not (project / "out.txt").exists())
    w.check("the reason does not blame the console", "console did not answer" not in said, w.model.results())
    if w.agent.shows_reason_of_blocked_prompt or w.model.requests():
        w.check("the reason is that no answer came", "no answer" in said, w.model.results() + [run.out[-500:]])
    ends = [event["payload"] for event in w.events() if event["event_type"] == "checkpoint_completed"]
    w.check("the record does not say that the session was withdrawn", "withdrawn" not in str(ends), ends)


# --- Kinds of calls

@case()
def subagents_command_is_held(w):
    """A command of a subagent is held, and denied for the subagent alone."""
    project = w.connected_project()
    precious = w.precious()
    w.model.play(main=w.agent.subagent("[[part]] please tidy up"),
                 part=[calls(w.agent.delete(precious)), w.agent.end_of_subagent()])
    run = w.start("[[main]] please share the work", project, *w.agent.subagent_options)
    seen = pass_other_tools(w, run, "not by a subagent")
    w.check("the subagent's command is held", any(row["action"] == "shell.run" for row in seen), seen)
    w.check("it does not run", precious.exists())
    w.check("the subagent's model is told", "not by a subagent" in w.model.told(), w.model.results())


@case()
def work_with_subagents_is_not_held(w):
    """Tools that start a subagent and wait for it are known: only what the subagent does is asked about."""
    project = w.connected_project()
    w.model.play(main=w.agent.subagent("[[part]] please say hello"),
                 part=[calls(w.agent.shell("echo hello > out.txt")), w.agent.end_of_subagent()])
    run = w.start("[[main]] please share the work", project, *w.agent.subagent_options)
    seen = pass_other_tools(w, run, "a harmless command")
    w.check("nothing is held", not seen, [row["action"] for row in seen])
    w.check("the subagent's command ran", (project / "out.txt").exists())
    w.check("starting a subagent is called `agent.run`", "agent.run" in w.actions(), w.actions())


@case()
def sessions_of_subagents_end(w):
    """After a subagent has ended, no session of it stays open in the record."""
    project = w.connected_project()
    w.model.play(main=w.agent.subagent("[[part]] please say hello"),
                 part=[calls(w.agent.shell("echo hello > out.txt")), w.agent.end_of_subagent()])
    run = w.start("[[main]] please share the work", project, *w.agent.subagent_options)
    pass_other_tools(w, run, "a harmless command")
    ends = [(session["session"], bool(session["ended"])) for session in w.sessions()]
    w.check("every session ended", happens(lambda: all(session["ended"] for session in w.sessions()), 10), ends)


def pass_other_tools(w, run, reason):
    """Passes tools of the agent's own that are held, and denies commands. Returns what was held."""
    seen = []
    while rows := w.held(run):
        seen.append(rows[0])
        if rows[0]["action"] == "shell.run":
            w.console.deny(rows[0]["id"], reason)
        else:
            w.console.approve(rows[0]["id"])
    return seen


@case()
def mcp_tool_is_held_by_its_server(w):
    """A tool of an MCP server is held under the name of its server, and runs after the pass."""
    project = w.connected_project()
    options = w.agent.connect_mcp(w, project)
    w.agent.trust(w, project)
    target = project / "touched"
    w.model.play(main=[calls(w.agent.mcp({"path": str(target)})), DONE])
    run = w.start("[[main]] please touch the file", project, *options)
    row = w.check_held(run)
    w.check("it is called `mcp.suite.touch`", row["action"] == "mcp.suite.touch", row["action"])
    w.check("nothing has run while it is held", not target.exists())
    w.console.approve(row["id"])
    run.finish()
    w.check("it runs after the pass", target.exists(), w.model.results())
    w.check_record("action_completed")


@case()
def one_of_three_parallel_calls_is_held(w):
    """Of three calls at once only the gated one is held and denied. The others run."""
    project = w.connected_project()
    precious = w.precious()
    w.model.play(main=[w.agent.side_by_side("echo 1 > one.txt", f"find ~/{precious.name} -delete", "echo 3 > three.txt"),
                       DONE])
    run = w.start("[[main]] please do three things", project)
    row = w.check_held(run)
    w.check("one is held", len(w.queue()) == 1, w.queue())
    w.console.deny(row["id"], "not the second")
    w.check("nothing else is held", not w.deny_all(run))
    w.check("the gated one does not run", precious.exists())
    w.check("the others run", (project / "one.txt").exists() and (project / "three.txt").exists(), w.model.results())
    told = [result for result in w.model.results() if "not the second" in result]
    w.check("the model is told the reason once", len(told) == 1, w.model.results())


@case()
def one_pass_runs_one_of_two_identical_calls(w):
    """Two identical gated calls at once are two requests: a pass is for one run."""
    project = w.connected_project()
    command = "git push --force origin main; echo x >> runs.txt"
    w.model.play(main=[w.agent.side_by_side(command, command), DONE])
    run = w.start("[[main]] please do it twice", project)
    first = w.check_held(run)
    # Where the agent asks for both at once, both hooks wait before one is passed.
    happens(lambda: len(w.hooks()) > 1, 3)
    w.console.approve(first["id"])
    others = w.deny_all(run, "once is enough")
    runs = (project / "runs.txt").read_text().count("x") if (project / "runs.txt").exists() else 0
    w.check("one of them ran", runs == 1, f"{runs} ran")
    w.check("the other one was asked for", len(others) == 1, others)
    done = w.types()
    w.check("the record has two actions", done.count("action_attempted") == 2, done)
    w.check("one was completed, one blocked", (done.count("action_completed"), done.count("action_blocked")) == (1, 1), done)


@case()
def identical_harmless_calls_are_both_recorded(w):
    """Two identical harmless calls at once are two actions on record, and both are completed."""
    project = w.connected_project()
    w.model.play(main=[w.agent.side_by_side("echo x >> runs.txt", "echo x >> runs.txt"), DONE])
    w.start("[[main]] please do it twice", project).finish()
    done = w.types()
    w.check("both ran", (project / "runs.txt").read_text().count("x") == 2)
    w.check("both are on record", done.count("action_attempted") == 2, done)
    w.check("both are completed", done.count("action_completed") == 2, done)


@case()
def reading_secrets_is_held(w):
    """Reading a file of secrets by the read tool is held, and the content does not reach the model."""
    hold_secret(w, lambda path: w.agent.read(path))


@case()
def searching_secrets_is_held(w):
    """Printing lines of a file of secrets by the search tool is held, and the content does not reach the model."""
    hold_secret(w, lambda path: w.agent.search(path, "TOKEN"))


@case()
def printing_secrets_is_held(w):
    """Printing a private key by the shell is held, and the content does not reach the model."""
    ssh = w.home / ".ssh"
    ssh.mkdir()
    (ssh / "id_rsa").write_text("TOKEN=the-secret-value\n")
    hold_secret(w, lambda path: w.agent.shell("cat ~/.ssh/id_rsa"))


def hold_secret(w, tool):
    project = w.connected_project()
    secret = project / w.agent.secret_file
    secret.write_text("TOKEN=the-secret-value\n")
    w.model.play(main=[calls(tool(secret)), DONE])
    run = w.start("[[main]] please look", project)
    held = w.deny_all(run, "that is a secret")
    w.check("it is held", len(held) == 1, f"{held} {w.actions()}")
    w.check("the secret does not reach the model", "the-secret-value" not in w.model.everything())
    w.check("the model is told the reason", "that is a secret" in w.model.told(), w.model.results())


@case()
def failed_tool_is_recorded_as_over(w):
    """A tool that fails is on record as over, not as running for ever."""
    project = w.connected_project()
    w.model.play(main=[calls(w.agent.read(project / "no-such-file.txt")), DONE])
    w.start("[[main]] please read", project).finish()
    seen = w.types()
    w.check("the record has its end", "action_completed" in seen or "action_failed" in seen, seen)


# --- Where an agent starts

@case()
def agent_in_a_subfolder_is_held(w):
    """An agent that starts in a folder below the connected project asks cra too."""
    hold_below(w, git=True)


@case()
def agent_in_a_subfolder_without_git_is_held(w):
    """An agent that starts in a folder below a connected project without a git repository asks cra too."""
    hold_below(w, git=False)


def hold_below(w, git):
    project = w.connected_project(git=git)
    below = project / "src/deep"
    below.mkdir(parents=True)
    w.agent.trust(w, below)
    doctor = w.doctor(project)
    precious, run = start_delete(w, below)
    held = w.deny_all(run)
    w.check("it is held", held)
    w.check("it does not run", precious.exists(), f"`cra doctor` in the project: exit {doctor[0]}")


@case()
def untrusted_folder_is_held_or_reported(w):
    """In a folder that its user did not trust, the agent asks cra, or `cra doctor` reports a problem."""
    w.start_console()
    project = w.project()
    w.connect(project)
    hold_or_report(w, project, *w.agent.untrusted_options)


def hold_or_report(w, project, *options):
    """Checks that an agent asks, or that `cra doctor` told before that it would not."""
    code, text = w.doctor(project)
    precious = w.precious()
    w.model.play(main=[calls(w.agent.delete(precious)), DONE])
    run = w.start("[[main]] please tidy up", project, *options)
    held = w.deny_all(run)
    w.check("the call is held, or `cra doctor` exits with 1 because it will not be", precious.exists() or code == 1,
            f"held {bool(held)}, ran {not precious.exists()}, doctor exit {code}: {text}")
    return held


@case()
def user_scope_holds_in_every_folder(w):
    """`cra connect --scope user` holds the agent in a folder that was not connected."""
    w.start_console()
    project = w.project()
    w.connect(project, "--scope", "user")
    other = w.project("other")
    w.agent.trust(w, other)
    precious, run = start_delete(w, other)
    held = w.deny_all(run)
    w.check("it is held", held)
    w.check("it does not run", precious.exists())


@case()
def projects_with_other_timers_are_no_problem(w):
    """Two projects connected with different timers are no problem for `cra doctor`."""
    first = w.connected_project("--scope", "project", "--timeout", "50")
    w.connected_project("--scope", "project", "--timeout", "70", name="second")
    code, text = w.doctor(first)
    w.check("`cra doctor` finds no problem", code == 0, text)


@case()
def record_names_the_agent(w):
    """Sessions are on record under the name of the agent that has them."""
    project = w.connected_project()
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    w.start("[[main]] please say hello", project).finish()
    names = [session["agent"] for session in w.sessions()]
    w.check("there is one session", len(names) == 1, names)
    w.check("it is this agent's", all(name.startswith(w.agent.connects_as) for name in names), names)


@case()
def reason_of_silence_is_whole_sentences(w):
    """The text that an agent gets after silence is made of whole sentences."""
    project = w.connected_project("--timeout", "10")
    _, run = start_delete(w, project)
    w.check_held(run)
    run.finish()
    told = w.model.told()
    reason = told[told.find("cra:"):]
    w.check("there is a reason", reason.startswith("cra:"), told)
    w.check("sentences begin with a capital letter", not re.search(r"[.)] +[a-z]", reason.split("Command:")[0]), reason)
    w.check("sentences end with one full stop", ".." not in reason, reason)


# --- Disconnecting

@case()
def disconnect_restores_the_file_byte_for_byte(w):
    """`cra disconnect` leaves a file that was there before as it was, byte for byte."""
    w.start_console()
    project = w.project()
    settings = project / w.agent.settings_file
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(w.agent.odd_settings)
    w.connect(project, "--scope", "project")
    w.check("connecting changes the file", settings.read_text() != w.agent.odd_settings)
    w.run_cra("disconnect", w.agent.connects_as, "--scope", "project", "--yes", cwd=project)
    w.check("the file is as it was", settings.read_text() == w.agent.odd_settings, settings.read_text())


@case()
def disconnect_leaves_nothing_where_no_file_was(w):
    """`cra disconnect` leaves no file where there was none before `cra connect`, and no backup either."""
    w.start_console()
    project = w.project()
    for scope in ("project", "user"):
        before = files(w.home)
        w.connect(project, "--scope", scope)
        w.check(f"connecting the {scope} writes a file", files(w.home) != before)
        w.run_cra("disconnect", w.agent.connects_as, "--scope", scope, "--yes", cwd=project)
        # The record, and backups of files that were there before, stay.
        stays = (".local/share/cra/", *(f"{path}.cra-backup" for path in before))
        left = {path for path in files(w.home) - before if not path.startswith(stays)}
        w.check(f"no file of the {scope} is left", not left, left)


def files(project):
    return {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}


# --- In a terminal, and time

@case()
def interactive_call_is_held(w):
    """In a terminal a gated call is held and runs after the pass."""
    project = w.connected_project()
    precious = w.precious()
    w.model.play(main=[calls(w.agent.delete(precious)), says("ALL DONE")])
    screen = w.start_screen(w.agent.interactive(w, project), project)
    w.agent.await_prompt(screen)
    screen.type("[[main]] please tidy up")
    screen.press("Enter", w.agent.working, seconds=30)
    rows = w.held()
    w.check("nothing has run while it is held", precious.exists())
    if w.agent.waiting:
        screen.wait(w.agent.waiting, 20)
    w.console.approve(rows[0]["id"])
    w.agent.confirm(screen)
    screen.wait("ALL DONE")
    w.check("it runs after the pass", not precious.exists())
    w.check_record("checkpoint_passed", "action_completed")


@case()
def hooks_cost_little(w):
    """The hooks add less than a quarter of a second to a tool call. The fastest call of each run counts, because
    the machine may be busy."""
    w.start_console()
    plain = w.project("plain")
    w.agent.trust(w, plain)
    held = w.connected_project()
    w.model.play(main=[calls(w.agent.shell(f"echo {at} > out{at}.txt")) for at in range(12)] + [DONE])
    cost = {"plain": [], "project": []}
    for project in (plain, held, plain, held):
        mark = w.model.mark()
        w.start("[[main]] please count", project).finish()
        w.check(f"all commands run in {project.name}", (project / "out11.txt").exists())
        times = [request.at for request in w.model.requests(mark) if request.script == "main"]
        cost[project.name] += [1000 * (after - before) for before, after in zip(times, times[1:])]
    without, with_hooks = min(cost["plain"]), min(cost["project"])
    w.check("the hooks add less than 250 ms", with_hooks - without < 250,
            f"ms of the fastest call: {without:.0f} without hooks, {with_hooks:.0f} with")
