//! HTML report in one file, for readers without this program: decisions and deciders, the course of
//! events, and the proof of the record.
//!
//! The page has no script and fetches nothing: its content security policy forbids both and allows only
//! its own style. Text from outside is escaped, and invisible characters are written out.
//!
//! For each session only the span tree and the held requests are kept in memory; the rest is written as
//! it is read.

use std::fmt::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::{ExportError, export_events};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::replay::ReplayState;
use crate::trace::source::EventSource;
use crate::trace::spans::{MAX_DEPTH, SpanDepths, SpanTree};
use crate::trace::summary::truncate_text;
use crate::trace::verification::ChainVerification;

mod decisions;
mod log;
mod text;
mod timeline;
mod verdict_text;

use decisions::DecisionWriter;
use text::{EscapedText, count_noun, format_duration, format_time};
use timeline::Timeline;
use verdict_text::{VerdictClass, meaning};

/// Base style of the page. [`style`] appends the many similar rules for bars and levels.
const STYLE: &str = include_str!("html/report.css");

/// Longest text in a session's heading.
const MAX_HEAD_CHARS: usize = 400;

/// Contents of a report that are not in the record.
#[derive(Clone, Debug)]
pub struct HtmlReport {
    /// Time of the report.
    pub made_at: Timestamp,
    /// Further facts about the record, such as keys, witnesses and its location: pairs of name and text.
    pub facts: Vec<(String, String)>,
    /// Entries of the governance log to show, in the order of the log.
    pub log: Vec<Event>,
}

/// Facts about a session that are known before its events are written.
struct SessionOverview {
    session: SessionId,
    end: u64,
    checked: Option<ChainVerification>,
    state: ReplayState,
}

/// Writes the report of the given sessions.
///
/// # Errors
/// When the record cannot be read, or the writer fails.
pub fn write<S: EventSource>(
    source: &S,
    report: &HtmlReport,
    sessions: &[SessionId],
    out: &mut impl Write,
) -> Result<(), ExportError<S::Error>> {
    let mut overviews = Vec::new();
    for session in sessions {
        overviews.push(overview(source, session)?);
    }
    write_head(out, report, &overviews)?;
    for (number, overview) in overviews.iter().enumerate() {
        write_session(source, number, overview, out)?;
    }
    log::write(out, &report.log)?;
    write_footer(out)?;
    Ok(())
}

fn overview<S: EventSource>(
    source: &S,
    session: &SessionId,
) -> Result<SessionOverview, ExportError<S::Error>> {
    let checked = source.verify(session).map_err(ExportError::Read)?;
    let end = source.end(session).map_err(ExportError::Read)?;
    let mut state = ReplayState::default();
    export_events(source, session, end, |event| {
        state.apply(&event);
        Ok(())
    })?;
    state.drop_lists();
    Ok(SessionOverview {
        session: session.clone(),
        end,
        checked,
        state,
    })
}

fn write_head(
    out: &mut impl Write,
    report: &HtmlReport,
    overviews: &[SessionOverview],
) -> fmt::Result {
    let style = style();
    let hash = STANDARD.encode(Sha256::digest(&style));
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Record of agent sessions</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
    )?;
    let made = format_time(report.made_at);
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "<header><h1>Record of agent sessions</h1>\n\
         <p class=\"meta\">made by cra {version} on {made} UTC</p></header>"
    )?;
    let standing = overviews
        .iter()
        .map(|one| VerdictClass::of(one.checked.as_ref()));
    let broken = standing
        .clone()
        .filter(|one| *one == VerdictClass::Broken)
        .count();
    let imported = standing
        .clone()
        .filter(|one| *one == VerdictClass::Imported)
        .count();
    let open = standing.filter(|one| *one == VerdictClass::Open).count();
    let (class, verdict) = match (overviews.len(), broken, open, imported) {
        (0, ..) => ("care", "No sessions recorded.".to_owned()),
        (_, 0, 0, 0) => ("good", "All records verified.".to_owned()),
        (all, 0, open, 0) => (
            "care",
            format!("No faults found; {open} of {all} chains are not fully proven."),
        ),
        (all, 0, _, imported) => (
            "care",
            format!(
                "No faults found; {imported} of {all} chains were imported, and nothing before their \
                 import is proven."
            ),
        ),
        (all, broken, ..) => (
            "stop",
            format!("{broken} of {all} chains FAILED verification."),
        ),
    };
    writeln!(
        out,
        "<p class=\"verdict {class}\"><strong>{verdict}</strong></p>"
    )?;
    write_figures(out, overviews)?;
    write_facts(out, &report.facts)?;
    write_contents(out, overviews)
}

fn write_figures(out: &mut impl Write, overviews: &[SessionOverview]) -> fmt::Result {
    let sum =
        |of: &dyn Fn(&ReplayState) -> u64| overviews.iter().map(|one| of(&one.state)).sum::<u64>();
    let figures = [
        ("session", "sessions", overviews.len() as u64),
        ("event", "events", sum(&|state| state.events)),
        (
            "gate passed",
            "gates passed",
            sum(&|state| state.passed.count),
        ),
        (
            "gate not passed",
            "gates not passed",
            sum(&|state| state.blocked.count),
        ),
        (
            "action requested",
            "actions requested",
            sum(&|state| state.actions.attempted),
        ),
        (
            "action blocked",
            "actions blocked",
            sum(&|state| state.actions.blocked),
        ),
        ("override", "overrides", sum(&|state| state.overrides.count)),
        ("error", "errors", sum(&|state| state.errors.count)),
    ];
    out.write_str("<dl class=\"figures\">")?;
    for (one, many, figure) in figures {
        let name = if figure == 1 { one } else { many };
        write!(out, "<div><dt>{name}</dt><dd>{figure}</dd></div>")?;
    }
    out.write_str("</dl>\n")
}

fn write_facts(out: &mut impl Write, facts: &[(String, String)]) -> fmt::Result {
    if facts.is_empty() {
        return Ok(());
    }
    out.write_str("<dl class=\"facts\">")?;
    for (name, fact) in facts {
        let (name, fact) = (EscapedText(name), EscapedText(fact));
        write!(out, "<dt>{name}</dt><dd><code>{fact}</code></dd>")?;
    }
    out.write_str("</dl>\n")
}

fn write_contents(out: &mut impl Write, overviews: &[SessionOverview]) -> fmt::Result {
    if overviews.len() < 2 {
        return Ok(());
    }
    out.write_str(
        "<nav><table><thead><tr><th>Session</th><th>Agent</th><th>Started</th><th>Events</th>\
         <th>State</th><th>Chain</th></tr></thead><tbody>\n",
    )?;
    for (number, one) in overviews.iter().enumerate() {
        let state = &one.state;
        let class = VerdictClass::of(one.checked.as_ref()).class();
        let chain = one
            .checked
            .as_ref()
            .map_or("not checked", |checked| checked.verdict.label());
        let agent = truncate_text(&state.agent.name, 60);
        let began = state.agent.started_at.map(format_time).unwrap_or_default();
        writeln!(
            out,
            "<tr><td class=\"name\"><a href=\"#s{number}\">{}</a></td><td>{}</td><td class=\"when\">{began}</td><td>{}</td>\
             <td>{}</td><td><span class=\"tag {class}\">{}</span></td></tr>",
            EscapedText(one.session.as_str()),
            EscapedText(&agent),
            state.events,
            state.phase.text(),
            EscapedText(chain),
        )?;
    }
    out.write_str("</tbody></table></nav>\n")
}

fn write_session<S: EventSource>(
    source: &S,
    number: usize,
    overview: &SessionOverview,
    out: &mut impl Write,
) -> Result<(), ExportError<S::Error>> {
    write_session_head(out, number, overview)?;
    out.write_str("<h3>Decisions</h3>\n")?;
    let mut spans = SpanTree::default();
    let mut decisions = DecisionWriter::default();
    let mut state = ReplayState::default();
    let mut covered: Option<(Timestamp, Timestamp)> = None;
    export_events(source, &overview.session, overview.end, |event| {
        spans.add(&event);
        decisions.process_event(out, &state, &event)?;
        state.apply(&event);
        let at = event.timestamp;
        let (start, end) = covered.unwrap_or((at, at));
        covered = Some((start.min(at), end.max(at)));
        Ok(())
    })?;
    decisions.close(out, &state)?;
    spans.resolve_parents();
    out.write_str("<h3>Events</h3>\n<div class=\"events\">\n")?;
    let (start, end) = covered.unwrap_or((Timestamp::from_micros(0), Timestamp::from_micros(0)));
    let mut timeline = Timeline {
        spans: &spans,
        start,
        end,
        depths: SpanDepths::default(),
    };
    export_events(source, &overview.session, overview.end, |event| {
        timeline.write(out, &event)?;
        Ok(())
    })?;
    out.write_str("</div>\n</section>\n")?;
    Ok(())
}

fn write_session_head(
    out: &mut impl Write,
    number: usize,
    overview: &SessionOverview,
) -> fmt::Result {
    let SessionOverview {
        session,
        checked,
        state,
        ..
    } = overview;
    let checked = checked.as_ref();
    writeln!(
        out,
        "<section id=\"s{number}\"><h2>{}</h2>",
        EscapedText(session.as_str())
    )?;
    let agent = &state.agent;
    let mut name = agent.name.clone();
    if let Some(version) = &agent.version {
        name = format!("{name} {version}");
    }
    let ended = match &state.ended {
        Some(ended) => format!(
            "{}: {}",
            format_time(ended.at),
            truncate_text(&ended.status, 40)
        ),
        None => format!("not ended; {}", state.phase.text()),
    };
    let duration = match (agent.started_at, state.time) {
        (Some(began), Some(last)) => format_duration(last.since(began)),
        (None, _) | (_, None) => String::new(),
    };
    let hash = state.hash.map(|hash| hash.to_string()).unwrap_or_default();
    let intent = agent.intent.as_deref().unwrap_or("not stated");
    let named = [
        ("agent", name.as_str()),
        ("intent", intent),
        ("Atlases", &agent.atlases.join(", ")),
        (
            "started",
            &agent.started_at.map(format_time).unwrap_or_default(),
        ),
        ("ended", &ended),
        ("duration", &duration),
        ("events", &count_noun(state.events, "event")),
    ];
    out.write_str("<dl class=\"head\">")?;
    for (name, value) in named {
        let value = truncate_text(value, MAX_HEAD_CHARS);
        write!(out, "<dt>{name}</dt><dd>{}</dd>", EscapedText(&value))?;
    }
    write!(out, "<dt>last hash</dt><dd><code>{hash}</code></dd>")?;
    out.write_str("</dl>\n")?;
    let class = VerdictClass::of(checked).class();
    let verdict = checked.map_or_else(|| "NOT CHECKED".to_owned(), ToString::to_string);
    writeln!(
        out,
        "<p class=\"verdict {class}\"><strong>{}</strong> {}</p>",
        EscapedText(&verdict),
        meaning(checked)
    )?;
    match state.pruned {
        0 => Ok(()),
        pruned => writeln!(
            out,
            "<p class=\"verdict care\">The details of {} were pruned. Their position, time and hash \
             are kept.</p>",
            count_noun(pruned, "event")
        ),
    }
}

fn write_footer(out: &mut impl Write) -> fmt::Result {
    out.write_str(
        "<footer><h3>How to read this report</h3>\n<p>A <em>gate</em> is a checkpoint that stops an agent \
         until an operator or the agent answers its questions. Events are in the order of their chain. \
         Each event is indented below its cause. The bar on the right shows when the event started and \
         how long it lasted within its session. All times are UTC. Names of operators are claimed, not \
         proven: operators enter their own names, and cra does not verify them.</p>\n<p>This page is a \
         copy for reading, and a copy can be changed. The proof is the record: check it with \
         <code>cra trace verify</code>, and compare the last hash above with the record or with a \
         witness (a head of the log that is kept elsewhere).</p></footer>\n</main>\n</body>\n</html>\n",
    )
}

/// Complete style: the base style plus rules for bar positions (in percent) and levels.
fn style() -> String {
    let mut style = STYLE.to_owned();
    for part in 0..=100 {
        // INVARIANT: writing to a string does not fail.
        let _ = write!(
            style,
            ".l{part}{{margin-left:{part}%}}.w{part}{{width:{part}%}}"
        );
    }
    for depth in 0..=MAX_DEPTH {
        let _ = write!(style, ".d{depth}{{padding-left:{}em}}", depth * 5 / 4);
    }
    style
}
