"""What holds for every agent, written once."""
import signal

from lib.cases import case
from lib.model import calls, says
from lib.wait import until

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
    w.check_record("session_started", "input_received", "action_attempted", "action_completed", "session_ended",
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
        said = run.out + w.model.everything()
        w.check("the user or the model is told to start the console", "Start the console with `cra`" in said,
                run.out[-500:] + str(w.model.results()))
    code, text = w.doctor(project)
    w.check("`cra doctor` reports the missing console", code == 1 and "console" in text, text)
    w.start_console()
    w.start("[[main]] please say hello", project).finish()
    w.check("the same command runs once a console is there", (project / "out.txt").exists())


@case(short=True)
def own_settings_are_guarded(w):
    """An agent that writes over the file with its own hooks is held, by its write tool and by the shell."""
    project = w.connected_project()
    settings = project / w.agent.settings_file
    before = settings.read_bytes()
    w.model.play(main=[calls(w.agent.read_before_write(settings)), calls(w.agent.write(settings, "{}")),
                       calls(w.agent.shell(f"echo '{{}}' > {w.agent.settings_file}")), DONE])
    run = w.start("[[main]] please change your settings", project)
    held = w.deny_all(run, "hands off the hooks")
    gates = [gate["origin"]["checkpoint"]["checkpoint_id"] for row in held for gate in row["gates"]]
    w.check("both ways are held", gates == ["edit-guards", "edit-guards-by-shell"], gates)
    w.check("the file is as it was", settings.read_bytes() == before)
    w.check_record("action_blocked")
