//! Studies of Atlases, computed on a blocking thread.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::record_reader::QuitFlag;
use crate::atlas::Atlas;
use crate::base::clock::{Clock as _, SystemClock, Timestamp};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::atlas_study::{PageLine, Study, StudyResult, StudySummary};
use crate::console::text_cells::counted;
use crate::console::theme::Meaning;
use crate::console::{ScenarioReport, ScenarioRunner};
use crate::engine::explanation::{
    ExplainedVerdict, HypotheticalRequest, HypotheticalSession, explain_under,
};
use crate::runtime::{OperatorHandle, RecordedSession};
use crate::trace::details::Details;
use crate::trace::event::Event;
use crate::trace::source::EventSource;

/// Maximum number of recorded actions that are judged again.
const MAX_ACTIONS: usize = 500;

/// Maximum number of events read to find them.
const MAX_EVENTS: u64 = 100_000;

/// Number of events read at a time.
const PAGE: u64 = 1000;

/// Number of unchanged lines shown around a difference.
const LINES_AROUND: usize = 3;

/// Runs a study.
pub(super) async fn run_study(
    operator_handle: &OperatorHandle,
    study: Study,
    scenario_runner: Option<ScenarioRunner>,
    left: QuitFlag,
) -> Result<StudyResult, String> {
    match study {
        Study::Differ(texts) => run_blocking(move || differences(&texts)).await,
        Study::Test(files) => {
            let scenario_runner = scenario_runner.ok_or("this console cannot run tests")?;
            run_blocking(move || test_result(&scenario_runner.run(&files))).await?
        }
        Study::Rehearse(load) => {
            let live = Arc::clone(&operator_handle.snapshots().borrow().loaded);
            let sessions = operator_handle.sessions().await?;
            let past = operator_handle.read_record(move |source| {
                let now = SystemClock.now();
                rehearse(source, &sessions, (&live, &load.atlases), now, &left)
            });
            past.await?
        }
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error.to_string())
}

/// Compares texts line by line.
pub(in crate::console) fn differences(texts: &[(String, Arc<str>, Arc<str>)]) -> StudyResult {
    let mut lines = Vec::new();
    for (name, before, after) in texts {
        let diff = TextDiff::from_lines(&**before, &**after);
        lines.push(PageLine::new(Meaning::Strong, one_line(name)));
        for group in diff.grouped_ops(LINES_AROUND) {
            let first = group.first().map_or(0, |op| op.new_range().start + 1);
            lines.push(PageLine::new(
                Meaning::Key,
                format!("@@ line {first} of the file"),
            ));
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let (mark, meaning) = match change.tag() {
                    ChangeTag::Delete => ("-", Meaning::Denied),
                    ChangeTag::Insert => ("+", Meaning::Passed),
                    ChangeTag::Equal => (" ", Meaning::Dim),
                };
                let text = change.value().trim_end_matches(['\n', '\r']);
                lines.push(PageLine::new(meaning, format!("{mark} {text}")));
            }
        }
        lines.push(PageLine::new(Meaning::Text, ""));
    }
    StudyResult {
        lines,
        summary: None,
    }
}

/// Shows the test results, file by file.
pub(in crate::console) fn test_result(reports: &[ScenarioReport]) -> Result<StudyResult, String> {
    if reports.is_empty() {
        return Err(
            "no scenarios in a folder `tests` next to the files; see `cra run --help`".to_owned(),
        );
    }
    let mut lines = Vec::new();
    let passed = reports
        .iter()
        .filter(|report| report.failed.is_empty())
        .count();
    for report in reports {
        let file = one_line(&report.file.to_string_lossy());
        let steps = counted(report.steps, "step");
        if report.failed.is_empty() {
            lines.push(PageLine::new(
                Meaning::Passed,
                format!("ok      {file}  {steps}"),
            ));
            continue;
        }
        lines.push(PageLine::new(
            Meaning::Error,
            format!("FAILED  {file}  {steps}"),
        ));
        for failed in &report.failed {
            let place = failed
                .line
                .map_or(String::new(), |line| format!("line {line}: "));
            let text = format!("        {place}{}", failed.mismatch);
            lines.push(PageLine::new(Meaning::Text, text));
        }
    }
    lines.push(PageLine::new(Meaning::Text, ""));
    let words = format!("{passed} of {} tests pass", reports.len());
    let meaning = if passed == reports.len() {
        Meaning::Passed
    } else {
        Meaning::Error
    };
    lines.push(PageLine::new(meaning, words));
    let sum = Some(StudySummary::Tests(passed, reports.len()));
    Ok(StudyResult {
        lines,
        summary: sum,
    })
}

/// Judges the last recorded actions under the loaded Atlases and under the files, and lists the
/// changes.
pub(in crate::console) fn rehearse(
    source: &impl EventSource<Error = String>,
    sessions: &[RecordedSession],
    (live, copy): (&[Atlas], &[Atlas]),
    now: Timestamp,
    left: &QuitFlag,
) -> Result<StudyResult, String> {
    let (mut judged, mut pruned) = (0, 0);
    let mut changed = Vec::new();
    let mut budget = MAX_EVENTS;
    for session in sessions {
        let mut end = session.events;
        while end > 0 && judged < MAX_ACTIONS && budget > 0 {
            left.check()?;
            let from = end.saturating_sub(PAGE);
            let many = usize::try_from(end - from).unwrap_or(usize::MAX);
            let events = source.events(&session.session, from, many)?;
            budget = budget.saturating_sub(end - from);
            end = from;
            for event in events.iter().rev() {
                if event.event_type != "action_attempted" || judged == MAX_ACTIONS {
                    continue;
                }
                let Some(action) = action_of(event) else {
                    pruned += 1;
                    continue;
                };
                judged += 1;
                let what_if = HypotheticalRequest {
                    action: action.0,
                    params: action.1,
                    session: HypotheticalSession {
                        agent: Some(session.agent.clone()),
                        ..HypotheticalSession::default()
                    },
                };
                let [was, proposed] =
                    [live, copy].map(|atlases| explain_under(atlases, &what_if, now).verdict);
                if words(&was) != words(&proposed) {
                    let place = (&session.session, event.sequence);
                    changed.extend(changed_verdict_lines(place, &what_if, &was, &proposed));
                }
            }
        }
    }
    Ok(rehearsal_result(judged, pruned, changed))
}

fn rehearsal_result(judged: usize, pruned: usize, changed: Vec<PageLine>) -> StudyResult {
    let many = changed.len() / 3;
    let head = match (judged, many) {
        (0, _) => "no recorded actions".to_owned(),
        (_, 0) => format!("{}: no verdict changes", counted(judged, "action")),
        (_, many) => {
            let verdicts = counted(many, "verdict");
            let change = if many == 1 { "changes" } else { "change" };
            format!("{}: {verdicts} {change}", counted(judged, "action"))
        }
    };
    let meaning = if many == 0 {
        Meaning::Passed
    } else {
        Meaning::Warning
    };
    let mut lines = vec![PageLine::new(meaning, head)];
    if pruned > 0 {
        let words = format!("{} skipped: content pruned", counted(pruned, "action"));
        lines.push(PageLine::new(Meaning::Dim, words));
    }
    lines.push(PageLine::new(Meaning::Text, ""));
    lines.extend(changed);
    StudyResult {
        lines,
        summary: (judged > 0).then_some(StudySummary::Rehearsal(many, judged)),
    }
}

/// Returns the action of an attempt, and its parameters as recorded.
fn action_of(event: &Event) -> Option<(String, Value)> {
    let action = event.payload.get("action_type")?.as_str()?;
    let params = Details::of(event).params();
    Some((action.to_owned(), params.unwrap_or_default()))
}

/// Builds the three lines of a changed verdict.
fn changed_verdict_lines(
    (session, sequence): (&SessionId, u64),
    what_if: &HypotheticalRequest,
    was: &ExplainedVerdict,
    proposed: &ExplainedVerdict,
) -> [PageLine; 3] {
    let head = format!("{session}#{sequence} {} {}", what_if.action, what_if.params);
    let (was, proposed) = (words(was), words(proposed));
    [
        PageLine::new(Meaning::Strong, head),
        PageLine::new(Meaning::Dim, format!("  loaded  {}", was.0)),
        PageLine::new(proposed.1, format!("  file    {}", proposed.0)),
    ]
}

fn words(verdict: &ExplainedVerdict) -> (String, Meaning) {
    match verdict {
        ExplainedVerdict::Allowed => ("allowed".to_owned(), Meaning::Passed),
        ExplainedVerdict::Held { gates } => {
            (format!("HELD at {}", gates.join(", ")), Meaning::Waiting)
        }
        ExplainedVerdict::Denied(denied) => (format!("DENIED: {}", denied.reason), Meaning::Denied),
    }
}

impl ScenarioRunner {
    /// Runs the scenarios next to these files.
    fn run(&self, files: &[PathBuf]) -> Vec<ScenarioReport> {
        (self.0)(files)
    }
}
