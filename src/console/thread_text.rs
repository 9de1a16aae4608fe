//! Texts about threads, shared by all screens.

use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::text_cells::counted;
use crate::memento::{AffectPhase, Intensity, Thread};
use crate::runtime::snapshot::RuntimeSnapshot;

/// Counts the threads with a frozen summary.
pub(crate) fn frozen_threads(snapshot: &RuntimeSnapshot) -> usize {
    let threads = snapshot.threads.iter();
    threads.filter(|thread| thread.is_frozen()).count()
}

/// Returns the thread of a session: a frozen one first, then the one with the newest turn.
pub(crate) fn thread_of_session<'s>(
    snapshot: &'s RuntimeSnapshot,
    session: &SessionId,
) -> Option<&'s Thread> {
    let is_its = |thread: &&Thread| {
        let owner = thread.owner.as_ref();
        thread.session == *session || owner.is_some_and(|owner| owner.session == *session)
    };
    let threads = || snapshot.threads.iter().map(AsRef::as_ref).filter(is_its);
    threads()
        .find(|thread| thread.is_frozen())
        .or(threads().next())
}

/// Text about refused writes of other sessions; `None` if there were none.
pub(crate) fn refused_text(thread: &Thread) -> Option<String> {
    let refused = thread.refused.as_ref()?;
    let count = usize::try_from(refused.count).unwrap_or(usize::MAX);
    let writes = counted(count, "write");
    let (session, at) = (&refused.session, refused.at.time_of_day());
    Some(format!(
        "REFUSED {writes} from other sessions, last by {session} at {at}"
    ))
}

/// Warning that another process may have changed a thread, with the remedy.
pub(crate) fn unverified_text(thread: &Thread) -> Option<&'static str> {
    thread.unverified.then_some(
        "UNVERIFIED: may have changed while no console was open; check it, then :hand-over SESSION",
    )
}

/// Text about the session that a thread was handed over to but that has not continued it yet.
pub(crate) fn offered_text(thread: &Thread) -> Option<String> {
    let to = thread.offered_to.as_ref()?;
    Some(format!("handed over to {to} at its next turn"))
}

/// Returns the phase and the intensity of a thread.
pub(crate) fn phase_and_intensity(thread: &Thread) -> (AffectPhase, Intensity) {
    match &thread.latest {
        Some(latest) => {
            let rollup = &latest.affect.rollup;
            (rollup.phase, rollup.intensity_bucket)
        }
        None => (AffectPhase::Settled, Intensity::Low),
    }
}

/// Text such as `peak/high`.
pub(crate) fn phase_and_intensity_text((phase, intensity): (AffectPhase, Intensity)) -> String {
    format!("{}/{}", phase.as_str(), intensity.as_str())
}

/// Text with the time since which the summary is frozen, and the updates held back; `None` if it is
/// not frozen.
pub(crate) fn frozen_text(thread: &Thread) -> Option<String> {
    let since = thread.frozen_since?.time_of_day();
    let count = usize::try_from(thread.held_back_count).unwrap_or(usize::MAX);
    let held_back = counted(count, "update");
    Some(format!("FROZEN since {since}, {held_back} saved for later"))
}

/// Lists what an operator should know before deciding a request of this thread, one line each.
pub(crate) fn thread_lines(thread: &Thread) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(latest) = &thread.latest {
        lines.push(format!("arc: {}", one_line(latest.arc.as_str())));
    }
    let phase_text = phase_and_intensity_text(phase_and_intensity(thread));
    lines.push(match frozen_text(thread) {
        Some(frozen) => format!("{phase_text}, summary {frozen}"),
        None => format!("{phase_text}, summary updates normally"),
    });
    lines
}
