//! The one table of keys. The footer, the help and the key list of the README are made from it.
//!
//! Contract: within a scope a key means one thing, and no printable key is bound to an action that
//! can decide. Both are held by tests.

use std::fmt::Write as _;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

mod motion;
mod snapshot;
mod steward;
mod table;
mod thread;

pub(crate) use motion::Motion;
pub(crate) use snapshot::SnapshotKey;
pub(crate) use steward::StewardKey;
pub(crate) use table::BINDINGS;
pub(crate) use thread::ThreadKey;

/// Where a key has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every screen, while no dialog is open.
    Global,
    /// The queue.
    Queue,
    /// The record.
    Trace,
    /// The conversations.
    Threads,
    /// A snapshot file.
    Snapshot,
    /// The Atlases.
    Atlas,
    /// An explanation.
    Explain,
    /// A request that is only imagined.
    WhatIf,
    /// Whether to load other Atlases.
    Load,
    /// The dialog in which a request is decided.
    Gate,
    /// A text of that dialog.
    Text,
    /// An empty JSON answer of that dialog.
    Json,
    /// A question of that dialog with options.
    Pick,
    /// A yes/no question of that dialog.
    Choice,
    /// The request that the dialog shows.
    Request,
    /// A line that is typed: a filter, or what is looked for.
    Prompt,
    /// The palette.
    Palette,
    /// The help.
    Help,
    /// A line in which something is typed: at the top of the record, or a path.
    Line,
    /// The question whether to leave.
    Quit,
}

impl Scope {
    /// Every scope, in the order the help shows them.
    pub(crate) const ALL: [Self; 20] = [
        Self::Global,
        Self::Queue,
        Self::Gate,
        Self::Request,
        Self::Text,
        Self::Json,
        Self::Pick,
        Self::Choice,
        Self::Trace,
        Self::Line,
        Self::Prompt,
        Self::Palette,
        Self::Threads,
        Self::Snapshot,
        Self::Atlas,
        Self::WhatIf,
        Self::Load,
        Self::Explain,
        Self::Help,
        Self::Quit,
    ];

    /// The scope's name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Global => "Everywhere",
            Self::Queue => "Queue",
            Self::Trace => "Trace",
            Self::Threads => "Threads",
            Self::Snapshot => "Snapshot file",
            Self::Line => "Line that is typed",
            Self::Atlas => "Atlas",
            Self::WhatIf => "What if",
            Self::Load => "Loading",
            Self::Explain => "Explanation",
            Self::Gate => "Decision dialog",
            Self::Text => "Text",
            Self::Json => "JSON answer",
            Self::Pick => "Choice question",
            Self::Choice => "Yes/no question",
            Self::Request => "Request pane",
            Self::Prompt => "Filter and search",
            Self::Palette => "Palette",
            Self::Help => "Help",
            Self::Quit => "Leaving",
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    ShowQueue,
    ShowTrace,
    ShowThreads,
    ShowAtlas,
    /// Says why, checkpoint by checkpoint.
    Explain,
    /// Asks what would come of something that is only imagined.
    WhatIf,
    NextProblem,
    PreviousProblem,
    NextSession,
    PreviousSession,
    Help,
    Quit,
    Cancel,
    Redraw,
    Suspend,
    Back,
    Up,
    Down,
    First,
    Last,
    PageUp,
    PageDown,
    Next,
    Previous,
    Open,
    Deny,
    Merge,
    Verify,
    Reload,
    Review,
    SwitchPane,
    Choose,
    Undo,
    Redo,
    /// Hands the focused text to the operator's editor.
    EditOutside,
    /// Begins an answer with what its schema says.
    Skeleton,
    /// Puts the dialog aside.
    Minimise,
    /// Brings it back.
    Restore,
    SearchRequest,
    NextMatch,
    PreviousMatch,
    /// Something in the record.
    Browse(Browse),
    /// Presses the focused button.
    Press,
    /// Of the queue.
    Queue(QueueKey),
    /// Of the steward.
    Steward(StewardKey),
    /// Of a conversation.
    Thread(ThreadKey),
    /// Of a snapshot file.
    Snapshot(SnapshotKey),
    /// Opens the palette.
    Palette,
    /// Takes the mouse, or gives it back.
    Mouse,
    /// Says that the operator knows of the alarms.
    KnowAlarms,
}

/// What a key of the queue does, beside what keys do in other lists too.
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

impl Action {
    /// The move it is, if it is one.
    pub(crate) fn motion(self) -> Option<Motion> {
        match self {
            Self::Up => Some(Motion::Up),
            Self::Down => Some(Motion::Down),
            Self::First => Some(Motion::First),
            Self::Last => Some(Motion::Last),
            Self::PageUp => Some(Motion::PageUp),
            Self::PageDown => Some(Motion::PageDown),
            Self::ShowQueue
            | Self::ShowTrace
            | Self::ShowThreads
            | Self::ShowAtlas
            | Self::Explain
            | Self::WhatIf
            | Self::NextProblem
            | Self::PreviousProblem
            | Self::NextSession
            | Self::PreviousSession
            | Self::Help
            | Self::Quit
            | Self::Cancel
            | Self::Redraw
            | Self::Suspend
            | Self::Back
            | Self::Next
            | Self::Previous
            | Self::Open
            | Self::Deny
            | Self::Merge
            | Self::Verify
            | Self::Reload
            | Self::Review
            | Self::SwitchPane
            | Self::Choose
            | Self::Undo
            | Self::Redo
            | Self::EditOutside
            | Self::Skeleton
            | Self::Minimise
            | Self::Restore
            | Self::SearchRequest
            | Self::NextMatch
            | Self::PreviousMatch
            | Self::Browse(_)
            | Self::Queue(_)
            | Self::Steward(_)
            | Self::Thread(_)
            | Self::Snapshot(_)
            | Self::Palette
            | Self::Mouse
            | Self::KnowAlarms
            | Self::Press => None,
        }
    }

    /// Whether a decision can come of it: only pressing a focused button can.
    #[cfg(test)]
    pub(crate) fn can_decide(self) -> bool {
        self == Self::Press
    }
}

/// What a key does in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Browse {
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
    Jump,
    Compare,
    Export,
}

/// A key with the modifiers that must be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Key {
    const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: KeyModifiers::NONE,
        }
    }

    const fn ctrl(letter: char) -> Self {
        Self {
            code: KeyCode::Char(letter),
            modifiers: KeyModifiers::CONTROL,
        }
    }

    /// Whether typing it would put a character into a text.
    #[cfg(test)]
    pub(crate) fn is_printable(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && self.modifiers.is_empty()
    }

    /// The press of it.
    #[cfg(test)]
    pub(crate) fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    fn matches(self, event: KeyEvent) -> bool {
        // Shift is part of the character, or of BackTab, and says nothing more.
        let held = event.modifiers.difference(KeyModifiers::SHIFT);
        self.code == event.code && self.modifiers == held
    }

    /// The key as people write it.
    pub(crate) fn name(self) -> String {
        match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.modifiers.contains(KeyModifiers::CONTROL) => {
                format!("Ctrl-{}", c.to_ascii_uppercase())
            }
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::BackTab => "Shift-Tab".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            code => code.to_string(),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    /// Where it holds.
    pub(crate) scope: Scope,
    /// The keys; the first is the one the footer shows.
    pub(crate) keys: &'static [Key],
    /// What they do.
    pub(crate) action: Action,
    /// That, in a word or two, for the footer.
    pub(crate) label: &'static str,
    /// That, in a sentence, for the help.
    pub(crate) help: &'static str,
    /// Whether the footer shows it.
    pub(crate) footer: Footer,
}

/// Whether the footer shows a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Footer {
    /// It does.
    Shown,
    /// Only the help does.
    Hidden,
}

impl Binding {
    /// All keys, as people write them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.name()).collect();
        names.join(" ")
    }

    /// The key the footer shows.
    pub(crate) fn first_name(&self) -> String {
        self.keys.first().map(|key| key.name()).unwrap_or_default()
    }
}

/// What a key press means in a scope. Whatever is pressed with Alt means nothing.
pub(crate) fn lookup(scope: Scope, event: KeyEvent) -> Option<Action> {
    let bindings = BINDINGS.iter().filter(|binding| binding.scope == scope);
    let mut hits = bindings.filter(|binding| binding.keys.iter().any(|key| key.matches(event)));
    hits.next().map(|binding| binding.action)
}

/// The bindings that the footer of a scope shows.
pub(crate) fn footer(scope: Scope) -> impl Iterator<Item = &'static Binding> {
    BINDINGS
        .iter()
        .filter(move |binding| binding.scope == scope && binding.footer == Footer::Shown)
}

/// The whole table as Markdown: what the README shows.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from("| where | keys | what they do |\n|---|---|---|\n");
    for scope in Scope::ALL {
        for binding in BINDINGS.iter().filter(|binding| binding.scope == scope) {
            let keys: Vec<_> = binding
                .keys
                .iter()
                .map(|key| format!("`{}`", key.name()))
                .collect();
            let keys = keys.join(" ");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} | {keys} | {} |", scope.title(), binding.help);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_within_a_scope() {
        for scope in Scope::ALL {
            let mut seen: Vec<Key> = Vec::new();
            for binding in BINDINGS.iter().filter(|binding| binding.scope == scope) {
                for key in binding.keys {
                    assert!(!seen.contains(key), "{} twice in {scope:?}", key.name());
                    seen.push(*key);
                }
            }
        }
    }

    #[test]
    fn a_screen_never_hides_a_global_key() {
        let global: Vec<Key> = BINDINGS
            .iter()
            .filter(|binding| binding.scope == Scope::Global)
            .flat_map(|binding| binding.keys.iter().copied())
            .collect();
        for binding in BINDINGS {
            if matches!(
                binding.scope,
                Scope::Queue | Scope::Trace | Scope::Threads | Scope::Atlas
            ) {
                for key in binding.keys {
                    assert!(!global.contains(key), "{} is global", key.name());
                }
            }
        }
    }

    #[test]
    fn no_printable_key_is_bound_to_an_action_that_decides() {
        let deciding = BINDINGS
            .iter()
            .filter(|binding| binding.action.can_decide());
        for key in deciding.flat_map(|binding| binding.keys) {
            assert!(!key.is_printable(), "{} could decide", key.name());
        }
    }

    #[test]
    fn the_dialog_takes_no_printable_key_from_its_text_fields() {
        let gate = BINDINGS
            .iter()
            .filter(|binding| binding.scope == Scope::Gate);
        for key in gate.flat_map(|binding| binding.keys) {
            assert!(!key.is_printable(), "{} could not be typed", key.name());
        }
    }

    #[test]
    fn alt_combinations_are_inert() {
        for binding in BINDINGS {
            for key in binding.keys {
                let event = KeyEvent::new(key.code, key.modifiers | KeyModifiers::ALT);
                assert_eq!(lookup(binding.scope, event), None, "{}", key.name());
            }
        }
    }

    #[test]
    fn the_table_as_markdown() {
        insta::assert_snapshot!(markdown());
    }
}
