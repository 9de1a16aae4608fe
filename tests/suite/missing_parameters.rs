//! Requests that leave out, or name differently, the parameter that a condition looks at.

use serde_json::json;

use super::cli::TestHome;
use super::socket::TestConsole;

/// A gate, a denial, a permission and advice, each on a parameter.
const RULES: &str = "atlas_version: '1.0'
atlas_id: own
version: '1'
name: Own
default_decision: allow
actions:
  - {action_id: shell.run, risk_tier: low}
  - {action_id: mail.send, risk_tier: low}
  - {action_id: note.read, risk_tier: low}
context_blocks:
  - {context_id: care, content: be careful, inject_mode: on_demand}
checkpoints:
  - {checkpoint_id: delete, trigger: {type: action_pre, patterns: [shell.run]}, mode: blocking,
     when: {path: params.command, matches: 'rm'}}
  - {checkpoint_id: hint, trigger: {type: action_pre, patterns: ['*']}, inject_contexts: [care],
     when: {path: params.command, matches: 'rm'}}
  - {checkpoint_id: asked, trigger: {type: action_pre, patterns: [note.read]}, mode: blocking,
     when: {all: [{path: params.secret, exists: true}, {path: params.secret, eq: true}]}}
policies:
  - {policy_id: outside, type: deny, actions: [mail.send], when: {path: params.to, ends_with: '.example'}}
";

// covers B28
#[tokio::test]
async fn gate_holds_a_request_that_spells_its_parameter_differently() {
    let console = TestConsole::with_atlas(RULES).await;
    let mut agent = console.agent().await;
    agent
        .call_ok("session.start", json!({"session": "s", "agent": "bot"}))
        .await;
    let ask = |action: &str, params: serde_json::Value| json!({"session": "s", "action": action, "params": params});
    let (reply, ()) = tokio::join!(
        agent.call_err(
            "action.request",
            ask("shell.run", json!({"cmd": "rm -rf /"}))
        ),
        console.deny("not that")
    );
    assert!(reply.contains("not that"), "{reply}");
    // The advice on the same condition is not given: it cannot be judged.
    let allowed = agent
        .call_ok("action.request", ask("note.read", json!({"cmd": "rm"})))
        .await;
    assert_eq!(allowed["given"]["contexts"], json!([]), "{allowed}");
    let harmless = ask("shell.run", json!({"command": "ls"}));
    agent.call_ok("action.request", harmless).await;
    let reply = agent
        .call_err(
            "action.request",
            ask("mail.send", json!({"recipient": "a@b.example"})),
        )
        .await;
    assert!(reply.contains("outside"), "{reply}");
}

#[test]
fn explain_names_the_missing_parameter() {
    let home = TestHome::empty();
    let file = home.0.path().join("own.yaml");
    std::fs::write(&file, RULES).unwrap();
    let file = file.to_str().unwrap();
    let params = ["--action", "shell.run", "--params", "{\"cmd\":\"rm\"}"];
    let reply = home.run(&[&["atlas", "explain", file][..], &params].concat());
    reply.succeeds();
    assert!(reply.out.contains("HELD at delete"), "{}", reply.out);
    let missing = "wanted matches \"rm\", cannot be evaluated: `params.command` is missing";
    assert!(reply.out.contains(missing), "{}", reply.out);
    let skipped = "not fired  wanted when, actual its condition cannot be evaluated: `params.command` is missing";
    assert!(reply.out.contains(skipped), "{}", reply.out);
    // A condition that asks for the parameter is false without it.
    let reply = home.run(&[
        "atlas",
        "explain",
        file,
        "--action",
        "note.read",
        "--params",
        "{}",
    ]);
    assert!(reply.out.contains("ALLOWED"), "{}", reply.out);
}
