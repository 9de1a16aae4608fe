//! Header, help, leaving, and terminals that are too small.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, idle};
use super::stage::Stage;
use crate::console::request::Request;

#[test]
fn help() {
    let mut stage = Stage::new(busy(), (120, 36));
    stage.press(KeyCode::Char('?'));
    assert_snapshot!(stage.picture());
}

#[test]
fn help_is_searched_by_typing() {
    let mut stage = Stage::new(busy(), (80, 24));
    stage.press(KeyCode::Char('?'));
    stage.type_text("reason");
    assert_snapshot!(stage.text());
    stage.press(KeyCode::Esc);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn too_small() {
    let mut stage = Stage::new(busy(), (50, 12));
    assert_snapshot!(stage.picture());
    assert_eq!(stage.press(KeyCode::Enter), []);
    assert_eq!(stage.app.layers.len(), 0);
    assert_eq!(stage.press(KeyCode::Char('q')), [Request::Quit]);
}

#[test]
fn a_dialog_is_dead_while_the_terminal_is_too_small() {
    let mut stage = Stage::new(busy(), (120, 36));
    stage.open();
    stage.resize(50, 12);
    stage.shows("needs 60x18, is 50x12");
    assert_eq!(stage.type_text("q"), []);
    stage.press(KeyCode::Tab);
    stage.resize(120, 36);
    stage.shows("> Q1");
}

#[test]
fn leaving_asks_while_requests_are_held() {
    let mut stage = Stage::new(busy(), (80, 24));
    assert_eq!(stage.press(KeyCode::Char('q')), []);
    assert_snapshot!(stage.text());
    assert_eq!(stage.press(KeyCode::Enter), [], "the focus starts on Stay");
    assert_eq!(stage.app.layers.len(), 0);
    stage.press(KeyCode::Char('q'));
    stage.press(KeyCode::Right);
    assert_eq!(stage.press(KeyCode::Enter), [Request::Quit]);
}

#[test]
fn leaving_is_quick_when_nothing_is_held() {
    let mut stage = Stage::new(idle(), (80, 24));
    assert_eq!(stage.press(KeyCode::Esc), [], "Esc never leaves");
    assert_eq!(stage.press(KeyCode::Char('q')), [Request::Quit]);
}
