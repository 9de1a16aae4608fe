//! HTML report in one file, for readers without this program: decisions and deciders, the course of
//! events, and the proof of the record.
//!
//! The page has no script and fetches nothing: its content security policy forbids both and allows only
//! its own style. All text goes through templates, which escape it; `VisibleText` also writes out
//! invisible characters. Only tags without text are written by hand, where a part stays open while records
//! are read.
//!
//! For each session only the span tree and the held requests are kept in memory; the rest is written as
//! it is read.

use std::fmt::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::{ExportError, export_events};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::trace::details::Details;
use crate::trace::event::Event;
use crate::trace::replay::ReplayState;
use crate::trace::source::EventSource;
use crate::trace::spans::{MAX_DEPTH, SpanDepths, SpanTree};
use crate::trace::summary::{sentence, truncate_text};
use crate::trace::verification::ChainVerification;

mod decisions;
mod text;
mod timeline;
mod verdict_text;

use decisions::DecisionWriter;
use text::{VisibleText, count_noun, format_duration, format_time};
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
    if !report.log.is_empty() {
        write_log(out, &report.log)?;
    }
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
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    );
    let head = html! {
        meta charset="utf-8";
        meta http-equiv="Content-Security-Policy" content=(policy);
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="referrer" content="no-referrer";
        meta name="color-scheme" content="light dark";
        title { "Record of agent sessions" }
        // The program's own constant; the policy names its digest.
        style { (PreEscaped(style)) }
    };
    writeln!(out, "{}", DOCTYPE.into_string())?;
    // `html`, `body` and `main` stay open: the sessions are written as they are read.
    writeln!(
        out,
        "<html lang=\"en\">\n<head>{}</head>\n<body>\n<main>",
        head.into_string()
    )?;
    let made = format_time(report.made_at);
    let (class, verdict) = overall_verdict(overviews);
    write_markup(
        out,
        html! {
            header {
                h1 { "Record of agent sessions" }
                p class="meta" { "made by cra " (env!("CARGO_PKG_VERSION")) " on " (made) " UTC" }
            }
            p class={ "verdict " (class) } { strong { (verdict) } }
        },
    )?;
    write_markup(out, figures(overviews))?;
    if !report.facts.is_empty() {
        write_markup(out, facts(&report.facts))?;
    }
    write_contents(out, overviews)
}

/// Writes a rendered part of the page on lines of its own.
fn write_markup(out: &mut impl Write, markup: Markup) -> fmt::Result {
    writeln!(out, "{}", markup.into_string())
}

/// Returns the colour class and the text of the verdict about all sessions.
fn overall_verdict(overviews: &[SessionOverview]) -> (&'static str, String) {
    let classes = overviews
        .iter()
        .map(|one| VerdictClass::of(one.checked.as_ref()));
    let count = |class: VerdictClass| classes.clone().filter(|one| *one == class).count();
    let broken = count(VerdictClass::Broken);
    let imported = count(VerdictClass::Imported);
    let open = count(VerdictClass::Open);
    match (overviews.len(), broken, open, imported) {
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
    }
}

fn figures(overviews: &[SessionOverview]) -> Markup {
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
    html! {
        dl class="figures" {
            @for (one, many, figure) in figures {
                div {
                    dt { @if figure == 1 { (one) } @else { (many) } }
                    dd { (figure) }
                }
            }
        }
    }
}

fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        dl class="facts" {
            @for (name, fact) in facts {
                dt { (VisibleText(name)) }
                dd { code { (VisibleText(fact)) } }
            }
        }
    }
}

/// Writes the table of all sessions, if there are several.
fn write_contents(out: &mut impl Write, overviews: &[SessionOverview]) -> fmt::Result {
    if overviews.len() < 2 {
        return Ok(());
    }
    let headings = html! {
        tr { th { "Session" } th { "Agent" } th { "Started" } th { "Events" } th { "State" } th { "Chain" } }
    };
    let headings = headings.into_string();
    writeln!(out, "<nav><table><thead>{headings}</thead><tbody>")?;
    for (number, one) in overviews.iter().enumerate() {
        write_markup(out, contents_row(number, one))?;
    }
    out.write_str("</tbody></table></nav>\n")
}

fn contents_row(number: usize, overview: &SessionOverview) -> Markup {
    let state = &overview.state;
    let checked = overview.checked.as_ref();
    let class = VerdictClass::of(checked).class();
    let chain = checked.map_or("not checked", |checked| checked.verdict.label());
    let agent = truncate_text(&state.agent.name, 60);
    let began = state.agent.started_at.map(format_time).unwrap_or_default();
    html! {
        tr {
            td class="name" {
                a href={ "#s" (number) } { (VisibleText(overview.session.as_str())) }
            }
            td { (VisibleText(&agent)) }
            td class="when" { (began) }
            td { (state.events) }
            td { (state.phase.text()) }
            td { span class={ "tag " (class) } { (VisibleText(chain)) } }
        }
    }
}

fn write_session<S: EventSource>(
    source: &S,
    number: usize,
    overview: &SessionOverview,
    out: &mut impl Write,
) -> Result<(), ExportError<S::Error>> {
    // `section` stays open: its events are written as they are read.
    writeln!(out, "<section id=\"s{number}\">")?;
    write_markup(out, session_head(overview))?;
    write_markup(out, html! { h3 { "Decisions" } })?;
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
    write_markup(out, html! { h3 { "Events" } })?;
    out.write_str("<div class=\"events\">\n")?;
    let (start, end) = covered.unwrap_or((Timestamp::from_micros(0), Timestamp::from_micros(0)));
    let mut timeline = Timeline {
        spans: &spans,
        start,
        end,
        depths: SpanDepths::default(),
    };
    export_events(source, &overview.session, overview.end, |event| {
        write_markup(out, timeline.event(&event))?;
        Ok(())
    })?;
    out.write_str("</div>\n</section>\n")?;
    Ok(())
}

fn session_head(overview: &SessionOverview) -> Markup {
    let SessionOverview {
        session,
        checked,
        state,
        ..
    } = overview;
    let checked = checked.as_ref();
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
    let class = VerdictClass::of(checked).class();
    let verdict = checked.map_or_else(|| "NOT CHECKED".to_owned(), ToString::to_string);
    html! {
        h2 { (VisibleText(session.as_str())) }
        dl class="head" {
            @for (name, value) in named {
                dt { (name) }
                dd { (VisibleText(&truncate_text(value, MAX_HEAD_CHARS))) }
            }
            dt { "last hash" }
            dd { code { (hash) } }
        }
        p class={ "verdict " (class) } {
            strong { (VisibleText(&verdict)) } " " (meaning(checked))
        }
        @if state.pruned > 0 {
            p class="verdict care" {
                "The details of " (count_noun(state.pruned, "event")) " were pruned. Their position, time \
                 and hash are kept."
            }
        }
    }
}

/// Writes the governance log: changes to the record and to the governance of agents, with their actors.
fn write_log(out: &mut impl Write, entries: &[Event]) -> fmt::Result {
    out.write_str("<section id=\"log\">\n")?;
    write_markup(
        out,
        html! {
            h2 { "Governance log" }
            p {
                "Atlases, imports, prunes, legal holds, edits of mementos, alarms, keys and operators. \
                 Names of operators are claimed, not proven."
            }
        },
    )?;
    let headings = html! { tr { th { "Entry" } th { "Time" } th { "By" } th { "What" } } };
    let headings = headings.into_string();
    writeln!(out, "<table><thead>{headings}</thead><tbody>")?;
    for entry in entries {
        let by = Details::of(entry).text("by").unwrap_or("not recorded");
        let row = html! {
            tr {
                td { (entry.sequence) }
                td class="when" { (format_time(entry.timestamp)) }
                td { (VisibleText(by)) }
                td { code { (VisibleText(&entry.event_type)) } " " (VisibleText(&sentence(entry))) }
            }
        };
        write_markup(out, row)?;
    }
    out.write_str("</tbody></table></section>\n")
}

fn write_footer(out: &mut impl Write) -> fmt::Result {
    write_markup(
        out,
        html! {
            footer {
                h3 { "How to read this report" }
                p {
                    "A " em { "gate" } " is a checkpoint that stops an agent until an operator or the agent \
                     answers its questions. Events are in the order of their chain. Each event is indented \
                     below its cause. The bar on the right shows when the event started and how long it \
                     lasted within its session. All times are UTC. Names of operators are claimed, not \
                     proven: operators enter their own names, and cra does not verify them."
                }
                p {
                    "This page is a copy for reading, and a copy can be changed. The proof is the record: \
                     check it with " code { "cra trace verify" } ", and compare the last hash above with \
                     the record or with a witness (a head of the log that is kept elsewhere)."
                }
            }
        },
    )?;
    out.write_str("</main>\n</body>\n</html>\n")
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
