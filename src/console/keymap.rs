//! The table of all key bindings. The footer, the help and the key list of the README are generated from it.
//!
//! Contract: within a scope a key has exactly one meaning, and no printable key is bound to an action that
//! can decide. Tests check both.

use std::fmt::Write as _;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

mod table;

use super::screen::atlas::StewardKey;
use super::screen::queue::QueueKey;
use super::screen::threads::ThreadKey;
use super::screen::trace::TraceKey;
use super::screen::{SCREEN_KEYS, ScreenId};

pub(crate) use table::{
    DOWN, ENTER, FIRST, LAST, NEXT, PAGE_DOWN, PAGE_UP, PREVIOUS, UP, WHY, bindings,
};

/// Part of the console in which a key binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// Every screen, while no dialog is open.
    Global,
    /// One screen.
    Screen(ScreenId),
    /// Dialog that shows a snapshot file.
    Snapshot,
    /// Dialog that explains a result.
    Explain,
    /// Dialog that evaluates a hypothetical request.
    WhatIf,
    /// Dialog that asks for confirmation before it loads other Atlases.
    Load,
    /// The dialog in which a request is decided.
    Gate,
    /// Text field of the decision dialog.
    Text,
    /// Empty JSON answer in the decision dialog.
    Json,
    /// Question with options in the decision dialog.
    Pick,
    /// Yes/no question in the decision dialog.
    Choice,
    /// Request pane of the decision dialog.
    Request,
    /// Line being typed: a filter or a search text.
    Prompt,
    /// Command palette.
    Palette,
    /// Help dialog.
    Help,
    /// Line being typed: at the top of the record, or a path.
    Line,
    /// Dialog that asks for confirmation before the console quits.
    Quit,
}

impl KeyScope {
    /// Lists all scopes, in the order in which the help shows them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let screens = ScreenId::ALL.iter().flat_map(|screen| {
            let related = screen.definition().related_scopes.iter().copied();
            std::iter::once(Self::Screen(*screen)).chain(related)
        });
        std::iter::once(Self::Global)
            .chain(screens)
            .chain([Self::Help, Self::Quit])
    }

    /// Title of the scope as the operator reads it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Global => "Everywhere",
            Self::Screen(screen) => screen.definition().title,
            Self::Snapshot => "Snapshot file",
            Self::Line => "Line input",
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
            Self::Quit => "Quit",
        }
    }
}

/// Command that a key triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    /// Shows a screen.
    Show(ScreenId),
    /// Explains the result, checkpoint by checkpoint.
    Explain,
    /// Opens the form that evaluates a hypothetical request.
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
    /// Opens the focused text in the operator's editor.
    EditOutside,
    /// Fills an empty answer with a skeleton made from its schema.
    Skeleton,
    /// Minimises the dialog.
    Minimise,
    /// Restores the minimised dialog.
    Restore,
    SearchRequest,
    NextMatch,
    PreviousMatch,
    /// Command of the record screen.
    Browse(TraceKey),
    /// Presses the focused button.
    Press,
    /// Command of the queue screen.
    Queue(QueueKey),
    /// Command for the steward's files.
    Steward(StewardKey),
    /// Command of the conversations screen.
    Thread(ThreadKey),
    /// Command of the snapshot dialog.
    Snapshot(SnapshotKey),
    /// Opens the palette.
    Palette,
    /// Turns mouse capture on or off.
    Mouse,
    /// Acknowledges the alarms.
    KnowAlarms,
}

/// Cursor motion within a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    First,
    Last,
    PageUp,
    PageDown,
}

impl Motion {
    /// Arrow key that moves one row in this direction, for a notch of the mouse wheel.
    pub(crate) fn arrow_key(self) -> KeyEvent {
        let code = match self {
            Self::Up => KeyCode::Up,
            Self::Down | Self::First | Self::Last | Self::PageUp | Self::PageDown => KeyCode::Down,
        };
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    /// Returns the action of the keys that cause this motion.
    pub(crate) fn action(self) -> KeyAction {
        match self {
            Self::Up => KeyAction::Up,
            Self::Down => KeyAction::Down,
            Self::First => KeyAction::First,
            Self::Last => KeyAction::Last,
            Self::PageUp => KeyAction::PageUp,
            Self::PageDown => KeyAction::PageDown,
        }
    }

    /// Returns the row that the motion leads to from row `at` of `count` rows.
    pub(crate) fn target_row(self, at: usize, count: usize) -> usize {
        const PAGE: usize = 10;
        let last = count.saturating_sub(1);
        let to = match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at.saturating_add(1),
            Self::First => 0,
            Self::Last => last,
            Self::PageUp => at.saturating_sub(PAGE),
            Self::PageDown => at.saturating_add(PAGE),
        };
        to.min(last)
    }
}

impl KeyAction {
    /// Returns the cursor motion of this action, if it moves the cursor.
    pub(crate) fn motion(self) -> Option<Motion> {
        match self {
            Self::Up => Some(Motion::Up),
            Self::Down => Some(Motion::Down),
            Self::First => Some(Motion::First),
            Self::Last => Some(Motion::Last),
            Self::PageUp => Some(Motion::PageUp),
            Self::PageDown => Some(Motion::PageDown),
            _ => None,
        }
    }

    /// Returns true if the action can lead to a decision: only pressing a focused button can.
    #[cfg(test)]
    pub(crate) fn can_decide(self) -> bool {
        self == Self::Press
    }
}

/// Snapshot command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotKey {
    /// Shows the retrieve phase: the data read from the file.
    Retrieve,
    /// Shows the infer phase: the conclusions from that data.
    Infer,
    /// Shows the validate phase: what is clear and what is not.
    Validate,
    /// Shows the engage phase: the text to continue with.
    Engage,
    /// Lists the artifacts that can be loaded.
    Artifacts,
    /// Copies the text to continue with.
    Copy,
    /// Opens another file.
    Other,
    /// Writes a snapshot file of the selected conversation's session.
    Write,
}

/// A key with the modifiers that must be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyCombination {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl KeyCombination {
    pub(crate) const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: KeyModifiers::NONE,
        }
    }

    pub(crate) const fn ctrl(letter: char) -> Self {
        Self {
            code: KeyCode::Char(letter),
            modifiers: KeyModifiers::CONTROL,
        }
    }

    /// Returns true if typing the key would insert a character into a text.
    #[cfg(test)]
    pub(crate) fn is_printable(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && self.modifiers.is_empty()
    }

    /// Returns the terminal event of pressing this key.
    #[cfg(test)]
    pub(crate) fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    fn matches(self, event: KeyEvent) -> bool {
        // Shift is already part of the character, or of BackTab, so it adds no information.
        let held = event.modifiers.difference(KeyModifiers::SHIFT);
        self.code == event.code && self.modifiers == held
    }

    /// Name of the key as the help shows it.
    pub(crate) fn display_name(self) -> String {
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
pub(crate) struct KeyBinding {
    /// Scope in which the binding applies.
    pub(crate) scope: KeyScope,
    /// Keys of the binding. The footer shows the first one.
    pub(crate) keys: &'static [KeyCombination],
    /// Action that the keys trigger.
    pub(crate) action: KeyAction,
    /// Action in one or two words, for the footer.
    pub(crate) label: &'static str,
    /// Action in a sentence, for the help.
    pub(crate) help: &'static str,
    /// Visibility of the binding in the footer.
    pub(crate) footer: FooterVisibility,
}

/// Visibility of a binding in the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FooterVisibility {
    /// The footer and the help show the binding.
    Shown,
    /// Only the help shows the binding.
    Hidden,
}

impl KeyBinding {
    /// Names of all keys, separated by spaces.
    pub(crate) fn display_names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.display_name()).collect();
        names.join(" ")
    }

    /// Name of the key that the footer shows.
    pub(crate) fn footer_key_name(&self) -> String {
        self.keys
            .first()
            .map(|key| key.display_name())
            .unwrap_or_default()
    }
}

/// Iterates over the whole table: the rows of each screen, the number keys of the screens, and the rows that
/// belong to no screen.
pub(crate) fn all_bindings() -> impl Iterator<Item = &'static KeyBinding> {
    let screens = ScreenId::ALL.iter();
    screens
        .flat_map(|screen| screen.definition().bindings)
        .chain(SCREEN_KEYS)
        .chain(table::SHARED_BINDINGS)
}

/// Iterates over the bindings of a scope.
pub(crate) fn scope_bindings(scope: KeyScope) -> impl Iterator<Item = &'static KeyBinding> {
    all_bindings().filter(move |binding| binding.scope == scope)
}

/// Returns the action of a key press in a scope. A key pressed with Alt has no action.
pub(crate) fn find_action(scope: KeyScope, event: KeyEvent) -> Option<KeyAction> {
    let mut hits =
        scope_bindings(scope).filter(|binding| binding.keys.iter().any(|key| key.matches(event)));
    hits.next().map(|binding| binding.action)
}

/// Returns the bindings that the footer of a scope shows.
pub(crate) fn footer_bindings(scope: KeyScope) -> impl Iterator<Item = &'static KeyBinding> {
    scope_bindings(scope).filter(|binding| binding.footer == FooterVisibility::Shown)
}

/// Returns the whole table as Markdown, for the README.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from("| where | keys | what they do |\n|---|---|---|\n");
    for scope in KeyScope::all() {
        for binding in scope_bindings(scope) {
            let keys: Vec<_> = binding
                .keys
                .iter()
                .map(|key| format!("`{}`", key.display_name()))
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
    fn each_key_has_one_binding_per_scope() {
        for scope in KeyScope::all() {
            let mut seen: Vec<KeyCombination> = Vec::new();
            for binding in scope_bindings(scope) {
                for key in binding.keys {
                    assert!(
                        !seen.contains(key),
                        "{} twice in {scope:?}",
                        key.display_name()
                    );
                    seen.push(*key);
                }
            }
        }
    }

    #[test]
    fn help_texts_have_at_most_60_characters() {
        for binding in all_bindings() {
            let length = binding.help.chars().count();
            assert!(length <= 60, "{length}: {}", binding.help);
        }
    }

    #[test]
    fn screen_keys_never_shadow_global_keys() {
        let global: Vec<KeyCombination> = all_bindings()
            .filter(|binding| binding.scope == KeyScope::Global)
            .flat_map(|binding| binding.keys.iter().copied())
            .collect();
        for binding in all_bindings() {
            if matches!(binding.scope, KeyScope::Screen(_)) {
                for key in binding.keys {
                    assert!(!global.contains(key), "{} is global", key.display_name());
                }
            }
        }
    }

    #[test]
    fn no_printable_key_is_bound_to_an_action_that_decides() {
        let deciding = all_bindings().filter(|binding| binding.action.can_decide());
        for key in deciding.flat_map(|binding| binding.keys) {
            assert!(!key.is_printable(), "{} could decide", key.display_name());
        }
    }

    #[test]
    fn the_decision_dialog_binds_no_printable_key() {
        let gate = all_bindings().filter(|binding| binding.scope == KeyScope::Gate);
        for key in gate.flat_map(|binding| binding.keys) {
            assert!(
                !key.is_printable(),
                "{} could not be typed",
                key.display_name()
            );
        }
    }

    #[test]
    fn keys_with_alt_have_no_action() {
        for binding in all_bindings() {
            for key in binding.keys {
                let event = KeyEvent::new(key.code, key.modifiers | KeyModifiers::ALT);
                assert_eq!(
                    find_action(binding.scope, event),
                    None,
                    "{}",
                    key.display_name()
                );
            }
        }
    }

    #[test]
    fn the_key_table_is_rendered_as_markdown() {
        insta::assert_snapshot!(markdown());
    }
}
