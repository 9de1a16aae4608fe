//! Keys of the conversations screen.

use ratatui::crossterm::event::KeyCode;

use crate::console::keymap::{
    DOWN, ENTER, FIRST, KeyCombination, KeyScope, LAST, NEXT, PAGE_DOWN, PAGE_UP, PREVIOUS, UP,
    bindings,
};
use crate::console::screen::{ScreenDefinition, ScreenId};

/// Name, number key and key bindings of the screen.
pub(crate) const DEFINITION: ScreenDefinition = ScreenDefinition {
    title: "Threads",
    number: '3',
    label: "threads",
    help: "Threads: summaries, intensity, saved proposals",
    related_scopes: &[KeyScope::Snapshot],
    bindings: bindings! {
        KeyScope::Screen(ScreenId::Threads) => {
            ENTER => Open, Shown, "open", "open the memento, or the event of a turn";
            &[KeyCombination::plain(KeyCode::Char('>')), KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Thread(ThreadKey::Next), Shown, "thread", "next thread";
            &[KeyCombination::plain(KeyCode::Char('<')), KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Thread(ThreadKey::Previous), Hidden, "previous thread", "previous thread";
            &[KeyCombination::plain(KeyCode::Char('='))] => Thread(ThreadKey::Differ), Shown, "diff", "compare saved proposals with the memento, or return";
            &[KeyCombination::plain(KeyCode::Char('b'))] => Thread(ThreadKey::History), Shown, "history", "go to the turns of the thread";
            &[KeyCombination::plain(KeyCode::Char('t'))] => Thread(ThreadKey::InTrace), Shown, "trace", "show the session of the thread in the record";
            &[KeyCombination::plain(KeyCode::Char('y'))] => Thread(ThreadKey::Copy), Shown, "copy", "copy the memento as JSON";
            &[KeyCombination::plain(KeyCode::Char('e'))] => Thread(ThreadKey::Edit), Shown, "edit",
                "edit the summary in $VISUAL or $EDITOR (recorded)";
            &[KeyCombination::plain(KeyCode::Char('s'))] => Thread(ThreadKey::WriteSnapshot), Shown, "save",
                "write a snapshot file of the session and open it";
            &[KeyCombination::plain(KeyCode::Char('w'))] => Thread(ThreadKey::Drift), Shown, "drift", "flag drift in the thread (asks first, recorded)";
            &[KeyCombination::plain(KeyCode::Char('p'))] => Thread(ThreadKey::Legend), Shown, "legend", "explain phases, intensities, decisions and signals";
            &[KeyCombination::plain(KeyCode::Char('o'))] => Thread(ThreadKey::OpenSnapshot), Hidden, "open snapshot", "open a snapshot file";
            &[KeyCombination::plain(KeyCode::Char('/'))] => Thread(ThreadKey::Search), Hidden, "search",
                "search threads by name, session, summary or proposal";
            &[KeyCombination::plain(KeyCode::Char('n'))] => Thread(ThreadKey::NextMatch), Hidden, "next match", "next matching thread";
            &[KeyCombination::plain(KeyCode::Char('N'))] => Thread(ThreadKey::PreviousMatch), Hidden, "previous match", "previous matching thread";
            NEXT => Next, Hidden, "next pane", "next pane: threads, memento, history";
            PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
            UP => Up, Hidden, "up", "one row up";
            DOWN => Down, Hidden, "down", "one row down";
            FIRST => First, Hidden, "first", "first row";
            LAST => Last, Hidden, "last", "last row";
            PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
            PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        }
    },
};

/// Conversations command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadKey {
    /// Selects the next conversation in the list.
    Next,
    /// Selects the previous conversation in the list.
    Previous,
    /// Shows all differences between the stored summary and the proposed ones.
    Differ,
    /// Moves the focus to the turns of the conversation.
    History,
    /// Shows the conversation's session in the record.
    InTrace,
    /// Copies the conversation's memento.
    Copy,
    /// Opens the conversation's summary in an editor.
    Edit,
    /// Reports that the conversation drifts, after confirmation.
    Drift,
    /// Explains the terms on the screen.
    Legend,
    /// Opens a snapshot file.
    OpenSnapshot,
    /// Writes a snapshot file of the conversation's session.
    WriteSnapshot,
    /// Starts a search for a conversation.
    Search,
    /// Selects the next conversation that matches.
    NextMatch,
    /// Selects the previous conversation that matches.
    PreviousMatch,
}
