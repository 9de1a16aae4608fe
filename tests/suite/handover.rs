//! A session handed over: an agent at the socket, `cra snapshot`, `cra reconstruct`.

use std::io::Write as _;
use std::process::Stdio;

use cra_core::engine::command::{OperatorReply, Ruling};
use serde_json::{Value, json};

use super::cli::{CommandOutput, command, command_output};
use super::socket::{Agent, TestConsole};
use super::support::decide;

/// One gate that asks for a reason, one policy that asks for an approval, and actions with and without dots.
const ATLAS: &str = "
atlas_version: '1.0'
atlas_id: hand.over
name: Hand over
version: '1'
actions:
- {action_id: db.drop, name: Drop, risk_tier: critical}
- {action_id: deploy_service, name: Deploy, risk_tier: low}
- {action_id: ticket.get, name: Get, risk_tier: low}
checkpoints:
- checkpoint_id: risky
  name: Risky
  trigger: {type: risk_threshold, min_tier: critical}
  mode: blocking
  questions:
  - {question_id: why, question: Why now?, response_type: text}
  - {question_id: secret, question: The code?, response_type: text, sensitive: true}
  - {question_id: read, question: Did you read it?, response_type: acknowledgment}
policies:
- {policy_id: ask-first, type: requires_approval, actions: [deploy_service], reason: r}
";

/// Answers the one held request: with these texts, else with a refusal.
async fn answers(console: &TestConsole, texts: &Value) {
    let snapshot = console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    let held = &snapshot.held[0];
    let gates = held.gates.iter().map(|gate| {
        let answer = |id: &str| {
            texts
                .get(id)
                .cloned()
                .unwrap_or_else(|| json!("understood"))
        };
        let questions = gate.questions.iter();
        questions
            .map(|question| (question.id().to_owned(), answer(question.id())))
            .collect()
    });
    let ruling = match texts.as_str() {
        Some(reason) => Ruling::Deny {
            reason: reason.to_owned(),
        },
        None => Ruling::Pass {
            answers: gates.collect(),
        },
    };
    let reply = console
        .bench
        .runtime
        .operator_handle()
        .decide(decide(held, ruling))
        .await;
    assert!(matches!(reply, OperatorReply::Decided(_)), "{reply:?}");
}

fn asks(action: &str) -> Value {
    json!({"session": "s-1", "action": action, "params": {"id": 1}})
}

/// A turn, heated so much.
async fn takes_turn(agent: &mut Agent, number: u32, arc: &str, intensity: f64) {
    let turn = json!({
        "message_id": format!("m-{number}"), "message": "go on",
        "affect": {"label": "tense", "intensity": intensity, "confidence": "high", "source": "model"},
        "proposed": {"arc": arc, "active": ["drop the old table"], "next": ["tell the customer"], "parked": ["report format"], "decisions": ["keep the backup"]},
    });
    agent
        .call_ok("turn", json!({"session": "s-1", "turn": turn}))
        .await;
}

/// An agent that was let through once with a reason, refused once, and is still at work.
async fn worked() -> (TestConsole, Agent) {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut agent = console.agent().await;
    let start = json!({"session": "s-1", "agent": "bot", "intent": "move the invoices"});
    agent.call_ok("session.start", start).await;
    let texts = json!({"why": "because it is needed", "secret": "sesame-4711"});
    let (allowed, ()) = tokio::join!(
        agent.call_ok("action.request", asks("db.drop")),
        answers(&console, &texts)
    );
    let done = json!({"session": "s-1", "execution": allowed["execution"], "result": "ok"});
    agent.call_ok("action.completed", done).await;
    let approval = json!({"justification": "the owner agreed"});
    let (allowed, ()) = tokio::join!(
        agent.call_ok("action.request", asks("deploy_service")),
        answers(&console, &approval)
    );
    let done = json!({"session": "s-1", "execution": allowed["execution"], "result": "ok"});
    agent.call_ok("action.completed", done).await;
    let refusal = json!("not on a Friday");
    let (refused, ()) = tokio::join!(
        agent.call_err("action.request", asks("deploy_service")),
        answers(&console, &refusal)
    );
    assert!(refused.contains("not on a Friday"), "{refused}");
    (console, agent)
}

/// Stops the console and has `cra snapshot` write what it left.
async fn snapshot(console: TestConsole) -> Value {
    let folder = console.close().await;
    let mut cra = command(folder.path());
    cra.args(["snapshot", "s-1", "--data-dir"])
        .arg(folder.path());
    let reply = command_output(cra.output().unwrap());
    reply.succeeds();
    reply.json()
}

/// Result of `cra reconstruct -` for a file.
fn reconstruct(file: &Value, args: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let mut cra = command(folder.path());
    cra.args(["reconstruct", "-"]).args(args);
    cra.stdin(Stdio::piped());
    cra.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cra.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(file.to_string().as_bytes()).unwrap();
    drop(input);
    command_output(child.wait_with_output().unwrap())
}

/// The decisions of a file by what they say.
fn decisions(file: &Value) -> Vec<String> {
    let all = file["decisions_made"].as_array().unwrap().iter();
    let text = |item: &Value| item["decision"].as_str().unwrap().to_owned();
    all.map(text).collect()
}

// covers R1, R10, R14, R15, R16
#[tokio::test(flavor = "multi_thread")]
async fn handover_of_a_socket_session_contains_only_its_recorded_reasons() {
    let (console, mut agent) = worked().await;
    takes_turn(&mut agent, 1, "move the invoices safely", 0.2).await;
    let file = snapshot(console).await;
    assert_eq!(
        decisions(&file),
        [
            "keep the backup",
            "`db.drop` passed (risky)",
            "`deploy_service` passed (ask-first)",
            "`deploy_service` denied (ask-first)",
        ],
        "each approval once"
    );
    let reasons: Vec<_> = (0..4)
        .map(|at| &file["decisions_made"][at]["rationale"])
        .collect();
    assert_eq!(
        reasons,
        [
            &Value::Null,
            &json!("op-1: because it is needed"),
            &json!("op-1: the owner agreed"),
            &json!("op-1: not on a Friday"),
        ]
    );
    let text = file.to_string();
    for invented in [
        "completion_percentage",
        "momentum",
        "confidence",
        "communication_calibration",
        "approach",
        "conversation_dynamics",
        "key_insights",
        "critical_question",
        "readiness",
        "sesame",
        "sha256",
    ] {
        assert!(!text.contains(invented), "{invented}: {text}");
    }
    assert_eq!(file["deferred_items"], json!([{"item": "report format"}]));
    let reply = reconstruct(&file, &[]).out;
    for line in [
        "POSITION: Working on drop the old table: move the invoices safely",
        "  Phase: Working",
        "  Completion: not recorded",
        "  Momentum: not recorded; last activity: `deploy_service` was blocked by `ask-first`: denied by op-1: not on a Friday",
        "  High confidence: none",
        "  Confidence not recorded: Keep the backup, `db.drop` passed (risky), `deploy_service` passed (ask-first), `deploy_service` denied (ask-first)",
        "  1. Tell the customer",
        "  Not yet: report format",
        "COMMUNICATION CALIBRATION: not recorded",
        "ARTIFACTS: Run `cra trace show s-1` to print the TRACE of session s-1 (artifact: s-1).",
        "  - Position is unclear: session_state.completion_percentage, current_position.momentum missing",
        "  - Challenge is unclear: critical_question.question, critical_question.blocking missing",
        "  - User is unclear: user_profile.approach, user_profile.communication_calibration missing",
    ] {
        assert!(
            reply.lines().any(|item| item == line),
            "`{line}` in {reply}"
        );
    }
    assert!(
        !reply.contains("Db.drop") && !reply.contains("eploy service"),
        "{reply}"
    );
    assert!(!reply.contains("NEAR COMPLETION"), "{reply}");
    assert!(
        reply.contains("Ready to continue. First: Where are we right now"),
        "{reply}"
    );
    let checked = reconstruct(&file, &["--phase", "validate"]);
    assert_eq!(checked.code, 4, "{}", checked.out);
    let inferred = reconstruct(&file, &["--phase", "infer"]).out;
    let because = "`db.drop` passed (risky), by op-1: because it is needed.";
    assert!(inferred.contains(because), "{inferred}");
}

// covers R19, R22
#[tokio::test(flavor = "multi_thread")]
async fn handover_reports_held_requests_and_a_frozen_summary() {
    let (console, mut agent) = worked().await;
    takes_turn(&mut agent, 1, "first plan", 0.9).await;
    takes_turn(&mut agent, 2, "second plan", 0.92).await;
    takes_turn(&mut agent, 3, "third plan", 0.93).await;
    {
        let asking = agent.call("action.request", asks("db.drop"));
        tokio::select! {
            reply = asking => panic!("{reply:?}"),
            _ = console.bench.wait_until(|snapshot| snapshot.held.len() == 1) => {}
        }
    }
    let file = snapshot(console).await;
    let state = &file["conversation_state"];
    assert_eq!(state["frozen"], true);
    assert_eq!(state["held_back_count"], 2);
    assert_eq!(state["held_back"], json!(["third plan", "second plan"]));
    let reply = reconstruct(&file, &[]).out;
    for line in [
        "BLOCKING ISSUE: Gate `risky` waits for an operator: `db.drop`",
        "CRITICAL QUESTION: May bot run `db.drop`?",
        "  1. Wait for an operator at gate `risky` (`db.drop` is held at this gate)",
        "  2 proposals not applied yet; newest: third plan.",
    ] {
        assert!(
            reply.lines().any(|item| item == line),
            "`{line}` in {reply}"
        );
    }
    assert!(
        reply.contains("CONVERSATION STATE:\n  The summary is frozen since 20"),
        "{reply}"
    );
    assert!(reply.contains("until a must signal"), "{reply}");
}

// covers R20
#[tokio::test(flavor = "multi_thread")]
async fn handover_of_an_ended_session_reports_its_status_and_claims_no_success() {
    for (status, wanted, kind) in [
        ("completed", "complete", "completion"),
        ("error", "ended (error)", "transition"),
    ] {
        let (console, mut agent) = worked().await;
        let end = json!({"session": "s-1", "status": status});
        agent.call_ok("session.end", end).await;
        let file = snapshot(console).await;
        let metadata = &file["checkpoint_metadata"];
        assert_eq!(
            (&metadata["status"], &metadata["checkpoint_type"]),
            (&json!(wanted), &json!(kind))
        );
        let reply = reconstruct(&file, &[]).out;
        assert!(
            reply.contains("Phase: Ended\n  Stage: Ended\n  Completion: not recorded"),
            "{reply}"
        );
        let last = format!("last activity: the session ended ({status})\n");
        assert!(reply.contains(&last), "{reply}");
        assert!(!reply.contains("Accomplished"), "{reply}");
    }
}
