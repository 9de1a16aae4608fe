//! Notifications that the steward of an Atlas subscribed to, and the state of their delivery.

use crate::atlas::Atlas;
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::theme::Meaning;
use crate::runtime::notices::{AtlasNoticeSummary, NoticeSummary};

/// Returns the address and triggers of an Atlas's notifications, and their delivery state. Returns `None` if
/// the steward wants no notifications.
pub(super) fn notice_texts(
    atlas: &Atlas,
    state: &NoticeSummary,
) -> Option<(String, (String, Meaning))> {
    let wish = atlas.steward.as_ref()?.notifications.as_ref()?;
    let address = wish.channels.webhook.as_deref()?;
    let triggers: Vec<_> = wish
        .triggers
        .iter()
        .map(|trigger| event_words(trigger.as_str()))
        .collect();
    if triggers.is_empty() {
        return None;
    }
    let target = format!("{} for {}", one_line(address), triggers.join(", "));
    let own = state.by_atlas.get(&atlas.id).cloned().unwrap_or_default();
    let delivery = match state.off {
        Some(off) => (off.description().to_owned(), Meaning::Warning),
        None => delivery_text(&own),
    };
    Some((target, delivery))
}

fn delivery_text(own: &AtlasNoticeSummary) -> (String, Meaning) {
    let error = own.error.as_deref().map(one_line);
    let error = error.map(|error| format!("; last error: {error}"));
    let error = error.unwrap_or_default();
    match (own.failed, own.waiting) {
        (0, 0) => ("none waiting".to_owned(), Meaning::Dim),
        (0, waiting) => (format!("{waiting} waiting{error}"), Meaning::Waiting),
        (failed, 0) => (format!("{failed} failed{error}"), Meaning::Error),
        (failed, waiting) => (
            format!("{failed} failed, {waiting} waiting{error}"),
            Meaning::Error,
        ),
    }
}
