//! Explanations, the stream of evaluations, and the files of Atlases: asked for and read beside the
//! screen.

use crate::atlas::LoadError;
use crate::atlas::load::load_if_changed;
use crate::base::digest::Digest;
use crate::console::request::{Message, Ticket};
use crate::console::screen::atlas::{FileState, Glance, Newer};
use crate::engine::explain::Question;
use crate::runtime::Desk;

/// Has things explained, one after the other.
pub(super) async fn explain(desk: &Desk, ticket: Ticket, questions: Vec<Question>) -> Message {
    let mut accounts = Vec::new();
    for question in questions {
        accounts.push(desk.explain(question).await.map(Box::new));
    }
    Message::Explained(ticket, accounts)
}

/// Looks at the files on a thread that may wait; nothing when that thread was lost.
pub(super) async fn glance(glances: Vec<Glance>) -> Option<Message> {
    let look = move || glances.iter().map(|it| (it.atlas, look(it))).collect();
    let looked = tokio::task::spawn_blocking(look).await.ok()?;
    Some(Message::Glanced(looked))
}

/// What a file has become since it was loaded.
pub(in crate::console) fn look(glance: &Glance) -> FileState {
    let seen = |text: &str| glance.seen == Some(Digest::of(text.as_bytes()));
    match load_if_changed(&glance.file, &glance.text) {
        Ok(None) => FileState::Same,
        Ok(Some(loaded)) if seen(&loaded.source) => FileState::AsBefore,
        Ok(Some(loaded)) => FileState::Newer(Newer {
            digest: Digest::of(loaded.source.as_bytes()),
            text: loaded.source.into(),
            problems: loaded.warnings,
            loads: true,
        }),
        Err(LoadError::Invalid {
            diagnostics,
            source_text,
        }) => FileState::Newer(Newer {
            digest: Digest::of(source_text.as_bytes()),
            text: source_text.into(),
            problems: diagnostics,
            loads: false,
        }),
        Err(
            error @ (LoadError::Io { .. } | LoadError::TooLarge { .. } | LoadError::NotUtf8 { .. }),
        ) => FileState::Unreadable(error.to_string()),
    }
}
