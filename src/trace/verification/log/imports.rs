//! Checks of imported chains against their announcements in the log.

use super::LogVerifier;
use crate::base::clock::TimestampText;
use crate::trace::event::TraceImported;
use crate::trace::verification::verdict::{ImportEntry, VerificationVerdict};

impl LogVerifier {
    /// Processes an entry that announces an import.
    pub(super) fn process_import(&mut self, imported: &TraceImported, at: TimestampText) {
        let Ok(session) = imported.imported_session.parse() else {
            return;
        };
        let place = self.chain_index(&session);
        if let Some(chain) = self.chains.get_mut(place) {
            chain.import(ImportEntry::of(imported, at.as_str()));
        }
        let announced = (imported.events, imported.head_hash.clone());
        let known = self
            .imported
            .entry(place)
            .or_insert_with(|| announced.clone());
        if announced.0 > known.0 {
            *known = announced;
        }
    }

    /// Checks imported chains against their announcements: an interrupted import leaves a part.
    pub(super) fn check_imports(&mut self) {
        for (place, (expected, hash)) in std::mem::take(&mut self.imported) {
            let only = self.only.as_ref();
            let Some(chain) = self.chains.get_mut(place) else {
                continue;
            };
            if only.is_some_and(|only| *only != chain.session) {
                continue;
            }
            let found = chain.count;
            if found < expected {
                chain.fail(VerificationVerdict::Truncated { found, expected });
            } else if found == expected && chain.last_hash().to_string() != hash {
                let what = "its last event differs from the imported one";
                chain.fail(VerificationVerdict::diverged(found.saturating_sub(1), what));
            }
        }
    }
}
