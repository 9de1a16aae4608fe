"""Agents inside an editor, over the Agent Client Protocol, with `cra acp-proxy` between the two."""
from lib.acp import Editor
from lib.cases import case
from lib.model import calls, says

DONE = says("done")
AGENTS = ("gemini", "copilot")


def editor(w, answer="allow"):
    """An editor with an agent behind the proxy. The agent itself is not connected: the proxy alone holds it."""
    w.start_console()
    project = w.project()
    w.agent.trust(w, project)
    key = w.run_cra("trace", "key", "--answers", cwd=project).stdout.strip()
    command = [w.cra, "acp-proxy", "--key", key, "--", w.agent.binary(), *w.agent.acp]
    return project, Editor(w, command, project, answer).open()


def start_delete(w, answer="allow"):
    project, client = editor(w, answer)
    precious = w.precious()
    w.model.play(main=[calls(w.agent.delete(precious)), DONE])
    client.prompt("[[main]] please tidy up")
    return project, precious, client


@case(*AGENTS)
def editor_call_runs_after_pass(w):
    """A gated command of an agent in an editor is held by the proxy, and runs after the operator passed it."""
    _, precious, client = start_delete(w)
    row = w.check_held(client)
    w.check("nothing has run while it is held", precious.exists())
    w.console.approve(row["id"])
    w.check("the turn ends well", client.finish() == "end_turn")
    w.check("it runs after the pass", not precious.exists())
    w.check_record("checkpoint_passed", "action_completed")


@case(*AGENTS)
def editor_call_is_denied(w):
    """A denied command of an agent in an editor does not run, though the editor says yes to everything."""
    _, precious, client = start_delete(w)
    row = w.check_held(client)
    w.console.deny(row["id"], "not from an editor")
    client.finish()
    w.check("it does not run", precious.exists())
    w.check_record("action_blocked", without=["action_completed"])


@case(*AGENTS)
def editor_user_can_refuse_what_the_operator_passed(w):
    """A pass of the operator does not overrule the user of the editor, who refuses the call."""
    project, client = editor(w, answer="reject")
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    client.prompt("[[main]] please say hello")
    while rows := w.held(client):
        w.console.approve(rows[0]["id"])
    client.finish()
    if "session/request_permission" in client.methods():
        w.check("it does not run", not (project / "out.txt").exists())


@case(*AGENTS)
def editor_harmless_call_runs(w):
    """A harmless command of an agent in an editor runs without a question to the operator, and is on record."""
    project, client = editor(w)
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    client.prompt("[[main]] please say hello")
    w.check("nothing is held", not w.held(client))
    w.check("the turn ends well", client.finish() == "end_turn")
    w.check("it ran", (project / "out.txt").exists())
    w.check_record("action_attempted")


@case(*AGENTS)
def editor_secrets_are_held(w):
    """An agent in an editor that reads a file of secrets is held, also if the editor reads the file."""
    project, client = editor(w)
    secret = project / w.agent.secret_file
    secret.write_text("TOKEN=the-secret-value\n")
    w.model.play(main=[calls(w.agent.read(secret)), DONE])
    client.prompt("[[main]] please look")
    w.check("it is held", deny_all(w, client, "that is a secret"))
    client.finish()
    w.check("the secret does not reach the model", "the-secret-value" not in w.model.everything())


@case(*AGENTS)
def editor_writes_to_guarded_files_are_held(w):
    """An agent in an editor that writes what watches over it is held, also if the editor writes the file."""
    project, client = editor(w)
    hook = project / ".git/hooks/pre-commit"
    w.model.play(main=[calls(w.agent.write(hook, "evil\n")), DONE])
    client.prompt("[[main]] please write")
    w.check("it is held", deny_all(w, client, "hands off"))
    client.finish()
    w.check("the file is not written", not hook.exists())


@case(*AGENTS)
def editor_agent_is_denied_without_a_console(w):
    """Without a console an agent in an editor runs nothing."""
    project, client = editor(w)
    w.console.quit()
    w.model.play(main=[calls(w.agent.shell("echo hello > out.txt")), DONE])
    client.prompt("[[main]] please say hello")
    client.finish()
    w.check("nothing runs", not (project / "out.txt").exists())


def deny_all(w, client, reason):
    seen = []
    while rows := w.held(client):
        seen.append(rows[0])
        w.console.deny(rows[0]["id"], reason)
    return seen
