//! Panel that compares the loaded Atlas with its file and shows the effect of a load.

use std::path::Path;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::draw_panel;
use crate::atlas::Atlas;
use crate::atlas::diagnostic::Severity;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::screen::atlas::steward::short_hash;
use crate::console::screen::atlas::{AtlasScreen, ChangedFile, FileState};
use crate::console::text_cells::{clip, counted};
use crate::console::theme::{Appearance, Focus, Meaning};
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

/// Rows of the panel, with its borders.
pub(super) const ROWS: u16 = 7;

/// Paints the panel.
pub(super) fn draw(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let hint = match snapshot.access {
        ConsoleAccess::Write => "L load  U undo  = diff  T tests  R past  S shadow ",
        ConsoleAccess::ReadOnly => "read-only: = diff  T tests  R past  S shadow ",
    };
    let inner = draw_panel(frame, area, ("Reload", hint), Focus::Elsewhere, appearance);
    let cells = usize::from(inner.width);
    let rows = rows(atlases, snapshot).into_iter();
    let lines = rows.map(|(label, words, meaning)| {
        let words = clip(&words, cells.saturating_sub(9), appearance);
        Line::from(vec![
            Span::styled(format!("{label:9}"), appearance.style(Meaning::Label)),
            Span::styled(words, appearance.style(meaning)),
        ])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// Returns the content of the panel in one line, if there is something to report.
pub(super) fn summary_line(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
) -> Option<(String, Meaning)> {
    let (at, atlas) = shown_atlas(atlases, snapshot)?;
    let (words, meaning) = file_status(atlases, snapshot, at, atlas);
    let settled = meaning == Meaning::Passed || atlas.origin.file.is_none();
    if settled && count_outdated_requests(snapshot) == 0 {
        return None;
    }
    let pending = pending_text(snapshot, meaning);
    let pending = pending.map_or(String::new(), |(words, _)| format!("   {words}"));
    Some((format!("RELOAD {words}{pending}"), meaning))
}

/// Returns the text next to the tabs that a file differs from the loaded Atlas.
pub(super) fn difference_text(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    cells: usize,
    appearance: Appearance,
) -> Option<(String, Meaning)> {
    let newest = atlases
        .files
        .changed_files()
        .map(|(at, newer)| (!newer.is_loadable(), at));
    let Some((faulty, at)) = newest.max() else {
        // Only the folder differs.
        let (_, meaning) = atlases.files.folder.difference(snapshot)?.description();
        let words = if cells >= 80 {
            "files not loaded"
        } else {
            "not loaded"
        };
        return Some((words.to_owned(), meaning));
    };
    let loaded = snapshot.loaded.get(at);
    let meaning = if faulty {
        Meaning::Error
    } else {
        Meaning::Warning
    };
    let words = match loaded {
        Some(atlas) if cells >= 80 => {
            let name = clip(&file_name(atlas), 24, appearance);
            format!("{name} newer than live {}", one_line(&atlas.version))
        }
        Some(_) | None => "newer file".to_owned(),
    };
    Some((words, meaning))
}

/// Returns the Atlas at the cursor. If its file is unchanged, returns one whose file has changed, if any.
fn shown_atlas<'s>(
    atlases: &AtlasScreen,
    snapshot: &'s RuntimeSnapshot,
) -> Option<(usize, &'s Atlas)> {
    let other = |at: usize| {
        let state = atlases.files.states.get(&at);
        state.is_some_and(|state| *state != FileState::Same)
    };
    let own = atlases.row.atlas;
    let mut all = 0..snapshot.loaded.len();
    let at = if other(own) {
        Some(own)
    } else {
        all.find(|at| other(*at))
    };
    let at = at.unwrap_or(own);
    Some((at, snapshot.loaded.get(at)?))
}

fn rows(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot) -> Vec<(&'static str, String, Meaning)> {
    let Some((at, atlas)) = shown_atlas(atlases, snapshot) else {
        return Vec::new();
    };
    let since = snapshot.load_info.since.map(Timestamp::time_of_day);
    let since = since.map_or(String::new(), |at| format!("  since {at}"));
    let (id, version) = (one_line(&atlas.id), one_line(&atlas.version));
    let live = format!("{id} {version}  sha {}{since}", short_hash(atlas));
    let (words, meaning) = file_status(atlases, snapshot, at, atlas);
    let mut rows = vec![
        ("LIVE", live, Meaning::Text),
        ("FILE", file(atlases, snapshot, at, atlas), Meaning::Text),
        ("STATE", words, meaning),
    ];
    rows.extend(
        pending_text(snapshot, meaning).map(|(words, meaning)| ("PENDING", words, meaning)),
    );
    let totals = [
        atlases
            .totals
            .tests
            .map(|(hold, of)| format!("{hold} of {of} tests pass")),
        atlases.totals.past.map(|(change, of)| {
            format!(
                "{change} of the last {} would differ",
                counted(of, "action")
            )
        }),
    ];
    let totals: Vec<_> = totals.into_iter().flatten().collect();
    if !totals.is_empty() {
        let bad = atlases.totals.tests.is_some_and(|(hold, of)| hold < of);
        let meaning = if bad { Meaning::Error } else { Meaning::Text };
        rows.push(("TRIED", totals.join(", "), meaning));
    }
    rows
}

fn file(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot, at: usize, atlas: &Atlas) -> String {
    let gone = atlases.files.folder.is_missing(at, snapshot);
    if atlas.origin.file.is_none() {
        return "none".to_owned();
    }
    let name = file_name(atlas);
    let written = atlases.files.changed_at(at).map(Timestamp::time_of_day);
    match (atlases.files.states.get(&at), written) {
        (Some(FileState::Newer(_)), Some(written)) => {
            format!("{name} changed {written}, not loaded")
        }
        (Some(FileState::Newer(_)), None) => format!("{name} changed, not loaded"),
        (Some(FileState::Unreadable(_)), _) if gone => format!("{name} is missing"),
        (Some(FileState::Unreadable(_)), _) => format!("{name} cannot be read"),
        (Some(FileState::Same | FileState::AsBefore), _) => format!("{name} is loaded"),
        (None, _) => format!("{name} not checked yet"),
    }
}

/// Returns the file name of an Atlas without its folder.
fn file_name(atlas: &Atlas) -> String {
    let name = atlas.origin.file.as_deref().and_then(Path::file_name);
    one_line(&name.unwrap_or_default().to_string_lossy())
}

/// Describes the state of an Atlas's file, or says that the Atlas has no file.
fn file_status(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    at: usize,
    atlas: &Atlas,
) -> (String, Meaning) {
    match atlas.origin.file {
        Some(_) => state_of(atlases, snapshot, at),
        None => ("built into cra: no file".to_owned(), Meaning::Dim),
    }
}

/// Describes the shadow evaluation, the file of an Atlas, or its folder, in this order of priority.
fn state_of(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot, at: usize) -> (String, Meaning) {
    if let Some(shadow) = &snapshot.watched.shadow {
        let (looked, differ) = (shadow.evaluated, shadow.different);
        let words = format!("SHADOW: {differ} of {looked} differ: S to show");
        return (words, Meaning::Waiting);
    }
    let change = atlases.files.folder.difference(snapshot);
    let own = state(atlases.files.states.get(&at));
    match change {
        Some(change) if own.1 == Meaning::Passed || change.gone.contains(&at) => {
            change.description()
        }
        Some(_) | None => own,
    }
}

/// Describes the state of a file compared with the loaded Atlas.
pub(super) fn state(file: Option<&FileState>) -> (String, Meaning) {
    match file {
        None => ("file not checked yet".to_owned(), Meaning::Dim),
        Some(FileState::Same | FileState::AsBefore) => ("LIVE = FILE".to_owned(), Meaning::Passed),
        Some(FileState::Newer(newer)) if newer.is_loadable() => {
            ("FILE NEWER: L to load".to_owned(), Meaning::Warning)
        }
        Some(FileState::Newer(newer)) => {
            let errors = counted(count_errors(newer), "error");
            (format!("KEPT OLD: {errors} in the file"), Meaning::Error)
        }
        Some(FileState::Unreadable(_)) => (
            "KEPT OLD: the file cannot be read".to_owned(),
            Meaning::Error,
        ),
    }
}

fn count_errors(newer: &ChangedFile) -> usize {
    let errors = newer.problems.iter();
    errors
        .filter(|problem| problem.severity == Severity::Error)
        .count()
}

/// Counts held requests that were evaluated with Atlases that are no longer loaded.
fn count_outdated_requests(snapshot: &RuntimeSnapshot) -> usize {
    let in_force = snapshot.load_info.hash;
    let held = snapshot.held.iter();
    held.filter(|held| in_force.is_some_and(|hash| held.atlas_hash != hash))
        .count()
}

fn pending_text(snapshot: &RuntimeSnapshot, state: Meaning) -> Option<(String, Meaning)> {
    let behind = count_outdated_requests(snapshot);
    if behind > 0 {
        let words = format!("{behind} held under an old Atlas: deny only");
        return Some((words, Meaning::Waiting));
    }
    let held = snapshot.held.len();
    // There is something to load.
    let newer = matches!(state, Meaning::Warning | Meaning::Waiting);
    (held > 0 && newer).then(|| {
        let words = format!("{held} held: deny only after load");
        (words, Meaning::Text)
    })
}
