//! Problems of the Atlases: of the loaded ones, and of the current text of their files.

use std::path::Path;

use ratatui::text::Line;

use super::FileState;
use super::files::AtlasFileStates;
use super::folder::file_name;
use crate::atlas::diagnostic::{ReportColour, Severity, render};
use crate::atlas::{Atlas, Diagnostic};
use crate::base::text::one_line;
use crate::console::text_cells::wrap;
use crate::console::theme::{Appearance, Meaning};
use crate::runtime::snapshot::RuntimeSnapshot;

/// One problem of an Atlas or of its file.
#[derive(Debug)]
pub(super) enum AtlasProblem<'s> {
    /// Problem of a loaded Atlas.
    Loaded(&'s Atlas, &'s Diagnostic),
    /// Problem in the current text of a file.
    File(&'s Path, FileOrigin, &'s str, &'s Diagnostic),
    /// Unreadable file: its path, the name shown for it, and the error.
    Unreadable(&'s Path, String, &'s str),
}

/// Relation of a file to the loaded Atlases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOrigin {
    /// File of a loaded Atlas.
    Loaded,
    /// File that no Atlas was loaded from.
    New,
}

/// Returns all problems, errors first. For each Atlas the problems of its file come first, because the
/// steward can fix those.
pub(super) fn find_problems<'s>(
    files: &'s AtlasFileStates,
    snapshot: &'s RuntimeSnapshot,
) -> Vec<AtlasProblem<'s>> {
    let mut problems = Vec::new();
    for (at, atlas) in snapshot.loaded.iter().enumerate() {
        if let (Some(path), Some(state)) = (&atlas.origin.file, files.states.get(&at)) {
            problems.extend(file_problems(path, FileOrigin::Loaded, &atlas.id, state));
        }
        let warnings = atlas.origin.warnings.iter();
        problems.extend(warnings.map(|warning| AtlasProblem::Loaded(atlas, warning)));
    }
    for (path, state) in files.folder.added_files() {
        problems.extend(file_problems(
            path,
            FileOrigin::New,
            &file_name(path),
            state,
        ));
    }
    problems.sort_by_key(|problem| match problem {
        AtlasProblem::Loaded(_, found) | AtlasProblem::File(_, _, _, found) => {
            found.severity == Severity::Warning
        }
        AtlasProblem::Unreadable(..) => false,
    });
    problems
}

fn file_problems<'s>(
    path: &'s Path,
    origin: FileOrigin,
    known_by: &str,
    state: &'s FileState,
) -> Vec<AtlasProblem<'s>> {
    match state {
        FileState::Newer(newer) => {
            let found = newer.problems.iter();
            let problem = |diagnostic| AtlasProblem::File(path, origin, &newer.text, diagnostic);
            found.map(problem).collect()
        }
        FileState::Unreadable(what) => {
            vec![AtlasProblem::Unreadable(path, one_line(known_by), what)]
        }
        FileState::Same | FileState::AsBefore => Vec::new(),
    }
}

impl<'s> AtlasProblem<'s> {
    /// Returns the file in which to fix the problem, if there is one.
    pub(super) fn file(&self) -> Option<&'s Path> {
        match self {
            Self::Loaded(atlas, _) => atlas.origin.file.as_deref(),
            Self::File(path, ..) | Self::Unreadable(path, ..) => Some(*path),
        }
    }

    /// Returns the line of the problem.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::Loaded(_, found) | Self::File(_, _, _, found) => Some(found.span?.line),
            Self::Unreadable(..) => None,
        }
    }

    /// Returns the code and location, the subject, and the style of the problem's row.
    pub(super) fn row_texts(&self) -> (String, String, Meaning) {
        match self {
            Self::Loaded(_, found) | Self::File(_, _, _, found) => {
                let file = one_line(found.file.rsplit('/').next().unwrap_or_default());
                let place = found.span.map_or(file.clone(), |place| {
                    format!("{file}:{}:{}", place.line, place.column)
                });
                let newer = match self {
                    Self::File(_, FileOrigin::Loaded, ..) => "NEWER ",
                    Self::File(_, FileOrigin::New, ..) => "NEW ",
                    Self::Loaded(..) | Self::Unreadable(..) => "",
                };
                let head = format!("{} {newer}{place}", found.code);
                (head, found.message.clone(), severity_style(found))
            }
            Self::Unreadable(_, known_by, what) => {
                (format!("FILE {known_by}"), one_line(what), Meaning::Error)
            }
        }
    }

    /// Returns the full report, with the source line underlined.
    pub(super) fn report_lines(&self, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
        let (source, found, words) = match self {
            Self::Loaded(atlas, found) => (&*atlas.text, *found, "in the loaded Atlas"),
            Self::File(_, origin, text, found) => {
                let words = match origin {
                    FileOrigin::Loaded => "in the file, newer than the loaded Atlas",
                    FileOrigin::New => "in a file that is not loaded yet",
                };
                (*text, *found, words)
            }
            Self::Unreadable(_, _, what) => {
                let rows = wrap(&one_line(what), cells).into_iter();
                return rows
                    .map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                    .collect();
            }
        };
        let report = render(std::slice::from_ref(found), source, ReportColour::None);
        let mut lines: Vec<Line<'static>> = Vec::new();
        for (at, row) in report.lines().enumerate() {
            let meaning = if at == 0 {
                severity_style(found)
            } else if row.contains("= help") {
                Meaning::Key
            } else if row.contains('^') {
                Meaning::Warning
            } else {
                Meaning::Text
            };
            // Source lines keep their columns. Prose is wrapped.
            let rows = if at == 0 || row.contains("= ") {
                wrap(row, cells)
            } else {
                vec![row.to_owned()]
            };
            let rows = rows.into_iter();
            lines.extend(rows.map(|row| Line::styled(row, appearance.style(meaning))));
        }
        lines.push(Line::default());
        lines.push(Line::styled(words, appearance.style(Meaning::Dim)));
        lines
    }
}

fn severity_style(found: &Diagnostic) -> Meaning {
    match found.severity {
        Severity::Error => Meaning::Error,
        Severity::Warning => Meaning::Warning,
    }
}
