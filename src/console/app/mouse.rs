//! Mouse: a click selects, the wheel scrolls. Neither opens, presses or decides anything.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::console::chrome;
use crate::console::keymap::{KeyAction, Motion};
use crate::console::request::{ConsoleRequest, MouseOwner};
use crate::console::screen::queue::{QueueTarget, place_of};
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
                self.click(Position::new(event.column, event.row), now)
            }
            MouseEventKind::ScrollUp => self.wheel(Motion::Up, now),
            MouseEventKind::ScrollDown => self.wheel(Motion::Down, now),
            _ => Vec::new(),
        }
    }

    fn click(&mut self, at: Position, now: Timestamp) -> Vec<ConsoleRequest> {
        match chrome::tab_at(self, self.size, at) {
            Some(Tab::Queue) => return self.act(KeyAction::ShowQueue, now),
            Some(Tab::Trace) => return self.act(KeyAction::ShowTrace, now),
            Some(Tab::Threads) => return self.act(KeyAction::ShowThreads, now),
            Some(Tab::Atlas) => return self.act(KeyAction::ShowAtlas, now),
            None => {}
        }
        if self.tab == Tab::Queue && !self.queue.is_typing() {
            let content = chrome::content(self, self.size);
            if let Some(QueueTarget::Row(row)) = place_of(&self.queue, content, Some(at)) {
                self.queue.choose(row);
                return self.request_last_event();
            }
        }
        if self.tab == Tab::Threads {
            let content = chrome::content(self, self.size);
            self.threads.click(content, at);
        }
        if self.tab == Tab::Trace {
            let content = chrome::content(self, self.size);
            return self.trace.click(content, at);
        }
        Vec::new()
    }

    fn wheel(&mut self, motion: Motion, now: Timestamp) -> Vec<ConsoleRequest> {
        let action = match motion {
            Motion::Up => KeyAction::Up,
            Motion::Down | Motion::First | Motion::Last | Motion::PageUp | Motion::PageDown => {
                KeyAction::Down
            }
        };
        let mut requests = Vec::new();
        for _ in 0..NOTCH {
            match self.layers.last_mut() {
                Some(layer) => layer.on_wheel(motion, now),
                None => requests.extend(self.act(action, now)),
            }
        }
        requests
    }
}
