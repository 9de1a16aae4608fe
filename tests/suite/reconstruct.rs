//! Snapshot files, taken through the protocol.

use std::fs;

use cra_core::reconstruct::{
    AccountDecision, AccountHeld, ConversationSnapshot, GLOSSARY, LOAD_ARTIFACTS_FOR,
    NEVER_LOAD_ARTIFACTS_FOR, PROTOCOL_VERSION, QUALITY, Reconstruction, SessionAccount,
    SnapshotError, UPDATED, WaitingSubject, snapshot_json,
};
use serde_json::{Value, json};

use super::cli::TestHome;
use super::support::{files, root};

mod command;

fn file(name: &str) -> Vec<u8> {
    let folder = root().join("tests/data/snapshots");
    fs::read(folder.join(format!("{name}.json"))).unwrap()
}

fn value(name: &str) -> Value {
    serde_json::from_slice(&file(name)).unwrap()
}

fn of(value: &Value) -> Reconstruction {
    Reconstruction::from_file(value.to_string().as_bytes()).unwrap()
}

// covers R1, R16, R17
#[test]
fn every_snapshot_file_yields_its_expected_confirmation() {
    let folder = root().join("tests/data/snapshots");
    let mut seen = 0;
    for path in files(&folder, "json") {
        let text = fs::read(&path).unwrap();
        let confirmation = Reconstruction::from_file(&text).unwrap().confirmation;
        let again = Reconstruction::from_file(&text).unwrap().confirmation;
        assert_eq!(confirmation, again);
        let expected_file = path.with_extension("txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&expected_file, &confirmation).unwrap();
        }
        let wanted = fs::read_to_string(&expected_file).unwrap_or_default();
        assert_eq!(confirmation, wanted, "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 8);
}

// covers R2, R3, R4, R5, R6, R7, R8
#[test]
fn snapshot_file_is_read_in_the_seven_steps_of_the_protocol() {
    let retrieved = of(&value("structured")).retrieved;
    let numbers: Vec<_> = retrieved.iter().map(|step| step.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    let paths: Vec<Vec<_>> = retrieved
        .iter()
        .map(|step| step.reads.iter().map(|read| read.path).collect())
        .collect();
    let wanted: [&[&str]; 7] = [
        &[
            "checkpoint_metadata.version",
            "checkpoint_metadata.checkpoint_type",
            "checkpoint_metadata.status",
        ],
        &[
            "session_state.phase",
            "session_state.completion_percentage",
            "session_state.blocking_issue",
            "session_state.next_major_step",
        ],
        &[
            "current_position.stage",
            "current_position.last_major_activity",
            "current_position.momentum",
            "current_position.readiness_for_implementation",
        ],
        &[
            "critical_question.question",
            "critical_question.type",
            "critical_question.priority",
            "critical_question.blocking",
            "critical_question.user_framing",
            "critical_question.my_confidence",
        ],
        &[
            "user_profile.goals",
            "user_profile.approach",
            "user_profile.communication_calibration",
        ],
        &[
            "intellectual_journey.key_pivots",
            "decisions_made",
            "key_insights",
            "open_questions",
            "next_steps",
        ],
        &["artifacts_created"],
    ];
    assert_eq!(paths, wanted);
    for step in &retrieved {
        assert!(!step.purpose.is_empty());
        for read in &step.reads {
            assert!(read.value.is_some(), "{}", read.path);
        }
    }
    let read = |step: usize, place: usize| retrieved[step].reads[place].value.clone().unwrap();
    assert_eq!(read(1, 1), "60%");
    assert!(read(5, 1).starts_with("three-layer_state_structure (high); "));
    assert_eq!(
        read(6, 0),
        "contextual_librarian_spec",
        "ids, and nothing else"
    );
}

// covers R9, R10, R11, R12, R13
#[test]
fn five_inferences_state_the_content_in_sentences() {
    let inferred = of(&value("structured")).inferred;
    let outputs: Vec<_> = inferred.iter().map(|value| value.output.as_str()).collect();
    assert_eq!(outputs.len(), 5);
    for (output, parts) in outputs.iter().zip([
        &["60% complete", "architecture exploration", "Momentum is exploratory", "not ready for implementation"][..],
        &["three-layer state structure (high confidence) because different types", "rejected single summary and chronological log", "The direction changed from longer context to structured context"],
        &["navigable semantic structure", "Why it blocks: architecture finalization", "The user framed it as: \"We need structure", "60%", "right problem"],
        &["Appreciates meta-reflection", "Comfortable with explicit uncertainty", "What works: pausing to reflect"],
        &["(1) explore semantic organization problem deeply, (2) conduct architectural review walkthrough", "NOT yet: implement prototype and user documentation (until architecture is finalized)"],
    ]) {
        for part in parts {
            assert!(output.contains(part), "`{part}` in {output}");
        }
    }
    let nothing = of(&value("bare")).inferred;
    assert_eq!(nothing[0].output, "The position is not recorded.");
    assert_eq!(nothing[4].output, "The next steps are not recorded.");
}

// covers R14, R15
#[test]
fn every_missing_part_fails_its_check_and_is_requested_first() {
    let whole = value("near-completion");
    assert!(of(&whole).checklist.is_clear());
    let table = [
        ("/session_state/phase", 0),
        ("/session_state/completion_percentage", 0),
        ("/current_position/stage", 0),
        ("/current_position/momentum", 0),
        ("/decisions_made", 1),
        ("/intellectual_journey/key_pivots", 1),
        ("/critical_question/question", 2),
        ("/user_profile/goals", 3),
        ("/user_profile/approach", 3),
        ("/user_profile/communication_calibration", 3),
        ("/next_steps", 4),
        ("/critical_question/my_confidence", 5),
    ];
    for (path, place) in table {
        let mut less = whole.clone();
        *less.pointer_mut(path).unwrap() = Value::Null;
        let reconstruction = of(&less);
        let checks = &reconstruction.checklist.checks;
        assert_eq!(checks.len(), 6);
        let unclear = &checks[place];
        let name = path.trim_start_matches('/').replace('/', ".");
        assert!(
            unclear.missing.iter().any(|item| *item == name),
            "{name}: {unclear:?}"
        );
        let text = &reconstruction.confirmation;
        assert!(text.contains("\nUNCERTAINTIES:\n"), "{text}");
        assert!(text.contains(&name), "{text}");
        let first = format!("Ready to continue. First: {}", unclear.ask.unwrap());
        assert!(text.contains(&first), "{text}");
    }
}

// covers R18
#[test]
fn low_confidence_is_admitted_and_alternatives_are_offered() {
    for (confidence, unsure) in [
        (json!(0.49), true),
        (json!(0.5), false),
        (json!("low"), true),
        (json!("high"), false),
        (json!(30), true),
        (json!(80), false),
    ] {
        let mut file = value("near-completion");
        file["critical_question"]["my_confidence"] = confidence.clone();
        let text = of(&file).confirmation;
        assert_eq!(
            text.contains("explore alternatives"),
            unsure,
            "{confidence}"
        );
        assert_eq!(text.contains("UNCERTAINTIES:"), unsure, "{confidence}");
    }
}

// covers R19
#[test]
fn blocking_issue_comes_first_and_later_steps_are_premature() {
    for (issue, blocked) in [
        (json!(true), true),
        (json!(false), false),
        (json!("the ledger differs"), true),
        (json!(""), false),
    ] {
        let mut file = value("near-completion");
        file["session_state"]["blocking_issue"] = issue.clone();
        let text = of(&file).confirmation;
        let second = text.split("\n\n").nth(1).unwrap();
        assert_eq!(
            second.starts_with("BLOCKING ISSUE: "),
            blocked,
            "{issue}: {text}"
        );
        assert_eq!(text.contains("premature until"), blocked, "{issue}");
        assert_eq!(text.contains("Shall we switch reads?"), !blocked, "{issue}");
    }
    let mut exploring = value("near-completion");
    exploring["session_state"]["blocking_issue"] = json!(true);
    exploring["next_steps"] = json!([{"step": "explore how to build it", "priority": 1}]);
    assert!(!of(&exploring).confirmation.contains("premature"));
}

// covers R20
#[test]
fn session_above_four_fifths_lists_completed_and_open_work() {
    for (completion, near) in [(80, false), (81, true), (100, true)] {
        let mut file = value("near-completion");
        file["session_state"]["completion_percentage"] = json!(completion);
        let text = of(&file).confirmation;
        assert_eq!(text.contains("NEAR COMPLETION:"), near, "{completion}");
        assert_eq!(
            text.contains("Accomplished: Double writes; Backfill by month"),
            near
        );
        assert_eq!(
            text.contains("Still open: Who watches the first night?; Drop old tables"),
            near
        );
    }
}

#[test]
fn a_rejected_decision_is_marked_where_decisions_are_listed_by_confidence() {
    let mut edited = value("structured");
    edited["decisions_made"][0] =
        json!({"decision": "drop the table", "confidence": "high", "status": "rejected"});
    let text = of(&edited).confirmation;
    assert!(text.contains("rop the table (rejected)"), "{text}");
}

// covers R21
#[test]
fn several_high_priority_steps_are_all_listed_with_trade_offs() {
    let text = of(&value("unsure")).confirmation;
    assert!(
        text.contains("1. Run a soak test (instead of sample in production)"),
        "{text}"
    );
    assert!(text.contains("2. Sample in production"), "{text}");
    assert!(
        text.contains("Trade-offs: a soak test costs a day"),
        "{text}"
    );
    assert!(
        text.contains(
            "Which direction would you like to take - run a soak test, or sample in production?"
        ),
        "{text}"
    );
    let mut one = value("unsure");
    one["next_steps"][0]["priority"] = json!(2);
    assert!(!of(&one).confirmation.contains("Trade-offs"));
}

// covers R22
#[test]
fn artifacts_are_named_without_loading_them() {
    let reconstruction = of(&value("structured"));
    let artifact = &reconstruction.artifacts[0];
    assert!(
        artifact
            .mention()
            .contains("(artifact: contextual_librarian_spec)")
    );
    let all = serde_json::to_string(&reconstruction).unwrap();
    assert!(
        !all.contains("each with its own pace"),
        "what it says is loaded on demand"
    );
    assert_eq!(LOAD_ARTIFACTS_FOR.len(), 4);
    assert_eq!(NEVER_LOAD_ARTIFACTS_FOR.len(), 3);
}

// covers R23, R24, R25, R26
#[test]
fn protocol_states_its_purpose_and_defines_its_terms() {
    assert_eq!((PROTOCOL_VERSION, UPDATED), ("1.0", "2025-10-17"));
    assert_eq!(GLOSSARY.len(), 12);
    let mut terms = GLOSSARY.map(|(term, _)| term).to_vec();
    terms.sort_unstable();
    terms.dedup();
    assert_eq!(terms.len(), 12);
    assert_eq!(
        QUALITY.map(|(who, _)| who),
        ["user", "agent", "conversation"]
    );
}

#[test]
fn unreadable_file_is_refused_with_a_reason_and_a_remedy() {
    let versioned =
        |version: Value| json!({"checkpoint_metadata": {"version": version}}).to_string();
    let table: [(Vec<u8>, &str); 12] = [
        (b"".to_vec(), "not a JSON object"),
        (b"[]".to_vec(), "not a JSON object"),
        (b"{\"a\":".to_vec(), "not a JSON object"),
        ("[".repeat(100_000).into_bytes(), "not a JSON object"),
        (b"{\"a\":\"\xff\"}".to_vec(), "not UTF-8: byte 6 is invalid"),
        (b"{}".to_vec(), "version` is missing"),
        (
            b"{\"checkpoint_metadata\":[1]}".to_vec(),
            "version` is missing",
        ),
        (versioned(json!("1.0")).into_bytes(), "version `1.0`"),
        (versioned(json!(1)).into_bytes(), "version `1`"),
        (versioned(json!("99")).into_bytes(), "version `99`"),
        (versioned(json!("two")).into_bytes(), "version `two`"),
        (vec![b' '; 9 * 1024 * 1024], "bytes exceed the limit of"),
    ];
    for (text, wanted) in table {
        let error = ConversationSnapshot::read(&text).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(!error.help().is_empty());
    }
    for version in [
        json!("2.0"),
        json!(2),
        json!("v2.3"),
        json!("3.0"),
        json!(4),
    ] {
        let text = versioned(version.clone());
        let read = ConversationSnapshot::read(text.as_bytes()).unwrap();
        let later = ["3", "4"].iter().any(|item| read.version.starts_with(item));
        assert_eq!(read.later, later, "{version}");
        let text = Reconstruction::from_snapshot(&read).confirmation;
        assert_eq!(text.contains("may mean something else"), later, "{version}");
    }
    let marked = [&b"\xef\xbb\xbf"[..], &file("bare")].concat();
    assert!(ConversationSnapshot::read(&marked).is_ok());
    assert_ne!(
        ConversationSnapshot::read(b"{}").unwrap_err(),
        SnapshotError::NotText { at: 0 }
    );
}

#[test]
fn value_of_the_wrong_type_is_named_and_not_printed() {
    let reconstruction = of(&value("degraded"));
    let faults: Vec<_> = reconstruction
        .checklist
        .faults
        .iter()
        .map(|fault| format!("{} {}", fault.place, fault.what))
        .collect();
    for wanted in [
        "checkpoint_metadata.status is a list, not a text",
        "session_state.completion_percentage must be between 0 and 100",
        "session_state.blocking_issue is a number, not true or false, a text or a list",
        "current_position is a text, not an object",
        "critical_question.my_confidence is a text, not high, medium or low",
        "critical_question.blocking is an object, not true or false, a text or a list",
        "intellectual_journey.key_pivots is an object, not a list",
        "decisions_made[0] is a text, not an object",
        "decisions_made[1] has no description",
        "artifacts_created[0] has no description",
        "user_profile.goals is a text, not an object",
        "next_steps is a text, not a list",
    ] {
        assert!(
            faults.iter().any(|fault| fault == wanted),
            "{wanted}: {faults:#?}"
        );
    }
    let odd = |fault: char| fault.is_control() && fault != '\n' || fault == '\u{202e}';
    assert!(!reconstruction.confirmation.contains(odd));
}

/// Every place in a file.
fn paths(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                paths(field, &format!("{path}/{key}"), all);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                paths(item, &format!("{path}/{index}"), all);
            }
        }
        _ => {}
    }
}

/// Every value of a file is replaced by every other kind of value: there is always an answer.
#[test]
fn arbitrary_files_never_cause_a_panic() {
    let odd = [
        Value::Null,
        json!(true),
        json!(-1e300),
        json!("\u{0}"),
        json!([]),
        json!([[[]]]),
        json!({}),
        json!(vec![json!({"decision": "x"}); 500]),
    ];
    let whole = value("structured");
    let mut all = Vec::new();
    paths(&whole, "", &mut all);
    for path in all {
        for odd in &odd {
            let mut file = whole.clone();
            *file.pointer_mut(&path).unwrap() = odd.clone();
            if let Ok(reconstruction) = Reconstruction::from_file(file.to_string().as_bytes()) {
                assert!(reconstruction.confirmation.contains("Ready to continue."));
            }
        }
    }
}

// covers R8, R22
#[test]
fn the_command_prints_each_phase_and_loads_an_artifact_on_demand() {
    let folder = root().join("tests/data/snapshots");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (structured, near) = (file("structured.json"), file("near-completion.json"));
    let home = TestHome::empty();
    let run = |args: &[&str]| home.run(&[&["reconstruct"], args].concat());
    let engaged = run(&[&structured]);
    engaged.succeeds();
    assert_eq!(
        engaged.out,
        fs::read_to_string(file("structured.txt")).unwrap()
    );
    for (phase, wanted) in [
        ("retrieve", "2. Session state: understand where"),
        ("infer", "5. Trajectory and next action (from next_steps"),
        ("validate", "[x] Position: Do I understand WHERE"),
        ("engage", "Context reconstructed from checkpoint v2.0"),
    ] {
        let ran = run(&[&structured, "--phase", phase]);
        ran.succeeds();
        assert!(ran.out.contains(wanted), "{}", ran.out);
        assert!(!ran.out.contains("own pace"));
    }
    let json = run(&[&structured, "--json"]).json();
    assert_eq!(json["retrieved"].as_array().unwrap().len(), 7);
    assert_eq!(json["confirmation"], engaged.out);
    let loaded = run(&[&structured, "--artifact", "contextual_librarian_spec"]);
    loaded.succeeds();
    assert!(
        loaded
            .out
            .contains("\nThree layers, each with its own pace.")
    );
    let loaded = run(&[&near, "--artifact", "runbook", "--json"]).json();
    assert!(loaded["content"].as_str().unwrap().starts_with("# Runbook"));
    let none = run(&[&near, "--artifact", "plan"]);
    none.fails(1, &["no artifact `plan`; it lists runbook"]);
    assert_eq!(run(&[&file("bare.json"), "--phase", "validate"]).code, 4);
    let glossary = run(&["--glossary"]);
    glossary.succeeds();
    assert!(glossary.out.contains("momentum "));
}

#[test]
fn artifact_is_read_only_from_the_folder_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let absolute = folder.path().join("secret");
    std::os::unix::fs::symlink(&absolute, inner.join("link")).unwrap();
    std::os::unix::fs::symlink(folder.path(), inner.join("out")).unwrap();
    let absolute = absolute.to_str().unwrap();
    for path in [
        "../secret",
        absolute,
        "a/../../secret",
        "link",
        "out/secret",
    ] {
        let file = inner.join("file.json");
        let snapshot = json!({
            "checkpoint_metadata": {"version": "2.0"},
            "artifacts_created": [{"id": "x", "path": path}]
        });
        fs::write(&file, snapshot.to_string()).unwrap();
        let ran =
            TestHome::empty().run(&["reconstruct", file.to_str().unwrap(), "--artifact", "x"]);
        ran.fails(1, &["is not in the folder of its snapshot file"]);
        assert!(!ran.out.contains("secret"), "{path}");
    }
}

#[test]
fn snapshot_written_from_a_session_marks_known_and_unknown_parts() {
    let text = |text: &str| text.to_owned();
    let mut account = SessionAccount {
        session: text("s-12"),
        agent: text("triage-bot"),
        intent: Some(text("clean up duplicate tickets")),
        written_at: text("2026-01-01T00:00:00Z"),
        atlases: vec![text("com.acme.support")],
        ..SessionAccount::default()
    };
    let confirm = |account: &SessionAccount| of(&snapshot_json(account)).confirmation;
    let bare = of(&snapshot_json(&account));
    let position = "POSITION: In progress: clean up duplicate tickets";
    assert!(
        bare.confirmation.contains(position),
        "{}",
        bare.confirmation
    );
    let unclear = bare
        .checklist
        .checks
        .iter()
        .filter(|check| !check.is_clear());
    assert_eq!(unclear.count(), 6, "the record knows none of the six whole");
    assert_eq!(bare.checklist.faults, []);
    account.arc = Some(text("dedupe tickets"));
    account.active = vec![text("delete 4411")];
    account.decisions = vec![text("keep 4398")];
    account.next = vec![text("dry run")];
    account.parked = vec![text("report format")];
    account.held = vec![AccountHeld {
        gate: text("c-121"),
        waits: WaitingSubject::Action(text("ticket.delete")),
        asked: vec![text("why now?")],
    }];
    account.decided = vec![AccountDecision {
        gate: text("c-117"),
        action: text("user_ban"),
        outcome: text("denied"),
        by: Some(text("op-1")),
        reason: Some(text("wrong tenant")),
    }];
    let whole = confirm(&account);
    for part in [
        "BLOCKING ISSUE: Gate `c-121` waits for an operator: `ticket.delete`",
        "CRITICAL QUESTION: May triage-bot run `ticket.delete`?",
        "Keep 4398, `user_ban` denied (c-117)",
        "1. Wait for an operator at gate `c-121`",
        "2. Dry run",
    ] {
        assert!(whole.contains(part), "`{part}` in {whole}");
    }
    for (waits, question, what) in [
        (
            WaitingSubject::Start,
            "May triage-bot start?",
            "the start of the session",
        ),
        (
            WaitingSubject::Session(text("input")),
            "May triage-bot continue (input)?",
            "the session (input)",
        ),
    ] {
        account.held[0].waits = waits;
        let whole = confirm(&account);
        assert!(
            whole.contains(&format!("CRITICAL QUESTION: {question}")),
            "{whole}"
        );
        assert!(
            whole.contains(&format!("Gate `c-121` waits for an operator: {what}")),
            "{whole}"
        );
        let next = &snapshot_json(&account)["next_steps"][0]["purpose"];
        assert_eq!(*next, format!("{what} is held at this gate"));
    }
    account.ended = true;
    account.held.clear();
    let ended = confirm(&account);
    assert!(ended.contains("Completion: not recorded"), "{ended}");
    assert!(!ended.contains("NEAR COMPLETION:"), "{ended}");
}

#[test]
fn a_name_between_backticks_cannot_be_broken_out_of() {
    let account = SessionAccount {
        agent: "bot".to_owned(),
        held: vec![AccountHeld {
            gate: "g`x_y".to_owned(),
            waits: WaitingSubject::Action("a`b_c".to_owned()),
            asked: Vec::new(),
        }],
        ..SessionAccount::default()
    };
    let reply = of(&snapshot_json(&account)).confirmation;
    assert!(
        reply.contains("Gate `g'x_y` waits for an operator: `a'b_c`"),
        "{reply}"
    );
}
