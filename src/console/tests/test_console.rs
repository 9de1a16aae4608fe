//! Test harness of the console: an app, a painted screen, and a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::buffer_text;
use crate::base::clock::Timestamp;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::app::App;
use crate::console::dialog::Repaint;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::theme::Appearance;
use crate::engine::command::DecisionRequest;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Test harness of the console.
pub(super) struct TestConsole {
    pub(super) app: App,
    pub(super) now: Timestamp,
    terminal: Terminal<TestBackend>,
}

impl TestConsole {
    /// A console of this size that shows `snapshot`, painted once.
    pub(super) fn new(snapshot: RuntimeSnapshot, size: (u16, u16)) -> Self {
        Self::with_look(snapshot, size, Appearance::default())
    }

    pub(super) fn with_look(
        snapshot: RuntimeSnapshot,
        size: (u16, u16),
        appearance: Appearance,
    ) -> Self {
        let area = Rect::new(0, 0, size.0, size.1);
        let mut console = Self {
            app: App::new(appearance, Arc::new(snapshot), area),
            now: super::fixture::now(),
            terminal: Terminal::new(TestBackend::new(size.0, size.1)).unwrap(),
        };
        console.app.initial_requests();
        console.paint();
        console
    }

    /// Paints like the driver when its queue is empty.
    pub(super) fn paint(&mut self) {
        loop {
            let (app, now) = (&self.app, self.now);
            let area = self
                .terminal
                .draw(|frame| app.draw(frame, now))
                .unwrap()
                .area;
            if self.app.on_drawn(area, self.now) == Repaint::No {
                return;
            }
        }
    }

    /// Presses a key without painting after it.
    pub(super) fn key(&mut self, code: KeyCode) -> Vec<ConsoleRequest> {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.app.on_event(&Event::Key(key), self.now)
    }

    /// Handles an event and paints.
    pub(super) fn event(&mut self, event: &Event) -> Vec<ConsoleRequest> {
        let requests = self.app.on_event(event, self.now);
        self.paint();
        requests
    }

    pub(super) fn press(&mut self, code: KeyCode) -> Vec<ConsoleRequest> {
        self.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    pub(super) fn ctrl(&mut self, letter: char) -> Vec<ConsoleRequest> {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        self.event(&Event::Key(key))
    }

    /// Types a text, letter by letter.
    pub(super) fn type_text(&mut self, text: &str) -> Vec<ConsoleRequest> {
        let requests = text
            .chars()
            .flat_map(|c| self.key(KeyCode::Char(c)))
            .collect();
        self.paint();
        requests
    }

    /// Presses a key several times.
    pub(super) fn presses(&mut self, code: KeyCode, times: usize) -> Vec<ConsoleRequest> {
        (0..times).flat_map(|_| self.press(code)).collect()
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.paint();
    }

    /// Opens the selected request and waits until keys count.
    pub(super) fn open(&mut self) {
        let requests = self.press(KeyCode::Enter);
        for request in &requests {
            if let ConsoleRequest::LayOut(wanted) = request {
                self.message(ConsoleMessage::LaidOut(wanted.clone().run()));
            }
        }
        assert_eq!(decisions(requests), []);
        self.wait(DIALOG_ARMING_TIME);
    }

    /// Opens the request with this id.
    pub(super) fn open_gate(&mut self, id: &str) {
        self.press(KeyCode::Home);
        for _ in 0..100 {
            let held = self.app.screens.queue.selected();
            if held.is_some_and(|held| held.id.as_str() == id) {
                self.open();
                return;
            }
            self.press(KeyCode::Down);
        }
        panic!("{id} is not in the list");
    }

    pub(super) fn snapshot(&mut self, snapshot: RuntimeSnapshot) -> Vec<ConsoleRequest> {
        let requests = self.app.on_snapshot(Arc::new(snapshot));
        self.paint();
        requests
    }

    pub(super) fn message(&mut self, message: ConsoleMessage) -> Vec<ConsoleRequest> {
        let requests = self.app.on_message(message);
        self.paint();
        requests
    }

    pub(super) fn resize(&mut self, width: u16, height: u16) -> Vec<ConsoleRequest> {
        self.terminal.backend_mut().resize(width, height);
        self.event(&Event::Resize(width, height))
    }

    pub(super) fn buffer(&self) -> &Buffer {
        self.terminal.backend().buffer()
    }

    /// Returns the screen as text.
    pub(super) fn text(&self) -> String {
        buffer_text::rows(self.buffer()).join("\n")
    }

    /// Returns the screen with its styles.
    pub(super) fn picture(&self) -> String {
        buffer_text::styled(self.buffer())
    }

    /// Asserts that a text is on the screen.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        assert!(
            self.text().contains(text),
            "`{text}` is not on:\n{}",
            self.text()
        );
    }

    /// Asserts that a text is not on the screen.
    #[track_caller]
    pub(super) fn hides(&self, text: &str) {
        assert!(
            !self.text().contains(text),
            "`{text}` is on:\n{}",
            self.text()
        );
    }
}

/// Returns the decisions among requests.
pub(super) fn decisions(requests: Vec<ConsoleRequest>) -> Vec<DecisionRequest> {
    let decide = |request| match request {
        ConsoleRequest::Decide(decide) => Some(decide),
        _ => None,
    };
    requests.into_iter().filter_map(decide).collect()
}
