//! The console as measurements drive it: a picture in, a frame painted into memory. Not for use.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::app::App;
use super::layer::Repaint;
use super::theme::Look;
use crate::base::clock::Timestamp;
use crate::runtime::snapshot::Snapshot;

/// A console that paints into memory.
#[derive(Debug)]
pub struct Measured {
    app: App,
    terminal: Terminal<TestBackend>,
    now: Timestamp,
}

impl Measured {
    /// A console of 120 by 36 cells.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>, now: Timestamp) -> Option<Self> {
        let area = Rect::new(0, 0, 120, 36);
        let terminal = Terminal::new(TestBackend::new(area.width, area.height)).ok()?;
        let app = App::new(Look::default(), snapshot, area);
        Some(Self { app, terminal, now })
    }

    /// Paints one frame.
    pub fn paint(&mut self) {
        let (app, now) = (&self.app, self.now);
        // Memory does not fail.
        let Ok(painted) = self.terminal.draw(|frame| app.draw(frame, now));
        let area = painted.area;
        let _: Repaint = self.app.on_drawn(area, self.now);
    }

    /// Presses a key.
    pub fn press(&mut self, code: KeyCode) {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.app.on_event(&Event::Key(key), self.now);
    }

    /// Takes in a newer picture.
    pub fn replace(&mut self, snapshot: Arc<Snapshot>) {
        self.app.on_snapshot(snapshot);
    }
}
