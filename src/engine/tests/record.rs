//! Tests of records: their content, durability and redaction.

use super::*;
use crate::atlas::redaction::MARKER;
use crate::base::id::EventId;
use crate::trace::event::{Durability, Payload, RiskTierInfo};

pub(super) fn session() -> crate::base::id::SessionId {
    "s-1".parse().unwrap()
}

pub(super) fn bench(body: &str) -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench
}

impl EngineBench {
    pub(super) fn report(&mut self, report: AgentReport) -> ReplyId {
        self.reply_id(|reply_id| EngineCommand::Report(reply_id, report))
    }

    pub(super) fn noted(&self, reply_id: ReplyId) -> &ReportReceipt {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Noted(noted)) => noted,
            other => panic!("not noted: {other:?}"),
        }
    }

    pub(super) fn send_input(&mut self, text: &str) -> ReplyId {
        let input = InputReport {
            session: session(),
            text: text.to_owned(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        self.reply_id(|reply_id| EngineCommand::Input(reply_id, input))
    }

    pub(super) fn complete(
        &mut self,
        reply_id: ReplyId,
        result: Result<&str, (&str, &str)>,
    ) -> ReplyId {
        let completed = ActionCompletion {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session(),
            execution: self.allowed(reply_id).execution.clone(),
            result: result
                .map(str::to_owned)
                .map_err(|(code, message)| ActionError {
                    code: code.to_owned(),
                    message: message.to_owned(),
                }),
        };
        self.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed))
    }

    pub(super) fn fail(&mut self, message: &str) -> EventId {
        let report = ErrorReport {
            session: session(),
            error_type: "io".to_owned(),
            error_code: Some("E42".to_owned()),
            message: message.to_owned(),
            recoverable: true,
            stack_trace: Some("main.rs:1".to_owned()),
        };
        let reply_id = self.reply_id(|reply_id| EngineCommand::ReportError(reply_id, report));
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Accepted(accepted)) => {
                accepted.error.clone().expect("it has an event")
            }
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub(super) fn drafts_of(&self, event_type: &str) -> Vec<&crate::trace::event::Draft> {
        let drafts = self.drafts();
        drafts
            .filter(|draft| draft.payload.event_type() == event_type)
            .collect()
    }

    /// Returns the text of all records.
    pub(super) fn recorded(&self) -> String {
        let drafts = self.drafts();
        let texts: Vec<_> = drafts
            .map(|draft| Value::from(draft.payload.fields()).to_string())
            .collect();
        texts.join("\n")
    }
}

pub(super) const TIERS: &str = "actions: [{action_id: l, risk_tier: low}, {action_id: m, risk_tier: medium}, \
     {action_id: h, risk_tier: high}, {action_id: c, risk_tier: critical}]\n";

/// Runs a session with many kinds of events, with one passed and one refused gate.
fn busy(level: &str) -> EngineBench {
    let body = format!(
        "{TIERS}trace_config: {{level: {level}}}\ncontext_blocks: [{{context_id: k, content: x, \
         inject_mode: on_demand}}]\npolicies: [{{policy_id: no, type: deny, actions: [c]}}]\n\
         checkpoints:\n  - {{checkpoint_id: word, trigger: {{type: keyword, patterns: [refund]}}, \
         inject_contexts: [k]}}\n  - {{checkpoint_id: gate, trigger: {{type: action_pre, \
         patterns: [m]}}, mode: blocking}}\n"
    );
    let mut bench = bench(&body);
    bench.send_input("a refund");
    let low = bench.request("s-1", "l", json!({}));
    bench.complete(low, Ok("done"));
    let gated = bench.request("s-1", "m", json!({}));
    bench.pass("c-1");
    bench.complete(gated, Err(("E1", "no")));
    bench.request("s-1", "m", json!({"n": 2}));
    bench.refuse("c-2", "no need");
    bench.request("s-1", "c", json!({}));
    bench.fail("disk full");
    bench.end("s-1");
    bench
}

// covers T30
#[test]
fn a_trace_level_drops_events_before_counting_and_never_a_decision() {
    let all = busy("complete");
    let everything = all.records();
    assert!(everything.contains(&"input_received") && everything.contains(&"action_completed"));
    let minimal = busy("minimal");
    assert_eq!(
        minimal.records(),
        [
            "session_started",
            // An attempt without any gate or policy decision is not stored; a decided one is.
            "action_attempted",
            "checkpoint_triggered",
            "checkpoint_response",
            "checkpoint_passed",
            "action_attempted",
            "checkpoint_triggered",
            "checkpoint_blocked",
            "action_blocked",
            "action_attempted",
            "policy_checked",
            "risk_detected",
            "action_blocked",
            "error_occurred",
            "session_ended",
        ]
    );
    let standard = busy("standard").records().join(" ");
    assert!(standard.contains("action_completed") && standard.contains("context_injected"));
    assert!(!standard.contains("input_received"));
    let verbose = busy("verbose");
    assert!(verbose.records().contains(&"input_received"));
    assert!(verbose.records().contains(&"checkpoint_completed"));
    for bench in [all, minimal, verbose] {
        let ended = &bench.payloads("session_ended")[0];
        assert_eq!(ended["event_count"], json!(bench.records().len()));
    }
}

#[test]
fn the_most_detailed_level_of_several_atlases_applies() {
    let minimal = atlas(&format!("{TIERS}trace_config: {{level: minimal}}\n"));
    let standard =
        atlas("trace_config: {level: standard}\n").replace("atlas_id: test", "atlas_id: b");
    let mut bench = EngineBench::new(&[&minimal, &standard]);
    bench.start("s-1");
    bench.send_input("hello");
    bench.request("s-1", "l", json!({}));
    assert_eq!(
        bench.records(),
        ["session_started", "action_attempted", "policy_checked"]
    );
}

/// Returns a payload of every event type, with the wanted durability (true for sync).
fn sync_table() -> Vec<(&'static str, Value, bool)> {
    let mut rows = Vec::new();
    for tier in RiskTierInfo::ALL {
        let risky = *tier >= RiskTierInfo::High;
        let attempted = json!({"action_type": "a", "action_params": {}, "risk_tier": tier,
            "policy_checked": true});
        rows.push(("action_attempted", attempted, risky));
        let detected = json!({"risk_tier": tier, "trigger": "t", "recommended_action": "verify"});
        rows.push(("risk_detected", detected, true));
        let verified = json!({"risk_tier": tier, "verification_method": "console",
            "action_type": "a"});
        rows.push(("risk_verified", verified, true));
    }
    for (decision, sync) in [("allow", false), ("deny", true), ("require_approval", true)] {
        let checked = json!({"policy_id": "p", "action_type": "a", "decision": decision,
            "conditions_evaluated": 1});
        rows.push(("policy_checked", checked, sync));
    }
    #[rustfmt::skip]
    rows.extend([
        ("session_started", json!({"agent_type": "a", "wrapper_version": "1", "atlas_ids": [], "initial_contexts": [], "environment": {"platform": "linux"}}), false),
        ("session_ended", json!({"duration_ms": 1, "event_count": 1, "actions_taken": 0, "contexts_injected": 0, "final_status": "completed"}), true),
        ("wrapper_constructed", json!({"wrapper_version": "1", "components": [], "plugins": [], "transport": "mcp", "cache_backend": "memory", "construction_hash": "x", "capabilities": {"intercept_input": true, "intercept_output": true, "intercept_actions": true}}), true),
        ("wrapper_verified", json!({"verification_passed": true, "tests_run": []}), true),
        ("context_requested", json!({"request_type": "keyword"}), false),
        ("context_injected", json!({"context_ids": [], "atlas_ids": [], "total_size_bytes": 0, "trigger": "always", "cache_hit": false}), false),
        ("context_feedback", json!({"context_id": "c", "helpful": true}), false),
        ("action_completed", json!({"action_type": "a", "success": true, "duration_ms": 1}), false),
        ("action_blocked", json!({"action_type": "a", "action_params": {}, "policy_id": "p", "reason": "r", "override_available": false}), true),
        ("policy_override", json!({"policy_id": "p", "action_type": "a", "approver": "op", "approval_method": "console"}), true),
        ("checkpoint_triggered", json!({"checkpoint_id": "c", "checkpoint_type": "action_pre", "mode": "blocking", "trigger_condition": "t", "trigger_data": {}, "priority": 1}), false),
        ("checkpoint_completed", json!({"checkpoint_id": "c", "checkpoint_type": "action_pre", "duration_ms": 1, "contexts_injected": []}), false),
        ("checkpoint_skipped", json!({"checkpoint_id": "c", "checkpoint_type": "action_pre", "reason": "r"}), false),
        ("checkpoint_response", json!({"checkpoint_id": "c", "answers": {}, "validation_result": "valid", "answered_by": "op"}), false),
        ("checkpoint_passed", json!({"checkpoint_id": "c", "unlocked_capabilities": [], "injected_contexts": [], "passed_by": "op"}), false),
        ("checkpoint_blocked", json!({"checkpoint_id": "c", "reason": "r", "blocked_action": "a", "outcome": "denied"}), false),
        ("error_occurred", json!({"error_type": "io", "message": "m", "recoverable": true}), false),
        ("error_recovered", json!({"original_error_id": "e", "recovery_method": "m", "success": true}), false),
        ("input_received", json!({"input_hash": "h", "input_size_bytes": 1, "source": "other_agent", "checkpoints_triggered": []}), false),
        ("output_produced", json!({"output_hash": "h", "output_size_bytes": 1, "output_type": "structured", "contains_action": false}), false),
        ("plugin_loaded", json!({"plugin_name": "p", "plugin_version": "1", "capabilities": []}), false),
        ("plugin_event", json!({"plugin_name": "p", "custom_type": "c", "data": {}}), false),
        ("atlas_loaded", json!({"atlas_id": "a", "version": "1", "atlas_hash": "h", "checkpoints": 0}), false),
        ("retention_applied", json!({"pruned_session": "s", "pruned": [[0, 1]], "events": 2, "envelopes_hash": "h", "reason": "r"}), true),
        ("trace_imported", json!({"imported_session": "s", "events": 1, "head_hash": "h", "source": "f"}), true),
        ("log_started", json!({"wrapper_version": "1", "key": "k"}), true),
        ("log_sealed", json!({"sessions": []}), true),
        ("key_rotated", json!({"key": "k", "by": "o"}), true),
        ("store_recovered", json!({"what": "w"}), true),
        ("checkpoint_approved", json!({"checkpoint_id": "c", "gate_id": "c-1", "approved_by": "op", "approval_method": "console", "needed": 2, "request_hash": "h"}), true),
        ("request_claimed", json!({"gate_id": "c-1", "claim": "taken", "by": "op"}), true),
        ("operator_acknowledged", json!({"operator": "op", "about": "broken_chain", "what": "w"}), true),
        ("operator_changed", json!({"operator": "op-2", "before": "op-1"}), true),
        ("clock_moved", json!({"moved_ms": -600_000, "what": "w"}), true),
        ("answer_rejected", json!({"by": "cra hook codex", "socket": "s", "reason": "r", "reported_at": "t"}), true),
        ("alarm_raised", json!({"alarm": "socket", "what": "w", "by": "cra"}), true),
        ("hold_placed", json!({"held_session": "s", "reason": "r", "by": "op"}), true),
        ("hold_released", json!({"held_session": "s", "by": "op"}), true),
        ("breakpoint_decided", json!({"actor": "a", "phase": "breakpoint", "status": "completed", "summary": "s", "metadata": {"kind": "k", "decision": "must", "peakGuardrailActive": true, "source": "request"}, "thread": {"thread_id": "t", "message_id": "m", "rule": 2, "signals": [], "affect_phase": "peak", "intensity": "high", "update": "updated", "version": 1, "etag": "e"}}), true),
        ("memento_edited", json!({"thread_id": "t", "by": "op", "before": "a", "now": "b"}), true),
        ("drift_flagged", json!({"thread_id": "t", "by": "op"}), true),
        ("thread_handed_over", json!({"thread_id": "t", "from": "s-1", "to": "s-2", "by": "s-1"}), true),
        ("thread_dropped", json!({"thread_id": "t", "owner": "s-1", "dropped_for": "s-2", "reason": "r", "etag": "e"}), true),
    ]);
    rows
}

fn read(event_type: &str, fields: &Value) -> Payload {
    let fields = fields.as_object().unwrap().clone();
    Payload::read(event_type, fields).unwrap_or_else(|error| panic!("{error}"))
}

// covers T24, T26
#[test]
fn the_sync_table_holds_for_every_event_type_and_tier() {
    let table = sync_table();
    for event_type in Payload::TYPES {
        assert!(
            table.iter().any(|(name, ..)| name == event_type),
            "{event_type} is not in the table"
        );
    }
    assert_eq!(Payload::TYPES, crate::base::event_type::BUILT_IN_TYPES);
    for (event_type, fields, sync) in table {
        let payload = read(event_type, &fields);
        let wanted = if sync {
            Durability::Sync
        } else {
            Durability::Async
        };
        assert_eq!(
            payload.mandatory_durability(),
            wanted,
            "{event_type} {fields}"
        );
        // A payload reads back as written: optional fields are absent, not null.
        assert_eq!(Value::from(payload.fields()), fields);
        let mut strange = fields.as_object().unwrap().clone();
        strange.insert("surprise".to_owned(), json!(1));
        assert!(Payload::read(event_type, strange.clone()).is_err());
        let lenient = Payload::read_lenient(event_type, strange).unwrap();
        assert_eq!(lenient.payload, payload);
        assert_eq!(Value::from(lenient.extra), json!({"surprise": 1}));
    }
}

// covers T27
#[test]
fn a_steward_can_add_sync_events_and_remove_none() {
    let durabilities = |config: &str| {
        let mut bench = bench(&format!("{TIERS}trace_config: {config}\n"));
        for action in ["l", "m", "h"] {
            let reply_id = bench.request("s-1", action, json!({}));
            bench.complete(reply_id, Ok(""));
        }
        let sync = |event_type: &str| -> Vec<bool> {
            let drafts = bench.drafts_of(event_type);
            let sync = drafts
                .iter()
                .map(|draft| draft.durability == Durability::Sync);
            sync.collect()
        };
        (
            sync("action_attempted"),
            sync("policy_checked"),
            sync("action_completed"),
        )
    };
    let (yes, no) = (true, false);
    assert_eq!(
        durabilities("{}"),
        (vec![no, no, yes], vec![no; 3], vec![no; 3])
    );
    assert_eq!(
        durabilities("{sync_required_for: ['action_attempted:low', policy_checked]}"),
        (vec![yes, no, yes], vec![yes; 3], vec![no; 3])
    );
    assert_eq!(
        durabilities("{sync_required_for: [action_attempted, action_completed]}"),
        (vec![yes; 3], vec![no; 3], vec![yes; 3])
    );
    // A sync event is stored at every level of detail.
    let (attempted, checked, completed) =
        durabilities("{level: minimal, sync_required_for: [action_completed]}");
    assert_eq!((attempted, checked), (vec![yes], vec![]));
    assert_eq!(completed, [yes; 3]);
}

// covers T36
#[test]
fn an_agent_waits_only_for_sync_records() {
    let mut bench = bench(TIERS);
    bench.send_input("hello");
    let low = bench.request("s-1", "l", json!({}));
    bench.complete(low, Ok("done"));
    let waited = |bench: &EngineBench| {
        let mut drafts = bench.drafts();
        drafts.any(|draft| draft.durability == Durability::Sync)
    };
    assert!(!waited(&bench), "{:?}", bench.records());
    bench.request("s-1", "nobody.knows", json!({}));
    assert!(waited(&bench));
}

const SECRETIVE: &str = "actions: [{action_id: db.login, risk_tier: low, parameters_schema: \
     {properties: {pin: {type: integer}, n: {type: integer}}}}]\n\
     trace_config: {redact: [{actions: ['db.*'], params: [password, '*.token', pin]}, \
     {values: ['sk-[a-z0-9]+']}]}\n";

#[test]
fn secrets_are_redacted_in_records_only() {
    let gate = "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: ['db.*']}, \
                mode: blocking}]\n";
    let mut bench = bench(&format!("{SECRETIVE}{gate}"));
    let params = json!({"password": "hunter2", "a": {"token": "t0ps3cret"}, "cmd": "use sk-abc1",
        "note": "[redacted]", "n": 1});
    let reply_id = bench.request("s-1", "db.login", params.clone());
    // The operator sees the real request, and the decision is bound to it.
    let held = bench.held("c-1");
    let held::HeldSubject::Action(call) = &held.subject else {
        panic!("{held:?}");
    };
    assert_eq!(call.params, params);
    assert_eq!(
        held.request_hash,
        held::request_hash(&session(), "db.login", &params)
    );
    bench.pass("c-1");
    bench.allowed(reply_id);
    let attempted = &bench.payloads("action_attempted")[0];
    assert_eq!(
        attempted["action_params"],
        json!({"password": MARKER, "a": {"token": MARKER}, "cmd": "use [redacted]",
            "note": "[redacted]", "n": 1})
    );
    // The list tells redactions apart from text of an agent that looks like one.
    assert_eq!(
        attempted["redacted"],
        json!([
            {"rule": "test/redact[0]", "paths": ["action_params.a.token", "action_params.password"],
                "count": 2},
            {"rule": "test/redact[1]", "paths": ["action_params.cmd"], "count": 1},
        ])
    );
    let recorded = bench.recorded();
    for secret in ["hunter2", "t0ps3cret", "sk-abc1"] {
        assert!(!recorded.contains(secret), "{secret} in {recorded}");
    }
}

#[test]
fn reasons_that_quote_parameters_are_redacted() {
    let mut bench = bench(SECRETIVE);
    let reply_id = bench.request("s-1", "db.login", json!({"pin": "not-a-number-9"}));
    let told = &bench.denied(reply_id).reason;
    assert!(
        told.contains("not-a-number-9"),
        "the agent knows it: {told}"
    );
    let blocked = &bench.payloads("action_blocked")[0];
    let reason = blocked["reason"].as_str().unwrap();
    assert!(
        reason.contains(MARKER) && !reason.contains("not-a-number-9"),
        "{reason}"
    );
    assert_eq!(
        blocked["redacted"][0]["paths"],
        json!(["action_params.pin", "reason"])
    );
    assert_eq!(blocked["policy_id"], json!("parameters_schema"));
}

#[test]
fn a_secret_equal_to_a_policy_reason_does_not_redact_the_reason() {
    let deny = "policies: [{policy_id: no, type: deny, actions: ['db.*'], reason: not today}]\n";
    let mut bench = bench(&format!("{SECRETIVE}{deny}"));
    bench.request("s-1", "db.login", json!({"password": "not today"}));
    let blocked = &bench.payloads("action_blocked")[0];
    let reason = blocked["reason"].as_str().unwrap();
    assert!(reason.contains("not today"), "{reason}");
    assert_eq!(blocked["action_params"], json!({"password": MARKER}));
}

#[test]
fn texts_of_agents_are_redacted_by_value_patterns() {
    let mut bench = bench(SECRETIVE);
    let reply_id = bench.request("s-1", "db.login", json!({}));
    bench.complete(reply_id, Ok("logged in with sk-1"));
    bench.fail("no sk-2 found");
    let context = ContextRequest {
        session: session(),
        query: Some("about sk-3".to_owned()),
        hints: Vec::new(),
        checkpoint: None,
    };
    bench.reply_id(|reply_id| EngineCommand::RequestContext(reply_id, context));
    let end = EndSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: session(),
        status: FinalStatus::Completed,
        summary: Some("used sk-4".to_owned()),
    };
    bench.reply_id(|reply_id| EngineCommand::EndSession(reply_id, end));
    let recorded = bench.recorded();
    assert!(!recorded.contains("sk-"), "{recorded}");
    let ended = &bench.payloads("session_ended")[0];
    assert_eq!(ended["summary"], json!("used [redacted]"));
    assert_eq!(ended["redacted"][0]["paths"], json!(["summary"]));
}

#[test]
fn extension_texts_are_recorded_without_secrets() {
    let handled = "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: ['db.*']}, \
         handler: board}, {checkpoint_id: beat, trigger: {type: count_interval, actions: 1}, \
         handler: board}, {checkpoint_id: mood, trigger: {type: custom, trigger_id: mood, \
         on: [action]}, mode: blocking, questions: [{question_id: q, question: Q?, validation: \
         {custom_validator: judge}}]}]\n";
    let mut bench = EngineBench::new(&[&atlas(&format!("{SECRETIVE}{handled}"))]);
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    bench
        .engine
        .set_extensions(crate::engine::extensions::Extensions {
            handlers: names("board"),
            triggers: names("mood"),
            validators: names("judge"),
            ..crate::engine::extensions::Extensions::default()
        });
    bench.start("s-1");
    let quiet = json!({"continue": true});
    let loud = json!({"continue": true, "block_reason": "saw hunter2",
        "trace_events": [{"event_type": "seen", "payload": {"password": "hunter2"}}]});
    for answer in [quiet, loud.clone()] {
        bench.request("s-1", "db.login", json!({"password": "hunter2"}));
        while let Some(call) = bench.calls().pop() {
            let answer = match call.name.as_str() {
                "mood" => json!({"triggered": true, "reason": "hunter2 is weak"}),
                _ => answer.clone(),
            };
            let before = bench.calls().len();
            bench.returns(answer);
            if bench.calls().len() == before {
                break;
            }
        }
        let gate = bench.held_ids().pop().unwrap();
        bench.answer(&gate, json!([{"q": "an answer"}]));
        bench.returns(json!({"valid": false, "reason": "hunter2 again"}));
        bench.answer(&gate, json!([{"q": "an answer"}]));
        bench.returns(json!(true));
    }
    let recorded = bench.recorded();
    assert!(!recorded.contains("hunter2"), "{recorded}");
    let triggered = bench.payloads("checkpoint_triggered");
    let mood = triggered
        .iter()
        .find(|record| record["checkpoint_id"] == "mood")
        .unwrap();
    assert_eq!(
        mood["trigger_condition"],
        json!("trigger `mood` fires: [redacted] is weak")
    );
    assert_eq!(mood["redacted"][0]["paths"], json!(["trigger_condition"]));
    let invalid = &bench.payloads("checkpoint_response")[0];
    assert_eq!(invalid["redacted"][0]["paths"], json!(["problems"]));
    // The interval's handler received the same request.
    let said = bench.payloads("plugin_event");
    let of_beat = said
        .iter()
        .filter(|record| record["data"]["checkpoint_id"] == "beat");
    assert!(of_beat.count() > 0, "{said:?}");
}
