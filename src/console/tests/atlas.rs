//! Tests of the Atlas screen: parts, evaluations, problems.

use std::fmt::Write as _;

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};
use serde_json::json;

use super::fixture::{busy, idle};
use super::sample_atlases::{WORDS, account, evaluated, request, studied};
use super::test_console::TestConsole;
use crate::atlas::load_str;
use crate::console::request::{ConsoleMessage, ConsoleRequest, Ticket};
use crate::console::theme::{Appearance, ColourMode, Glyphs};
use crate::engine::explanation::{ExplainQuestion, ExplainedSession};
use crate::runtime::WatchSetting;
use crate::runtime::snapshot::EvaluationOutcome;

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);
const TINY: (u16, u16) = (60, 18);
fn stage(size: (u16, u16)) -> TestConsole {
    let mut stage = TestConsole::new(studied(idle()), size);
    stage.press(KeyCode::Char('4'));
    stage
}

fn plain() -> Appearance {
    Appearance {
        glyphs: Glyphs::Ascii,
        colour: ColourMode::Plain,
        ..Appearance::default()
    }
}

#[test]
fn wide() {
    let mut stage = stage(WIDE);
    stage.presses(KeyCode::Down, 3);
    assert_snapshot!(stage.picture());
}

#[test]
fn stacked_at_80_by_24() {
    let mut stage = stage(SMALL);
    stage.presses(KeyCode::Down, 3);
    assert_snapshot!(stage.text());
    stage.press(KeyCode::Tab);
    assert_snapshot!("stacked_session", stage.text());
    stage.press(KeyCode::Tab);
    assert_snapshot!("stacked_stream", stage.text());
    stage.press(KeyCode::Tab);
    assert_snapshot!("stacked_problems", stage.text());
}

#[test]
fn one_pane_at_60_by_18() {
    let mut stage = stage(TINY);
    stage.presses(KeyCode::Down, 3);
    assert_snapshot!(stage.text());
    stage.press(KeyCode::Enter);
    assert_snapshot!("one_pane_chosen", stage.text());
    stage.press(KeyCode::Esc);
    stage.presses(KeyCode::Tab, 2);
    assert_snapshot!("one_pane_stream", stage.text());
}

#[test]
fn no_atlas() {
    for (name, size) in [
        ("no_atlas", WIDE),
        ("no_atlas_80", SMALL),
        ("no_atlas_60", TINY),
    ] {
        let mut stage = TestConsole::new(idle(), size);
        stage.press(KeyCode::Char('4'));
        assert_snapshot!(name, stage.text());
    }
}

#[test]
fn plain_characters_without_colour() {
    let mut stage = TestConsole::with_look(studied(idle()), SMALL, plain());
    stage.press(KeyCode::Char('4'));
    stage.presses(KeyCode::Tab, 2);
    assert!(stage.text().is_ascii(), "{}", stage.text());
    assert_snapshot!(stage.picture());
}

#[test]
fn the_details_describe_a_policy_a_capability_a_context_and_an_action() {
    let mut stage = stage(WIDE);
    for (steps, texts) in [
        (7, ["requires approval", "require-admin-approval"]),
        (
            3,
            ["starts locked", "locked, until a checkpoint unlocks it"],
        ),
        (
            2,
            [
                "context, priority",
                "on request, or when a checkpoint names it",
            ],
        ),
        (3, ["action", "press x to test this action"]),
    ] {
        stage.presses(KeyCode::Down, steps);
        for text in texts {
            stage.shows(text);
        }
    }
}

#[test]
fn folded_parts_are_hidden_and_unfolding_shows_them_again() {
    let mut stage = stage(WIDE);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char('h'));
    stage.hides("delete-confirm  ");
    stage.shows("+ checkpoints");
    stage.press(KeyCode::Enter);
    stage.shows("delete-confirm  ");
    stage.press(KeyCode::Char('z'));
    stage.shows("+ actions");
    stage.press(KeyCode::Char('z'));
    stage.shows("- policies");
}

#[test]
fn the_selected_evaluation_stays_selected_while_new_ones_arrive() {
    let mut stage = stage(WIDE);
    stage.presses(KeyCode::Tab, 2);
    stage.shows("live, newest first");
    stage.shows("marks the deciding rule");
    stage.press(KeyCode::Down);
    stage.shows("params.amount gt 1000,");
    stage.shows("actual 750: does not hold");
    assert_snapshot!(stage.text());
    let mut next = studied(idle());
    let newest = evaluated(
        6,
        &request("ticket.get", json!({})),
        EvaluationOutcome::Allowed,
    );
    let old = next.watched.evaluations.iter().cloned();
    next.watched.evaluations = std::iter::once(newest).chain(old).collect();
    next.watched.total = 6;
    stage.snapshot(next);
    stage.shows("params.amount gt 1000,");
    stage.shows("actual 750: does not hold");
    stage.shows("paused, +2 newer");
    stage.press(KeyCode::Char('g'));
    stage.shows("live, newest first");
    stage.press(KeyCode::Char('x'));
    stage.shows("Why: 14:02:37 ticket.get");
    stage.press(KeyCode::Esc);
    stage.hides("Why:");
}

#[test]
fn switching_the_session_shows_its_used_limits() {
    let mut stage = stage(WIDE);
    stage.shows("billing-bot s-07");
    stage.shows("few: 1 of 5 in 60 s used");
    stage.press(KeyCode::Char('>'));
    stage.shows("triage-bot s-12");
    stage.presses(KeyCode::Char('<'), 2);
    stage.shows("docs-bot s-15");
}

#[test]
fn the_problem_keys_show_each_problem_with_its_source_line() {
    let mut stage = stage(WIDE);
    let count = stage.app.screens.atlas.problem_count(&stage.app.snapshot);
    stage.shows(&format!("4 Atlas !{count}"));
    stage.press(KeyCode::Char(']'));
    stage.shows("^^^");
    stage.shows("in the loaded Atlas");
    assert_snapshot!(stage.text());
    let first = stage.text();
    stage.press(KeyCode::Char(']'));
    assert_ne!(stage.text(), first);
    stage.press(KeyCode::Char('['));
    assert_eq!(stage.text(), first);
    stage.presses(KeyCode::Char(']'), count);
    assert_eq!(stage.text(), first, "around");
}

#[test]
fn evaluations_are_watched_only_while_the_screen_is_shown() {
    let mut stage = TestConsole::new(idle(), WIDE);
    let opened = stage.press(KeyCode::Char('4'));
    assert_eq!(
        opened.first(),
        Some(&ConsoleRequest::Watch(WatchSetting::On))
    );
    assert_eq!(
        stage.press(KeyCode::Char('1')),
        [ConsoleRequest::Watch(WatchSetting::Off)]
    );
    // The snapshot still watches the evaluations, so the console sends the request again.
    assert_eq!(
        stage.snapshot(studied(idle())),
        [ConsoleRequest::Watch(WatchSetting::Off)]
    );
}

#[test]
fn x_explains_why_a_request_is_held() {
    let mut stage = TestConsole::new(studied(busy()), WIDE);
    stage.press(KeyCode::Down);
    let requests = stage.press(KeyCode::Char('x'));
    let [ConsoleRequest::Explain(ticket, questions)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(
        *questions,
        [ExplainQuestion::Held("c-121".parse().unwrap())]
    );
    stage.shows("evaluating ...");
    stage.message(ConsoleMessage::Explained(
        *ticket,
        vec![Ok(Box::new(account()))],
    ));
    stage.shows("marks the deciding rule");
    assert_snapshot!(stage.picture());
    stage.press(KeyCode::Enter);
    stage.shows("Why: c-121");
    stage.resize(80, 24);
    assert_snapshot!("why_80", stage.text());
    stage.resize(60, 18);
    assert_snapshot!("why_60", stage.text());
    stage.press(KeyCode::Esc);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn the_dialog_explains_why_a_request_is_held_and_decides_nothing() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    let requests = stage.press(KeyCode::F(7));
    assert!(
        matches!(requests.as_slice(), [ConsoleRequest::Explain(..)]),
        "{requests:?}"
    );
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::F(6));
    let requests = stage.press(KeyCode::Char('x'));
    assert!(
        matches!(requests.as_slice(), [ConsoleRequest::Explain(..)]),
        "{requests:?}"
    );
    stage.message(ConsoleMessage::Explained(
        Ticket(99, 0),
        vec![Ok(Box::new(account()))],
    ));
    stage.shows("evaluating ...");
    stage.press(KeyCode::Esc);
    assert_eq!(stage.app.layers.len(), 1, "the dialog is still there");
}

#[test]
fn what_if_evaluates_every_change_with_one_request_at_a_time() {
    let mut stage = stage(WIDE);
    assert_eq!(stage.press(KeyCode::Char('i')), []);
    stage.shows("Type an action or an input.");
    assert_snapshot!(stage.text());
    let requests = stage.type_text("ticket.delete");
    let [ConsoleRequest::Explain(ticket, questions)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert!(matches!(&questions[0], ExplainQuestion::Action { action, .. } if action == "t"));
    // Changes typed meanwhile are evaluated when the response arrives.
    let again = stage.message(ConsoleMessage::Explained(
        *ticket,
        vec![Ok(Box::new(account()))],
    ));
    let [ConsoleRequest::Explain(ticket, questions)] = again.as_slice() else {
        panic!("{again:?}");
    };
    let asker = ExplainedSession::Session("s-07".parse().unwrap());
    let wanted = ExplainQuestion::Action {
        action: "ticket.delete".to_owned(),
        params: json!({}),
        asker,
    };
    assert_eq!(*questions, [wanted]);
    assert_eq!(
        stage.message(ConsoleMessage::Explained(
            *ticket,
            vec![Ok(Box::new(account()))]
        )),
        []
    );
    stage.shows("marks the deciding rule");
    assert_snapshot!("what_if_answered", stage.text());
    stage.resize(80, 24);
    assert_snapshot!("what_if_80", stage.text());
    stage.resize(60, 18);
    assert_snapshot!("what_if_60", stage.text());
}

#[test]
fn what_if_reports_the_location_of_an_error_and_accepts_a_hypothetical_agent() {
    let mut stage = stage(WIDE);
    stage.press(KeyCode::Char('i'));
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Backspace);
    stage.event(&Event::Paste("\n  \"a\": 1,\n".to_owned()));
    stage.shows("params: line 3, column");
    stage.presses(KeyCode::Tab, 2);
    stage.press(KeyCode::Left);
    stage.shows("simulated, start gates passed");
    stage.press(KeyCode::Tab);
    stage.type_text("x");
    stage.presses(KeyCode::Tab, 3);
    let requests = stage.event(&Event::Paste("refund\u{202e}".to_owned()));
    let [ConsoleRequest::Explain(_, questions)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    let [
        ExplainQuestion::Input {
            text,
            asker: ExplainedSession::Imagined(who),
        },
    ] = questions.as_slice()
    else {
        panic!("{questions:?}");
    };
    assert_eq!(
        (text.as_str(), who.agent.as_deref()),
        ("refund", Some("agentx"))
    );
}

#[test]
fn atlas_text_cannot_break_the_screen() {
    let hostile = WORDS.replace("Large payments", "L\\u202e\\e[2J\\u65e5\\u672c\\u8a9e");
    let hostile = hostile
        .replace("name: L", "name: \"L")
        .replace("8a9e", "8a9e\"");
    let loaded = vec![load_str("a\u{1b}.yaml", &hostile).unwrap().atlas];
    let mut snapshot = studied(idle());
    snapshot.loaded = loaded.into();
    let mut stage = TestConsole::new(snapshot, WIDE);
    stage.press(KeyCode::Char('4'));
    stage.presses(KeyCode::Down, 2);
    stage.shows("L\\u{202e}\\u{1b}[2J");
    for row in stage.text().lines().filter(|row| row.starts_with('│')) {
        // Panels to the left may end in that row.
        assert!(row.ends_with(['│', '╮', '╯']), "{row}");
    }
}

#[test]
fn the_tree_scrolls_through_a_thousand_checkpoints() {
    let mut text = WORDS.split("checkpoints:").next().unwrap().to_owned();
    text.push_str("checkpoints:\n");
    for number in 0..1000 {
        let _ = write!(
            text,
            "  - checkpoint_id: c{number:04}\n    trigger: {{ type: action_pre, patterns: [\"a{number}.*\"] }}\n"
        );
    }
    let mut snapshot = studied(idle());
    snapshot.loaded = vec![load_str("many.yaml", &text).unwrap().atlas].into();
    let mut stage = TestConsole::new(snapshot, WIDE);
    stage.press(KeyCode::Char('4'));
    stage.press(KeyCode::Char('G'));
    stage.shows("> ");
    stage.shows("c0999");
    stage.hides("c0500");
    stage.shows("many.yaml:2005-2006");
    stage.presses(KeyCode::PageUp, 50);
    stage.shows("c0499");
}

#[test]
fn x_explains_an_event_of_the_record() {
    use super::archive::Archive;
    let mut archive = Archive::default();
    let attempted =
        json!({ "action_type": "ticket.delete", "action_params": { "ticket_id": "1" } });
    let triggered = json!({ "checkpoint_id": "high-risk-gate", "trigger_data": { "action_id": "ticket.delete" } });
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
            (1, "action_attempted", None, attempted),
            (2, "checkpoint_triggered", None, triggered),
        ],
    );
    let mut stage = TestConsole::new(busy(), WIDE);
    archive.open(&mut stage, "s-12");
    assert_eq!(stage.press(KeyCode::Char('x')), []);
    stage.shows("this event has no request or checkpoint");
    let asked = |stage: &mut TestConsole| match stage.press(KeyCode::Char('x')).as_slice() {
        [ConsoleRequest::Explain(_, questions)] => questions[0].clone(),
        other => panic!("{other:?}"),
    };
    archive.press(&mut stage, KeyCode::Char('.'));
    let again = ExplainQuestion::Action {
        action: "ticket.delete".to_owned(),
        params: json!({ "ticket_id": "1" }),
        asker: ExplainedSession::Session("s-12".parse().unwrap()),
    };
    assert_eq!(asked(&mut stage), again);
    stage.shows("Evaluated with the loaded Atlases, in the session's current state.");
    stage.press(KeyCode::Esc);
    // A request that is still held is explained as held.
    archive.press(&mut stage, KeyCode::Char('.'));
    assert_eq!(
        asked(&mut stage),
        ExplainQuestion::Held("c-121".parse().unwrap())
    );
}
