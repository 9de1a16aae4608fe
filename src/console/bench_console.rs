//! Console screens without a terminal and a runtime, for benchmarks only.

use std::collections::VecDeque;
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::app::App;
use super::dialog::Repaint;
use super::dialog::gate::{LayoutJob, RequestLayout};
use super::driver::record_reader::read;
use super::request::{ConsoleMessage, ConsoleRequest};
use super::screen::trace::TraceRead;
use super::theme::Appearance;
use crate::base::clock::Timestamp;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::runtime::{RecordReader, RecordedSession};

/// Console that shows one session, painted into memory.
pub struct BenchConsole {
    app: App,
    terminal: Terminal<TestBackend>,
    reading: RecordReader,
    waiting: VecDeque<TraceRead>,
}

impl std::fmt::Debug for BenchConsole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measured").finish_non_exhaustive()
    }
}

impl BenchConsole {
    /// Opens a session. None of its events is read yet.
    #[must_use]
    pub fn open(
        reading: RecordReader,
        session: RecordedSession,
        (width, height): (u16, u16),
    ) -> Self {
        let area = Rect::new(0, 0, width, height);
        let Ok(terminal) = Terminal::new(TestBackend::new(width, height));
        let mut measured = Self {
            app: App::new(
                Appearance::default(),
                Arc::new(RuntimeSnapshot::empty()),
                area,
            ),
            terminal,
            reading,
            waiting: VecDeque::new(),
        };
        measured.press(KeyCode::Char('2'));
        measured.take(ConsoleMessage::Sessions(Ok(vec![session])));
        measured.draw();
        measured.press(KeyCode::Enter);
        measured
    }

    /// Paints a frame, as the driver does.
    pub fn draw(&mut self) {
        let now = Timestamp::from_micros(0);
        let app = &self.app;
        let Ok(painted) = self.terminal.draw(|frame| app.draw(frame, now));
        let area = painted.area;
        let _ = self.app.on_drawn(area, now);
    }

    /// Presses a key.
    pub fn press(&mut self, code: KeyCode) {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        let requests = self
            .app
            .on_event(&Event::Key(key), Timestamp::from_micros(0));
        self.want(requests);
    }

    /// Types a text letter by letter, then Enter.
    pub fn type_line(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
        self.press(KeyCode::Enter);
    }

    /// Answers the next read request. Returns true if there was one.
    pub fn answer(&mut self) -> bool {
        let Some(ask) = self.waiting.pop_front() else {
            return false;
        };
        let result = read(&self.reading, ask);
        self.take(ConsoleMessage::Read(result));
        true
    }

    /// Returns the text on screen.
    #[must_use]
    pub fn text(&self) -> String {
        let cells = self.terminal.backend().buffer().content.iter();
        cells.map(ratatui::buffer::Cell::symbol).collect()
    }

    fn take(&mut self, message: ConsoleMessage) {
        let requests = self.app.on_message(message);
        self.want(requests);
    }

    fn want(&mut self, requests: Vec<ConsoleRequest>) {
        let ask = |request| match request {
            ConsoleRequest::Read(ask) => Some(ask),
            ConsoleRequest::Decide(_)
            | ConsoleRequest::Operate(_)
            | ConsoleRequest::KeepDraft(..)
            | ConsoleRequest::KeepThreadDraft(..)
            | ConsoleRequest::LoadSessions
            | ConsoleRequest::LoadTrail { .. }
            | ConsoleRequest::Edit(_)
            | ConsoleRequest::Copy(_)
            | ConsoleRequest::Mouse(_)
            | ConsoleRequest::Verify(_)
            | ConsoleRequest::LayOut(_)
            | ConsoleRequest::Explain(..)
            | ConsoleRequest::Watch(_)
            | ConsoleRequest::Shadow(_)
            | ConsoleRequest::CheckFiles(_)
            | ConsoleRequest::CheckFolder(_)
            | ConsoleRequest::Load(_)
            | ConsoleRequest::Study(..)
            | ConsoleRequest::EditThread(_)
            | ConsoleRequest::ActOnThread(..)
            | ConsoleRequest::FindEvent(..)
            | ConsoleRequest::Snapshot(..)
            | ConsoleRequest::EditFile(..)
            | ConsoleRequest::Notify(_)
            | ConsoleRequest::Redraw
            | ConsoleRequest::Suspend
            | ConsoleRequest::Quit => None,
        };
        self.waiting.extend(requests.into_iter().filter_map(ask));
    }
}

/// Console that shows the queue, painted into memory.
#[derive(Debug)]
pub struct BenchQueue {
    app: App,
    terminal: Terminal<TestBackend>,
    now: Timestamp,
    wanted: Vec<LayoutJob>,
    laid: Vec<RequestLayout>,
}

impl BenchQueue {
    /// Creates a console of 120 by 36 cells.
    #[must_use]
    pub fn new(snapshot: Arc<RuntimeSnapshot>, now: Timestamp) -> Option<Self> {
        let area = Rect::new(0, 0, 120, 36);
        let terminal = Terminal::new(TestBackend::new(area.width, area.height)).ok()?;
        let app = App::new(Appearance::default(), snapshot, area);
        Some(Self {
            app,
            terminal,
            now,
            wanted: Vec::new(),
            laid: Vec::new(),
        })
    }

    /// Paints one frame.
    pub fn paint(&mut self) {
        let (app, now) = (&self.app, self.now);
        // Painting into memory cannot fail.
        let Ok(painted) = self.terminal.draw(|frame| app.draw(frame, now));
        let area = painted.area;
        let _: Repaint = self.app.on_drawn(area, self.now);
    }

    /// Presses a key.
    pub fn press(&mut self, code: KeyCode) {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        let requests = self.app.on_event(&Event::Key(key), self.now);
        for request in requests {
            if let ConsoleRequest::LayOut(wanted) = request {
                self.wanted.push(wanted);
            }
        }
    }

    /// Computes the requested layouts, which the driver does in the background.
    pub fn lay_out(&mut self) {
        self.laid.extend(self.wanted.drain(..).map(LayoutJob::run));
    }

    /// Passes the computed layouts to the app.
    pub fn apply_layouts(&mut self) {
        for laid in self.laid.drain(..) {
            let _ = self.app.on_message(ConsoleMessage::LaidOut(laid));
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: std::time::Duration) {
        self.now = self.now.plus(span);
        self.paint();
    }

    /// Takes over a newer snapshot.
    pub fn replace(&mut self, snapshot: Arc<RuntimeSnapshot>) {
        self.app.on_snapshot(snapshot);
    }
}
