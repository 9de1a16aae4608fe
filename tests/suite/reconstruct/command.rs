//! `cra reconstruct` on files as they are in use.

use serde_json::{Value, json};

use super::super::cli::{CommandOutput, TestHome};
use super::value;

/// Runs the command on a file of that text.
fn run(home: &TestHome, file: &Value, args: &[&str]) -> CommandOutput {
    let path = home.0.path().join("snapshot.json");
    std::fs::write(&path, file.to_string()).unwrap();
    home.run(&[&["reconstruct", path.to_str().unwrap()], args].concat())
}

/// The text to go on with.
fn engaged(home: &TestHome, file: &Value) -> String {
    let reply = run(home, file, &[]);
    reply.succeeds();
    reply.out
}

/// The lines of a section, its heading first.
fn section<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut sections = text.trim_end().split("\n\n");
    let found = sections.find(|item| item.starts_with(name));
    found.unwrap_or_default().lines().collect()
}

#[track_caller]
fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|item| item == *line), "`{line}` in {text}");
    }
}

// covers R16, R17
#[test]
fn worked_example_is_reconstructed_from_a_realistic_file() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("worked-example"));
    has_lines(
        &reply,
        &[
            "Context reconstructed from checkpoint v2.0 (structured format).",
            "POSITION: Mid-design of Contextual Librarian system",
            "  Phase: Architecture exploration",
            "  Stage: Mid-design, not finalized",
            "  Completion: 60%",
            "  Momentum: Exploratory, just completed meta-validation through checkpoint design",
            "CRITICAL QUESTION: How do we maintain navigable semantic structure that prevents metadata sprawl while serving both retrieval and navigation functions?",
            "  Type: Foundational knowledge representation problem",
            "  Why blocking: Architecture finalization and implementation cannot continue without resolving this",
            "  User's framing: \"We need structure that both user and AI can navigate and revive into, that evolves but doesn't tangle\"",
            "  High confidence: Three-layer state structure, active reconstruction mechanism, hybrid RAG+contextual approach, hierarchical chunking, proactive features",
            "  Medium confidence: Metadata management approach (tentative)",
            "  - Collaborative, depth-oriented exploration",
            "Ready to continue. Which direction would you like to take - explore semantic organization problem deeply, or conduct architectural review walkthrough?",
        ],
    );
    let low = "  Low confidence: Specific solution to semantic organization challenge, ";
    assert!(reply.contains(low), "{reply}");
    let bullets = section(&reply, "COMMUNICATION CALIBRATION:").len() - 1;
    assert_eq!(bullets, 4, "as many as the worked example has");
    // The sections of the template, in its order.
    let heads = [
        "Context reconstructed",
        "POSITION: ",
        "CRITICAL QUESTION: ",
        "CONFIDENCE LEVELS:",
        "NEXT OPTIONS:",
        "COMMUNICATION CALIBRATION:",
        "Ready to continue. ",
    ];
    let places: Vec<_> = heads.iter().map(|head| reply.find(head).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!reply.contains("UNCERTAINTIES"), "{reply}");
    assert_eq!(
        reply,
        engaged(&home, &value("worked-example")),
        "byte for byte"
    );
}

// covers R16
#[test]
fn text_contains_only_identifiers_of_artifacts_and_fields() {
    let home = TestHome::empty();
    for name in [
        "worked-example",
        "incident",
        "format-3",
        "structured",
        "unsure",
        "near-completion",
    ] {
        let reply = engaged(&home, &value(name));
        for phase in [reply, run(&home, &value(name), &["--phase", "infer"]).out] {
            let lines = phase.lines().filter(|line| !line.contains(" (from "));
            let text: String = lines.filter(|line| !line.contains("missing")).collect();
            let outside = text.split('`').step_by(2);
            let words = outside.flat_map(str::split_whitespace);
            let mut raw = words.filter(|word| word.contains('_'));
            let mut artifact = raw.clone();
            let all_named = artifact.all(|word| {
                text.contains(&format!("(artifact: {}", word.trim_end_matches([';', ','])))
            });
            assert!(all_named, "{name}: {:?}", raw.next());
        }
    }
}

// covers R9, R10, R11, R12, R13
#[test]
fn five_inferences_are_printed_with_their_evidence() {
    let home = TestHome::empty();
    let reply = run(&home, &value("worked-example"), &["--phase", "infer"]);
    reply.succeeds();
    for sentence in [
        "1. Position in the arc (from session_state, current_position, intellectual_journey)",
        "Stage: mid-design (60% complete), in the phase architecture exploration.",
        "The conversation began with RAG explanation and is now about Contextual Librarian system.",
        "Momentum is exploratory, and the work is not ready for implementation.",
        "2. Decision rationale (from decisions_made, intellectual_journey.key_pivots, key_insights)",
        "Decided on three-layer state structure (high confidence) because different context types update at different frequencies; rejected single summary and chronological log.",
        "The direction changed from architecture complete to questioning assumptions: semantic organization is under-specified.",
        "The direction changed to checkpoint validates design: a checkpoint has the problems of a librarian.",
        "Insights: wisdom of long context requires structure, not just length (led to three layer state structure);",
        "3. Critical question (from critical_question, open_questions, blocking_issue)",
        "Why it blocks: architecture finalization and implementation cannot continue without resolving this.",
        "What makes it hard: right problem, uncertain approach; semantic structure must serve both retrieval AND navigation (not settled); automation vs. control (unresolved): too much automation decides wrongly; too little overwhelms.",
        "What is at stake: architecture finalization and implementation (cannot continue without an answer); user documentation and implementation details (deferred until then); the goal: build a librarian for a personal intellectual corpus.",
        "Confidence in an answer: 60% - right problem, uncertain approach.",
        "Also open: What are the core organizing principles for semantic structure? (critical); How do we balance",
        "(medium); 2 more.",
        "4. Communication calibration (from user_profile.communication_calibration, conversation_dynamics)",
        "Appreciates thoroughness, knowing when to stop, concrete examples and short reflections.",
        "5. Trajectory and next action (from next_steps, deferred_items, blocking_issue, open_questions)",
        "Options: (1) explore semantic organization problem deeply, (2) conduct architectural review walkthrough.",
        "NOT yet: build prototype, user documentation (until architecture is finalized) - premature before architectural understanding, implementation details (until semantic organization is resolved) and mobile client - not needed yet.",
    ] {
        assert!(
            reply.out.contains(sentence),
            "`{sentence}` in {}",
            reply.out
        );
    }
    // What the file says itself comes before what follows from the rest.
    let reply = run(&home, &value("incident"), &["--phase", "infer"]).out;
    for sentence in [
        "What makes it hard: it happens only under load, and the logs rotate within the hour.",
        "What is at stake: payments of two regions; the audit on Friday.",
        "Also open: Why was no alarm raised? (high); Are both zones affected?",
        "db.failover denied, by maya: not before the logs are read.",
    ] {
        assert!(reply.contains(sentence), "`{sentence}` in {reply}");
    }
    let mut silent = value("near-completion");
    silent["critical_question"] = json!({"question": "Do we switch?", "blocking": false});
    silent["open_questions"] = json!([]);
    let reply = run(&home, &silent, &["--phase", "infer"]).out;
    let wanted = "What makes it hard: not recorded. What is at stake: not recorded.";
    assert!(reply.contains(wanted), "{reply}");
}

#[test]
fn open_questions_are_listed_up_to_five_with_the_most_important_first() {
    let home = TestHome::empty();
    for (count, listed, more) in [(0, 0, None), (5, 5, None), (6, 6, Some("    - 1 more"))] {
        let mut file = value("near-completion");
        let question = |at: usize| json!({"question": format!("Q{at}?"), "priority": if at == 3 { "high" } else { "low" }});
        file["open_questions"] = (1..=count).map(question).collect();
        let reply = engaged(&home, &file);
        let lines = section(&reply, "CRITICAL QUESTION:");
        let shown: Vec<_> = lines
            .iter()
            .filter(|line| line.starts_with("    - "))
            .collect();
        assert_eq!(shown.len(), listed, "{reply}");
        assert_eq!(lines.iter().any(|line| Some(*line) == more), more.is_some());
        if count > 0 {
            assert_eq!(*shown[0], "    - Q3? (high)");
        }
    }
}

// covers R17
#[test]
fn the_position_names_the_present_subject_and_not_the_first_topic() {
    let home = TestHome::empty();
    let base = json!({
        "checkpoint_metadata": {"version": "2.0"},
        "current_position": {"stage": "mid_build"},
        "intellectual_journey": {"start_topic": "chit-chat", "key_pivots": [{"from": "chit-chat", "to": "tax_forms"}]},
        "user_profile": {"goals": {"primary": "file_in_time"}},
    });
    let table = [
        (json!({}), "Mid-build of tax forms"),
        // What the file states comes first, wherever it does.
        (
            json!({"current_position": {"stage": "mid_build", "subject": "the Form Filler"}}),
            "Mid-build of the Form Filler",
        ),
        (
            json!({"checkpoint_metadata": {"version": "2.0", "project": "Form Filler"}}),
            "Mid-build of Form Filler",
        ),
        // A topic that is still at hand is the subject.
        (
            json!({"session_state": {"next_major_step": "end_chit_chat"}}),
            "Mid-build of chit-chat",
        ),
        // A name that two of the things at hand share.
        (
            json!({"artifacts_created": [{"id": "form_filler_spec", "title": "Architecture"}, {"id": "form_filler_tests"}]}),
            "Mid-build of Form Filler system",
        ),
        (
            json!({"artifacts_created": [{"id": "form_filler_plan"}], "session_state": {"next_major_step": "test_form_filler"}}),
            "Mid-build of Form Filler",
        ),
        (
            json!({"checkpoint_metadata": {"version": "2.0", "session_id": "form-filler-design-7"}, "current_position": {"stage": "mid_build", "last_major_activity": "drafting_the_form_filler"}}),
            "Mid-build of Form Filler",
        ),
        // One alone proves nothing, and what was superseded neither.
        (
            json!({"artifacts_created": [{"id": "form_filler_spec"}]}),
            "Mid-build of tax forms",
        ),
        (
            json!({"artifacts_created": [{"id": "form_filler_spec", "status": "superseded"}, {"id": "form_filler_api", "status": "superseded"}]}),
            "Mid-build of tax forms",
        ),
        (
            json!({"checkpoint_metadata": {"version": "2.0", "session_id": "s-12"}}),
            "Mid-build of tax forms",
        ),
        // Without a turn it is about what it began with.
        (
            json!({"intellectual_journey": {"start_topic": "chit-chat"}}),
            "Mid-build of chit-chat",
        ),
        (
            json!({"intellectual_journey": {}}),
            "Mid-build of file in time",
        ),
    ];
    for (fields, wanted) in table {
        let mut file = base.clone();
        for (key, field) in fields.as_object().unwrap() {
            file[key] = field.clone();
        }
        let reply = engaged(&home, &file);
        has_lines(&reply, &[&format!("POSITION: {wanted}")]);
    }
}

// covers R14, R15
#[test]
fn missing_part_fails_its_check_and_is_requested_first() {
    let home = TestHome::empty();
    let whole = value("worked-example");
    let clear = run(&home, &whole, &["--phase", "validate"]);
    clear.succeeds();
    assert_eq!(clear.out.matches("[x] ").count(), 6, "{}", clear.out);
    let table = [
        (
            "/current_position/momentum",
            "Position",
            "Where are we right now",
        ),
        ("/decisions_made", "History", "Which decisions led here"),
        (
            "/critical_question/question",
            "Challenge",
            "Which question must be resolved first",
        ),
        ("/user_profile/goals", "User", "What do you want to achieve"),
        ("/next_steps", "Direction", "What should happen next"),
        (
            "/critical_question/my_confidence",
            "Confidence",
            "Which of the decisions are firm",
        ),
    ];
    for (path, name, asks) in table {
        let mut less = whole.clone();
        *less.pointer_mut(path).unwrap() = Value::Null;
        let checked = run(&home, &less, &["--phase", "validate"]);
        assert_eq!(checked.code, 4, "{}", checked.out);
        let field = path.trim_start_matches('/').replace('/', ".");
        for line in [
            format!("[ ] {name}: "),
            format!("missing: {field}"),
            format!("ask: {asks}"),
        ] {
            assert!(checked.out.contains(&line), "`{line}` in {}", checked.out);
        }
        let reply = engaged(&home, &less);
        let unclear = section(&reply, "UNCERTAINTIES:");
        assert!(
            unclear
                .iter()
                .any(|item| item.starts_with(&format!("  - {name} is unclear: {field}"))),
            "{reply}"
        );
        assert!(reply.contains("Ready to continue. First: "), "{reply}");
        assert!(reply.lines().last().unwrap().contains(asks), "{reply}");
    }
}

// covers R18
#[test]
fn unsure_answer_is_admitted_and_alternatives_of_the_file_are_offered() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("incident"));
    has_lines(
        &reply,
        &[
            "  Low confidence: The answer to the critical question (low)",
            "  I am not sure about the critical question (two theories no proof). I suggest that we explore alternatives first.",
            "  Alternatives: clock skew between zones; a lock that `vacuum_full` holds; longer read timeouts (rejected before).",
            "  - confidence in an answer to the critical question is low",
        ],
    );
    let reply = engaged(&home, &value("unsure"));
    has_lines(
        &reply,
        &["  Alternatives: run a soak test; sample in production."],
    );
    // One way alone is offered as such.
    let mut one = value("near-completion");
    one["critical_question"]["my_confidence"] = json!("49%");
    let reply = engaged(&home, &one);
    has_lines(
        &reply,
        &[
            "  The file names no alternatives. Which ones should we explore?",
            "Ready to continue. Would you rather explore alternatives first, or take this step: switch reads?",
        ],
    );
    for sure in [
        json!(0.5),
        json!("50%"),
        json!("medium"),
        json!("medium_high"),
    ] {
        one["critical_question"]["my_confidence"] = sure.clone();
        assert!(!engaged(&home, &one).contains("I am not sure"), "{sure}");
    }
}

// covers R19
#[test]
fn blocking_issue_comes_first_is_explained_and_no_later_step_is_offered() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("incident"));
    let second = reply.split("\n\n").nth(1).unwrap();
    assert_eq!(
        second,
        "BLOCKING ISSUE: No access to the replica logs\n  \
         The failover cannot be switched on again before this is known.\n  \
         Work cannot move forward until this is resolved."
    );
    has_lines(
        &reply,
        &[
            "  1. Get replica logs (address the blocking issue)",
            "  2. Deploy a larger replica (buys a day; premature until the blocking issue is resolved)",
            "Ready to continue. Which direction would you like to take - get replica logs, or compare clocks of both zones?",
        ],
    );
    let mut only = value("incident");
    only["next_steps"] = json!(["deploy_a_larger_replica"]);
    let reply = engaged(&home, &only);
    assert!(
        reply.ends_with("Ready to continue. How shall we resolve the blocking issue?\n"),
        "{reply}"
    );
}

// covers R20
#[test]
fn only_firm_decisions_count_as_accomplished_near_the_end() {
    let home = TestHome::empty();
    let mut file = value("near-completion");
    file["decisions_made"] = json!([
        {"decision": "double_writes", "confidence": "high"},
        {"decision": "backfill", "status": "completed"},
        {"decision": "flags", "confidence": "high", "status": "tentative"},
        {"decision": "shadow_reads", "confidence": "high", "needs_revision": true},
        {"decision": "switch_by_region", "confidence": "medium"},
        {"decision": "drop_backups", "confidence": "low"},
        {"decision": "`db.drop` denied (risky)", "status": "denied", "decided_by": "maya"},
        {"decision": "one_big_switch", "confidence": "high", "status": "rejected"},
        {"decision": "night_shift", "confidence": "high", "status": "expired"},
        {"decision": "keep_calm"},
    ]);
    for (completion, near) in [(80, false), (81, true)] {
        file["session_state"]["completion_percentage"] = json!(completion);
        let reply = engaged(&home, &file);
        let lines = section(&reply, "NEAR COMPLETION:");
        if !near {
            assert_eq!(lines, [""; 0]);
            continue;
        }
        assert_eq!(
            lines,
            [
                "NEAR COMPLETION:",
                "  Accomplished: Double writes; Backfill",
                "  Still open: Who watches the first night?; Drop old tables; Flags (to be confirmed); Shadow reads (to be confirmed); Switch by region (to be confirmed); Drop backups (to be confirmed)",
                "  Paths to completion: Switch reads",
            ]
        );
    }
}

// covers R21
#[test]
fn several_high_priority_steps_have_trade_offs_in_every_supported_form() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("worked-example"));
    assert_eq!(
        section(&reply, "NEXT OPTIONS:"),
        [
            "NEXT OPTIONS:",
            "  1. Explore semantic organization problem deeply (address the blocking issue; answers core organizing principles and emergence vs. curation balance)",
            "  2. Conduct architectural review walkthrough (deepen understanding before proceeding; instead of semantic organization exploration)",
            "  3. Build prototype (it shows what is missing; premature until the blocking issue is resolved)",
            "  Trade-offs:",
            "    - Automation vs. control (unresolved): too much automation decides wrongly; too little overwhelms",
            "    - Exploring first delays the review",
            "    - Reviewing first may settle what is not understood",
            "    - Compression vs. fidelity: smaller checkpoints lose nuance; larger ones burden the context; resolved: tiered storage with progressive compression",
            "    - Structured vs. narrative; resolved: both are needed",
            "  Not yet: user documentation (until architecture is finalized) - premature before architectural understanding; implementation details (until semantic organization is resolved); mobile client - not needed yet",
        ]
    );
    let mut odd = value("unsure");
    for (form, wanted) in [
        (json!("a costs b"), Some("a costs b")),
        (json!({"description": "a costs b"}), Some("a costs b")),
        (
            json!({"summary": "a costs b", "status": "unresolved"}),
            Some("a costs b (unresolved)"),
        ),
        (json!({"dimension": "a_vs_b"}), Some("a vs. b")),
        (json!({"resolution": "Both."}), Some("resolved: both")),
        (json!({"status": "unresolved"}), None),
        (json!(7), Some("7")),
        (json!([]), None),
    ] {
        odd["tradeoffs_identified"] = json!([form.clone()]);
        let reply = engaged(&home, &odd);
        match wanted {
            Some(wanted) => has_lines(&reply, &[&format!("  Trade-offs: {wanted}")]),
            None => assert!(
                !reply.contains("Trade-offs") && reply.contains("tradeoffs_identified[0] "),
                "{reply}"
            ),
        }
    }
    // With one step that matters most there is nothing to weigh.
    odd["next_steps"][0]["priority"] = json!(2);
    odd["tradeoffs_identified"] = json!(["a costs b"]);
    assert!(!engaged(&home, &odd).contains("Trade-offs"));
}

// covers R13, R21
#[test]
fn a_compound_next_major_step_is_offered_as_its_parts() {
    let home = TestHome::empty();
    let mut file = value("format-3");
    file.as_object_mut().unwrap().remove("next_session_options");
    let reply = engaged(&home, &file);
    has_lines(
        &reply,
        &[
            "  1. Test handover guide transmission",
            "  2. Resume schema review",
        ],
    );
    assert!(
        reply.contains("Direction is unclear: next_steps missing"),
        "{reply}"
    );
}

// covers R22
#[test]
fn artifacts_are_mentioned_in_a_sentence_and_loaded_only_on_demand() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("worked-example"));
    has_lines(
        &reply,
        &[
            "ARTIFACTS: On request I can load the Architecture Specification (artifact: contextual_librarian_spec), the API Specification (artifact: librarian_api_spec) or the librarian prompts (artifact: librarian_prompts); none of them is loaded yet.",
        ],
    );
    let reply = run(&home, &value("worked-example"), &["--phase", "retrieve"]).out;
    has_lines(
        &reply,
        &[
            "   We created the Architecture Specification (artifact: contextual_librarian_spec), with details for architecture questions, design rationale and implementation planning. Would you like me to review that section?",
            "   We created the librarian prompts (artifact: librarian_prompts), with the details. Would you like me to review that section?",
        ],
    );
    let reply = engaged(&home, &value("structured"));
    has_lines(
        &reply,
        &[
            "ARTIFACTS: On request I can load a complete architecture specification (artifact: contextual_librarian_spec); it is not loaded yet.",
        ],
    );
    assert!(!reply.contains("own pace"), "its content stays where it is");
    let loaded = run(
        &home,
        &value("structured"),
        &["--artifact", "contextual_librarian_spec"],
    );
    assert!(loaded.out.contains("own pace"), "{}", loaded.out);
    assert!(!engaged(&home, &value("unsure")).contains("ARTIFACTS"));
}

// covers R6, R12, R14
#[test]
fn goals_are_read_as_a_list_or_an_object_and_the_style_stays_short() {
    let home = TestHome::empty();
    let mut file = value("near-completion");
    file["user_profile"]["goals"] = json!(["one_ledger", "quiet_nights"]);
    let read = run(&home, &file, &["--phase", "retrieve"]).out;
    assert!(read.contains("one_ledger; quiet_nights"), "{read}");
    run(&home, &file, &["--phase", "validate"]).succeeds();
    let many: Vec<_> = (1..=9).map(|at| format!("point_{at}")).collect();
    let calibration = &mut file["user_profile"]["communication_calibration"];
    calibration["appreciates"] = json!(many);
    calibration["comfortable_with"] = json!(many);
    calibration["reasoning_style"] = json!("stepwise");
    file["user_profile"]["approach"]["values"] = json!(many);
    file["conversation_dynamics"] = json!({"what_works": many});
    let reply = engaged(&home, &file);
    assert_eq!(
        section(&reply, "COMMUNICATION CALIBRATION:"),
        [
            "COMMUNICATION CALIBRATION:",
            "  - Direct, short answers",
            "  - Comfortable with point 1, point 2 and point 3; appreciates point 1, point 2 and point 3",
            "  - Values point 1, point 2 and point 3",
            "  - Point 1, point 2 and point 3",
        ]
    );
}

// covers R1, R15
#[test]
fn later_format_is_opened_with_a_warning_and_all_its_content() {
    let home = TestHome::empty();
    let reply = engaged(&home, &value("format-3"));
    has_lines(
        &reply,
        &[
            "POSITION: Post-cutover integration of handover guide",
            "  Momentum: Consolidating, just refined handover guide through collaborative editing",
            "  Accomplished: Cutover rehearsal; Guide revision",
            "  1. Test handover guide transmission (validate whether the guide is enough)",
            "  - the file has version 3.0, but only 2.x is known: some fields may mean something else",
        ],
    );
    assert_eq!(
        run(&home, &value("format-3"), &["--phase", "validate"]).code,
        4
    );
}

// covers R23, R24, R25, R26
#[test]
fn the_glossary_names_the_protocol_its_terms_and_its_standards() {
    let home = TestHome::empty();
    let reply = home.run(&["reconstruct", "--glossary"]);
    reply.succeeds();
    let head = "Reconstruction protocol 1.0 of 2025-10-17, for snapshot files of format 2.0.";
    assert_eq!(reply.out.lines().next(), Some(head));
    let terms = [
        "blocking_issue",
        "checkpoint_type",
        "completion_percentage",
        "confidence",
        "critical_question",
        "deferred_items",
        "intellectual_journey",
        "key_pivots",
        "momentum",
        "phase",
        "readiness_for_implementation",
        "stage",
    ];
    let told_terms: Vec<_> = reply
        .out
        .lines()
        .skip(2)
        .take(12)
        .map(|value| value.split(' ').next().unwrap())
        .collect();
    assert_eq!(told_terms, terms);
    assert_eq!(
        reply.out.matches("\n  + ").count(),
        4,
        "cases that load an artifact"
    );
    for (heading, count) in [
        ("but not", 3),
        ("reconstruction the user", 4),
        ("reconstruction the agent", 4),
        ("reconstruction the conversation", 4),
    ] {
        let below = reply.out.split_once(heading).unwrap().1;
        let lines = below
            .lines()
            .skip(1)
            .take_while(|item| item.starts_with("  - "));
        assert_eq!(lines.count(), count, "{heading}");
    }
    // A snapshot file names the protocol that it is for.
    let written = TestHome::recorded().run(&["snapshot", "s-1"]).json();
    assert_eq!(written["checkpoint_metadata"]["protocol"], "1.0");
    assert_eq!(written["checkpoint_metadata"]["version"], "2.0");
}
