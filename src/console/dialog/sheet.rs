//! Full-screen sheet of lines that can be scrolled and closed.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::dialog::{KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyScope, Motion, find_action};
use super::super::text_cells::{clip, width};
use super::super::theme::{Appearance, Focus, Meaning};

/// Lines laid out for an area. There may be many, so they are built only if the content or the area
/// changed.
#[derive(Debug, Default)]
pub(super) struct TextSheet {
    /// Fixed lines above the scrolled ones.
    head: Vec<Line<'static>>,
    lines: Vec<Line<'static>>,
    place: Rect,
    top: usize,
}

impl TextSheet {
    /// Marks the lines as outdated: the next layout builds them again.
    pub(super) fn outdate(&mut self) {
        self.place = Rect::ZERO;
    }

    /// Builds the lines for an area, if needed. `make` receives the maximum width.
    pub(super) fn lay_out(&mut self, area: Rect, make: impl FnOnce(usize) -> Vec<Line<'static>>) {
        self.lay_out_below(area, |cells| (Vec::new(), make(cells)));
    }

    /// Like [`Self::lay_out`], with fixed lines above the scrolled ones.
    pub(super) fn lay_out_below(
        &mut self,
        area: Rect,
        make: impl FnOnce(usize) -> (Vec<Line<'static>>, Vec<Line<'static>>),
    ) {
        if self.place == area {
            return;
        }
        self.place = area;
        (self.head, self.lines) = make(usize::from(area.width).saturating_sub(4));
        self.top = self.top.min(self.max_scroll());
    }

    fn max_scroll(&self) -> usize {
        self.lines.len().saturating_sub(self.visible(self.place))
    }

    /// Returns the number of rows between the borders, below the head.
    fn visible(&self, area: Rect) -> usize {
        usize::from(area.height).saturating_sub(2 + self.head.len())
    }

    /// Scrolls.
    pub(super) fn go(&mut self, motion: Motion) {
        self.top = motion.target_row(self.top, self.max_scroll() + 1);
    }

    /// Scrolls as far as needed to show a row.
    pub(super) fn scroll_to_row(&mut self, row: usize) {
        let visible = self.visible(self.place).max(1);
        self.top = self.top.clamp((row + 1).saturating_sub(visible), row);
    }

    /// Handles a key press: scrolls or goes back.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        match find_action(KeyScope::Explain, key) {
            Some(KeyAction::Back) => return KeyResult::with(LayerChange::Close),
            Some(KeyAction::Help) => return KeyResult::with(LayerChange::Help(KeyScope::Explain)),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.go(motion);
                }
            }
            None => {}
        }
        KeyResult::quietly()
    }

    /// Paints the sheet over the whole area.
    pub(super) fn draw(&self, title: &str, frame: &mut Frame, area: Rect, appearance: Appearance) {
        frame.render_widget(Clear, area);
        let below = self
            .lines
            .len()
            .saturating_sub(self.top + self.visible(area));
        let hint = match below {
            0 => String::new(),
            below => format!(" {below} more below "),
        };
        let room = usize::from(area.width).saturating_sub(8 + width(&hint));
        let title = clip(&format!(" {title} "), room, appearance);
        let title = Line::from(Span::styled(title, appearance.style(Meaning::Title)));
        let hint = Line::styled(hint, appearance.style(Meaning::Waiting)).right_aligned();
        let block = appearance.panel(Focus::Here).title(title).title(hint);
        let shown = self.lines.iter().skip(self.top).take(self.visible(area));
        let shown: Vec<Line> = self.head.iter().chain(shown).cloned().collect();
        frame.render_widget(Paragraph::new(shown).block(block), area);
    }
}
