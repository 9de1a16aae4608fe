//! Dialogs about the Atlases: the question whether to load files, and pages to read before that.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::super::dialog::{Dialog, KeyResult};
use super::super::keymap::{KeyScope, Motion};
use super::super::request::ConsoleRequest;
use super::super::theme::Appearance;
use crate::base::clock::Timestamp;

pub(crate) mod load;
pub(crate) mod page;

use load::LoadDialog;
use page::PageDialog;

/// A dialog about the Atlases.
#[derive(Debug)]
pub(crate) enum AtlasDialog {
    /// Asks whether to load other Atlases.
    Load(LoadDialog),
    /// Shows a page to read.
    Page(PageDialog),
}

impl AtlasDialog {
    /// Scope in the key table for the keys of this dialog.
    pub(crate) fn scope(&self) -> KeyScope {
        match self {
            Self::Load(_) => KeyScope::Load,
            Self::Page(_) => KeyScope::Explain,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        match self {
            Self::Load(dialog) => dialog.on_key(key, now),
            Self::Page(dialog) => dialog.on_key(key),
        }
    }

    /// Handles a pasted text: it goes to the text input.
    pub(crate) fn on_paste(&mut self, text: &str, now: Timestamp) {
        match self {
            Self::Load(dialog) => dialog.on_paste(text, now),
            Self::Page(_) => {}
        }
    }

    /// Lays out the lines for the area they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        match self {
            Self::Load(dialog) => dialog.lay_out(area, appearance),
            Self::Page(dialog) => dialog.lay_out(area, appearance),
        }
    }

    /// Returns the end of the arming time, while keys are still dropped.
    pub(crate) fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Load(dialog) => dialog.arms_at(now),
            Self::Page(_) => None,
        }
    }

    /// Paints the dialog.
    pub(crate) fn draw(
        &self,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    ) {
        match self {
            Self::Load(dialog) => dialog.draw(frame, appearance, now),
            Self::Page(dialog) => dialog.draw(frame, area, appearance),
        }
    }
}

impl Dialog for AtlasDialog {
    fn scope(&self) -> KeyScope {
        Self::scope(self)
    }

    fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        Self::on_key(self, key, now)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, now: Timestamp) {
        Self::draw(self, frame, area, appearance, now);
    }

    fn on_paste(&mut self, text: &str, now: Timestamp) -> Vec<ConsoleRequest> {
        Self::on_paste(self, text, now);
        Vec::new()
    }

    fn on_wheel(&mut self, motion: Motion, now: Timestamp) {
        Self::on_key(self, motion.arrow_key(), now);
    }

    fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        Self::lay_out(self, area, appearance);
    }

    fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        Self::arms_at(self, now)
    }
}
