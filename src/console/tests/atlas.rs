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
    let mut console = TestConsole::new(studied(idle()), size);
    console.press(KeyCode::Char('4'));
    console
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
    let mut console = stage(WIDE);
    console.presses(KeyCode::Down, 3);
    assert_snapshot!(console.picture());
}

#[test]
fn stacked_at_80_by_24() {
    let mut console = stage(SMALL);
    console.presses(KeyCode::Down, 3);
    assert_snapshot!(console.text());
    console.press(KeyCode::Tab);
    assert_snapshot!("stacked_session", console.text());
    console.press(KeyCode::Tab);
    assert_snapshot!("stacked_stream", console.text());
    console.press(KeyCode::Tab);
    assert_snapshot!("stacked_problems", console.text());
}

#[test]
fn one_pane_at_60_by_18() {
    let mut console = stage(TINY);
    console.presses(KeyCode::Down, 3);
    assert_snapshot!(console.text());
    console.press(KeyCode::Enter);
    assert_snapshot!("one_pane_chosen", console.text());
    console.press(KeyCode::Esc);
    console.presses(KeyCode::Tab, 2);
    assert_snapshot!("one_pane_stream", console.text());
}

#[test]
fn no_atlas() {
    for (name, size) in [
        ("no_atlas", WIDE),
        ("no_atlas_80", SMALL),
        ("no_atlas_60", TINY),
    ] {
        let mut console = TestConsole::new(idle(), size);
        console.press(KeyCode::Char('4'));
        assert_snapshot!(name, console.text());
    }
}

#[test]
fn plain_characters_without_colour() {
    let mut console = TestConsole::with_look(studied(idle()), SMALL, plain());
    console.press(KeyCode::Char('4'));
    console.presses(KeyCode::Tab, 2);
    assert!(console.text().is_ascii(), "{}", console.text());
    assert_snapshot!(console.picture());
}

#[test]
fn the_details_describe_a_policy_a_capability_a_context_and_an_action() {
    let mut console = stage(WIDE);
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
        console.presses(KeyCode::Down, steps);
        for text in texts {
            console.shows(text);
        }
    }
}

#[test]
fn folded_parts_are_hidden_and_unfolding_shows_them_again() {
    let mut console = stage(WIDE);
    console.press(KeyCode::Down);
    console.press(KeyCode::Char('h'));
    console.hides("delete-confirm  ");
    console.shows("+ checkpoints");
    console.press(KeyCode::Enter);
    console.shows("delete-confirm  ");
    console.press(KeyCode::Char('z'));
    console.shows("+ actions");
    console.press(KeyCode::Char('z'));
    console.shows("- policies");
}

#[test]
fn the_selected_evaluation_stays_selected_while_new_ones_arrive() {
    let mut console = stage(WIDE);
    console.presses(KeyCode::Tab, 2);
    console.shows("live, newest first");
    console.shows("marks the deciding rule");
    console.press(KeyCode::Down);
    console.shows("params.amount gt 1000,");
    console.shows("actual 750: does not hold");
    assert_snapshot!(console.text());
    let mut next = studied(idle());
    let newest = evaluated(
        6,
        &request("ticket.get", json!({})),
        EvaluationOutcome::Allowed,
    );
    let old = next.watched.evaluations.iter().cloned();
    next.watched.evaluations = std::iter::once(newest).chain(old).collect();
    next.watched.total = 6;
    console.snapshot(next);
    console.shows("params.amount gt 1000,");
    console.shows("actual 750: does not hold");
    console.shows("paused, +2 newer");
    console.press(KeyCode::Char('g'));
    console.shows("live, newest first");
    console.press(KeyCode::Char('x'));
    console.shows("Why: 14:02:37 ticket.get");
    console.press(KeyCode::Esc);
    console.hides("Why:");
}

#[test]
fn switching_the_session_shows_its_used_limits() {
    let mut console = stage(WIDE);
    console.shows("billing-bot s-07");
    console.shows("few: 1 of 5 in 60 s used");
    console.press(KeyCode::Char('>'));
    console.shows("triage-bot s-12");
    console.presses(KeyCode::Char('<'), 2);
    console.shows("docs-bot s-15");
}

#[test]
fn the_problem_keys_show_each_problem_with_its_source_line() {
    let mut console = stage(WIDE);
    let count = console
        .app
        .screens
        .atlas
        .problem_count(&console.app.snapshot);
    console.shows(&format!("4 Atlas !{count}"));
    console.press(KeyCode::Char(']'));
    console.shows("^^^");
    console.shows("in the loaded Atlas");
    assert_snapshot!(console.text());
    let first = console.text();
    console.press(KeyCode::Char(']'));
    assert_ne!(console.text(), first);
    console.press(KeyCode::Char('['));
    assert_eq!(console.text(), first);
    console.presses(KeyCode::Char(']'), count);
    assert_eq!(console.text(), first, "around");
}

#[test]
fn evaluations_are_watched_only_while_the_screen_is_shown() {
    let mut console = TestConsole::new(idle(), WIDE);
    let opened = console.press(KeyCode::Char('4'));
    assert_eq!(
        opened.first(),
        Some(&ConsoleRequest::Watch(WatchSetting::On))
    );
    assert_eq!(
        console.press(KeyCode::Char('1')),
        [ConsoleRequest::Watch(WatchSetting::Off)]
    );
    // The snapshot still watches the evaluations, so the console sends the request again.
    assert_eq!(
        console.snapshot(studied(idle())),
        [ConsoleRequest::Watch(WatchSetting::Off)]
    );
}

#[test]
fn x_explains_why_a_request_is_held() {
    let mut console = TestConsole::new(studied(busy()), WIDE);
    console.press(KeyCode::Down);
    let requests = console.press(KeyCode::Char('x'));
    let [ConsoleRequest::Explain(ticket, questions)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(
        *questions,
        [ExplainQuestion::Held("c-121".parse().unwrap())]
    );
    console.shows("evaluating ...");
    console.message(ConsoleMessage::Explained(
        *ticket,
        vec![Ok(Box::new(account()))],
    ));
    console.shows("marks the deciding rule");
    assert_snapshot!(console.picture());
    console.press(KeyCode::Enter);
    console.shows("Why: c-121");
    console.resize(80, 24);
    assert_snapshot!("why_80", console.text());
    console.resize(60, 18);
    assert_snapshot!("why_60", console.text());
    console.press(KeyCode::Esc);
    assert_eq!(console.app.layers.len(), 0);
}

#[test]
fn the_dialog_explains_why_a_request_is_held_and_decides_nothing() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    let requests = console.press(KeyCode::F(7));
    assert!(
        matches!(requests.as_slice(), [ConsoleRequest::Explain(..)]),
        "{requests:?}"
    );
    assert_eq!(console.press(KeyCode::Enter), []);
    console.press(KeyCode::Esc);
    console.press(KeyCode::F(6));
    let requests = console.press(KeyCode::Char('x'));
    assert!(
        matches!(requests.as_slice(), [ConsoleRequest::Explain(..)]),
        "{requests:?}"
    );
    console.message(ConsoleMessage::Explained(
        Ticket(99, 0),
        vec![Ok(Box::new(account()))],
    ));
    console.shows("evaluating ...");
    console.press(KeyCode::Esc);
    assert_eq!(console.app.layers.len(), 1, "the dialog is still there");
}

#[test]
fn what_if_evaluates_every_change_with_one_request_at_a_time() {
    let mut console = stage(WIDE);
    assert_eq!(console.press(KeyCode::Char('i')), []);
    console.shows("Type an action or an input.");
    assert_snapshot!(console.text());
    let requests = console.type_text("ticket.delete");
    let [ConsoleRequest::Explain(ticket, questions)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert!(matches!(&questions[0], ExplainQuestion::Action { action, .. } if action == "t"));
    // Changes typed meanwhile are evaluated when the response arrives.
    let again = console.message(ConsoleMessage::Explained(
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
        console.message(ConsoleMessage::Explained(
            *ticket,
            vec![Ok(Box::new(account()))]
        )),
        []
    );
    console.shows("marks the deciding rule");
    assert_snapshot!("what_if_answered", console.text());
    console.resize(80, 24);
    assert_snapshot!("what_if_80", console.text());
    console.resize(60, 18);
    assert_snapshot!("what_if_60", console.text());
}

#[test]
fn what_if_reports_the_location_of_an_error_and_accepts_a_hypothetical_agent() {
    let mut console = stage(WIDE);
    console.press(KeyCode::Char('i'));
    console.press(KeyCode::Tab);
    console.press(KeyCode::Backspace);
    console.event(&Event::Paste("\n  \"a\": 1,\n".to_owned()));
    console.shows("params: line 3, column");
    console.presses(KeyCode::Tab, 2);
    console.press(KeyCode::Left);
    console.shows("simulated, start gates passed");
    console.press(KeyCode::Tab);
    console.type_text("x");
    console.presses(KeyCode::Tab, 3);
    let requests = console.event(&Event::Paste("refund\u{202e}".to_owned()));
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
    let mut console = TestConsole::new(snapshot, WIDE);
    console.press(KeyCode::Char('4'));
    console.presses(KeyCode::Down, 2);
    console.shows("L\\u{202e}\\u{1b}[2J");
    for row in console.text().lines().filter(|row| row.starts_with('│')) {
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
    let mut console = TestConsole::new(snapshot, WIDE);
    console.press(KeyCode::Char('4'));
    console.press(KeyCode::Char('G'));
    console.shows("> ");
    console.shows("c0999");
    console.hides("c0500");
    console.shows("many.yaml:2005-2006");
    console.presses(KeyCode::PageUp, 50);
    console.shows("c0499");
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
    let mut console = TestConsole::new(busy(), WIDE);
    archive.open(&mut console, "s-12");
    assert_eq!(console.press(KeyCode::Char('x')), []);
    console.shows("this event has no request or checkpoint");
    let asked = |console: &mut TestConsole| match console.press(KeyCode::Char('x')).as_slice() {
        [ConsoleRequest::Explain(_, questions)] => questions[0].clone(),
        other => panic!("{other:?}"),
    };
    archive.press(&mut console, KeyCode::Char('.'));
    let again = ExplainQuestion::Action {
        action: "ticket.delete".to_owned(),
        params: json!({ "ticket_id": "1" }),
        asker: ExplainedSession::Session("s-12".parse().unwrap()),
    };
    assert_eq!(asked(&mut console), again);
    console.shows("Evaluated with the loaded Atlases, in the session's current state.");
    console.press(KeyCode::Esc);
    // A request that is still held is explained as held.
    archive.press(&mut console, KeyCode::Char('.'));
    assert_eq!(
        asked(&mut console),
        ExplainQuestion::Held("c-121".parse().unwrap())
    );
}
