//! Panel about one conversation: its intensity, the decision of its last turn, the freeze of its summary, and
//! the source of each value.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::text_cells::{clip, counted, fit};
use crate::console::theme::{Appearance, Focus, Glyphs, Meaning};
use crate::console::thread_text::phase_and_intensity;
use crate::memento::{
    AffectPhase, DecisionRule, Intensity, ProcessedTurn, SignalKind, ThawCondition, Thread,
    TurnClassification, TurnDecision,
};

/// Width of the labels in cells.
const LABEL: usize = 11;

/// Maximum number of turns in the intensity strip.
const STRIP: usize = 32;

/// Paints the whole panel, or its most important lines if there is little room.
pub(super) fn draw(
    thread: &Thread,
    title: Line<'static>,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let block = appearance.panel(Focus::Elsewhere).title(title);
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    let lines = if inner.height >= 9 && cells >= 76 {
        all_lines(thread, cells, appearance, now)
    } else {
        few_lines(thread, cells, usize::from(inner.height), appearance, now)
    };
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn all_lines(
    thread: &Thread,
    cells: usize,
    appearance: Appearance,
    now: Timestamp,
) -> Vec<Line<'static>> {
    let (phase, intensity) = phase_and_intensity(thread);
    let mut first = label("PHASE", appearance);
    first.extend(marked_words(
        AffectPhase::ALL.map(|other| (other.as_str(), other == phase)),
        appearance,
    ));
    first.push(Span::styled("INTENSITY ", appearance.style(Meaning::Label)));
    let intensities = Intensity::ALL.map(|other| (other.as_str(), other == intensity));
    first.extend(marked_words(intensities, appearance));
    let mut second = vec![Span::raw(" ".repeat(LABEL))];
    second.extend(intensity_strip(thread, STRIP, appearance));
    let room = cells.saturating_sub(LABEL + STRIP);
    let point = Span::styled(
        clip(&newest_point_text(thread), room, appearance),
        appearance.style(Meaning::Dim),
    );
    second.extend([Span::raw("  "), point]);
    let Some(last) = thread.turns.first() else {
        return vec![Line::from(first), Line::from(second)];
    };
    let mut third = label("BREAKPOINT", appearance);
    let decisions = TurnDecision::ALL.map(|other| (other.as_str(), other == last.decided.decision));
    third.extend(marked_words(decisions, appearance));
    third.push(Span::raw(format!("  {}", rule_words(last.decided))));
    let plain = |name: &str, text: &str| {
        let mut spans = label(name, appearance);
        spans.push(Span::raw(clip(
            text,
            cells.saturating_sub(LABEL),
            appearance,
        )));
        Line::from(spans)
    };
    let mut guard = label("GUARDRAIL", appearance);
    guard.extend(guardrail(
        thread,
        cells.saturating_sub(LABEL),
        appearance,
        now,
    ));
    vec![
        Line::from(first),
        Line::from(second),
        Line::from(third),
        plain("SIGNALS", &signals_text(thread, last)),
        plain("INPUTS", &inputs(last)),
        Line::from(guard),
        plain(
            "",
            "freeze = (phase=peak or intensity=high) and decision!=must",
        ),
        plain("", &format!("       = {}", formula_text(last))),
        thaw_text(thread, last).map_or_else(Line::default, |words| plain("ENDS WITH", words)),
    ]
}

/// Returns the panel in a few lines. The least important lines are dropped first.
fn few_lines(
    thread: &Thread,
    cells: usize,
    height: usize,
    appearance: Appearance,
    now: Timestamp,
) -> Vec<Line<'static>> {
    let (phase, intensity) = phase_and_intensity(thread);
    let mut first = vec![Span::styled("PHASE ", appearance.style(Meaning::Label))];
    first.push(current_word(phase.as_str(), appearance));
    first.push(Span::styled("  INT ", appearance.style(Meaning::Label)));
    first.push(current_word(intensity.as_str(), appearance));
    let Some(last) = thread.turns.first() else {
        return vec![Line::from(first)];
    };
    first.push(Span::styled(
        "  BREAKPOINT ",
        appearance.style(Meaning::Label),
    ));
    first.push(current_word(last.decided.decision.as_str(), appearance));
    first.push(Span::raw(format!(" rule {}", last.decided.rule.number())));
    if cells >= 72 {
        first.push(Span::raw("  "));
        first.extend(intensity_strip(thread, 14, appearance));
    }
    let plain = |name: &'static str, text: &str| {
        let room = cells.saturating_sub(name.len());
        Line::from(vec![
            Span::styled(name, appearance.style(Meaning::Label)),
            Span::raw(clip(text, room, appearance)),
        ])
    };
    let formula = if cells >= 68 {
        "(peak or high) and not must = "
    } else {
        ""
    };
    let truth = format!("freeze = {formula}{}", formula_text(last));
    let mut lines = vec![
        (0, Line::from(first)),
        (4, plain("SIGNALS ", &signals_text(thread, last))),
        (5, plain("", &inputs(last))),
        (1, Line::from(guardrail(thread, cells, appearance, now))),
        (2, plain("", &truth)),
    ];
    lines.extend(thaw_text(thread, last).map(|words| (3, plain("ENDS WITH ", words))));
    while lines.len() > height.max(1) {
        let spare = lines.iter().map(|(weight, _)| *weight).max();
        lines.retain(|(weight, _)| Some(*weight) != spare);
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

fn label(name: &str, appearance: Appearance) -> Vec<Span<'static>> {
    let text = fit(name, LABEL, appearance);
    vec![Span::styled(text, appearance.style(Meaning::Label))]
}

/// Marks the word that applies with brackets and capitals.
fn marked_words<const N: usize>(
    words: [(&str, bool); N],
    appearance: Appearance,
) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (word, holds) in words {
        spans.push(if holds {
            current_word(word, appearance)
        } else {
            Span::styled(format!(" {word} "), appearance.style(Meaning::Dim))
        });
        spans.push(Span::raw(" "));
    }
    spans
}

fn current_word(word: &str, appearance: Appearance) -> Span<'static> {
    let text = format!("[{}]", word.to_uppercase());
    let meaning = match word {
        "peak" | "high" => Meaning::High,
        _ => Meaning::Strong,
    };
    Span::styled(text, appearance.style(meaning))
}

/// Returns the intensity of each turn as a strip, the oldest on the left.
fn intensity_strip(thread: &Thread, cells: usize, appearance: Appearance) -> Vec<Span<'static>> {
    let shown = thread.turns.iter().take(cells);
    let mut steps: Vec<Span> = shown
        .map(|turn| select_neighbour(turn, appearance))
        .collect();
    let missing = cells.saturating_sub(steps.len());
    steps.reverse();
    steps.push(Span::raw(" ".repeat(missing)));
    steps
}

fn select_neighbour(turn: &ProcessedTurn, appearance: Appearance) -> Span<'static> {
    let (at, meaning) = match turn.intensity {
        None => (0, Meaning::Dim),
        Some(value) if value < 0.34 => (1, Meaning::Text),
        Some(value) if value < 0.7 => (2, Meaning::Text),
        Some(value) if value < 0.8 => (3, Meaning::High),
        Some(_) => (4, Meaning::High),
    };
    let marks = match appearance.glyphs {
        Glyphs::Rounded => ["·", "▁", "▃", "▅", "█"],
        Glyphs::Ascii => [" ", ".", "-", "=", "#"],
    };
    let mark = marks.get(at).copied().unwrap_or_default();
    Span::styled(mark, appearance.style(meaning))
}

/// Describes the newest point of the conversation.
fn newest_point_text(thread: &Thread) -> String {
    let points = thread
        .latest
        .as_ref()
        .map(|memento| memento.affect.points.as_slice());
    let Some([.., last]) = points else {
        return "no intensity reported".to_owned();
    };
    format!(
        "{} {:.2}, {}, {}",
        one_line(last.label.as_str()),
        last.intensity,
        last.confidence.as_str(),
        last.source.as_str()
    )
}

fn rule_words(decided: TurnClassification) -> String {
    format!(
        "rule {}: {}",
        decided.rule.number(),
        decided.rule.description()
    )
}

/// Returns the signals of the last turn, from its memento or else from the turn.
fn signals_text(thread: &Thread, last: &ProcessedTurn) -> String {
    let kept = thread
        .latest
        .as_ref()
        .and_then(|memento| memento.signals.as_ref());
    let names: Vec<String> = match kept {
        Some(signals) if !thread.edited => {
            let items = signals.items.iter();
            let names = items.map(|signal| {
                let (sure, by) = (signal.confidence.as_str(), signal.source.as_str());
                let name = signal.kind.as_str().replace('_', " ");
                format!("{name} {sure}/{by}")
            });
            names.collect()
        }
        Some(_) | None => last
            .signals
            .iter()
            .map(|signal| signal.as_str().replace('_', " "))
            .collect(),
    };
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

fn inputs(last: &ProcessedTurn) -> String {
    let word = |truth: bool| if truth { "YES" } else { "no" };
    format!(
        "context pressure {}  drift {}  ack-only {}  summary changed {}",
        word(last.given.context_pressure),
        word(last.given.drift_risk),
        ack_only(last),
        word(last.given.summary_changed)
    )
}

/// Tells if the turn was only an acknowledgement, if that was evaluated: an earlier matching rule ends the
/// evaluation.
fn ack_only(last: &ProcessedTurn) -> &'static str {
    if last.signals.contains(&SignalKind::AckOnly) {
        return "YES";
    }
    match last.decided.rule {
        DecisionRule::Acknowledgment => "YES",
        DecisionRule::Default => "no",
        DecisionRule::SummaryChanged
        | DecisionRule::MustSignal
        | DecisionRule::ShouldSignal
        | DecisionRule::PressureOrDrift => "-",
    }
}

fn guardrail(
    thread: &Thread,
    cells: usize,
    appearance: Appearance,
    now: Timestamp,
) -> Vec<Span<'static>> {
    let count = usize::try_from(thread.held_back_count).unwrap_or(usize::MAX);
    let held_back = format!("{count} saved for later");
    let Some(since) = thread.frozen_since else {
        let text = if count == 0 {
            "not frozen: the summary updates normally".to_owned()
        } else {
            format!("not frozen; {} saved for later", counted(count, "update"))
        };
        return vec![Span::styled(text, appearance.style(Meaning::Text))];
    };
    let minutes = now.since(since).as_secs() / 60;
    let lasting = if cells >= 64 {
        format!(" ({minutes} min)")
    } else {
        String::new()
    };
    let since = since.time_of_day();
    let text = if cells >= 58 {
        format!(" since {since}{lasting}, {held_back}")
    } else {
        format!(" since {since}, {count} for later")
    };
    vec![
        Span::styled("*** SUMMARY FROZEN ***", appearance.style(Meaning::Frozen)),
        Span::raw(text),
    ]
}

fn formula_text(last: &ProcessedTurn) -> String {
    let word = |truth: bool| if truth { "TRUE" } else { "FALSE" };
    let freeze = last.freeze;
    format!(
        "({} or {}) and {} = {}",
        word(freeze.peak),
        word(freeze.high),
        word(!freeze.must),
        word(freeze.is_frozen())
    )
}

/// Describes what would end the freeze, while the summary is frozen.
fn thaw_text(thread: &Thread, last: &ProcessedTurn) -> Option<&'static str> {
    let thawed_by = thread.thaw_condition()?;
    Some(thaw_condition_text(thawed_by, last.after))
}

/// Describes what would end a freeze. The guardrail uses the intensity before a turn: a turn that cools the
/// conversation down is still held back, and the next one is not.
pub(super) fn thaw_condition_text(
    thawed_by: ThawCondition,
    after: (AffectPhase, Intensity),
) -> &'static str {
    let (phase, intensity) = after;
    if phase == AffectPhase::Peak || intensity == Intensity::High {
        return thawed_by.description();
    }
    "the next turn: phase and intensity have dropped"
}
