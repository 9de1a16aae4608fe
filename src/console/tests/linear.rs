//! Tests of the line console.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::fixture::{busy, decided, now, snapshot, ticket_delete, user_ban, with_params};
use crate::base::clock::Timestamp;
use crate::console::linear::line_console::{LineConsole, LineEffect};
use crate::engine::command::{
    Confirmation, DecisionRefusal, HeldOutcome, InvalidAnswers, OperatorReply, Ruling,
};
use crate::engine::held::Held;
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, RuntimeSnapshot, StoreState};
use crate::trace::verification::{VerificationProgress, VerificationReport};

/// A line console in which a second passes before every line.
pub(super) struct LineConsoleTester {
    pub(super) line_console: LineConsole,
    pub(super) now: Timestamp,
}

impl LineConsoleTester {
    pub(super) fn new(snapshot: RuntimeSnapshot) -> Self {
        Self {
            line_console: LineConsole::new(Arc::new(snapshot), now()),
            now: now(),
        }
    }

    /// Types lines, and returns the output after the last one.
    pub(super) fn types(&mut self, lines: &[&str]) -> (String, Vec<LineEffect>) {
        let mut last = (self.line_console.take_output(), Vec::new());
        for line in lines {
            self.now = self.now.plus(Duration::from_secs(1));
            let before = self.line_console.on_tick(self.now);
            assert_eq!(before, []);
            let effects = self.line_console.on_line(&format!("{line}\n"), self.now);
            last = (self.line_console.take_output(), effects);
        }
        // One more second passes after the last line.
        self.now = self.now.plus(Duration::from_secs(1));
        self.line_console.on_tick(self.now);
        last.0 += &self.line_console.take_output();
        last
    }

    /// Types a wrong last word: it is sent to be recorded, and decides nothing.
    #[track_caller]
    pub(super) fn leaves_held(&mut self, word: &str) {
        let (output, effects) = self.types(&[word]);
        assert!(output.contains("The request stays held."), "{output}");
        let [LineEffect::Decide(wrong)] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        let Ruling::WrongConfirmation {
            typed_text: typed, ..
        } = &wrong.ruling
        else {
            panic!("{:?}", wrong.ruling);
        };
        assert_eq!(typed, word);
    }

    #[track_caller]
    pub(super) fn hears(&mut self, lines: &[&str], expected: &[&str]) {
        let (output, effects) = self.types(lines);
        assert_eq!(effects, [], "{output}");
        for part in expected {
            assert!(output.contains(part), "`{part}` is not in:\n{output}");
        }
    }
}

/// Lines to type until the console asks for the word that passes `ticket_delete`.
pub(super) fn answers(held: &Held) -> Vec<String> {
    let hash = held.request_hash.short(4);
    let lines = [
        "pass c-121",
        "Dup of 4398, customer confirmed by mail, reason: merge.",
        "understood",
        "yes",
        &hash,
    ];
    lines.map(str::to_owned).to_vec()
}

#[test]
fn the_line_console_lists_held_requests_at_start_riskiest_first() {
    let mut listener = LineConsoleTester::new(busy());
    let output = listener.line_console.take_output();
    assert!(output.contains("5 requests are held."), "{output}");
    let place = |id: &str| output.find(&format!("{id}: ")).unwrap();
    assert!(place("c-118") < place("c-121") && place("c-121") < place("c-119"));
    assert!(
        output.contains("2 minutes 50 seconds left, then it is denied."),
        "{output}"
    );
    assert!(output.ends_with("> "));
    listener.hears(&["help"], &["pass c-1", "/back"]);
    listener.hears(&["recent"], &["c-117", "was denied by op-1"]);
    listener.hears(&["sing"], &["Unknown command: sing."]);
    listener.hears(&["pass c-9"], &["c-9 is not held"]);
    listener.hears(&["deny"], &["Name a request"]);
    assert_eq!(listener.types(&["quit"]).1, [LineEffect::Leave]);
}

/// Starts a check of the record and returns its progress.
fn begin_check(listener: &mut LineConsoleTester) -> VerificationProgress {
    match listener.types(&["verify"]).1.pop() {
        Some(LineEffect::Verify(progress)) => progress,
        other => panic!("no check: {other:?}"),
    }
}

#[test]
fn a_check_reports_its_progress_and_the_stop_command_stops_it() {
    let mut listener = LineConsoleTester::new(busy());
    listener.hears(&["stop"], &["No verification is running."]);
    let progress = begin_check(&mut listener);
    progress.begin(50);
    progress.add(6);
    listener.hears(
        &["verify"],
        &["Verifying the record: 12 %, 6 of 50 records."],
    );
    assert!(!progress.is_cancelled());
    let output = ["Verification stopped, without a result."];
    listener.hears(&["stop"], &output);
    assert!(progress.is_cancelled());
    assert!(!begin_check(&mut listener).is_cancelled());
}

/// Types a line that is rejected, and returns the ruling that is sent to be recorded.
fn refused(listener: &mut LineConsoleTester, line: &str, expected: &[&str]) -> Ruling {
    let (output, effects) = listener.types(&[line]);
    for part in expected {
        assert!(output.contains(part), "`{part}` is not in:\n{output}");
    }
    let [LineEffect::Decide(wrong)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    wrong.ruling.clone()
}

#[test]
fn a_request_passes_only_after_it_was_printed_answered_proven_and_confirmed() {
    let held = ticket_delete();
    let mut listener = LineConsoleTester::new(busy());
    listener.hears(
        &["pass c-121"],
        &["End of the request.", "Question 1 of", "ticket_ids"],
    );
    // An answer that breaks a rule is recorded and counted. Then the question is asked again.
    let wrong = refused(&mut listener, "too short", &["Not accepted.", "Not met: "]);
    assert!(matches!(wrong, Ruling::Invalid { .. }));
    let mut again = held.clone();
    again.invalid_attempts = 1;
    let invalid = OperatorReply::Invalid(InvalidAnswers {
        held: Box::new(again),
        problems: Vec::new(),
    });
    listener
        .line_console
        .on_reply(&held.id, &invalid, listener.now);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Question 1 of")
    );
    listener.hears(
        &["Dup of 4398, customer confirmed by mail, reason: merge."],
        &["Question 2 of"],
    );
    let wrong = refused(&mut listener, "not understood", &["Not accepted."]);
    assert!(matches!(wrong, Ruling::Invalid { .. }));
    listener
        .line_console
        .on_reply(&held.id, &invalid, listener.now);
    listener.line_console.take_output();
    listener.hears(&["understood"], &["Question 3 of", "yes or no"]);
    listener.hears(
        &["yes"],
        &["Type the first 4 characters of the request's hash"],
    );
    let wrong = refused(&mut listener, "nope", &["That does not match"]);
    assert!(matches!(wrong, Ruling::WrongConfirmation { .. }));
    listener
        .line_console
        .on_reply(&held.id, &OperatorReply::Acted, listener.now);
    let hash = held.request_hash.short(4);
    listener.hears(
        &[&hash],
        &[
            "If you pass the request, cra records:",
            "risk verified",
            "verified by: \"op-1@ops\"",
            "Type pass to let",
        ],
    );
    let (output, effects) = listener.types(&["pass"]);
    let [LineEffect::Decide(decide)] = effects.as_slice() else {
        panic!("{output}");
    };
    assert_eq!(
        (decide.request_hash, decide.atlas_hash),
        (held.request_hash, held.atlas_hash)
    );
    assert_eq!(decide.method, "console+challenge");
    assert!(matches!(decide.ruling, Ruling::Pass { .. }));
    // No input is accepted while the decision is written.
    listener.hears(&["pass"], &["cra is recording c-121. Wait"]);
    let done = decided("c-121", "14:02:40", HeldOutcome::Passed, Some("op-1@ops"));
    listener
        .line_console
        .on_reply(&held.id, &OperatorReply::Decided(done), listener.now);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Recorded. c-121 at 14:02:40")
    );
}

#[test]
fn a_wrong_or_early_word_decides_nothing() {
    for word in ["", "yes", "y", "PASS", "pass c-121", "deny", "/back"] {
        let mut listener = LineConsoleTester::new(busy());
        let lines = answers(&ticket_delete());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        listener.hears(&lines, &["Type pass to let"]);
        let (output, effects) = listener.types(&[word]);
        assert!(output.contains("The request stays held."), "{output}");
        // A wrong word is sent to be recorded, and passes nothing.
        match effects.as_slice() {
            [] => assert!(matches!(word, "" | "/back"), "{word}"),
            [LineEffect::Decide(wrong)] => {
                let expected = Ruling::WrongConfirmation {
                    wanted: Confirmation::PassWord,
                    typed_text: word.to_owned(),
                };
                assert_eq!(wrong.ruling, expected);
            }
            other => panic!("{other:?}"),
        }
        // It has to begin anew.
        listener.hears(&["pass"], &["Name a request"]);
    }
    let mut listener = LineConsoleTester::new(busy());
    let lines = answers(&ticket_delete());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    listener.hears(&lines, &["Type pass to let"]);
    // Typed right after the review, before the console asks for the word.
    let mut listener = LineConsoleTester::new(busy());
    let (last, first) = lines.split_last().unwrap();
    listener.types(first);
    listener.line_console.on_line(last, listener.now);
    assert!(
        !listener
            .line_console
            .take_output()
            .contains("Type pass to let")
    );
    let early = listener.now.plus(Duration::from_millis(600));
    assert_eq!(listener.line_console.on_line("pass", early), []);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Ignored: typed too early.")
    );
    let (_, effects) = listener.types(&["pass"]);
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_critical_request_needs_the_action_name_and_a_reason_if_no_question_asks_for_one() {
    let held = user_ban();
    let mut listener = LineConsoleTester::new(busy());
    let mut heard = listener.types(&["pass c-118"]).0;
    let mut steps = 0;
    while !heard.contains("Type the name of the action in full: user.ban") {
        let answer = if heard.contains("hash: ") {
            held.request_hash.short(4)
        } else if heard.contains("Enter a justification.") {
            "the desk asked for it".to_owned()
        } else if heard.contains("yes or no") {
            "yes".to_owned()
        } else if heard.contains("the word understood") {
            "understood".to_owned()
        } else {
            "a long enough justification, reason: abuse, confirmed.".to_owned()
        };
        heard = listener.types(&[&answer]).0;
        steps += 1;
        assert!(steps < 12, "{heard}");
    }
    let (output, effects) = listener.types(&["user.bann"]);
    assert!(output.contains("That does not match"), "{output}");
    assert_eq!(effects.len(), 1, "it is recorded");
    listener.hears(&["user.ban"], &["Type pass to let"]);
    let (_, effects) = listener.types(&["pass"]);
    let [LineEffect::Decide(decide)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(decide.method, "console+challenge+action");
}

#[test]
fn a_denial_needs_a_reason_and_the_deciding_word() {
    let mut listener = LineConsoleTester::new(busy());
    listener.hears(&["deny c-121"], &["Enter the reason for denying c-121."]);
    listener.hears(&[""], &["A reason is required."]);
    listener.hears(
        &["<<", "wrong tenant,", "twice", "."],
        &["Type deny to deny c-121"],
    );
    listener.leaves_held("no");
    listener.hears(&["deny c-121", "wrong tenant"], &["Type deny to deny"]);
    let (_, effects) = listener.types(&["deny"]);
    let [LineEffect::Decide(decide)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    let reason = "wrong tenant".to_owned();
    assert_eq!(decide.ruling, Ruling::Deny { reason });
    let refused = OperatorReply::Refused(DecisionRefusal::RequestChanged);
    listener
        .line_console
        .on_reply(&decide.gate, &refused, listener.now);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("c-121 was not decided")
    );
}

#[test]
fn a_changed_or_ended_request_cancels_the_input_and_arrivals_do_not() {
    let mut listener = LineConsoleTester::new(snapshot([ticket_delete()]));
    listener.types(&["pass c-121"]);
    // Another request arrives: the console does not announce it while a question is open.
    listener.line_console.on_snapshot(
        Arc::new(snapshot([ticket_delete(), user_ban()])),
        listener.now,
    );
    assert_eq!(listener.line_console.take_output(), "");
    listener.hears(&["/back"], &["The request stays held.", "New requests: 1."]);
    listener.types(&["pass c-121"]);
    let mut changed = with_params(ticket_delete(), json!({"ticket_ids": [1]}));
    changed.request_hash = crate::base::digest::Digest::of("other");
    listener
        .line_console
        .on_snapshot(Arc::new(snapshot([changed])), listener.now);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("c-121 has changed. Your input was discarded.")
    );
    listener
        .line_console
        .on_snapshot(Arc::new(snapshot([ticket_delete()])), listener.now);
    listener.types(&["deny c-121", "because"]);
    let mut over = snapshot([]);
    over.decided = vec![Arc::new(decided(
        "c-121",
        "14:05:21",
        HeldOutcome::Expired,
        None,
    ))];
    listener
        .line_console
        .on_snapshot(Arc::new(over), listener.now);
    let output = listener.line_console.take_output();
    assert!(
        output.contains("c-121 is no longer held. c-121 at 14:05:21"),
        "{output}"
    );
    listener.hears(&["deny"], &["Name a request"]);
    // Without an open question an arrival is announced with a bell.
    listener
        .line_console
        .on_snapshot(Arc::new(snapshot([user_ban()])), listener.now);
    let output = listener.line_console.take_output();
    assert!(
        output.starts_with("\u{7}\nNew: c-118: critical risk"),
        "{output}"
    );
}

#[test]
fn a_line_console_that_is_read_only_or_cannot_record_decides_nothing() {
    let mut picture = busy();
    picture.access = ConsoleAccess::ReadOnly;
    let mut listener = LineConsoleTester::new(picture);
    for line in ["pass c-121", "deny c-121"] {
        listener.hears(&[line], &["This console is read-only"]);
    }
    let mut picture = busy();
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-1".parse().unwrap(),
        what: "event 3: the hash differs".to_owned(),
        mark: crate::base::digest::Digest::of("break"),
    };
    LineConsoleTester::new(picture.clone())
        .hears(&["pass c-121"], &["Deciding is disabled. CHAIN BROKEN"]);
    picture.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    LineConsoleTester::new(picture.clone()).hears(&["pass c-121"], &["RECORDING STOPPED"]);
    // Recording may also stop while the operator answers.
    let mut listener = LineConsoleTester::new(busy());
    let lines = answers(&ticket_delete());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    listener.hears(&lines, &["Type pass to let"]);
    listener
        .line_console
        .on_snapshot(Arc::new(picture), listener.now);
    listener.hears(&["pass"], &["Deciding is disabled."]);
}

#[test]
fn hostile_and_long_requests_are_printed_whole_and_escaped() {
    let lines: Vec<_> = (0..100).map(|n| format!("line {n}\u{202e}")).collect();
    let params = json!({"text": "a\u{1b}[2Jb", "lines": lines});
    let mut listener = LineConsoleTester::new(snapshot([with_params(ticket_delete(), params)]));
    let (output, _) = listener.types(&["pass c-121"]);
    assert!(
        output.contains("more lines. Press Enter to print them"),
        "{output}"
    );
    let mut all = output;
    // Input typed too early is not an answer.
    while !all.contains("Question 1 of") {
        all += &listener.types(&["understood"]).0;
    }
    assert!(all.contains("line 99\\u{202e}"));
    assert!(!all.contains(['\u{1b}', '\u{202e}']));
    assert!(all.contains("hidden"), "{all}");
}

#[test]
fn a_failed_or_stalled_store_is_announced_at_once_and_repeated_everywhere() {
    let poisoned = StoreState::Poisoned {
        what: "the disk is full".to_owned(),
    };
    let stalled = StoreState::Stalled {
        what: "the disk hangs".to_owned(),
    };
    for (state, what) in [
        (poisoned.clone(), "the disk is full"),
        (stalled, "the disk hangs"),
    ] {
        let mut failed = busy();
        failed.store = state.clone();
        for lines in [&[][..], &["pass c-121"]] {
            let mut listener = LineConsoleTester::new(busy());
            listener.types(lines);
            listener
                .line_console
                .on_snapshot(Arc::new(failed.clone()), listener.now);
            let output = listener.line_console.take_output();
            assert!(
                output.contains(&format!("\u{7}\nNOT RECORDING: {what}")),
                "{output}"
            );
            // Announced only once.
            listener
                .line_console
                .on_snapshot(Arc::new(failed.clone()), listener.now);
            let output = listener.line_console.take_output();
            assert!(!output.contains("NOT RECORDING: "), "{output}");
        }
        let mut listener = LineConsoleTester::new(busy());
        listener
            .line_console
            .on_snapshot(Arc::new(failed.clone()), listener.now);
        listener.hears(
            &["list"],
            &[&format!("NOT RECORDING: {what}"), "NOT RECORDING> "],
        );
        let gone = listener
            .types(&["list"])
            .0
            .contains("their agents were denied");
        assert_eq!(gone, state == poisoned);
        listener.line_console.on_verified(&Ok(VerificationReport {
            log: None,
            chains: Vec::new(),
        }));
        let output = listener.line_console.take_output();
        assert!(
            output.contains("NOT RECORDING: this check does not cover"),
            "{output}"
        );
        assert!(!output.contains("Record verified"), "{output}");
        listener
            .line_console
            .on_snapshot(Arc::new(busy()), listener.now);
        let output = listener.line_console.take_output();
        assert!(
            output.contains("Recording resumed") && output.ends_with("\n> "),
            "{output}"
        );
    }
}
