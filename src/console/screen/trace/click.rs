//! Mouse clicks on the record screen. A click focuses a pane and selects a row. It opens nothing.

use ratatui::layout::{Position, Rect};

use super::view::click::{Clicked, clicked};
use super::{Pane, Trace};
use crate::console::request::Request;

impl Trace {
    /// Handles a click on a screen that is painted in `area`.
    pub(crate) fn click(&mut self, area: Rect, at: Position) -> Vec<Request> {
        if self.is_typing() {
            return Vec::new();
        }
        match clicked(self, area, at) {
            Some(Clicked::Session(row)) => {
                self.selected = self
                    .sessions
                    .get(row)
                    .map(|recorded| recorded.session.clone());
            }
            Some(Clicked::Row(row)) => {
                self.pane = Pane::Spans;
                if let Some(opened) = &mut self.opened {
                    opened.choose(row);
                }
            }
            Some(Clicked::Spans) => self.pane = Pane::Spans,
            Some(Clicked::Event) => self.pane = Pane::Event,
            None => return Vec::new(),
        }
        self.settle()
    }
}
