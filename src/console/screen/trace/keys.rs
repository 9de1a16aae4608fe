//! Keys of the record screen.

use ratatui::crossterm::event::KeyCode;

use crate::console::keymap::{
    DOWN, ENTER, FIRST, KeyCombination, KeyScope, LAST, NEXT, PAGE_DOWN, PAGE_UP, PREVIOUS, UP,
    WHY, bindings,
};
use crate::console::screen::{ScreenDefinition, ScreenId};

/// Name, number key and key bindings of the screen.
pub(crate) const DEFINITION: ScreenDefinition = ScreenDefinition {
    title: "Trace",
    number: '2',
    label: "trace",
    help: "Trace: sessions and their events",
    related_scopes: &[KeyScope::Line, KeyScope::Prompt, KeyScope::Palette],
    bindings: bindings! {
        KeyScope::Screen(ScreenId::Trace) => {
            ENTER => Open, Shown, "open", "open the session or the event, or fold";
            &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(TraceKey::Fold), Shown, "fold", "collapse the row, or go to its parent";
            &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(TraceKey::Unfold), Hidden, "unfold", "expand the row";
            &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(TraceKey::FoldLevel), Shown, "level", "collapse to one level, to the next, then expand all";
            &[KeyCombination::plain(KeyCode::Char('f'))] => Browse(TraceKey::Filter), Shown, "filter",
                "filter: words, type:x (Tab completes), risk>=high, actor:x";
            &[KeyCombination::plain(KeyCode::Char('/'))] => Browse(TraceKey::Search), Shown, "search", "search for a text; hides nothing";
            &[KeyCombination::plain(KeyCode::Char('n'))] => Browse(TraceKey::SearchNext), Hidden, "next hit", "next match";
            &[KeyCombination::plain(KeyCode::Char('N'))] => Browse(TraceKey::SearchPrevious), Hidden, "previous hit", "previous match";
            &[KeyCombination::plain(KeyCode::Char('v'))] => Verify, Shown, "verify", "verify every chain from its first event to its last";
            &[KeyCombination::plain(KeyCode::Char('['))] => Browse(TraceKey::CheckpointBefore), Hidden, "previous checkpoint", "previous checkpoint";
            &[KeyCombination::plain(KeyCode::Char(']'))] => Browse(TraceKey::CheckpointAfter), Shown, "checkpoint", "next checkpoint";
            &[KeyCombination::plain(KeyCode::Char(','))] => Browse(TraceKey::StepBack), Hidden, "step back", "previous event, ignoring folds and filters";
            &[KeyCombination::plain(KeyCode::Char('.'))] => Browse(TraceKey::StepOn), Shown, "step", "next event, ignoring folds and filters";
            &[KeyCombination::plain(KeyCode::Char(' '))] => Browse(TraceKey::Play), Shown, "play", "replay the session from here, or pause";
            &[KeyCombination::plain(KeyCode::Char('s'))] => Browse(TraceKey::StopOn), Hidden, "stop on", "replay stops at: checkpoints and denials, denials, never";
            &[KeyCombination::plain(KeyCode::Char('F'))] => Browse(TraceKey::Follow), Hidden, "follow", "follow new events at the end";
            &[KeyCombination::plain(KeyCode::Char('m'))] => Browse(TraceKey::Mark), Hidden, "mark", "mark the event with the letter you type next";
            &[KeyCombination::plain(KeyCode::Char('\''))] => Browse(TraceKey::Jump), Hidden, "jump", "go to the event with the mark you type next";
            &[KeyCombination::plain(KeyCode::Char('D'))] => Browse(TraceKey::Compare), Shown, "diff", "compare the session with another one";
            &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(TraceKey::Copy), Shown, "copy", "copy the event, the value or the session's name";
            &[KeyCombination::plain(KeyCode::Char('E'))] => Browse(TraceKey::Export), Shown, "export", "export the session: jsonl, csv, html, otlp or golden";
            &[KeyCombination::plain(KeyCode::Char('R'))] => Browse(TraceKey::Raw), Hidden, "raw", "show the event as recorded, or in words";
            WHY => Explain, Hidden, "why", "explain why the event's request was or would be held";
            NEXT => Next, Hidden, "next pane", "next pane: events, event";
            PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
            &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "reload", "reload the record, or continue a stopped read";
            UP => Up, Hidden, "up", "one row up";
            DOWN => Down, Hidden, "down", "one row down";
            FIRST => First, Hidden, "first", "first row";
            LAST => Last, Hidden, "last", "last row, and follow new events";
            PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
            PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        }
    },
};

/// Command of the record screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKey {
    Search,
    SearchNext,
    SearchPrevious,
    Filter,
    Copy,
    Fold,
    Unfold,
    FoldLevel,
    CheckpointBefore,
    CheckpointAfter,
    StepBack,
    StepOn,
    Play,
    StopOn,
    Follow,
    Mark,
    /// Shows the event as recorded, or in words.
    Raw,
    Jump,
    Compare,
    Export,
}
