//! View of a snapshot file: the phases above, and the content of the chosen one below.

use ratatui::text::{Line, Span};

use super::{
    LoadedArtifact, OpenSnapshot, PathInput, PathPurpose, SnapshotContent, SnapshotPage,
    SnapshotReadFailure,
};
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::cells::{break_exactly, clip, counted, fit, width, wrap};
use crate::console::names::path_words;
use crate::console::screen::queue::highlighted;
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
    look: Appearance,
) -> Vec<Line<'static>> {
    match (typing, shown) {
        (Some(typing), _) => typed(typing, cells, look),
        (None, SnapshotContent::Opened(opened)) => {
            let mut rows = vec![steps(opened, cells, look)];
            rows.extend(file_state_lines(&opened.whole.checklist, cells, look));
            if let Some(said) = &opened.notice {
                rows.push(Line::styled(
                    clip(said, cells, look),
                    look.style(Meaning::Passed),
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

fn typed(typing: &PathInput, cells: usize, look: Appearance) -> Vec<Line<'static>> {
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
    let mut lines = styled(note, cells, look, Meaning::Hint);
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::styled(label, look.style(Meaning::Key)),
        Span::styled(last.to_owned(), look.style(Meaning::Strong)),
        Span::styled(" ", look.style(Meaning::Selected)),
    ]));
    if let Some(problem) = &typing.problem {
        lines.extend(styled(&one_line(problem), cells, look, Meaning::Error));
    }
    lines.push(Line::default());
    lines
}

/// Builds the line of phases, with the chosen one marked.
fn steps(opened: &OpenSnapshot, cells: usize, look: Appearance) -> Line<'static> {
    let unclear = opened.whole.checklist.checks.iter();
    let unclear = unclear.filter(|check| !check.is_clear()).count();
    let artifacts = opened.whole.artifacts.len();
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
    let arrow = look.mark(Mark::Arrow);
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
            spans.push(Span::styled(format!("{arrow} "), look.style(Meaning::Dim)));
        }
        let name = if all <= cells {
            format!(" {name} ")
        } else {
            format!("{name} ")
        };
        spans.push(Span::styled(name, look.style(meaning)));
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
fn file_state_lines(checklist: &Checklist, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if let Some(doubt) = &checklist.format {
        let loud = one_line(&format!("! DEGRADED: {doubt}"));
        for row in wrap(&loud, cells.saturating_sub(2)) {
            let row = fit(&format!(" {row}"), cells, look);
            rows.push(Line::styled(row, look.style(Meaning::Banner)));
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
    rows.extend(styled(&text, cells, look, meaning));
    rows
}

/// Builds the content of the chosen phase.
pub(super) fn body(
    typing: Option<&PathInput>,
    shown: &SnapshotContent,
    cells: usize,
    look: Appearance,
) -> Vec<Line<'static>> {
    if typing.is_some() {
        // The typed path hides the content.
        return Vec::new();
    }
    match shown {
        SnapshotContent::Nothing => Vec::new(),
        SnapshotContent::Busy(what) => styled(&one_line(what), cells, look, Meaning::Dim),
        SnapshotContent::Broken(why) => unusable(why, cells, look),
        SnapshotContent::Opened(opened) => {
            let whole = &opened.whole;
            match (opened.page, &opened.loaded) {
                (SnapshotPage::Retrieve, _) => {
                    each(&whole.retrieved, |item| step(item, cells, look))
                }
                (SnapshotPage::Infer, _) => {
                    each(&whole.inferred, |item| inference(item, cells, look))
                }
                (SnapshotPage::Validate, _) => validated(&whole.checklist, cells, look),
                (SnapshotPage::Engage, _) => engaged(&whole.confirmation, cells, look),
                (SnapshotPage::Artifacts, None) => artifacts(opened, cells, look),
                (SnapshotPage::Artifacts, Some(loaded)) => artifact(loaded, cells, look),
            }
        }
    }
}

fn each<T>(items: &[T], lines: impl Fn(&T) -> Vec<Line<'static>>) -> Vec<Line<'static>> {
    let mut all = Vec::new();
    for item in items {
        if !all.is_empty() {
            all.push(Line::default());
        }
        all.extend(lines(item));
    }
    all
}

fn styled(text: &str, cells: usize, look: Appearance, meaning: Meaning) -> Vec<Line<'static>> {
    hanging_indent("", text, cells, look, meaning)
}

/// Builds rows that start with `begins`; further rows are indented by its width.
fn hanging_indent(
    begins: &str,
    text: &str,
    cells: usize,
    look: Appearance,
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
            Span::styled(before, look.style(meaning)),
            Span::styled(row, look.style(meaning)),
        ])
    };
    rows.into_iter().enumerate().map(row).collect()
}

fn unusable(why: &SnapshotReadFailure, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let mut lines = styled(&one_line(&why.what), cells, look, Meaning::Error);
    if let Some(help) = why.help {
        lines.push(Line::default());
        lines.extend(hanging_indent("help: ", help, cells, look, Meaning::Hint));
    }
    lines
}

fn heading(name: &str, rest: &str, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let room = cells.saturating_sub(width(name) + 2);
    if width(rest) > room {
        let mut lines = vec![Line::styled(name.to_owned(), look.style(Meaning::Label))];
        lines.extend(hanging_indent("  ", rest, cells, look, Meaning::Dim));
        return lines;
    }
    vec![Line::from(vec![
        Span::styled(format!("{name}  "), look.style(Meaning::Label)),
        Span::styled(rest.to_owned(), look.style(Meaning::Dim)),
    ])]
}

fn step(step: &RetrievalStep, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let name = format!("{}. {}", step.number, step.name);
    let mut lines = heading(&name, step.purpose, cells, look);
    for read in &step.reads {
        let (value, meaning) = match &read.value {
            Some(value) => (one_line(value), Meaning::Text),
            None => ("(missing)".to_owned(), Meaning::Warning),
        };
        if cells < MIN_CELLS_FOR_NAMES {
            lines.push(Line::styled(
                clip(&format!("   {}", read.path), cells, look),
                look.style(Meaning::Dim),
            ));
            lines.extend(hanging_indent("     ", &value, cells, look, meaning));
            continue;
        }
        let rows = hanging_indent(
            "",
            &value,
            cells.saturating_sub(NAME_CELLS + 3),
            look,
            meaning,
        );
        for (at, row) in rows.into_iter().enumerate() {
            let path = if at == 0 { read.path } else { "" };
            let path = format!("   {}", fit(path, NAME_CELLS, look));
            let mut spans = vec![Span::styled(path, look.style(Meaning::Dim))];
            spans.extend(row.spans);
            lines.push(Line::from(spans));
        }
    }
    lines
}

fn inference(one: &Inference, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let name = format!("{}. {}", one.number, one.name);
    let inputs: Vec<_> = one.inputs.iter().map(|path| path_words(path)).collect();
    let from = format!("from {}", inputs.join(", "));
    let mut lines = heading(&name, &from, cells, look);
    let output = one_line(&one.output);
    lines.extend(hanging_indent("   ", &output, cells, look, Meaning::Text));
    lines
}

fn validated(checklist: &Checklist, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let mut lines: Vec<_> = checklist
        .checks
        .iter()
        .flat_map(|item| check(item, cells, look))
        .collect();
    let doubts = checklist.format.iter().cloned();
    let faults = checklist.faults.iter();
    let faults = faults.map(|fault| format!("{} {}", fault.place, fault.what));
    let doubts: Vec<_> = doubts.chain(faults).collect();
    if !doubts.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("PROBLEMS", look.style(Meaning::Label)));
    }
    for doubt in doubts {
        lines.extend(hanging_indent(
            "  ! ",
            &one_line(&doubt),
            cells,
            look,
            Meaning::Warning,
        ));
    }
    lines
}

fn check(check: &ChecklistItem, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let (mark, meaning) = if check.is_clear() {
        ("[x] ", Meaning::Passed)
    } else {
        ("[ ] ", Meaning::Warning)
    };
    let text = format!("{}: {}", check.name, check.question);
    let mut lines = hanging_indent(mark, &text, cells, look, meaning);
    for missing in &check.missing {
        lines.extend(hanging_indent(
            "      missing: ",
            &path_words(missing),
            cells,
            look,
            Meaning::Text,
        ));
    }
    if let Some(ask) = check.ask {
        lines.extend(hanging_indent(
            "      ask: ",
            ask,
            cells,
            look,
            Meaning::Waiting,
        ));
    }
    lines
}

fn engaged(text: &str, cells: usize, look: Appearance) -> Vec<Line<'static>> {
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
        hanging_indent(&begins, bare, cells, look, meaning)
    });
    rows.collect()
}

/// Lists the artifacts, one per row: the row number is the index of the artifact.
fn artifacts(opened: &OpenSnapshot, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    if opened.whole.artifacts.is_empty() {
        let text = "The file lists no artifact.";
        return styled(text, cells, look, Meaning::Dim);
    }
    let items = opened.whole.artifacts.iter().enumerate();
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
        let line = Line::from(fit(&text, cells, look));
        if at == opened.chosen {
            highlighted(line, look)
        } else {
            line
        }
    };
    items.map(row).collect()
}

fn artifact(loaded: &LoadedArtifact, cells: usize, look: Appearance) -> Vec<Line<'static>> {
    let artifact = &loaded.artifact;
    let title = artifact.title.as_deref().unwrap_or("no title");
    let name = one_line(&format!("{}: {title}", artifact.id));
    let mut lines = styled(&name, cells, look, Meaning::Strong);
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
                look,
                Meaning::Dim,
            ));
        }
    }
    lines.push(Line::default());
    match &loaded.content {
        None => lines.extend(styled("loading ...", cells, look, Meaning::Dim)),
        Some(Err(why)) => lines.extend(unusable(why, cells, look)),
        Some(Ok(None)) => {
            let text = "No content and no path for this artifact.";
            lines.extend(styled(text, cells, look, Meaning::Hint));
        }
        Some(Ok(Some(content))) => {
            let content = sanitize(content.trim_end(), LineFeeds::Keep).text;
            let rows = content.lines().flat_map(|line| break_exactly(line, cells));
            lines.extend(rows.map(|row| Line::raw(row.to_owned())));
        }
    }
    lines
}
