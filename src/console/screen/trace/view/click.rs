//! Mouse clicks on the record screen. A click focuses a pane and selects a row. It opens nothing.

use ratatui::layout::{Position, Rect};

use super::super::{TracePane, TraceScreen};
use super::{areas, centred_top, sessions};
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

/// Element of the record screen that was clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClickTarget {
    /// Session, by index in the list.
    Session(usize),
    /// Row of the event list, by index among the visible rows.
    Row(u64),
    /// Event list, outside of its rows.
    Spans,
    /// Event pane.
    Event,
}

/// Returns the element at a screen position of a record screen that is painted in `area`.
fn clicked(trace: &TraceScreen, area: Rect, at: Position) -> Option<ClickTarget> {
    let all = areas(trace, area);
    match (trace.pane, &trace.opened) {
        (TracePane::Sessions, _) => {
            let list = sessions::list(trace, area, all.bar.height);
            let line = usize::from(at.y.checked_sub(list.y)?);
            let top = centred_top(
                trace.selected_index(),
                trace.sessions.len(),
                usize::from(list.height),
            );
            let row = top + line;
            let there = list.contains(at) && row < trace.sessions.len();
            there.then_some(ClickTarget::Session(row))
        }
        (TracePane::Spans | TracePane::Event, Some(opened)) => {
            if all.event.contains(at) {
                return Some(ClickTarget::Event);
            }
            if !all.spans.contains(at) {
                return None;
            }
            // Below the top border and the column heads, and above the bottom border.
            let line = at.y.checked_sub(all.spans.y + 2);
            let inside = at.y + 1 < all.spans.bottom();
            let row = line
                .filter(|_| inside)
                .map(|line| opened.top + u64::from(line));
            let row = row.filter(|row| opened.rows().get(*row).is_some());
            Some(row.map_or(ClickTarget::Spans, ClickTarget::Row))
        }
        (TracePane::Spans | TracePane::Event, None) | (TracePane::Compared, _) => None,
    }
}
