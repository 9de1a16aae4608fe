//! Painting of the session overview, the replay position, and the session state there.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::TraceScreen;
use super::super::open_session::{OpenSession, Playback};
use super::{TraceLayout, join_parts, minimap};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, counted, width};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::trace::replay::ReplayState;
use crate::trace::replay::state::ReplayPhase;

/// Maximum number of names shown of a list.
const MAX_NAMES: usize = 4;

pub(super) fn draw(
    trace: &TraceScreen,
    opened: &OpenSession,
    frame: &mut Frame,
    area: Rect,
    shape: TraceLayout,
    appearance: Appearance,
) {
    match shape {
        TraceLayout::Wide => draw_panel(trace, opened, frame, area, appearance),
        TraceLayout::Stacked | TraceLayout::Single => {
            let cells = usize::from(area.width);
            let mut words = format!(" {} ", position(opened));
            if shape == TraceLayout::Stacked {
                let held = opened.state().map_or_else(String::new, short_state_text);
                words = format!(
                    "{words}{} {} ",
                    appearance.mark(Mark::Bullet),
                    clip(&held, cells / 3, appearance)
                );
            }
            let map = minimap::line(
                trace,
                opened,
                cells.saturating_sub(width(&words) + 1),
                appearance,
            );
            let mut spans = vec![Span::styled(words, appearance.style(Meaning::Label))];
            spans.extend(map);
            frame.render_widget(Line::from(spans), area);
        }
    }
}

fn draw_panel(
    trace: &TraceScreen,
    opened: &OpenSession,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let title = Line::styled(" Replay ", appearance.style(Meaning::Title));
    let block = appearance.panel(Focus::Elsewhere).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    let label = |text: &'static str| Span::styled(text, appearance.style(Meaning::Label));
    let sums = totals_text(opened, appearance);
    let room = cells.saturating_sub(9 + width(&sums) + 2);
    let mut first = vec![label("SESSION  "), Span::raw(format!("{sums}  "))];
    first.extend(minimap::line(trace, opened, room, appearance));
    let stop = format!(
        "{}   stop on: {} (s)   , . step   Space {}",
        position(opened),
        opened.stop_on.words(),
        match opened.play {
            Playback::Paused => "play",
            Playback::Playing(_) => "pause",
        }
    );
    let second = vec![
        label("REPLAY   "),
        Span::raw(clip(&stop, cells.saturating_sub(9), appearance)),
    ];
    let at = format!("STATE@{} ", opened.place);
    let room = cells.saturating_sub(width(&at).max(9));
    let (held, meaning) = state_text(opened, room, appearance);
    let third = vec![
        Span::styled(format!("{at:<9}"), appearance.style(Meaning::Label)),
        Span::styled(held, appearance.style(meaning)),
    ];
    let lines: Vec<Line> = [first, second, third].into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn position(opened: &OpenSession) -> String {
    let last = opened.total().saturating_sub(1);
    let word = match opened.play {
        Playback::Paused => "paused",
        Playback::Playing(_) => "PLAYING",
    };
    format!("{word} at {} of {last}", opened.place)
}

fn totals_text(opened: &OpenSession, appearance: Appearance) -> String {
    let tally = opened.outline.tally();
    let count =
        |number: u64, noun: &str| counted(usize::try_from(number).unwrap_or(usize::MAX), noun);
    let parts = [
        count(tally.waits, "checkpoint"),
        format!("{} signed", tally.signed),
        format!("{} denied", tally.denied),
        format!("{} expired/withdrawn", tally.lapsed),
        format!("{} missing", tally.missing),
    ];
    join_parts(&parts, appearance)
}

/// Describes the session state at the cursor.
fn state_text(opened: &OpenSession, cells: usize, appearance: Appearance) -> (String, Meaning) {
    let Some(state) = opened.state() else {
        return ("computing...".to_owned(), Meaning::Dim);
    };
    let words = join_parts(&state_facts(state), appearance);
    let meaning = if state.held.is_empty() {
        Meaning::Text
    } else {
        Meaning::Waiting
    };
    (clip(&words, cells, appearance), meaning)
}

/// Describes the held requests, or else the phase of the session.
fn short_state_text(state: &ReplayState) -> String {
    match state.held.first() {
        None => state.phase.text().to_owned(),
        Some(held) => {
            let first = held.approved.as_ref();
            let first = first.map(|approval| format!(" (1 of 2: {})", one_line(&approval.by)));
            let what = one_line(&held.what);
            format!("held: {what}{}", first.unwrap_or_default())
        }
    }
}

fn state_facts(state: &ReplayState) -> Vec<String> {
    let names = |list: Vec<&str>| {
        let more = list.len().saturating_sub(MAX_NAMES);
        let first = list.iter().take(MAX_NAMES);
        let mut words = first
            .map(|name| one_line(name))
            .collect::<Vec<_>>()
            .join(", ");
        if list.is_empty() {
            "none".clone_into(&mut words);
        } else if more > 0 {
            words = format!("{words} +{more}");
        }
        words
    };
    let held = state.held.iter().map(|held| held.what.as_str()).collect();
    let unlocked = state.unlocked.iter().map(String::as_str).collect();
    let locked = state.locked.iter().map(String::as_str).collect();
    let contexts = state.contexts.keys().map(String::as_str).collect();
    let phase = match state.phase {
        // The held requests follow in the text.
        ReplayPhase::Held => "working",
        phase @ (ReplayPhase::Unstarted
        | ReplayPhase::AtStart
        | ReplayPhase::StartLapsed
        | ReplayPhase::StartRefused
        | ReplayPhase::Working
        | ReplayPhase::Ended) => phase.text(),
    };
    let mut facts = vec![
        phase.to_owned(),
        format!("held: {}", names(held)),
        format!("unlocked: {}", names(unlocked)),
        format!("locked: {}", names(locked)),
        format!("contexts: {}", names(contexts)),
    ];
    let frozen = state.threads.iter().filter(|(_, thread)| thread.frozen);
    let frozen: Vec<_> = frozen.map(|(id, _)| id.as_str()).collect();
    if !frozen.is_empty() {
        facts.push(format!("summary frozen: {}", names(frozen)));
    }
    facts
}
