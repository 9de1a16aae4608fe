//! Painting of the tree of Atlases.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{draw_panel, draw_rows, pane_focus};
use crate::atlas::Atlas;
use crate::atlas::document::CheckpointMode;
use crate::atlas::origin::PartKind;
use crate::base::text::one_line;
use crate::console::explanation_lines;
use crate::console::screen::atlas::tree::{self, TreeRow, plural_name};
use crate::console::screen::atlas::{AtlasPane, AtlasScreen, FileState};
use crate::console::text_cells::{counted, fit, width};
use crate::console::theme::{Appearance, Meaning, of_tier};
use crate::runtime::snapshot::RuntimeSnapshot;

/// Paints the tree.
pub(super) fn draw(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let rows = atlases.rows(snapshot);
    let focus = pane_focus(atlases, AtlasPane::Tree);
    let place = rows.iter().position(|row| *row == atlases.row).unwrap_or(0);
    let hint = format!("{} of {} ", place + 1, rows.len());
    let inner = draw_panel(frame, area, ("Atlas", &hint), focus, appearance);
    draw_rows(
        frame,
        inner,
        (place, rows.len()),
        focus,
        appearance,
        |at, cells| {
            let line = rows
                .get(at)
                .and_then(|row| tree_row(atlases, snapshot, *row, cells, appearance));
            line.unwrap_or_default()
        },
    );
}

fn tree_row(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    row: TreeRow,
    cells: usize,
    appearance: Appearance,
) -> Option<Line<'static>> {
    let atlas = snapshot.loaded.get(row.atlas)?;
    let fold = if atlases.is_folded(row) { "+ " } else { "- " };
    let (left, right, meaning) = match (row.part, row.item) {
        (None, _) => {
            let name = format!("{fold}{} {}", one_line(&atlas.id), one_line(&atlas.version));
            let (state, meaning) = file_mark(atlases, snapshot, row.atlas);
            (name, state, meaning)
        }
        (Some(part), None) => {
            let name = format!("  {fold}{}", plural_name(part));
            (
                name,
                tree::part_count(atlas, part).to_string(),
                Meaning::Dim,
            )
        }
        (Some(part), Some(item)) => {
            let name = format!("      {}", one_line(tree::part_id(atlas, part, item)?));
            let (word, meaning) = part_mark(atlases, atlas, part, item);
            (name, word, meaning)
        }
    };
    let room = cells.saturating_sub(width(&right) + 1);
    let style = if row.item.is_none() {
        Meaning::Strong
    } else {
        Meaning::Text
    };
    Some(Line::from(vec![
        Span::styled(fit(&left, room, appearance), appearance.style(style)),
        Span::raw(" "),
        Span::styled(right, appearance.style(meaning)),
    ]))
}

/// Describes the state of an Atlas file in a word.
fn file_mark(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot, at: usize) -> (String, Meaning) {
    if atlases.files.folder.is_missing(at, snapshot) {
        return ("NO FILE".to_owned(), Meaning::Warning);
    }
    let warnings = snapshot.loaded.get(at);
    let warnings = warnings.map_or(0, |atlas| atlas.origin.warnings.len());
    match atlases.files.states.get(&at) {
        Some(FileState::Newer(newer))
            if newer.is_loadable() && snapshot.watched.shadow.is_some() =>
        {
            ("SHADOW".to_owned(), Meaning::Waiting)
        }
        Some(FileState::Newer(newer)) if newer.is_loadable() => {
            ("FILE NEWER".to_owned(), Meaning::Warning)
        }
        Some(FileState::Newer(_)) => ("KEPT OLD".to_owned(), Meaning::Error),
        Some(FileState::Unreadable(_)) => ("FILE UNREADABLE".to_owned(), Meaning::Error),
        Some(FileState::Same | FileState::AsBefore) | None => match warnings {
            0 => ("ok".to_owned(), Meaning::Passed),
            many => (counted(many, "warning"), Meaning::Warning),
        },
    }
}

fn part_mark(atlases: &AtlasScreen, atlas: &Atlas, part: PartKind, at: usize) -> (String, Meaning) {
    let dim = |text: &str| (text.to_owned(), Meaning::Dim);
    match part {
        PartKind::Checkpoint => {
            let Some(checkpoint) = atlas.checkpoints.get(at) else {
                return dim("");
            };
            let key = (atlas.id.clone(), checkpoint.id.clone());
            let fired = atlases
                .fired
                .get(&key)
                .map(|times| format!("fired {times}  "));
            let mode = match checkpoint.mode {
                CheckpointMode::Blocking => "gate",
                CheckpointMode::Advisory => "advice",
                CheckpointMode::Observational => "watch",
            };
            let meaning = if fired.is_some() {
                Meaning::Waiting
            } else {
                Meaning::Dim
            };
            let fired = fired.unwrap_or_default();
            (format!("{fired}{mode}"), meaning)
        }
        PartKind::Policy => match atlas.policies.get(at) {
            Some(policy) => dim(explanation_lines::policy_word(policy.kind)),
            None => dim(""),
        },
        PartKind::Capability => match atlas.capabilities.get(at) {
            Some(capability) if capability.starts_locked => dim("starts locked"),
            Some(_) | None => dim(""),
        },
        PartKind::Context => dim(""),
        PartKind::Action => match atlas
            .actions
            .values()
            .nth(at)
            .and_then(|action| action.risk_tier)
        {
            Some(tier) => (tier.to_string(), of_tier(tier)),
            None => dim("detected"),
        },
    }
}
