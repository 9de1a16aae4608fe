//! Keys of the queue screen.

use ratatui::crossterm::event::KeyCode;

use crate::console::keymap::{
    DOWN, ENTER, FIRST, KeyCombination, KeyScope, LAST, PAGE_DOWN, PAGE_UP, UP, WHY, bindings,
};
use crate::console::screen::{ScreenDefinition, ScreenId};

/// Name, number key and key bindings of the screen.
pub(crate) const DEFINITION: ScreenDefinition = ScreenDefinition {
    title: "Queue",
    number: '1',
    label: "queue",
    help: "Queue: held requests",
    related_scopes: &[
        KeyScope::Gate,
        KeyScope::Request,
        KeyScope::Text,
        KeyScope::Json,
        KeyScope::Pick,
        KeyScope::Choice,
    ],
    bindings: bindings! {
        KeyScope::Screen(ScreenId::Queue) => {
            ENTER => Open, Shown, "open", "open the selected request (decides nothing)";
            &[KeyCombination::plain(KeyCode::Char('d'))] => Deny, Shown, "deny",
                "deny the request (asks for a reason first)";
            &[KeyCombination::plain(KeyCode::Char('c'))] => Queue(QueueKey::Claim), Shown, "claim",
                "claim or release the request (decides nothing)";
            &[KeyCombination::plain(KeyCode::Char('u'))] => Merge, Shown, "new",
                "show new requests in the list";
            &[KeyCombination::plain(KeyCode::Char(' '))] => Queue(QueueKey::Mark), Shown, "mark",
                "mark for a batch (low or medium risk only)";
            &[KeyCombination::plain(KeyCode::Char('B'))] => Queue(QueueKey::Batch), Shown, "batch",
                "answer the marked requests (one record each)";
            &[KeyCombination::plain(KeyCode::Char('f'))] => Queue(QueueKey::Filter), Shown, "filter",
                "filter: words, risk>=high, agent:x, action:x, state:x, -x";
            &[KeyCombination::plain(KeyCode::Char('t'))] => Queue(QueueKey::InTrace), Shown, "trace", "show the session of the request in the record";
            &[KeyCombination::plain(KeyCode::Char('o'))] => Queue(QueueKey::Sort), Hidden, "sort", "sort by risk, deadline, age or agent";
            &[KeyCombination::plain(KeyCode::Char('J'))] => Queue(QueueKey::NextDue), Hidden, "next due", "go to the request that is due next";
            &[KeyCombination::plain(KeyCode::Char('/'))] => Queue(QueueKey::Search), Hidden, "search", "search the rows, with the syntax of the filter";
            &[KeyCombination::plain(KeyCode::Char('n'))] => Queue(QueueKey::NextMatch), Hidden, "next match", "next matching row";
            &[KeyCombination::plain(KeyCode::Char('N'))] => Queue(QueueKey::PreviousMatch), Hidden, "previous match", "previous matching row";
            &[KeyCombination::plain(KeyCode::Char('y'))] => Queue(QueueKey::Copy), Hidden, "copy", "copy the identifier of the request";
            &[KeyCombination::plain(KeyCode::Char('Y'))] => Queue(QueueKey::CopyHash), Hidden, "copy hash", "copy the hash of the request";
            WHY => Explain, Shown, "why", "explain why the request is held, rule by rule";
            UP => Up, Hidden, "up", "one row up";
            DOWN => Down, Hidden, "down", "one row down";
            FIRST => First, Hidden, "first", "first row";
            LAST => Last, Hidden, "last", "last row";
            PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
            PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        }
    },
};

/// Queue command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKey {
    Mark,
    Claim,
    Batch,
    InTrace,
    Sort,
    NextDue,
    Filter,
    Search,
    NextMatch,
    PreviousMatch,
    Copy,
    CopyHash,
}
