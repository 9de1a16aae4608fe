//! Help: the key table, to browse and to search by typing.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::dialog::{Dialog, KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyBinding, KeyScope, Motion, find_action, scope_bindings};
use super::super::line_edit::{InputChange, LineEdit};
use super::super::request::ConsoleRequest;
use super::super::text_cells::{clip, fit, wrap};
use super::super::theme::{Appearance, Focus, Meaning};
use crate::base::clock::Timestamp;

/// Answer to a search for a feature that does not exist.
const NEVER: &str = "\"allow always\" does not exist: you decide every request separately, and a decision \
    applies to one request only";

/// Dialog that shows the help.
#[derive(Debug)]
pub(crate) struct HelpDialog {
    scope: KeyScope,
    filter: LineEdit,
    top: usize,
    /// Area of the key list.
    list: Rect,
}

impl HelpDialog {
    /// Creates the help, with the keys of `scope` first.
    pub(crate) fn new(scope: KeyScope) -> Self {
        Self {
            scope,
            filter: LineEdit::default(),
            top: 0,
            list: Rect::ZERO,
        }
    }

    /// Lays out the help for the area it will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect) {
        let block = Appearance::default().panel(Focus::Here);
        [_, self.list] = split_area(block.inner(dialog_area(area)));
        self.top = self.top.min(self.max_scroll());
    }

    /// Returns the last possible value of the first row on screen.
    fn max_scroll(&self) -> usize {
        let rows = self.rows(Appearance::default(), usize::from(self.list.width));
        rows.len().saturating_sub(usize::from(self.list.height))
    }

    /// Handles a key press: scrolls, or types a letter to search for.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        match find_action(KeyScope::Help, key) {
            Some(KeyAction::Back) => return KeyResult::with(LayerChange::Close),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.top = motion.target_row(self.top, self.max_scroll() + 1);
                }
            }
            None => {
                if self.filter.on_key(key) == InputChange::Changed {
                    self.top = 0;
                }
            }
        }
        KeyResult::quietly()
    }

    /// Handles a pasted text: it is searched for.
    pub(crate) fn on_paste(&mut self, text: &str) {
        self.filter.paste(text);
        self.top = 0;
    }

    /// Paints the help.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let place = dialog_area(area);
        frame.render_widget(Clear, place);
        let title = Line::styled(" Keys ", appearance.style(Meaning::Title));
        let block = appearance.panel(Focus::Here).title(title);
        let inner = block.inner(place);
        frame.render_widget(block, place);
        let [search, list] = split_area(inner);
        let typed = if self.filter.text().is_empty() {
            Span::styled("type to search", appearance.style(Meaning::Dim))
        } else {
            Span::styled(
                self.filter.text().to_owned(),
                appearance.style(Meaning::Strong),
            )
        };
        let search_line = Line::from(vec![
            Span::styled("/ ", appearance.style(Meaning::Key)),
            typed,
        ]);
        frame.render_widget(search_line, search);
        let rows = self.rows(appearance, usize::from(list.width));
        let most = rows.len().saturating_sub(usize::from(list.height));
        let shown: Vec<Line> = rows.into_iter().skip(self.top.min(most)).collect();
        frame.render_widget(Paragraph::new(shown), list);
    }

    fn rows(&self, appearance: Appearance, cells: usize) -> Vec<Line<'static>> {
        let others = KeyScope::all().filter(|scope| *scope != self.scope);
        let mut rows = Vec::new();
        for scope in std::iter::once(self.scope).chain(others) {
            let hits: Vec<&KeyBinding> = scope_bindings(scope)
                .filter(|binding| self.matches(binding))
                .collect();
            if hits.is_empty() {
                continue;
            }
            if !rows.is_empty() {
                rows.push(Line::default());
            }
            rows.push(Line::styled(
                scope.title(),
                appearance.style(Meaning::Title),
            ));
            for binding in hits {
                rows.extend(binding_rows(binding, appearance, cells));
            }
        }
        if NEVER
            .to_lowercase()
            .contains(&self.filter.text().to_lowercase())
        {
            if !rows.is_empty() {
                rows.push(Line::default());
            }
            rows.push(Line::styled(
                "Not available",
                appearance.style(Meaning::Title),
            ));
            let note_rows = wrap(NEVER, cells.saturating_sub(2));
            rows.extend(
                note_rows
                    .into_iter()
                    .map(|row| Line::from(format!("  {row}"))),
            );
        }
        if rows.is_empty() {
            let text = format!(
                "No key matches `{}`. Backspace shows more.",
                self.filter.text()
            );
            let text = clip(&text, cells, appearance);
            rows.push(Line::styled(text, appearance.style(Meaning::Dim)));
        }
        rows
    }

    fn matches(&self, binding: &KeyBinding) -> bool {
        let filter = self.filter.text().to_lowercase();
        let text = format!(
            "{} {} {}",
            binding.display_names(),
            binding.label,
            binding.help
        );
        text.to_lowercase().contains(&filter)
    }
}

/// Area of the help; narrow terminals give it the whole width.
fn dialog_area(area: Rect) -> Rect {
    let cells = if area.width < 100 { area.width } else { 92 };
    Rect::new(
        area.x + area.width.saturating_sub(cells) / 2,
        area.y + 1,
        cells,
        area.height.saturating_sub(2),
    )
}

/// Splits the area into the search text and the keys.
fn split_area(inner: Rect) -> [Rect; 2] {
    let [search, _, list] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(inner);
    [search, list]
}

fn binding_rows(binding: &KeyBinding, appearance: Appearance, cells: usize) -> Vec<Line<'static>> {
    let names = 24;
    let rows = wrap(binding.help, cells.saturating_sub(names + 2));
    let rows = rows.into_iter().enumerate().map(|(at, row)| {
        let keys = if at == 0 {
            binding.display_names()
        } else {
            String::new()
        };
        Line::from(vec![
            Span::raw("  "),
            Span::styled(
                fit(&keys, names, appearance),
                appearance.style(Meaning::Key),
            ),
            Span::raw(row),
        ])
    });
    rows.collect()
}

impl Dialog for HelpDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::Help
    }

    fn on_key(&mut self, key: KeyEvent, _now: Timestamp) -> KeyResult {
        Self::on_key(self, key)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, _now: Timestamp) {
        Self::draw(self, frame, area, appearance);
    }

    fn on_paste(&mut self, text: &str, _now: Timestamp) -> Vec<ConsoleRequest> {
        Self::on_paste(self, text);
        Vec::new()
    }

    fn on_wheel(&mut self, motion: Motion, _now: Timestamp) {
        Self::on_key(self, motion.arrow_key());
    }

    fn lay_out(&mut self, area: Rect, _look: Appearance) {
        Self::lay_out(self, area);
    }
}
