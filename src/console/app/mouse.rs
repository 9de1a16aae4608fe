//! Mouse: a click selects, the wheel scrolls. Neither opens, presses or decides anything.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::App;
use crate::base::clock::Timestamp;
use crate::console::chrome;
use crate::console::keymap::{KeyAction, Motion};
use crate::console::request::{ConsoleRequest, MouseOwner};
use crate::console::theme::Meaning;

/// Rows scrolled per notch of the wheel.
const NOTCH: usize = 3;

impl App {
    /// Sets the initial owner of the mouse: the terminal or the console.
    pub(crate) fn set_mouse(&mut self, mouse: MouseOwner) {
        self.mouse = mouse;
    }

    /// Captures the mouse for the console, or releases it to the terminal.
    pub(super) fn toggle_mouse(&mut self) -> Vec<ConsoleRequest> {
        let (mouse, words) = match self.mouse {
            MouseOwner::Terminal => (MouseOwner::Console, "mouse on: F2 turns it off"),
            MouseOwner::Console => (MouseOwner::Terminal, "mouse off"),
        };
        self.mouse = mouse;
        self.notice = Some((Meaning::Text, words.to_owned()));
        vec![ConsoleRequest::Mouse(mouse)]
    }

    /// Handles a mouse event.
    pub(super) fn on_mouse(&mut self, event: MouseEvent, now: Timestamp) -> Vec<ConsoleRequest> {
        if self.is_too_small() {
            return Vec::new();
        }
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) if self.layers.is_empty() => {
                self.handle_click(Position::new(event.column, event.row), now)
            }
            MouseEventKind::ScrollUp => self.scroll_by_wheel(Motion::Up, now),
            MouseEventKind::ScrollDown => self.scroll_by_wheel(Motion::Down, now),
            _ => Vec::new(),
        }
    }

    fn handle_click(&mut self, at: Position, now: Timestamp) -> Vec<ConsoleRequest> {
        if let Some(screen) = chrome::tab_at(self, self.size, at) {
            return self.act(KeyAction::Show(screen), now);
        }
        let content = chrome::content(self, self.size);
        let ((), requests) =
            self.call_screen(|screen, context| screen.on_click(content, at, context));
        requests
    }

    fn scroll_by_wheel(&mut self, motion: Motion, now: Timestamp) -> Vec<ConsoleRequest> {
        let mut requests = Vec::new();
        for _ in 0..NOTCH {
            if let Some(layer) = self.layers.last_mut() {
                layer.on_wheel(motion, now);
            } else {
                let ((), sent) =
                    self.call_screen(|screen, context| screen.on_wheel(motion, now, context));
                requests.extend(sent);
            }
        }
        requests
    }
}
