//! Cursor motions within lists.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::KeyAction;

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
