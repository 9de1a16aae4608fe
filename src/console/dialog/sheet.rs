//! Lines to read over the whole screen: moved through, and left.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::cells::{clip, width};
use super::super::keymap::{Action, Motion, Scope, lookup};
use super::super::layer::{Change, Handled};
use super::super::theme::{Focus, Look, Meaning};

/// Lines, made for a place: there may be many, so they are made when they came or the place changed.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// What stays above them.
    head: Vec<Line<'static>>,
    lines: Vec<Line<'static>>,
    place: Rect,
    top: usize,
}

impl Sheet {
    /// What is shown has changed: the lines are to be made again.
    pub(super) fn outdate(&mut self) {
        self.place = Rect::ZERO;
    }

    /// Has the lines made for a place, if they are not yet: no wider than they are told.
    pub(super) fn lay_out(&mut self, area: Rect, make: impl FnOnce(usize) -> Vec<Line<'static>>) {
        self.lay_out_below(area, |cells| (Vec::new(), make(cells)));
    }

    /// The same, below other lines that stay where they are.
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
        self.top = self.top.min(self.most());
    }

    fn most(&self) -> usize {
        self.lines.len().saturating_sub(self.visible(self.place))
    }

    /// Rows between the borders, below the head.
    fn visible(&self, area: Rect) -> usize {
        usize::from(area.height).saturating_sub(2 + self.head.len())
    }

    /// A move.
    pub(super) fn go(&mut self, motion: Motion) {
        self.top = motion.from(self.top, self.most() + 1);
    }

    /// Moves as far as it takes to show a row.
    pub(super) fn keep_in_sight(&mut self, row: usize) {
        let visible = self.visible(self.place).max(1);
        self.top = self.top.clamp((row + 1).saturating_sub(visible), row);
    }

    /// A key press: a move, or the way back.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> Handled {
        match lookup(Scope::Explain, key) {
            Some(Action::Back) => return Handled::with(Change::Close),
            Some(Action::Help) => return Handled::with(Change::Help(Scope::Explain)),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.go(motion);
                }
            }
            None => {}
        }
        Handled::quietly()
    }

    /// Paints it over everything.
    pub(super) fn draw(&self, title: &str, frame: &mut Frame, area: Rect, look: Look) {
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
        let title = clip(&format!(" {title} "), room, look);
        let title = Line::from(Span::styled(title, look.style(Meaning::Title)));
        let hint = Line::styled(hint, look.style(Meaning::Waiting)).right_aligned();
        let block = look.panel(Focus::Here).title(title).title(hint);
        let shown = self.lines.iter().skip(self.top).take(self.visible(area));
        let shown: Vec<Line> = self.head.iter().chain(shown).cloned().collect();
        frame.render_widget(Paragraph::new(shown).block(block), area);
    }
}
