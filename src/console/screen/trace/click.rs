//! Mouse clicks on the record screen. A click focuses a pane and selects a row. It opens nothing.

use ratatui::layout::{Position, Rect};

use super::view::click::{ClickTarget, clicked};
use super::{TracePane, TraceScreen};
use crate::console::request::ConsoleRequest;

impl TraceScreen {
    /// Handles a click on a screen that is painted in `area`.
    pub(crate) fn click(&mut self, area: Rect, at: Position) -> Vec<ConsoleRequest> {
        if self.is_typing() {
            return Vec::new();
        }
        match clicked(self, area, at) {
            Some(ClickTarget::Session(row)) => {
                self.selected = self
                    .sessions
                    .get(row)
                    .map(|recorded| recorded.session.clone());
            }
            Some(ClickTarget::Row(row)) => {
                self.pane = TracePane::Spans;
                if let Some(opened) = &mut self.opened {
                    opened.choose(row);
                }
            }
            Some(ClickTarget::Spans) => self.pane = TracePane::Spans,
            Some(ClickTarget::Event) => self.pane = TracePane::Event,
            None => return Vec::new(),
        }
        self.request_missing_data()
    }
}
