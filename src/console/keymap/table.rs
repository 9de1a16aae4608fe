//! Rows of the table that belong to no screen, and the macro that builds rows. Each screen keeps its own rows in its
//! folder.

use ratatui::crossterm::event::KeyCode;

use super::{KeyBinding, KeyCombination, KeyScope, SnapshotKey};

pub(crate) const UP: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Up),
    KeyCombination::plain(KeyCode::Char('k')),
];
pub(crate) const DOWN: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Down),
    KeyCombination::plain(KeyCode::Char('j')),
];
pub(crate) const FIRST: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Home),
    KeyCombination::plain(KeyCode::Char('g')),
];
pub(crate) const LAST: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::End),
    KeyCombination::plain(KeyCode::Char('G')),
];
pub(crate) const PAGE_UP: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::PageUp),
    KeyCombination::ctrl('u'),
];
pub(crate) const PAGE_DOWN: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::PageDown),
    KeyCombination::ctrl('d'),
];
pub(crate) const NEXT: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Tab)];
pub(crate) const PREVIOUS: &[KeyCombination] = &[KeyCombination::plain(KeyCode::BackTab)];
pub(crate) const ENTER: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Enter)];
pub(crate) const WHY: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Char('x'))];
const ESC: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Esc)];

/// Builds rows of the key table: the scope, then one row per binding with its keys, action, footer visibility,
/// label and help.
macro_rules! bindings {
    ($($scope:expr => { $( $keys:expr => $action:ident $(( $command:expr ))?, $footer:ident, $label:literal, $help:literal; )* })*) => {
        &[$($( $crate::console::keymap::KeyBinding {
            scope: $scope,
            keys: $keys,
            action: $crate::console::keymap::KeyAction::$action $(( $command ))?,
            label: $label,
            help: $help,
            footer: $crate::console::keymap::FooterVisibility::$footer,
        }, )*)*]
    };
}
pub(crate) use bindings;

/// Bindings that belong to no screen.
pub(super) static SHARED_BINDINGS: &[KeyBinding] = bindings! {
    KeyScope::Snapshot => {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char('l'))] => Next, Shown, "next step", "next step";
        &[KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Char('h'))] => Previous, Hidden, "previous step", "previous step";
        &[KeyCombination::plain(KeyCode::Char('1'))] => Snapshot(SnapshotKey::Retrieve), Hidden, "retrieve", "phase 1: the content of the file, in order";
        &[KeyCombination::plain(KeyCode::Char('2'))] => Snapshot(SnapshotKey::Infer), Hidden, "infer", "phase 2: conclusions from the content";
        &[KeyCombination::plain(KeyCode::Char('3'))] => Snapshot(SnapshotKey::Validate), Hidden, "validate", "phase 3: clear points, gaps, and questions to ask first";
        &[KeyCombination::plain(KeyCode::Char('4'))] => Snapshot(SnapshotKey::Engage), Hidden, "engage", "phase 4: the text to continue with";
        &[KeyCombination::plain(KeyCode::Char('5'))] => Snapshot(SnapshotKey::Artifacts), Hidden, "artifacts", "artifacts that can be loaded";
        ENTER => Open, Shown, "load", "load the selected artifact";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Snapshot(SnapshotKey::Copy), Shown, "copy", "copy the text to continue with";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Snapshot(SnapshotKey::Write), Shown, "write", "write a snapshot of the selected thread and open it";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Snapshot(SnapshotKey::Other), Shown, "other file", "open another file";
        DOWN => Down, Hidden, "down", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "beginning";
        LAST => Last, Hidden, "last", "end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "back", "back to the list, or close";
    }
    KeyScope::WhatIf => {
        NEXT => Next, Shown, "next", "next field";
        PREVIOUS => Previous, Hidden, "previous field", "previous field";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scroll the answer down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scroll the answer up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "close", "close the form";
    }
    KeyScope::Load => {
        NEXT => Next, Shown, "next", "next button or text field";
        PREVIOUS => Previous, Hidden, "previous button", "previous button or text field";
        ENTER => Press, Shown, "press", "press the focused button";
        &[KeyCombination::plain(KeyCode::PageDown), KeyCombination::plain(KeyCode::Down)] => PageDown, Shown, "scroll", "scroll the changes down";
        &[KeyCombination::plain(KeyCode::PageUp), KeyCombination::plain(KeyCode::Up)] => PageUp, Hidden, "scroll up", "scroll up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "keep", "keep the loaded Atlas";
    }
    KeyScope::Explain => {
        DOWN => Down, Shown, "scroll", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "beginning";
        LAST => Last, Hidden, "last", "end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        &[KeyCombination::plain(KeyCode::Esc), KeyCombination::plain(KeyCode::Char('x'))] => Back, Shown, "close", "close the explanation";
    }
    KeyScope::Line => {
        ENTER => Press, Shown, "done", "accept the line";
        &[KeyCombination::plain(KeyCode::Up)] => Up, Shown, "earlier", "previous line of the history";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "later", "next line of the history";
        &[KeyCombination::plain(KeyCode::Tab)] => Next, Hidden, "complete", "complete the event type in a filter of the record";
        ESC => Back, Shown, "close", "close the line without a change";
    }
    KeyScope::Global => {
        &[KeyCombination::plain(KeyCode::Char(':'))] => Palette, Hidden, "palette", "find a command by name (decides nothing)";
        &[KeyCombination::plain(KeyCode::F(2))] => Mouse, Hidden, "mouse", "mouse on or off (a click never decides)";
        &[KeyCombination::plain(KeyCode::Char('?')), KeyCombination::plain(KeyCode::F(1))] => Help, Shown, "help", "this help; type to search it";
        &[KeyCombination::plain(KeyCode::Char('q'))] => Quit, Shown, "quit", "quit (asks first while requests are held)";
        ESC => Back, Hidden, "back", "go back one level (never quits)";
        &[KeyCombination::ctrl('c')] => Cancel, Hidden, "cancel", "go back one level; twice in a second quits";
        &[KeyCombination::ctrl('l')] => Redraw, Hidden, "redraw", "redraw the screen";
        &[KeyCombination::plain(KeyCode::F(3))] => Restore, Hidden, "dialog", "restore a minimised dialog";
        &[KeyCombination::plain(KeyCode::F(8))] => KnowAlarms, Hidden, "ack alarms", "acknowledge the alarms; new ones ring again";
        &[KeyCombination::ctrl('z')] => Suspend, Hidden, "suspend", "suspend; `fg` in the shell returns";
    }
    KeyScope::Gate => {
        NEXT => Next, Shown, "next", "next field or button";
        PREVIOUS => Previous, Hidden, "previous field", "previous field or button";
        ENTER => Press, Shown, "press", "press the focused button; in a text, start a new line";
        &[KeyCombination::plain(KeyCode::F(6))] => SwitchPane, Shown, "request", "switch between request and answers";
        ESC => Back, Shown, "back", "go back; the draft is kept";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scroll the request or the review down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scroll up";
        &[KeyCombination::ctrl('s')] => Review, Shown, "review", "continue to the review (never decides)";
        &[KeyCombination::ctrl('e')] => EditOutside, Shown, "editor",
            "edit the text in $VISUAL or $EDITOR (not sensitive answers)";
        &[KeyCombination::plain(KeyCode::F(7))] => Explain, Hidden, "why", "explain why the request is held, rule by rule";
        &[KeyCombination::plain(KeyCode::F(3))] => Minimise, Shown, "minimise", "minimise the dialog; F3 restores it";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
    }
    KeyScope::Request => {
        &[KeyCombination::plain(KeyCode::Char('/'))] => SearchRequest, Shown, "search", "search the request; Enter ends typing";
        WHY => Explain, Shown, "why", "explain why the request is held";
        &[KeyCombination::plain(KeyCode::Char('n'))] => NextMatch, Shown, "next match", "next match";
        &[KeyCombination::plain(KeyCode::Char('N'))] => PreviousMatch, Hidden, "previous match", "previous match";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "beginning of the request";
        LAST => Last, Hidden, "last", "go to the end; skipped rows do not count as seen";
    }
    KeyScope::Text => {
        &[KeyCombination::ctrl('u')] => Undo, Hidden, "undo", "undo the last change";
        &[KeyCombination::ctrl('r')] => Redo, Hidden, "redo", "redo the change";
    }
    KeyScope::Json => {
        &[KeyCombination::plain(KeyCode::F(4))] => Skeleton, Shown, "skeleton", "fill an empty answer with the schema's fields";
    }
    KeyScope::Pick => {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "previous option (does not choose)";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "down", "next option";
        &[KeyCombination::plain(KeyCode::Enter), KeyCombination::plain(KeyCode::Char(' ')),
            KeyCombination::plain(KeyCode::Char('1')), KeyCombination::plain(KeyCode::Char('2')), KeyCombination::plain(KeyCode::Char('3')),
            KeyCombination::plain(KeyCode::Char('4')), KeyCombination::plain(KeyCode::Char('5')), KeyCombination::plain(KeyCode::Char('6')),
            KeyCombination::plain(KeyCode::Char('7')), KeyCombination::plain(KeyCode::Char('8')), KeyCombination::plain(KeyCode::Char('9'))]
            => Choose, Hidden, "choose",
            "choose the option; type to filter, Esc clears the filter";
    }
    KeyScope::Choice => {
        &[KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char(' '))]
            => Choose, Hidden, "choose", "switch between yes and no";
    }
    KeyScope::Prompt => {
        ENTER => Press, Shown, "keep", "keep the typed text";
        ESC => Back, Shown, "restore", "restore the earlier text";
    }
    KeyScope::Palette => {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "previous command";
        &[KeyCombination::plain(KeyCode::Down), KeyCombination::plain(KeyCode::Tab)] => Down, Shown, "next", "next command";
        ENTER => Open, Shown, "run", "run the selected command (never a decision)";
        ESC => Back, Shown, "close", "close the palette";
    }
    KeyScope::Help => {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "one row up";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Shown, "scroll", "one row down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "page up", "ten rows up";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Hidden, "page down", "ten rows down";
        ESC => Back, Shown, "close", "close the help";
    }
    KeyScope::Quit => {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right)]
            => Next, Shown, "other button", "move between the buttons";
        ENTER => Press, Shown, "press", "press the focused button";
        ESC => Back, Shown, "cancel", "cancel, and stay in the console";
    }
};
