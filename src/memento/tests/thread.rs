use super::*;

fn taken(thread: &Thread, turn: &Turn, number: u32) -> (Thread, TurnOutcome) {
    let now = at(number.into());
    let taken = thread.process_turn(turn, named(number), now);
    taken.unwrap()
}

fn brings(memento: &Value) -> Value {
    json!({"context": {"thread_memento": memento}})
}

fn both(one: Value, other: Value) -> Value {
    let (Value::Object(mut one), Value::Object(other)) = (one, other) else {
        panic!("objects");
    };
    one.extend(other);
    Value::Object(one)
}

// covers D16, D19
#[test]
fn at_the_peak_only_a_must_turn_changes_the_shape() {
    for (phase, intensity) in [("peak", "low"), ("settled", "high"), ("peak", "high")] {
        for (kinds, frozen) in [
            (&["ack_only"][..], true),
            (&["risk_or_conflict"], true),
            (&[], true),
            (&["decision_made"], false),
        ] {
            let fields = both(
                brings(&heated(phase, intensity)),
                json!({"proposed": proposal(), "signals": signals(kinds)}),
            );
            let (thread, outcome) = taken(&thread(), &turn("go", &fields), 1);
            assert_eq!(outcome.freeze.is_frozen(), frozen);
            assert_eq!(thread.is_frozen(), frozen);
            let kept = ThreadMemento::from_value(&memento()).unwrap().shape();
            let shape = outcome.memento.shape();
            if frozen {
                assert_eq!(shape, kept);
                assert_eq!(outcome.summary, SummaryResult::Kept(KeptReason::AtPeak));
                assert_eq!(thread.held_back.len(), 1);
                assert_eq!(thread.held_back[0].proposed.arc, "purge all");
            } else {
                assert_eq!(shape.arc, "purge all");
                assert_eq!(outcome.summary, SummaryResult::Updated);
                assert!(thread.held_back.is_empty());
            }
        }
    }
}

// covers D14
#[test]
fn signals_of_the_included_memento_and_of_the_turn_count() {
    let mut brought = memento();
    let updated_at = "2026-01-31T23:59:59Z";
    brought["signals"] = json!({"updatedAt": updated_at, "items": signals(&["pivot"])});
    let fields = both(
        brings(&brought),
        json!({"signals": signals(&["open_loop_created"])}),
    );
    let (thread, outcome) = taken(&thread(), &turn("ok thanks", &fields), 1);
    assert_eq!(
        thread.turns[0].signals,
        [SignalKind::Pivot, SignalKind::OpenLoopCreated]
    );
    assert_eq!(outcome.decided.rule, DecisionRule::MustSignal);
    // Stored signals have already counted: the next turn does not count them again.
    let (_, next) = taken(&thread, &turn("ok thanks", &json!({})), 2);
    assert_eq!(next.decided.rule, DecisionRule::Acknowledgment);
    // Nor when the client sends them back with the memento of the response.
    let mut returned = serde_json::to_value(&outcome.memento).unwrap();
    let (_, next) = taken(&thread, &turn("ok thanks", &brings(&returned)), 2);
    assert_eq!(next.decided.rule, DecisionRule::Acknowledgment);
    assert_eq!(next.source, BaselineSource::Request);
    assert!(next.notes.is_empty(), "{:?}", next.notes);
    let items = returned["signals"]["items"].as_array_mut().unwrap();
    items.extend(signals(&["decision_made"]).as_array().unwrap().clone());
    let (next, outcome) = taken(&thread, &turn("ok thanks", &brings(&returned)), 2);
    assert_eq!(outcome.decided.rule, DecisionRule::MustSignal);
    assert_eq!(next.turns[0].signals, [SignalKind::DecisionMade]);
}

// covers D15
#[test]
fn baseline_is_the_referenced_included_stored_or_empty_memento() {
    use BaselineSource::{EmptySeed, Request, RequestRef, StoredLatest};
    let first = turn("clean up\nall of it", &json!({"proposed": proposal()}));
    let (one, outcome) = taken(&thread(), &first, 1);
    assert_eq!(outcome.source, BaselineSource::EmptySeed);
    let (two, outcome) = taken(&one, &turn("go", &json!({})), 2);
    assert_eq!(outcome.source, BaselineSource::StoredLatest);
    assert_eq!(outcome.memento.arc.as_str(), "purge all");
    let newest = serde_json::to_value(&outcome.memento).unwrap();
    let (_, outcome) = taken(&two, &turn("go", &brings(&newest)), 3);
    assert_eq!(outcome.source, BaselineSource::Request);
    assert_eq!(outcome.memento.arc.as_str(), "purge all");
    let by_name = json!({"context": {"thread_memento_ref": "mm-2", "thread_memento": newest}});
    let (_, outcome) = taken(&two, &turn("go", &by_name), 3);
    assert_eq!(outcome.source, BaselineSource::RequestRef);
    assert_eq!(outcome.memento.arc.as_str(), "purge all");
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    // A thread without a memento starts with the client's memento.
    let (_, outcome) = taken(&thread(), &turn("go", &brings(&memento())), 1);
    assert_eq!(outcome.source, BaselineSource::Request);
    assert_eq!(outcome.memento.arc.as_str(), "dedupe tickets");
    let unknown = json!({"context": {"thread_memento_ref": "mm-9"}});
    let (_, outcome) = taken(&two, &turn("go", &unknown), 3);
    assert_eq!(outcome.source, BaselineSource::StoredLatest);
    assert_eq!(
        outcome.notes,
        ["the memento `mm-9` is not stored here: ignored"]
    );
    let sources = ["request_ref", "request", "stored_latest", "empty_seed"];
    let all = [RequestRef, Request, StoredLatest, EmptySeed];
    assert_eq!(all.map(BaselineSource::as_str), sources);
}

#[test]
fn first_message_sets_the_arc_of_an_empty_memento() {
    let arc = |message: &str| {
        let (_, outcome) = taken(&thread(), &turn(message, &json!({})), 1);
        outcome.memento.arc.to_string()
    };
    assert_eq!(arc("\n  clean up\nall of it"), "clean up");
    assert_eq!(arc(&"x".repeat(300)), "x".repeat(200));
    assert_eq!(arc(" \n"), "-");
}

#[test]
fn memento_of_another_thread_is_ignored() {
    let mut foreign = heated("peak", "high");
    foreign["threadId"] = json!("t-2");
    let (_, outcome) = taken(&thread(), &turn("go", &brings(&foreign)), 1);
    assert_eq!(outcome.source, BaselineSource::EmptySeed);
    assert_eq!(
        outcome.notes,
        ["the memento belongs to the thread `t-2`: ignored, with its signals"]
    );
    assert!(!outcome.freeze.is_frozen());
}

// covers D20
#[test]
fn acknowledgment_keeps_the_summary_unless_skip_updates_is_set() {
    let fields = both(brings(&memento()), json!({"proposed": proposal()}));
    let updates = both(fields.clone(), json!({"skip_updates": true}));
    let (turn, updates) = (turn("ok thanks", &fields), turn("ok thanks", &updates));
    let (kept, outcome) = taken(&thread(), &turn, 1);
    assert_eq!(
        outcome.summary,
        SummaryResult::Kept(KeptReason::OnlyAcknowledged)
    );
    assert_eq!(outcome.memento.arc.as_str(), "dedupe tickets");
    assert_eq!(kept.held_back[0].why, KeptReason::OnlyAcknowledged);
    assert!(!kept.is_frozen());
    let (_, outcome) = taken(&thread(), &updates, 1);
    assert_eq!(outcome.decided.decision, TurnDecision::Skip);
    assert_eq!(outcome.summary, SummaryResult::Updated);
    assert_eq!(outcome.memento.arc.as_str(), "purge all");
}

#[test]
fn invalid_proposal_keeps_the_summary_with_a_reason() {
    let fields = both(brings(&memento()), json!({"proposed": {"arc": ""}}));
    let (thread, outcome) = taken(&thread(), &turn("go", &fields), 1);
    assert_eq!(
        outcome.summary,
        SummaryResult::Kept(KeptReason::Invalid("arc: is empty".to_owned()))
    );
    assert_eq!(outcome.memento.arc.as_str(), "dedupe tickets");
    assert!(thread.held_back.is_empty());
    assert_eq!(outcome.version, 0);
}

#[test]
fn empty_decisions_and_next_of_a_proposal_keep_the_old_items() {
    let proposed = json!({"arc": "purge all"});
    let fields = both(brings(&memento()), json!({"proposed": proposed}));
    let (_, outcome) = taken(&thread(), &turn("go", &fields), 1);
    let shape = outcome.memento.shape();
    assert_eq!(shape.arc, "purge all");
    assert_eq!(shape.decisions, ["keep 4398"]);
    assert_eq!(shape.next, ["dry run"]);
    assert!(shape.active.is_empty() && shape.parked.is_empty());
}

fn feels(intensity: f64) -> Value {
    json!({"affect": {"label": "tense", "intensity": intensity, "confidence": "high", "source": "model"}})
}

fn message(number: u32, fields: Value) -> Turn {
    let id = json!({"message_id": format!("m-{number}")});
    turn("go on", &both(fields, id))
}

// covers D20
#[test]
fn only_user_messages_change_affect() {
    let (one, outcome) = taken(&thread(), &message(1, feels(0.9)), 1);
    assert_eq!(outcome.memento.affect.rollup.phase, AffectPhase::Peak);
    let agent = both(feels(0.1), json!({"author": "agent"}));
    let (_, outcome) = taken(&one, &message(2, agent), 2);
    assert_eq!(outcome.memento.affect.points.len(), 1);
    assert_eq!(outcome.memento.affect.rollup.phase, AffectPhase::Peak);
    assert_eq!(
        outcome.notes,
        ["the affect of the agent's own message is ignored"]
    );
}

#[test]
fn affect_changes_while_the_summary_is_frozen() {
    let mut thread = thread();
    let mut seen = Vec::new();
    for (number, intensity) in (1..).zip([0.9, 0.88, 0.9, 0.3, 0.3]) {
        let fields = both(feels(intensity), json!({"proposed": proposal()}));
        let (next, outcome) = taken(&thread, &message(number, fields), number);
        let rollup = &outcome.memento.affect.rollup;
        seen.push((
            rollup.phase.as_str(),
            rollup.intensity_bucket.as_str(),
            outcome.summary.label(),
            next.held_back_count,
        ));
        thread = next;
        let since = (2..=4).contains(&number).then(|| at(2));
        assert_eq!(thread.frozen_since, since, "{number}");
        let thawed_by = thread.thaw_condition();
        assert_eq!(thawed_by.is_some(), since.is_some(), "{number}");
    }
    // The guardrail uses the baseline: the intensity before the message.
    assert_eq!(
        seen,
        [
            ("peak", "high", "applied", 0),
            ("peak", "high", "FROZEN", 1),
            ("peak", "high", "FROZEN", 2),
            ("downshift", "low", "FROZEN", 3),
            ("settled", "low", "applied", 0),
        ]
    );
}

#[test]
fn affect_points_expire() {
    let (one, _) = taken(&thread(), &message(1, feels(0.9)), 1);
    let (_, outcome) = taken(&one, &message(2, json!({})), 31);
    assert_eq!(outcome.memento.affect.points.len(), 1);
    let (_, outcome) = taken(&one, &message(2, json!({})), 32);
    assert!(outcome.memento.affect.points.is_empty());
    assert_eq!(outcome.memento.affect.rollup.phase, AffectPhase::Settled);
}

// covers D20
#[test]
fn write_with_a_stale_etag_is_rejected() {
    let (one, outcome) = taken(&thread(), &turn("go", &json!({})), 1);
    let read = json!({"if_match": outcome.etag});
    let (two, _) = taken(&one, &turn("go", &read), 2);
    let stale = two.process_turn(&turn("go", &read), named(3), at(3));
    let current = two.etag().unwrap();
    let current = || current.clone();
    assert_eq!(
        stale.unwrap_err(),
        TurnRefusal::Stale { current: current() }
    );
    let shape = SummaryShape {
        arc: "mine".to_owned(),
        ..SummaryShape::default()
    };
    let id = || "mm-9".parse().unwrap();
    let edited = two.edit(&shape, &outcome.etag, id(), at(3));
    assert_eq!(
        edited.unwrap_err(),
        TurnRefusal::Stale { current: current() }
    );
    assert!(two.edit(&shape, &current(), id(), at(3)).is_ok());
    assert_eq!(
        thread().edit(&shape, "", id(), at(3)).unwrap_err(),
        TurnRefusal::NoMemento
    );
}

#[test]
fn operator_edit_makes_only_the_next_turn_must() {
    let (one, _) = taken(&thread(), &message(1, feels(0.9)), 1);
    let shape = SummaryShape {
        arc: "mine".to_owned(),
        active: vec!["a".to_owned()],
        ..SummaryShape::default()
    };
    let etag = one.etag().unwrap();
    let edited = one
        .edit(&shape, &etag, "mm-9".parse().unwrap(), at(2))
        .unwrap();
    assert_eq!(edited.latest.as_ref().unwrap().shape(), shape);
    assert_eq!(edited.version, 1);
    assert_ne!(edited.etag().unwrap(), etag);
    let read = json!({"proposed": proposal(), "if_match": edited.etag()});
    let (two, outcome) = taken(&edited, &turn("ok", &read), 3);
    assert_eq!(outcome.decided.rule, DecisionRule::SummaryChanged);
    assert_eq!(outcome.summary, SummaryResult::Updated, "even at the peak");
    let (_, outcome) = taken(&two, &turn("ok", &json!({})), 4);
    assert_eq!(outcome.decided.rule, DecisionRule::Acknowledgment);
}

#[test]
fn drift_or_pressure_turns_an_acknowledgment_into_should() {
    let (one, _) = taken(&thread(), &turn("go", &json!({})), 1);
    let rule = |thread: &Thread, fields: Value| {
        let (next, outcome) = taken(thread, &turn("ok", &fields), 2);
        assert_eq!(next.drift_flagged, None);
        outcome.decided.rule
    };
    assert_eq!(rule(&one, json!({})), DecisionRule::Acknowledgment);
    assert_eq!(
        rule(&one, json!({"drift": true})),
        DecisionRule::PressureOrDrift
    );
    assert_eq!(
        rule(&one.flag_drift("op-1"), json!({})),
        DecisionRule::PressureOrDrift
    );
    let full = json!({"pressure": {"used": 160_000, "limit": 200_000}});
    assert_eq!(rule(&one, full), DecisionRule::PressureOrDrift);
}

// covers D20
#[test]
fn closed_topics_are_reported_to_the_agent() {
    let mut items = signals(&["open_loop_resolved", "decision_made", "pivot"]);
    items[0]["summary"] = json!("export is done");
    let (_, outcome) = taken(&thread(), &turn("go", &json!({"signals": items})), 1);
    assert_eq!(
        outcome.closed,
        [
            "open_loop_resolved: export is done",
            "decision_made: a decision changed the direction of the thread",
        ]
    );
}

#[test]
fn stored_thread_data_is_bounded_and_round_trips() {
    let mut thread = thread();
    for number in 1..200 {
        let fields = both(feels(0.9), json!({"proposed": proposal()}));
        thread = taken(&thread, &message(number, fields), number).0;
    }
    assert_eq!(thread.turns.len(), crate::base::limits::MAX_TURNS);
    assert_eq!(thread.held_back.len(), crate::base::limits::MAX_HELD_BACK);
    assert_eq!(thread.held_back_count, 198);
    assert_eq!(thread.turns[0].message_id.as_str(), "m-199");
    let text = serde_json::to_string(&thread).unwrap();
    assert!(text.len() < 100_000, "{}", text.len());
    assert_eq!(serde_json::from_str::<Thread>(&text).unwrap(), thread);
}

#[test]
fn malformed_turns_are_rejected() {
    let refused = |text: &str| Turn::read(text.as_bytes()).unwrap_err().to_string();
    let table = [
        (r#"{"message":"x"}"#, "turn: missing field `message_id`"),
        (r#"{"message_id":"m","message":1}"#, "message: invalid type"),
        (
            r#"{"message_id":"m","message":"x","mood":1}"#,
            "mood: unknown field",
        ),
        (
            r#"{"message_id":"m","message":"x","context":{"thread_memento":{"version":"memento-v0.1"}}}"#,
            "context.thread_memento.version: must be `memento-v0.2`",
        ),
        (
            r#"{"message_id":"m","message":"x","signals":[{"kind":"pivot"}]}"#,
            "signals[0]: missing field",
        ),
        (
            r#"{"message_id":"m","message":"x","affect":{"label":"x","intensity":2,"confidence":"low","source":"model"}}"#,
            "affect.intensity: ",
        ),
    ];
    for (text, wanted) in table {
        assert!(refused(text).starts_with(wanted), "{}", refused(text));
    }
}
