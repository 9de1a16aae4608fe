//! Layers over the screens: dialogs. The topmost one receives keys first.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::dialog::atlas::AtlasDialog;
use super::dialog::confirmation::ConfirmDialog;
use super::dialog::explanation::ExplainDialog;
use super::dialog::gate::GateDialog;
use super::dialog::help::HelpDialog;
use super::dialog::palette::{PaletteCommand, PaletteDialog};
use super::dialog::quit_confirmation::QuitDialog;
use super::dialog::snapshot::SnapshotDialog;
use super::dialog::what_if::WhatIfDialog;
use super::keymap::{KeyAction, KeyScope, find_action};
use super::request::ConsoleRequest;
use super::theme::Appearance;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;

/// An open dialog.
#[derive(Debug)]
pub(crate) enum Layer {
    /// Shows and decides a held request.
    Gate(Box<GateDialog>),
    /// Shows the help.
    Help(HelpDialog),
    /// Asks whether to quit.
    Quit(QuitDialog),
    /// Asks for confirmation of an action that decides nothing.
    Confirm(ConfirmDialog),
    /// Shows the command palette.
    Palette(PaletteDialog),
    /// Explains an actual or hypothetical hold.
    Explain(Box<ExplainDialog>),
    /// Evaluates a hypothetical request.
    WhatIf(Box<WhatIfDialog>),
    /// Shows a dialog about the Atlases.
    Atlas(Box<AtlasDialog>),
    /// Shows a snapshot file.
    Snapshot(Box<SnapshotDialog>),
}

/// Result of a key press for a layer.
#[derive(Debug, PartialEq)]
pub(crate) enum KeyResult {
    /// The layer consumed the key and requests these changes.
    Consumed(Vec<LayerChange>),
    /// The layer ignored the key.
    Ignored,
}

impl KeyResult {
    /// Consumes the key without a change.
    pub(crate) fn quietly() -> Self {
        Self::Consumed(Vec::new())
    }

    /// Consumes the key with one change.
    pub(crate) fn with(change: LayerChange) -> Self {
        Self::Consumed(vec![change])
    }
}

/// Result of a paint. Painting marks rows as seen, which may change the next picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repaint {
    /// The picture changed: paint again.
    Yes,
    /// The picture stays.
    No,
}

/// Change that a layer requests. The app applies it after the key was handled, so that no layer
/// changes the stack that it is called from.
#[derive(Debug, PartialEq)]
pub(crate) enum LayerChange {
    /// Closes this layer.
    Close,
    /// Shows the help, with this scope first.
    Help(KeyScope),
    /// Sends this request.
    Send(ConsoleRequest),
    /// Minimises this layer.
    Minimise,
    /// Runs this command of the palette.
    Run(PaletteCommand),
    /// Explains why this request is held.
    Explain(GateId),
}

impl Layer {
    /// Scope in the key table for the keys of this layer.
    pub(crate) fn scope(&self) -> KeyScope {
        match self {
            Self::Gate(_) => KeyScope::Gate,
            Self::Help(_) => KeyScope::Help,
            Self::Quit(_) | Self::Confirm(_) => KeyScope::Quit,
            Self::Palette(_) => KeyScope::Palette,
            Self::Explain(_) => KeyScope::Explain,
            Self::WhatIf(_) => KeyScope::WhatIf,
            Self::Atlas(dialog) => dialog.scope(),
            Self::Snapshot(dialog) => dialog.scope(),
        }
    }

    /// Returns the dialog about a request, if this layer is one.
    pub(crate) fn gate(&self) -> Option<&GateDialog> {
        match self {
            Self::Gate(dialog) => Some(dialog),
            Self::Help(_)
            | Self::Quit(_)
            | Self::Confirm(_)
            | Self::Palette(_)
            | Self::Explain(_)
            | Self::WhatIf(_)
            | Self::Atlas(_)
            | Self::Snapshot(_) => None,
        }
    }

    /// Scope for the keys of the focused part, in addition to the layer's own.
    pub(crate) fn inner_scope(&self) -> Option<KeyScope> {
        self.gate()?.inner_scope()
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        // These have one meaning everywhere; a dialog receives every other key.
        let global = find_action(KeyScope::Global, key);
        if matches!(
            global,
            Some(KeyAction::Cancel | KeyAction::Redraw | KeyAction::Suspend)
        ) {
            return KeyResult::Ignored;
        }
        match self {
            Self::Gate(dialog) => dialog.on_key(key, now),
            Self::Help(dialog) => dialog.on_key(key),
            Self::Quit(dialog) => dialog.on_key(key),
            Self::Confirm(dialog) => dialog.on_key(key),
            Self::Palette(dialog) => dialog.on_key(key),
            Self::Explain(dialog) => dialog.on_key(key),
            Self::WhatIf(dialog) => dialog.on_key(key),
            Self::Atlas(dialog) => dialog.on_key(key, now),
            Self::Snapshot(dialog) => dialog.on_key(key),
        }
    }

    /// Returns true if an action has an effect now.
    pub(crate) fn can(&self, action: KeyAction) -> bool {
        match self {
            Self::Gate(dialog) => dialog.can(action),
            Self::Snapshot(dialog) => dialog.can(action),
            Self::Help(_)
            | Self::Quit(_)
            | Self::Confirm(_)
            | Self::Palette(_)
            | Self::Explain(_)
            | Self::WhatIf(_)
            | Self::Atlas(_) => true,
        }
    }

    /// Label of an action in this state, if it differs from the key table.
    pub(crate) fn label(&self, action: KeyAction) -> Option<&'static str> {
        self.gate()?.label(action)
    }

    /// Handles a pasted text: it goes into a field, if there is one.
    pub(crate) fn on_paste(&mut self, text: &str, now: Timestamp) -> Vec<ConsoleRequest> {
        match self {
            Self::Gate(dialog) => dialog.on_paste(text, now),
            Self::Help(dialog) => dialog.on_paste(text),
            Self::Palette(dialog) => dialog.on_paste(text),
            Self::WhatIf(dialog) => return dialog.on_paste(text).into_iter().collect(),
            Self::Atlas(dialog) => dialog.on_paste(text, now),
            Self::Snapshot(dialog) => dialog.on_paste(text),
            Self::Quit(_) | Self::Confirm(_) | Self::Explain(_) => {}
        }
        Vec::new()
    }

    /// Paints the dialog.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Appearance, now: Timestamp) {
        match self {
            Self::Gate(dialog) => dialog.draw(frame, area, look, now),
            Self::Help(dialog) => dialog.draw(frame, area, look),
            Self::Quit(dialog) => dialog.draw(frame, area, look),
            Self::Confirm(dialog) => dialog.draw(frame, area, look),
            Self::Palette(dialog) => dialog.draw(frame, area, look),
            Self::Explain(dialog) => dialog.draw(frame, area, look),
            Self::WhatIf(dialog) => dialog.draw(frame, area, look),
            Self::Atlas(dialog) => dialog.draw(frame, area, look, now),
            Self::Snapshot(dialog) => dialog.draw(frame, area, look),
        }
    }
}
