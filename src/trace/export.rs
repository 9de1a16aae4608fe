//! The record as a file for others: CSV for spreadsheets, HTML for people without this program, OTLP for
//! tools that draw traces. JSON Lines, which alone can be verified, is [`super::jsonl`].
//!
//! Everything is written as it is read; of a session that is being drawn only its span tree is kept.

use std::fmt;

use super::event::Event;
use super::source::{Source, each};
use super::verify::Checked;
use crate::base::id::SessionId;

pub mod csv;
pub mod html;
pub mod otlp;
#[cfg(test)]
pub(crate) mod tests;

/// Why an export came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError<E> {
    /// The record cannot be read.
    #[error(transparent)]
    Read(E),
    /// The writer takes no more. It knows why.
    #[error("the output cannot be written")]
    Write,
}

impl<E> From<fmt::Error> for ExportError<E> {
    fn from(_: fmt::Error) -> Self {
        Self::Write
    }
}

/// Hands over the events of a session that have a sequence below `end`.
fn visit<S: Source>(
    source: &S,
    session: &SessionId,
    end: u64,
    take: impl FnMut(Event) -> Result<(), ExportError<S::Error>>,
) -> Result<(), ExportError<S::Error>> {
    each(&Read(source), session, (0, end), take)
}

/// A source whose errors are those of an export.
struct Read<'s, S>(&'s S);

impl<S: Source> Source for Read<'_, S> {
    type Error = ExportError<S::Error>;

    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Error> {
        let events = self.0.events(session, from, limit);
        events.map_err(ExportError::Read)
    }

    fn end(&self, session: &SessionId) -> Result<u64, Self::Error> {
        self.0.end(session).map_err(ExportError::Read)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<Checked>, Self::Error> {
        self.0.verify(session).map_err(ExportError::Read)
    }
}
