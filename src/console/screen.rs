//! Screens: the trait that each one implements, and the list of them.
//!
//! A screen owns its cursor, filters and folds. The facts are in the snapshot that it is given. Contract: a screen
//! changes only itself. It asks for everything else through its [`ScreenContext`], and the app carries that out after
//! the call.

use std::fmt;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};

use self::queue::MarkedRequests;
use super::dialog::explanation::ExplainDialog;
use super::dialog::gate::{DialogEntry, RecordTrouble};
use super::dialog::{Dialog, Layer};
use super::keymap::{FooterVisibility, KeyAction, KeyBinding, KeyCombination, KeyScope, Motion};
use super::request::ConsoleRequest;
use super::theme::{Appearance, Meaning};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::engine::explanation::ExplainQuestion;
use crate::engine::held::Held;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

pub(crate) mod atlas;
pub(crate) mod queue;
pub(crate) mod threads;
pub(crate) mod trace;

/// Name, number key and key bindings of a screen.
#[derive(Debug)]
pub(crate) struct ScreenDefinition {
    /// Title on the tab and in the help.
    pub(crate) title: &'static str,
    /// Key that shows the screen, and number on its tab.
    pub(crate) number: char,
    /// Name of the screen in the palette.
    pub(crate) label: &'static str,
    /// Text of the number key in the help.
    pub(crate) help: &'static str,
    /// Scopes that the help lists after the screen: its dialogs and text inputs.
    pub(crate) related_scopes: &'static [KeyScope],
    /// Rows of the key table.
    pub(crate) bindings: &'static [KeyBinding],
}

/// Generates the screens' ids, their number keys and their states. Each line names the id and the module of a screen,
/// then the type of its state.
macro_rules! screens {
    ($($id:ident => $module:ident::$screen:ident;)*) => {
        /// One of the screens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ScreenId {
            $($id,)*
        }

        impl ScreenId {
            /// All screens, in the order of their tabs.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$id,)*];

            /// Name, number key and key bindings of the screen.
            pub(crate) fn definition(self) -> &'static ScreenDefinition {
                match self {
                    $(Self::$id => &$module::DEFINITION,)*
                }
            }
        }

        /// State of all screens.
        #[derive(Debug, Default)]
        pub(crate) struct Screens {
            $(pub(crate) $module: $module::$screen,)*
        }

        impl Screens {
            /// Returns a screen.
            pub(crate) fn get(&self, id: ScreenId) -> &dyn Screen {
                match id {
                    $(ScreenId::$id => &self.$module,)*
                }
            }

            /// Returns a screen for changes.
            pub(crate) fn get_mut(&mut self, id: ScreenId) -> &mut dyn Screen {
                match id {
                    $(ScreenId::$id => &mut self.$module,)*
                }
            }
        }

        /// Number keys of the screens.
        pub(crate) static SCREEN_KEYS: &[KeyBinding] = &[$(KeyBinding {
            scope: KeyScope::Global,
            keys: &[KeyCombination::plain(KeyCode::Char($module::DEFINITION.number))],
            action: KeyAction::Show(ScreenId::$id),
            label: $module::DEFINITION.label,
            help: $module::DEFINITION.help,
            footer: FooterVisibility::Hidden,
        },)*];
    };
}

screens! {
    Queue => queue::QueueScreen;
    Trace => trace::TraceScreen;
    Threads => threads::ThreadsScreen;
    Atlas => atlas::AtlasScreen;
}

/// A screen. A new screen implements this trait in its own folder and gets one line in `screens!`.
pub(crate) trait Screen: fmt::Debug {
    /// Paints the screen.
    fn draw(
        &self,
        snapshot: &RuntimeSnapshot,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    );

    /// Carries out an action of a key, of the palette, or of the mouse wheel.
    fn handle_action(&mut self, action: KeyAction, now: Timestamp, context: &mut ScreenContext);

    /// Returns true if an action has an effect now.
    fn is_enabled(&self, _action: KeyAction, _snapshot: &RuntimeSnapshot) -> bool {
        true
    }

    /// Returns true if there is a level to go back to.
    fn leads_back(&self) -> bool {
        false
    }

    /// Text on the tab after the title: a count, or `!` and the number of problems.
    fn tab_note(&self, _snapshot: &RuntimeSnapshot) -> Option<String> {
        None
    }

    /// Returns true if the tab keeps its title in a narrow terminal.
    fn keeps_tab_title(&self) -> bool {
        false
    }

    /// Text at the end of the tab row while the screen is shown, in a terminal of that width.
    fn tab_row_text(
        &self,
        _snapshot: &RuntimeSnapshot,
        _cells: usize,
    ) -> Option<(String, Meaning)> {
        None
    }

    /// Scope of the text input that is open, such as a filter.
    fn input_scope(&self) -> Option<KeyScope> {
        None
    }

    /// Handles a key of an open text input, or returns [`InputResult::Ignored`].
    fn on_input_key(&mut self, _key: KeyEvent, _context: &mut ScreenContext) -> InputResult {
        InputResult::Ignored
    }

    /// Handles a pasted text: it goes into the open text input, if there is one.
    fn on_paste(&mut self, _text: &str, _snapshot: &RuntimeSnapshot) {}

    /// Handles a click on the screen, which is painted in `area`. A click selects; it never decides.
    fn on_click(&mut self, _area: Rect, _at: Position, _context: &mut ScreenContext) {}

    /// Handles one notch of the mouse wheel.
    fn on_wheel(&mut self, motion: Motion, now: Timestamp, context: &mut ScreenContext) {
        self.handle_action(motion.action(), now, context);
    }

    /// Handles Ctrl-C: one level back.
    fn cancel(&mut self, now: Timestamp, context: &mut ScreenContext) {
        self.handle_action(KeyAction::Back, now, context);
    }

    /// Restores the texts that the operator typed before the console started.
    fn restore(&mut self, _snapshot: &RuntimeSnapshot) {}

    /// Requests data before the first key press.
    fn on_start(&mut self, _context: &mut ScreenContext) {}

    /// Takes over a newer snapshot, which `context` has. `before` is `None` for the first one.
    fn on_snapshot(&mut self, _before: Option<&RuntimeSnapshot>, _context: &mut ScreenContext) {}

    /// Prepares the screen for display.
    fn on_enter(&mut self, _now: Timestamp, _context: &mut ScreenContext) {}

    /// Handles the switch to another screen.
    fn on_leave(&mut self, _context: &mut ScreenContext) {}

    /// Stores the area in which the screen is painted when it is shown.
    fn on_drawn(&mut self, _area: Rect) {}

    /// Handles the passing of time.
    fn on_tick(&mut self, _now: Timestamp, _context: &mut ScreenContext) {}

    /// Returns the next time at which the screen changes without an event.
    fn next_change_at(&self, _now: Timestamp, _visibility: Visibility) -> Option<Timestamp> {
        None
    }
}

/// Visibility of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// The screen is the current one, possibly below a dialog.
    Shown,
    /// Another screen is the current one.
    Hidden,
}

/// Result of a key press for the text input of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputResult {
    /// A text input consumed the key.
    Consumed,
    /// No text input is open.
    Ignored,
}

/// Change that a screen requests. The app applies it after the call.
#[derive(Debug)]
pub(crate) enum ScreenChange {
    /// Sends this request.
    Send(ConsoleRequest),
    /// Shows this notice in the tab row until the next key.
    ShowNotice(Meaning, String),
    /// Opens this dialog.
    Open(Layer),
    /// Opens the decision dialog of this request.
    Decide(Arc<Held>, DialogEntry),
    /// Opens the decision dialog of these requests together.
    DecideBatch(MarkedRequests),
    /// Shows this session in the record, at one of its events.
    ShowEvent(SessionId, u64),
    /// Notifies the operator of these arrivals, and of the number of held requests.
    NotifyArrivals(Vec<Arc<Held>>),
}

/// State of the console that a screen reads, and the changes that it requests.
#[derive(Debug)]
pub(crate) struct ScreenContext<'a> {
    pub(crate) snapshot: &'a RuntimeSnapshot,
    /// Visibility of the called screen.
    pub(crate) visibility: Visibility,
    /// Fault of the record that disables deciding, if there is one.
    pub(crate) trouble: Option<RecordTrouble>,
    /// Number of the last dialog that sent a request.
    last_dialog_number: &'a mut u64,
    changes: Vec<ScreenChange>,
}

impl<'a> ScreenContext<'a> {
    /// Creates a context without changes.
    pub(crate) fn new(
        snapshot: &'a RuntimeSnapshot,
        visibility: Visibility,
        trouble: Option<RecordTrouble>,
        last_dialog_number: &'a mut u64,
    ) -> Self {
        Self {
            snapshot,
            visibility,
            trouble,
            last_dialog_number,
            changes: Vec::new(),
        }
    }

    /// Returns the requested changes.
    pub(crate) fn into_changes(self) -> Vec<ScreenChange> {
        self.changes
    }

    /// Requests a change.
    pub(crate) fn apply(&mut self, change: ScreenChange) {
        self.changes.push(change);
    }

    /// Sends requests.
    pub(crate) fn send(&mut self, requests: impl IntoIterator<Item = ConsoleRequest>) {
        let changes = requests.into_iter().map(ScreenChange::Send);
        self.changes.extend(changes);
    }

    /// Shows a notice until the next key.
    pub(crate) fn show_notice(&mut self, meaning: Meaning, text: impl Into<String>) {
        self.apply(ScreenChange::ShowNotice(meaning, text.into()));
    }

    /// Opens a dialog.
    pub(crate) fn open(&mut self, dialog: impl Dialog) {
        self.apply(ScreenChange::Open(Layer::new(dialog)));
    }

    /// Returns the number for a new dialog that sends requests; responses carry it.
    pub(crate) fn next_dialog_number(&mut self) -> u64 {
        *self.last_dialog_number += 1;
        *self.last_dialog_number
    }

    /// Opens the dialog that explains the answer to a question.
    pub(crate) fn explain(&mut self, question: ExplainQuestion, title: &str, note: &str) {
        let dialog = ExplainDialog::new(self.next_dialog_number(), title, note);
        let ticket = dialog.ticket();
        self.open(dialog);
        self.send([ConsoleRequest::Explain(ticket, vec![question])]);
    }

    /// Returns true if this console is read-only, and shows a notice in that case.
    pub(crate) fn warn_if_read_only(&mut self) -> bool {
        let read_only = self.snapshot.access == ConsoleAccess::ReadOnly;
        if read_only {
            self.show_notice(Meaning::Warning, "this console is read-only");
        }
        read_only
    }
}
