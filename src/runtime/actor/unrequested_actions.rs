//! Actions that ran without a request, as hooks report them afterwards: an alarm, and an entry of the log.

use super::Actor;
use crate::base::text::one_line;
use crate::runtime::snapshot::UnrequestedAction;
use crate::trace::event::{AlarmRaised, Draft, Payload};

/// Error type by which a hook reports such an action.
const RAN_UNASKED: &str = "ran_unasked";

impl Actor {
    /// Notes an action that ran without a request. Returns the entry for the log.
    pub(super) fn note_unrequested(&mut self, draft: &Draft) -> Option<AlarmRaised> {
        let Payload::ErrorOccurred(error) = &draft.payload else {
            return None;
        };
        if error.error_type != RAN_UNASKED {
            return None;
        }
        let before = self.ran_unasked.as_ref().map_or(0, |before| before.count);
        let session = draft.session_id.clone();
        let what = format!("{session}: {}", one_line(&error.message));
        self.ran_unasked = Some(UnrequestedAction {
            session,
            what: error.message.as_str().into(),
            count: before + 1,
        });
        Some(AlarmRaised {
            alarm: RAN_UNASKED.to_owned(),
            what,
            by: None,
        })
    }
}
