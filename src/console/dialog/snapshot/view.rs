//! View of a snapshot file: the phases above, and the content of the chosen one below.

use ratatui::text::{Line, Span};

use super::{
    LoadedArtifact, OpenSnapshot, PathInput, PathPurpose, SnapshotContent, SnapshotPage,
    SnapshotReadFailure,
};
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::names::path_words;
use crate::console::screen::queue::highlighted;
use crate::console::text_cells::{break_exactly, clip, counted, fit, width, wrap};
use crate::console::theme::{Appearance, Mark, Meaning};
use crate::reconstruct::{Artifact, Checklist, ChecklistItem, Inference, RetrievalStep};

/// Width of the column with field names, if there is room for it, in cells.
const NAME_CELLS: usize = 47;

/// Minimum width for the column with field names.
const MIN_CELLS_FOR_NAMES: usize = 100;

/// Below this width unclear points are counted, not named, to save rows.
const NARROW: usize = 70;

/// Title of the panel.
pub(super) fn title(typing: Option<&PathInput>, shown: &SnapshotContent) -> String {
    match (typing.map(|typing| typing.purpose), shown) {
        (Some(PathPurpose::Write), _) => "Write a snapshot file".to_owned(),
        (Some(PathPurpose::Open), _) => "Open a snapshot file".to_owned(),
        (None, SnapshotContent::Opened(opened)) => {
            let path = opened.path().display().to_string();
            format!("Snapshot file: {}", one_line(&path))
        }
        (
            None,
            SnapshotContent::Nothing | SnapshotContent::Busy(_) | SnapshotContent::Broken(_),
        ) => "Snapshot file".to_owned(),
    }
}

/// Builds the fixed lines above: the typed path, or the phases and the state of the file.
pub(super) fn head(
    typing: Option<&PathInput>,
    shown: &SnapshotContent,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    match (typing, shown) {
        (Some(typing), _) => path_input_lines(typing, cells, appearance),
        (None, SnapshotContent::Opened(opened)) => {
            let mut rows = vec![steps(opened, cells, appearance)];
            rows.extend(file_state_lines(
                &opened.reconstruction.checklist,
                cells,
                appearance,
            ));
            if let Some(notice) = &opened.notice {
                rows.push(Line::styled(
                    clip(notice, cells, appearance),
                    appearance.style(Meaning::Passed),
                ));
            }
            rows.push(Line::default());
            rows
        }
        (
            None,
            SnapshotContent::Nothing | SnapshotContent::Busy(_) | SnapshotContent::Broken(_),
        ) => Vec::new(),
    }
}

fn path_input_lines(
    typing: &PathInput,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let (label, note) = match typing.purpose {
        PathPurpose::Open => (
            "open> ",
            "Path of a snapshot file, written by cra snapshot or the key s.",
        ),
        PathPurpose::Write => (
            "write to> ",
            "Writes the state of the thread's session for the next agent. cra asks before it overwrites a \
             file.",
        ),
    };
    let text = typing.line.text();
    // Of a path that is too long, the end is shown: the cursor is there.
    let room = cells.saturating_sub(width(label) + 1);
    let rows = break_exactly(text, room);
    let last = rows.last().copied().unwrap_or_default();
    let mut lines = styled(note, cells, appearance, Meaning::Hint);
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::styled(label, appearance.style(Meaning::Key)),
        Span::styled(last.to_owned(), appearance.style(Meaning::Strong)),
        Span::styled(" ", appearance.style(Meaning::Selected)),
    ]));
    if let Some(problem) = &typing.problem {
        lines.extend(styled(
            &one_line(problem),
            cells,
            appearance,
            Meaning::Error,
        ));
    }
    lines.push(Line::default());
    lines
}

/// Builds the line of phases, with the chosen one marked.
fn steps(opened: &OpenSnapshot, cells: usize, appearance: Appearance) -> Line<'static> {
    let unclear = opened.reconstruction.checklist.checks.iter();
    let unclear = unclear.filter(|check| !check.is_clear()).count();
    let artifacts = opened.reconstruction.artifacts.len();
    let names = SnapshotPage::ALL.map(|page| {
        let name = match page {
            SnapshotPage::Retrieve => "1 RETRIEVE".to_owned(),
            SnapshotPage::Infer => "2 INFER".to_owned(),
            SnapshotPage::Validate if unclear > 0 => format!("3 VALIDATE !{unclear}"),
            SnapshotPage::Validate => "3 VALIDATE".to_owned(),
            SnapshotPage::Engage => "4 ENGAGE".to_owned(),
            SnapshotPage::Artifacts => format!("5 ARTIFACTS {artifacts}"),
        };
        (page, name)
    });
    let all: usize = names.iter().map(|(_, name)| width(name) + 2).sum();
    let arrow = appearance.mark(Mark::Arrow);
    // If there is little room, the phases are shown without arrows.
    let roomy = all + 5 * (width(arrow) + 1) <= cells;
    let mut spans = Vec::new();
    for (page, name) in names {
        let meaning = if page == opened.page {
            Meaning::TabActive
        } else if page == SnapshotPage::Validate && unclear > 0 {
            Meaning::Warning
        } else {
            Meaning::Dim
        };
        if roomy
            && matches!(
                page,
                SnapshotPage::Infer | SnapshotPage::Validate | SnapshotPage::Engage
            )
        {
            spans.push(Span::styled(
                format!("{arrow} "),
                appearance.style(Meaning::Dim),
            ));
        }
        let name = if all <= cells {
            format!(" {name} ")
        } else {
            format!("{name} ")
        };
        spans.push(Span::styled(name, appearance.style(meaning)));
        if roomy {
            spans.push(Span::raw(" "));
        }
    }
    Line::from(spans)
}

/// Text that the file answers all questions. That says nothing about the quality of its answers.
fn answers_all(checklist: &Checklist, faults: &str) -> String {
    let asked = counted(checklist.checks.len(), "question");
    format!("The file answers all {asked}{faults}.")
}

/// Builds the state of the file: degraded, not clear, or clear.
fn file_state_lines(
    checklist: &Checklist,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if let Some(problem) = &checklist.format {
        let loud = one_line(&format!("! DEGRADED: {problem}"));
        for row in wrap(&loud, cells.saturating_sub(2)) {
            let row = fit(&format!(" {row}"), cells, appearance);
            rows.push(Line::styled(row, appearance.style(Meaning::Banner)));
        }
    }
    let unclear: Vec<_> = checklist
        .checks
        .iter()
        .filter(|check| !check.is_clear())
        .map(|check| check.name)
        .collect();
    let faults = match checklist.faults.len() {
        0 => String::new(),
        faults => format!("; {} in the file", counted(faults, "problem")),
    };
    let (text, meaning) = if unclear.is_empty() && faults.is_empty() {
        (answers_all(checklist, ""), Meaning::Passed)
    } else if unclear.is_empty() {
        (answers_all(checklist, &faults), Meaning::Warning)
    } else {
        let ask = counted(checklist.questions().count(), "question");
        let names = if cells < NARROW {
            format!("{} of {}", unclear.len(), checklist.checks.len())
        } else {
            unclear.join(", ")
        };
        let text = format!("NOT CLEAR: {names}. {ask} to ask first{faults}.");
        (text, Meaning::Warning)
    };
    rows.extend(styled(&text, cells, appearance, meaning));
    rows
}

/// Builds the content of the chosen phase.
pub(super) fn body(
    typing: Option<&PathInput>,
    shown: &SnapshotContent,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    if typing.is_some() {
        // The typed path hides the content.
        return Vec::new();
    }
    match shown {
        SnapshotContent::Nothing => Vec::new(),
        SnapshotContent::Busy(what) => styled(&one_line(what), cells, appearance, Meaning::Dim),
        SnapshotContent::Broken(reason) => read_failure_lines(reason, cells, appearance),
        SnapshotContent::Opened(opened) => {
            let reconstruction = &opened.reconstruction;
            match (opened.page, &opened.loaded) {
                (SnapshotPage::Retrieve, _) => join_blocks(&reconstruction.retrieved, |item| {
                    retrieval_step_lines(item, cells, appearance)
                }),
                (SnapshotPage::Infer, _) => join_blocks(&reconstruction.inferred, |item| {
                    inference_lines(item, cells, appearance)
                }),
                (SnapshotPage::Validate, _) => {
                    checklist_lines(&reconstruction.checklist, cells, appearance)
                }
                (SnapshotPage::Engage, _) => {
                    engage_lines(&reconstruction.confirmation, cells, appearance)
                }
                (SnapshotPage::Artifacts, None) => artifacts(opened, cells, appearance),
                (SnapshotPage::Artifacts, Some(loaded)) => artifact(loaded, cells, appearance),
            }
        }
    }
}

fn join_blocks<T>(items: &[T], lines: impl Fn(&T) -> Vec<Line<'static>>) -> Vec<Line<'static>> {
    let mut all = Vec::new();
    for item in items {
        if !all.is_empty() {
            all.push(Line::default());
        }
        all.extend(lines(item));
    }
    all
}

fn styled(
    text: &str,
    cells: usize,
    appearance: Appearance,
    meaning: Meaning,
) -> Vec<Line<'static>> {
    hanging_indent("", text, cells, appearance, meaning)
}

/// Builds rows that start with `begins`; further rows are indented by its width.
fn hanging_indent(
    begins: &str,
    text: &str,
    cells: usize,
    appearance: Appearance,
    meaning: Meaning,
) -> Vec<Line<'static>> {
    let indent = width(begins);
    let rows = wrap(text, cells.saturating_sub(indent).max(8));
    let row = |(at, row): (usize, String)| {
        let before = if at == 0 {
            begins.to_owned()
        } else {
            " ".repeat(indent)
        };
        Line::from(vec![
            Span::styled(before, appearance.style(meaning)),
            Span::styled(row, appearance.style(meaning)),
        ])
    };
    rows.into_iter().enumerate().map(row).collect()
}

fn read_failure_lines(
    reason: &SnapshotReadFailure,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut lines = styled(&one_line(&reason.what), cells, appearance, Meaning::Error);
    if let Some(help) = reason.help {
        lines.push(Line::default());
        lines.extend(hanging_indent(
            "help: ",
            help,
            cells,
            appearance,
            Meaning::Hint,
        ));
    }
    lines
}

fn heading(name: &str, rest: &str, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let room = cells.saturating_sub(width(name) + 2);
    if width(rest) > room {
        let mut lines = vec![Line::styled(
            name.to_owned(),
            appearance.style(Meaning::Label),
        )];
        lines.extend(hanging_indent("  ", rest, cells, appearance, Meaning::Dim));
        return lines;
    }
    vec![Line::from(vec![
        Span::styled(format!("{name}  "), appearance.style(Meaning::Label)),
        Span::styled(rest.to_owned(), appearance.style(Meaning::Dim)),
    ])]
}

fn retrieval_step_lines(
    step: &RetrievalStep,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let name = format!("{}. {}", step.number, step.name);
    let mut lines = heading(&name, step.purpose, cells, appearance);
    for read in &step.reads {
        let (value, meaning) = match &read.value {
            Some(value) => (one_line(value), Meaning::Text),
            None => ("(missing)".to_owned(), Meaning::Warning),
        };
        if cells < MIN_CELLS_FOR_NAMES {
            lines.push(Line::styled(
                clip(&format!("   {}", read.path), cells, appearance),
                appearance.style(Meaning::Dim),
            ));
            lines.extend(hanging_indent("     ", &value, cells, appearance, meaning));
            continue;
        }
        let rows = hanging_indent(
            "",
            &value,
            cells.saturating_sub(NAME_CELLS + 3),
            appearance,
            meaning,
        );
        for (at, row) in rows.into_iter().enumerate() {
            let path = if at == 0 { read.path } else { "" };
            let path = format!("   {}", fit(path, NAME_CELLS, appearance));
            let mut spans = vec![Span::styled(path, appearance.style(Meaning::Dim))];
            spans.extend(row.spans);
            lines.push(Line::from(spans));
        }
    }
    lines
}

fn inference_lines(one: &Inference, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let name = format!("{}. {}", one.number, one.name);
    let inputs: Vec<_> = one.inputs.iter().map(|path| path_words(path)).collect();
    let from = format!("from {}", inputs.join(", "));
    let mut lines = heading(&name, &from, cells, appearance);
    let output = one_line(&one.output);
    lines.extend(hanging_indent(
        "   ",
        &output,
        cells,
        appearance,
        Meaning::Text,
    ));
    lines
}

fn checklist_lines(
    checklist: &Checklist,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut lines: Vec<_> = checklist
        .checks
        .iter()
        .flat_map(|item| checklist_item_lines(item, cells, appearance))
        .collect();
    let problems = checklist.format.iter().cloned();
    let faults = checklist.faults.iter();
    let faults = faults.map(|fault| format!("{} {}", fault.place, fault.what));
    let problems: Vec<_> = problems.chain(faults).collect();
    if !problems.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("PROBLEMS", appearance.style(Meaning::Label)));
    }
    for problem in problems {
        lines.extend(hanging_indent(
            "  ! ",
            &one_line(&problem),
            cells,
            appearance,
            Meaning::Warning,
        ));
    }
    lines
}

fn checklist_item_lines(
    check: &ChecklistItem,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let (mark, meaning) = if check.is_clear() {
        ("[x] ", Meaning::Passed)
    } else {
        ("[ ] ", Meaning::Warning)
    };
    let text = format!("{}: {}", check.name, check.question);
    let mut lines = hanging_indent(mark, &text, cells, appearance, meaning);
    for missing in &check.missing {
        lines.extend(hanging_indent(
            "      missing: ",
            &path_words(missing),
            cells,
            appearance,
            Meaning::Text,
        ));
    }
    if let Some(ask) = check.ask {
        lines.extend(hanging_indent(
            "      ask: ",
            ask,
            cells,
            appearance,
            Meaning::Waiting,
        ));
    }
    lines
}

fn engage_lines(text: &str, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let text = sanitize(text, LineFeeds::Keep).text;
    let rows = text.lines().flat_map(|line| {
        let bare = line.trim_start();
        let begins = " ".repeat(line.len() - bare.len());
        let name = bare.split(':').next().unwrap_or_default();
        let heads = begins.is_empty()
            && bare.contains(':')
            && name.chars().all(|c| c.is_uppercase() || c == ' ');
        let meaning = if heads {
            Meaning::Strong
        } else {
            Meaning::Text
        };
        hanging_indent(&begins, bare, cells, appearance, meaning)
    });
    rows.collect()
}

/// Lists the artifacts, one per row: the row number is the index of the artifact.
fn artifacts(opened: &OpenSnapshot, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    if opened.reconstruction.artifacts.is_empty() {
        let text = "The file lists no artifact.";
        return styled(text, cells, appearance, Meaning::Dim);
    }
    let items = opened.reconstruction.artifacts.iter().enumerate();
    let row = |(at, artifact): (usize, &Artifact)| {
        let pointer = if at == opened.chosen { "> " } else { "  " };
        let title = artifact.title.as_deref().unwrap_or("no title");
        let about = [&artifact.kind, &artifact.status].map(|text| text.as_deref());
        let about: Vec<_> = about.into_iter().flatten().collect();
        let about = match about.as_slice() {
            [] => String::new(),
            about => format!(" ({})", about.join(", ")),
        };
        let text = one_line(&format!("{pointer}{}  {title}{about}", artifact.id));
        let line = Line::from(fit(&text, cells, appearance));
        if at == opened.chosen {
            highlighted(line, appearance)
        } else {
            line
        }
    };
    items.map(row).collect()
}

fn artifact(loaded: &LoadedArtifact, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let artifact = &loaded.artifact;
    let title = artifact.title.as_deref().unwrap_or("no title");
    let name = one_line(&format!("{}: {title}", artifact.id));
    let mut lines = styled(&name, cells, appearance, Meaning::Strong);
    let list = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("; "));
    let about = [
        ("type      ", artifact.kind.clone()),
        ("status    ", artifact.status.clone()),
        ("sections  ", list(&artifact.key_sections)),
        ("load for  ", list(&artifact.retrieve_for)),
    ];
    for (name, value) in about {
        if let Some(value) = value {
            lines.extend(hanging_indent(
                name,
                &one_line(&value),
                cells,
                appearance,
                Meaning::Dim,
            ));
        }
    }
    lines.push(Line::default());
    match &loaded.content {
        None => lines.extend(styled("loading ...", cells, appearance, Meaning::Dim)),
        Some(Err(reason)) => lines.extend(read_failure_lines(reason, cells, appearance)),
        Some(Ok(None)) => {
            let text = "No content and no path for this artifact.";
            lines.extend(styled(text, cells, appearance, Meaning::Hint));
        }
        Some(Ok(Some(content))) => {
            let content = sanitize(content.trim_end(), LineFeeds::Keep).text;
            let rows = content.lines().flat_map(|line| break_exactly(line, cells));
            lines.extend(rows.map(|row| Line::raw(row.to_owned())));
        }
    }
    lines
}
