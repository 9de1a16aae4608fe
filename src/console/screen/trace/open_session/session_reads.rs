//! Reads for the open session: requested one window at a time, and taken in.

use std::sync::Arc;

use super::super::pages;
use super::super::reads::{FullEvent, TraceRead, TraceReadResult, WindowMatches};
use super::{EventRead, FollowMode, OpenSession, OutlineReading, PendingRead, ShownEvent};

/// Events of the outline read at a time: some tens of milliseconds.
const WINDOW: usize = 4_000;

/// Maximum number of events by which a state is advanced at a time.
const STATE_WINDOW: u64 = 4_000;

/// Maximum number of missing sequence numbers. A session that claims more is not read further.
const MAX_MISSING: u64 = 1 << 20;

/// Rows between the cursor and the edge of the view.
const MARGIN: u64 = 2;

impl OpenSession {
    /// Takes in the response to a read.
    pub(in super::super) fn on_read_result(&mut self, result: TraceReadResult) {
        match result {
            TraceReadResult::Rows { from, rows, .. } => {
                let rows = self.take(rows);
                self.pages.on_read(from, rows.unwrap_or_default());
            }
            TraceReadResult::Event {
                sequence, event, ..
            } => {
                let event = self.take(event).flatten();
                self.show(sequence, event);
            }
            TraceReadResult::Outline { from, part, .. } => {
                if self.reading == OutlineReading::Asked {
                    self.reading = OutlineReading::Idle;
                }
                match self.take(part) {
                    Some((window, state)) if from == self.outline.len() => {
                        self.outline.extend(&window, self.session.events);
                        self.kept.insert(self.outline.len(), &state);
                        self.running = state;
                        if self.outline.tally().missing > MAX_MISSING {
                            self.reading = OutlineReading::Stopped;
                            self.problem = Some("most of this session is missing".to_owned());
                        }
                    }
                    Some(_) => {}
                    None => self.reading = OutlineReading::Stopped,
                }
            }
            TraceReadResult::Fold { to, state, .. } => {
                self.folding = PendingRead::Idle;
                if let Some(state) = self.take(state) {
                    self.kept.set_last_query(to, &state);
                }
            }
            TraceReadResult::Scan { ticket, part, .. } => {
                let part = self.take(part);
                self.on_scanned(ticket, part.as_ref());
            }
            TraceReadResult::Compare { .. } | TraceReadResult::Exported { .. } => {}
        }
    }

    fn on_scanned(&mut self, ticket: u64, part: Option<&WindowMatches>) {
        let total = self.total();
        for scan in [&mut self.filter, &mut self.search].into_iter().flatten() {
            match part {
                _ if scan.ticket != ticket => {}
                Some(found) => scan.on_read(found),
                None => _ = scan.stop(total),
            }
        }
        self.seek_hit();
    }

    /// Unwraps a read result. An error is shown until the next successful read.
    fn take<T>(&mut self, read: Result<T, String>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(problem) => {
                self.problem = Some(problem);
                None
            }
        }
    }

    fn show(&mut self, sequence: u64, event: Option<Box<FullEvent>>) {
        let Some(shown) = self
            .full_event
            .as_mut()
            .filter(|shown| shown.sequence == sequence)
        else {
            return;
        };
        shown.event = match event {
            None => EventRead::Gone,
            Some(full_event) => {
                self.detail.open(&full_event);
                EventRead::Here(full_event)
            }
        };
    }

    /// Moves the cursor and the view into valid positions, and returns the missing reads.
    pub(in super::super) fn request_missing_data(&mut self) -> Vec<TraceRead> {
        if self.follow == FollowMode::Tail {
            let rows = self.rows();
            let last = rows.len().checked_sub(1).and_then(|row| rows.get(row));
            self.place = last.unwrap_or(0);
        }
        let rows = self.rows();
        let row = rows.row_of(self.place);
        let (place, count) = (rows.get(row), rows.len());
        // A filter that has not reached the cursor yet gives no information about it.
        let total = self.total();
        let ahead = self
            .filter
            .as_ref()
            .is_some_and(|scan| scan.is_running(total) && scan.seen() <= self.place);
        if !ahead {
            self.place = place.unwrap_or(self.place);
        }
        let margin = MARGIN.min(self.visible.saturating_sub(1) / 2);
        let lowest = (row + margin + 1).saturating_sub(self.visible);
        let highest = row.saturating_sub(margin);
        let most = count.saturating_sub(self.visible);
        self.top = self.top.clamp(lowest.min(highest), highest).min(most);
        self.wanted()
    }

    fn wanted(&mut self) -> Vec<TraceRead> {
        let (session, total) = (self.id().clone(), self.total());
        let view = self.top..self.top.saturating_add(self.visible.max(40));
        let rows = self.rows();
        let view: Vec<u64> = view.map_while(|row| rows.get(row)).collect();
        let mut asks: Vec<TraceRead> = Vec::new();
        for from in self.pages.missing_pages(view.into_iter(), total) {
            asks.push(TraceRead::Rows {
                session: session.clone(),
                from,
                limit: pages::PAGE_ROWS,
            });
        }
        if total > 0
            && self
                .full_event
                .as_ref()
                .is_none_or(|shown| shown.sequence != self.place)
        {
            self.full_event = Some(ShownEvent {
                sequence: self.place,
                event: EventRead::UnderWay,
            });
            asks.push(TraceRead::Event {
                session: session.clone(),
                sequence: self.place,
            });
        }
        for scan in [&mut self.filter, &mut self.search].into_iter().flatten() {
            asks.extend(scan.next_read(&session, total));
        }
        asks.extend(self.next_outline_read());
        asks.extend(self.next_state_read());
        asks
    }

    fn next_outline_read(&mut self) -> Option<TraceRead> {
        if self.reading != OutlineReading::Idle || !self.is_reading() {
            return None;
        }
        self.reading = OutlineReading::Asked;
        Some(TraceRead::Outline {
            session: self.id().clone(),
            from: self.outline.len(),
            limit: WINDOW,
            state: Arc::clone(&self.running),
        })
    }

    fn next_state_read(&mut self) -> Option<TraceRead> {
        let wanted = self.place.saturating_add(1).min(self.total());
        if wanted == self.outline.len() && self.kept.at(wanted).is_none() {
            self.kept.set_last_query(wanted, &self.running);
        }
        // The running read of the outline will reach this place anyway.
        let passes = self.is_reading() && wanted > self.outline.len();
        let known = wanted == 0 || self.kept.at(wanted).is_some();
        if self.folding == PendingRead::Way || known || passes {
            return None;
        }
        self.folding = PendingRead::Way;
        let (from, state) = self.kept.nearest(wanted);
        Some(TraceRead::Fold {
            session: self.id().clone(),
            from,
            to: wanted.min(from.saturating_add(STATE_WINDOW)),
            state: Arc::new(state),
        })
    }
}
