//! What is wrong with Atlases: with what is loaded, and with what their files say by now.

use std::collections::BTreeMap;

use ratatui::text::Line;

use super::FileState;
use crate::atlas::diagnostic::{Colour, Severity, render};
use crate::atlas::{Atlas, Diagnostic};
use crate::base::text::one_line;
use crate::console::cells::wrap;
use crate::console::theme::{Look, Meaning};
use crate::runtime::snapshot::Snapshot;

/// One thing that is wrong.
#[derive(Debug)]
pub(super) enum Problem<'s> {
    /// With what is loaded.
    Loaded(usize, &'s Atlas, &'s Diagnostic),
    /// With what the file says by now.
    File(usize, &'s str, &'s Diagnostic),
    /// The file cannot be read.
    Unreadable(usize, &'s Atlas, &'s str),
}

/// Everything that is wrong: errors first, and of each Atlas its file first, because that is what can
/// be mended.
pub(super) fn of<'s>(
    files: &'s BTreeMap<usize, FileState>,
    snapshot: &'s Snapshot,
) -> Vec<Problem<'s>> {
    let mut problems = Vec::new();
    for (at, atlas) in snapshot.loaded.iter().enumerate() {
        match files.get(&at) {
            Some(FileState::Newer(newer)) => {
                let found = newer.problems.iter();
                problems.extend(found.map(|it| Problem::File(at, &newer.text, it)));
            }
            Some(FileState::Unreadable(what)) => {
                problems.push(Problem::Unreadable(at, atlas, what));
            }
            Some(FileState::Same | FileState::AsBefore) | None => {}
        }
        let warnings = atlas.origin.warnings.iter();
        problems.extend(warnings.map(|it| Problem::Loaded(at, atlas, it)));
    }
    problems.sort_by_key(|it| match it {
        Problem::Loaded(_, _, found) | Problem::File(_, _, found) => {
            found.severity == Severity::Warning
        }
        Problem::Unreadable(..) => false,
    });
    problems
}

impl Problem<'_> {
    /// Which Atlas it is in.
    pub(super) fn atlas(&self) -> usize {
        match self {
            Self::Loaded(at, ..) | Self::File(at, ..) | Self::Unreadable(at, ..) => *at,
        }
    }

    /// The line it is in.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::Loaded(_, _, found) | Self::File(_, _, found) => Some(found.span?.line),
            Self::Unreadable(..) => None,
        }
    }

    /// Its code, its place, what it is about, and how much it weighs.
    pub(super) fn row(&self) -> (String, String, Meaning) {
        match self {
            Self::Loaded(_, _, found) | Self::File(_, _, found) => {
                let file = one_line(found.file.rsplit('/').next().unwrap_or_default());
                let place = found.span.map_or(file.clone(), |place| {
                    format!("{file}:{}:{}", place.line, place.column)
                });
                let newer = match self {
                    Self::File(..) => "NEWER ",
                    Self::Loaded(..) | Self::Unreadable(..) => "",
                };
                let head = format!("{} {newer}{place}", found.code);
                (head, found.message.clone(), weight(found))
            }
            Self::Unreadable(_, atlas, what) => (
                format!("FILE {}", one_line(&atlas.id)),
                one_line(what),
                Meaning::Error,
            ),
        }
    }

    /// All of it, with the line of the text underlined.
    pub(super) fn lines(&self, cells: usize, look: Look) -> Vec<Line<'static>> {
        let (source, found, words) = match self {
            Self::Loaded(_, atlas, found) => (&*atlas.text, *found, "in what is loaded"),
            Self::File(_, text, found) => (
                *text,
                *found,
                "in the file, which is newer than what is loaded",
            ),
            Self::Unreadable(_, _, what) => {
                let rows = wrap(&one_line(what), cells).into_iter();
                return rows
                    .map(|row| Line::styled(row, look.style(Meaning::Error)))
                    .collect();
            }
        };
        let report = render(std::slice::from_ref(found), source, Colour::None);
        let mut lines: Vec<Line<'static>> = Vec::new();
        for (at, row) in report.lines().enumerate() {
            let meaning = if at == 0 {
                weight(found)
            } else if row.contains("= help") {
                Meaning::Key
            } else if row.contains('^') {
                Meaning::Warning
            } else {
                Meaning::Text
            };
            // Source lines keep their columns; prose is wrapped.
            let rows = if at == 0 || row.contains("= ") {
                wrap(row, cells)
            } else {
                vec![row.to_owned()]
            };
            let rows = rows.into_iter();
            lines.extend(rows.map(|row| Line::styled(row, look.style(meaning))));
        }
        lines.push(Line::default());
        lines.push(Line::styled(words, look.style(Meaning::Dim)));
        lines
    }
}

fn weight(found: &Diagnostic) -> Meaning {
    match found.severity {
        Severity::Error => Meaning::Error,
        Severity::Warning => Meaning::Warning,
    }
}
