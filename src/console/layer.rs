//! What lies over the screens: dialogs, the topmost first in line for keys.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::dialog::atlas::AtlasDialog;
use super::dialog::confirm::ConfirmDialog;
use super::dialog::explain::ExplainDialog;
use super::dialog::gate::GateDialog;
use super::dialog::help::HelpDialog;
use super::dialog::palette::{Command, PaletteDialog};
use super::dialog::quit::QuitDialog;
use super::dialog::snapshot::SnapshotDialog;
use super::dialog::what_if::WhatIfDialog;
use super::keymap::{Action, Scope, lookup};
use super::request::Request;
use super::theme::Look;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;

/// A dialog.
#[derive(Debug)]
pub(crate) enum Layer {
    /// A held request is looked at and decided.
    Gate(Box<GateDialog>),
    /// The help.
    Help(HelpDialog),
    /// Whether to leave.
    Quit(QuitDialog),
    /// Whether to take a claim over.
    Confirm(ConfirmDialog),
    /// The palette.
    Palette(PaletteDialog),
    /// Why something is held, or would be.
    Explain(Box<ExplainDialog>),
    /// A request that is only imagined.
    WhatIf(Box<WhatIfDialog>),
    /// About the Atlases.
    Atlas(Box<AtlasDialog>),
    /// A snapshot file.
    Snapshot(Box<SnapshotDialog>),
}

/// What a layer made of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Handled {
    /// It was for this layer; this is to be done.
    Consumed(Vec<Change>),
    /// It was not.
    Ignored,
}

impl Handled {
    /// It was for this layer, and nothing is to be done.
    pub(crate) fn quietly() -> Self {
        Self::Consumed(Vec::new())
    }

    /// It was for this layer, and one thing is to be done.
    pub(crate) fn with(change: Change) -> Self {
        Self::Consumed(vec![change])
    }
}

/// Whether being painted changed what is to be painted: what was on screen is now seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repaint {
    /// It did.
    Yes,
    /// It did not.
    No,
}

/// What a layer wants changed around it. Applied after the key was handled, so that no layer
/// changes the stack it is called from.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// Close this layer.
    Close,
    /// Show the help, this scope first.
    Help(Scope),
    /// Have this done.
    Ask(Request),
    /// Put this layer aside.
    Minimise,
    /// Do what the palette was asked for.
    Run(Command),
    /// Say why this is held.
    Explain(GateId),
}

impl Layer {
    /// Where this layer's keys are found.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Gate(_) => Scope::Gate,
            Self::Help(_) => Scope::Help,
            Self::Quit(_) | Self::Confirm(_) => Scope::Quit,
            Self::Palette(_) => Scope::Palette,
            Self::Explain(_) => Scope::Explain,
            Self::WhatIf(_) => Scope::WhatIf,
            Self::Atlas(dialog) => dialog.scope(),
            Self::Snapshot(dialog) => dialog.scope(),
        }
    }

    /// The dialog about a request, where this is one.
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

    /// Where more of its keys are found: those of the part that has the focus.
    pub(crate) fn inner_scope(&self) -> Option<Scope> {
        self.gate()?.inner_scope()
    }

    /// A key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Handled {
        // These mean the same everywhere; a dialog keeps every other key to itself.
        let global = lookup(Scope::Global, key);
        if matches!(
            global,
            Some(Action::Cancel | Action::Redraw | Action::Suspend)
        ) {
            return Handled::Ignored;
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

    /// Whether an action has any effect now.
    pub(crate) fn can(&self, action: Action) -> bool {
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

    /// What an action is called now, where that is not what the table calls it.
    pub(crate) fn label(&self, action: Action) -> Option<&'static str> {
        self.gate()?.label(action)
    }

    /// A pasted text. It goes into a field or nowhere.
    pub(crate) fn on_paste(&mut self, text: &str, now: Timestamp) -> Vec<Request> {
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

    /// Paints it.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look, now: Timestamp) {
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
