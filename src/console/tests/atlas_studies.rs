//! Computations on the files: differences, tests, rehearsal of past requests.

use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::archive::Archive;
use super::fixture::{idle, now};
use super::sample_atlases::WORDS;
use super::steward::{SIZES, found, newer, stage, weaker};
use crate::console::atlas_study::{Study, StudySummary};
use crate::console::driver::record_reader::QuitFlag;
use crate::console::driver::study::{differences, rehearse, test_result};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::{FailedScenarioStep, ScenarioReport};

#[test]
fn the_difference_is_shown_line_by_line() {
    for (name, size) in SIZES {
        let mut stage = stage(idle(), size);
        stage.press(KeyCode::Char('='));
        stage.shows("files are unchanged");
        found(&mut stage, newer(&weaker()));
        let asked = stage.press(KeyCode::Char('='));
        let [ConsoleRequest::Study(ticket, Study::Differ(texts))] = asked.as_slice() else {
            panic!("{asked:?}")
        };
        stage.message(ConsoleMessage::Studied(*ticket, Ok(differences(texts))));
        stage.shows("@@ line 8 of the file");
        assert_snapshot!(format!("difference_{name}"), stage.text());
        stage.press(KeyCode::Esc);
        assert_eq!(stage.app.layers.len(), 0);
    }
}

#[test]
fn the_test_page_shows_passed_tests_and_the_location_of_failures() {
    let mut stage = stage(idle(), (120, 36));
    let asked = stage.press(KeyCode::Char('T'));
    let [ConsoleRequest::Study(ticket, Study::Test(files))] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(files.len(), 2);
    stage.shows("working ...");
    let failed = FailedScenarioStep {
        line: Some(22),
        mismatch: "step 3, request s-1 x: wanted held at high-risk-gate, actual allowed\u{1b}"
            .to_owned(),
    };
    let trials = [
        ScenarioReport {
            file: "/etc/cra/tests/delete.yaml".into(),
            steps: 12,
            failed: Vec::new(),
        },
        ScenarioReport {
            file: "/etc/cra/tests/risk.yaml".into(),
            steps: 4,
            failed: vec![failed],
        },
    ];
    stage.message(ConsoleMessage::Studied(*ticket, test_result(&trials)));
    stage.shows("line 22: step 3");
    assert_snapshot!("tests", stage.picture());
    smaller("tests", &mut stage);
    stage.press(KeyCode::Esc);
    stage.shows("1 of 2 tests pass");
    assert!(test_result(&[]).is_err());
}

#[test]
fn the_rehearsal_evaluates_past_requests_and_lists_only_changes() {
    let mut archive = Archive::default();
    let attempted = |action: &str, amount: u64| json!({ "action_type": action, "action_params": { "amount": amount } });
    archive.add(
        "s-12",
        "triage-bot",
        &[
            (
                0,
                "session_started",
                None,
                json!({ "agent_type": "triage-bot" }),
            ),
            (1, "action_attempted", None, attempted("payment.send", 10)),
            (2, "action_attempted", None, attempted("payment.send", 5000)),
            (3, "action_attempted", None, attempted("disk.wipe", 1)),
        ],
    );
    let mut stage = stage(idle(), (120, 36));
    found(&mut stage, newer(&WORDS.replace("gt: 1000", "gt: 100000")));
    let asked = stage.press(KeyCode::Char('R'));
    let [ConsoleRequest::Study(ticket, Study::Rehearse(load))] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    let live = Arc::clone(&stage.app.snapshot.loaded);
    let sessions = archive.sessions();
    let sets = (&*live, &*load.atlases);
    let told = rehearse(&archive, &sessions, sets, now(), &QuitFlag::default()).unwrap();
    assert_eq!(told.summary, Some(StudySummary::Rehearsal(1, 3)));
    stage.message(ConsoleMessage::Studied(*ticket, Ok(told)));
    stage.shows("s-12#2 payment.send");
    stage.shows("loaded  HELD at large");
    stage.hides("disk.wipe");
    assert_snapshot!("past", stage.text());
    smaller("past", &mut stage);
    stage.press(KeyCode::Esc);
    stage.shows("1 of the last 3 actions would differ");
    // A cancelled rehearsal ends early.
    let left = QuitFlag::default();
    left.set();
    assert!(rehearse(&archive, &sessions, sets, now(), &left).is_err());
}

/// Checks one page at smaller sizes.
fn smaller(name: &str, stage: &mut super::test_console::TestConsole) {
    for (width, height) in [(80, 24), (60, 18)] {
        stage.resize(width, height);
        assert_snapshot!(format!("{name}_{width}"), stage.text());
    }
    stage.resize(120, 36);
}
