//! Dialogs: layers over the screens. The topmost one receives keys first.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use self::palette::PaletteCommand;
use super::keymap::{KeyAction, KeyScope, Motion, find_action};
use super::request::{ConsoleRequest, Ticket};
use super::theme::Appearance;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::engine::explanation::FullExplanation;

pub(crate) mod atlas;
pub(crate) mod confirmation;
pub(crate) mod explanation;
pub(crate) mod gate;
pub(crate) mod help;
pub(crate) mod palette;
pub(crate) mod quit_confirmation;
mod sheet;
pub(crate) mod snapshot;
pub(crate) mod what_if;

/// A dialog. A new dialog implements this trait in a file of its own, and the place that opens it names it.
///
/// Contract: a dialog changes nothing but itself. It asks for everything else with a [`LayerChange`] or a
/// [`ConsoleRequest`].
pub(crate) trait Dialog: Any + fmt::Debug {
    /// Scope in the key table for the keys of this dialog.
    fn scope(&self) -> KeyScope;

    /// Handles a key press.
    fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult;

    /// Paints the dialog.
    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, now: Timestamp);

    /// Scope for the keys of the focused part, in addition to the dialog's own.
    fn inner_scope(&self) -> Option<KeyScope> {
        None
    }

    /// Returns true if an action has an effect now.
    fn can(&self, _action: KeyAction) -> bool {
        true
    }

    /// Label of an action in this state, if it differs from the key table.
    fn label(&self, _action: KeyAction) -> Option<&'static str> {
        None
    }

    /// Handles a pasted text: it goes into a field, if there is one.
    fn on_paste(&mut self, _text: &str, _now: Timestamp) -> Vec<ConsoleRequest> {
        Vec::new()
    }

    /// Handles one notch of the mouse wheel.
    fn on_wheel(&mut self, _motion: Motion, _now: Timestamp) {}

    /// Handles Ctrl-C: one step back.
    fn cancel(&mut self) -> KeyResult {
        KeyResult::with(LayerChange::Close)
    }

    /// Lays out long texts for the area that they will be painted in.
    fn lay_out(&mut self, _area: Rect, _look: Appearance) {}

    /// Notes that the dialog was painted: the operator has now seen its content.
    fn on_drawn(&mut self, _area: Rect, _look: Appearance, _now: Timestamp) -> Repaint {
        Repaint::No
    }

    /// Returns the end of the arming time, while keys are still dropped.
    fn arms_at(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Takes over the explanations with that ticket, if the dialog asked for them.
    fn on_explained(&mut self, _ticket: Ticket, _results: &[ExplainResult]) -> Vec<ConsoleRequest> {
        Vec::new()
    }
}

/// Result of a request for an explanation.
pub(crate) type ExplainResult = Result<Box<FullExplanation>, String>;

/// An open dialog.
#[derive(Debug)]
pub(crate) struct Layer(Box<dyn Dialog>);

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
    Explain(HeldRequestId),
}

impl Layer {
    /// Creates a layer with a dialog.
    pub(crate) fn new(dialog: impl Dialog) -> Self {
        Self(Box::new(dialog))
    }

    /// Returns the dialog, if it is of this type.
    pub(crate) fn get<D: Dialog>(&self) -> Option<&D> {
        let dialog: &dyn Any = &*self.0;
        dialog.downcast_ref()
    }

    /// Returns the dialog for changes, if it is of this type.
    pub(crate) fn get_mut<D: Dialog>(&mut self) -> Option<&mut D> {
        let dialog: &mut dyn Any = &mut *self.0;
        dialog.downcast_mut()
    }

    /// Takes the dialog out of its layer; `None` if it is of another type.
    pub(crate) fn into_dialog<D: Dialog>(self) -> Option<Box<D>> {
        let dialog: Box<dyn Any> = self.0;
        dialog.downcast().ok()
    }

    /// Handles a key press. Some keys have one meaning everywhere; a dialog receives every other key.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        let global = find_action(KeyScope::Global, key);
        if matches!(
            global,
            Some(KeyAction::Cancel | KeyAction::Redraw | KeyAction::Suspend)
        ) {
            return KeyResult::Ignored;
        }
        self.0.on_key(key, now)
    }
}

impl Deref for Layer {
    type Target = dyn Dialog;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Layer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}
