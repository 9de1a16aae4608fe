//! Dialog that loads other Atlases: it shows the changes, and which gates may become weaker.
//!
//! Contract: the focus starts on keeping the loaded Atlases. The request carries exactly the Atlases
//! that were shown, identified by their hash. Keys within the arming time are dropped. All lines must
//! have been on screen. If a gate may become weaker, the operator must type the first characters of
//! the new hash.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::base::clock::Timestamp;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::atlas_study::PageLine;
use crate::console::dialog::{KeyResult, LayerChange};
use crate::console::keymap::{KeyAction, KeyScope, find_action};
use crate::console::line_edit::LineEdit;
use crate::console::request::ConsoleRequest;
use crate::console::text_cells::{clip, coordinate, wrap};
use crate::console::theme::{Appearance, Focus, Meaning};
use crate::runtime::{AtlasLoad, LoadRefusal};

/// Number of characters of the new hash to type if a gate may become weaker.
const TYPED_HASH_CHARS: usize = 4;

/// Dialog that asks whether to load other Atlases.
#[derive(Debug)]
pub(crate) struct LoadDialog {
    load: AtlasLoad,
    direction: LoadDirection,
    /// Changes that the load would make.
    lines: Vec<PageLine>,
    /// Text to type; `None` if no gate becomes weaker.
    wanted: Option<String>,
    typed: LineEdit,
    focus: LoadFocus,
    phase: LoadPhase,
    armed_at: Timestamp,
    rows: Vec<Line<'static>>,
    area: Rect,
    place: Rect,
    visible: usize,
    top: usize,
    /// Number of rows that were on screen, counted from the first.
    seen: usize,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadFocus {
    Keep,
    Code,
    Load,
}

/// State of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LoadPhase {
    Asking,
    Writing,
    Refused(String),
}

/// Effect of a load on the gates. A weaker gate needs more than a button press to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateStrength {
    /// No gate becomes weaker.
    Same,
    /// A gate may become weaker.
    Weaker,
}

/// Direction of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadDirection {
    /// Forward to the content of the files.
    Forward,
    /// Back to the Atlases loaded before.
    Back,
}

impl LoadDirection {
    fn title(self) -> &'static str {
        match self {
            Self::Forward => "Load the Atlas files?",
            Self::Back => "Restore the previous Atlases?",
        }
    }

    /// Short name of the Atlases that would be loaded.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "new",
            Self::Back => "before",
        }
    }

    /// Name of the hash to type.
    fn hash(self) -> &'static str {
        match self {
            Self::Forward => "new hash",
            Self::Back => "previous hash",
        }
    }

    fn button(self) -> &'static str {
        match self {
            Self::Forward => "Load",
            Self::Back => "Restore",
        }
    }
}

impl LoadDialog {
    /// Creates the dialog, opened at `now`. `code` is the hash of the Atlases that would be loaded.
    pub(crate) fn new(
        load: AtlasLoad,
        (direction, lines): (LoadDirection, Vec<PageLine>),
        (strength, code): (GateStrength, &str),
        now: Timestamp,
    ) -> Self {
        let wanted = match strength {
            GateStrength::Same => None,
            GateStrength::Weaker => Some(code.chars().take(TYPED_HASH_CHARS).collect()),
        };
        Self {
            load,
            direction,
            lines,
            wanted,
            typed: LineEdit::default(),
            focus: LoadFocus::Keep,
            phase: LoadPhase::Asking,
            armed_at: now.plus(DIALOG_ARMING_TIME),
            rows: Vec::new(),
            area: Rect::ZERO,
            place: Rect::ZERO,
            visible: 0,
            top: 0,
            seen: 0,
        }
    }

    /// Returns the end of the arming time, while it runs.
    pub(super) fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        (self.armed_at > now).then_some(self.armed_at)
    }

    /// Shows why the load was refused.
    pub(crate) fn on_refused(&mut self, reason: &LoadRefusal) {
        self.phase = LoadPhase::Refused(reason.to_string());
        self.focus = LoadFocus::Keep;
    }

    /// Returns why the load button is disabled, if it is.
    fn blocker(&self, now: Timestamp) -> Option<&'static str> {
        match &self.phase {
            LoadPhase::Writing => return Some("being recorded"),
            LoadPhase::Refused(_) => return Some("not loaded"),
            LoadPhase::Asking => {}
        }
        if self.arms_at(now).is_some() {
            return Some("just opened, wait a moment");
        }
        if self.seen < self.rows.len() {
            return Some("more below (PgDn)");
        }
        let wanted = self.wanted.as_deref().unwrap_or_default();
        (self.typed.text() != wanted).then_some("type the hash")
    }

    /// Handles a key press.
    pub(super) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        // Until the load is recorded or refused, it is unknown which Atlases are loaded.
        if self.arms_at(now).is_some() || self.phase == LoadPhase::Writing {
            return KeyResult::quietly();
        }
        let action = find_action(KeyScope::Load, key);
        match action {
            Some(KeyAction::Back) => return KeyResult::with(LayerChange::Close),
            Some(KeyAction::Help) => return KeyResult::with(LayerChange::Help(KeyScope::Load)),
            Some(KeyAction::Next) => self.focus = self.cycle_focus(1),
            Some(KeyAction::Previous) => {
                self.focus = self.cycle_focus(self.focus_order().len() - 1);
            }
            Some(KeyAction::Press) => return self.press(now),
            Some(other) => {
                if let Some(motion) = other.motion() {
                    self.top = motion.target_row(self.top, self.max_scroll() + 1);
                    self.mark_visible_seen();
                }
            }
            None if self.focus == LoadFocus::Code => drop(self.typed.on_key(key)),
            None => {}
        }
        KeyResult::quietly()
    }

    /// Handles a pasted text: it goes to the text input and presses nothing.
    pub(super) fn on_paste(&mut self, text: &str, now: Timestamp) {
        if self.focus == LoadFocus::Code && self.arms_at(now).is_none() {
            self.typed.paste(text);
        }
    }

    fn press(&mut self, now: Timestamp) -> KeyResult {
        match self.focus {
            LoadFocus::Keep => KeyResult::with(LayerChange::Close),
            LoadFocus::Code => KeyResult::quietly(),
            LoadFocus::Load if self.blocker(now).is_some() => KeyResult::quietly(),
            LoadFocus::Load => {
                self.phase = LoadPhase::Writing;
                KeyResult::with(LayerChange::Send(ConsoleRequest::Load(self.load.clone())))
            }
        }
    }

    fn focus_order(&self) -> &'static [LoadFocus] {
        match (&self.phase, &self.wanted) {
            (LoadPhase::Refused(_), _) => &[LoadFocus::Keep],
            (LoadPhase::Asking | LoadPhase::Writing, None) => &[LoadFocus::Keep, LoadFocus::Load],
            (LoadPhase::Asking | LoadPhase::Writing, Some(_)) => {
                &[LoadFocus::Keep, LoadFocus::Code, LoadFocus::Load]
            }
        }
    }

    fn cycle_focus(&self, steps: usize) -> LoadFocus {
        let spots = self.focus_order();
        let at = spots
            .iter()
            .position(|spot| *spot == self.focus)
            .unwrap_or(0);
        let next = spots.get((at + steps) % spots.len().max(1));
        next.copied().unwrap_or(LoadFocus::Keep)
    }

    fn max_scroll(&self) -> usize {
        self.rows.len().saturating_sub(self.visible)
    }

    fn mark_visible_seen(&mut self) {
        // Rows that were jumped over were not seen.
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + self.visible);
        }
    }

    /// Lays out the lines for the area they will be painted in.
    pub(super) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        if self.area == area {
            return;
        }
        self.area = area;
        let cells = usize::from(width_in(area)).saturating_sub(4);
        let lines = self.lines.iter();
        let rows = lines.flat_map(|line| {
            let rows = wrap(&line.text, cells).into_iter();
            rows.map(|row| Line::styled(row, appearance.style(line.meaning)))
        });
        self.rows = rows.collect();
        let place = dialog_area(area, self.rows.len() + usize::from(self.wanted.is_some()));
        self.place = place;
        self.visible = usize::from(split_area(place, self.wanted.as_ref()).0.height);
        self.top = self.top.min(self.max_scroll());
        self.seen = 0;
        self.mark_visible_seen();
    }

    /// Paints the dialog in the centre.
    pub(super) fn draw(&self, frame: &mut Frame, appearance: Appearance, now: Timestamp) {
        let place = self.place;
        frame.render_widget(Clear, place);
        let title = Line::styled(
            format!(" {} ", self.direction.title()),
            appearance.style(Meaning::Title),
        );
        let below = self.rows.len().saturating_sub(self.top + self.visible);
        let hint = match below {
            0 => String::new(),
            below => format!(" {below} more below "),
        };
        let hint = Line::styled(hint, appearance.style(Meaning::Waiting)).right_aligned();
        frame.render_widget(
            appearance.panel(Focus::Here).title(title).title(hint),
            place,
        );
        let (list, code, buttons) = split_area(place, self.wanted.as_ref());
        let shown = self.rows.iter().skip(self.top).take(self.visible);
        frame.render_widget(Paragraph::new(shown.cloned().collect::<Vec<_>>()), list);
        if let Some(wanted) = &self.wanted {
            frame.render_widget(self.code_line(wanted, appearance), code);
        }
        frame.render_widget(
            self.buttons(usize::from(buttons.width), appearance, now),
            buttons,
        );
    }

    fn code_line(&self, wanted: &str, appearance: Appearance) -> Line<'static> {
        let (mark, meaning) = match self.focus {
            LoadFocus::Code => ("> ", Meaning::Strong),
            LoadFocus::Keep | LoadFocus::Load => ("  ", Meaning::Text),
        };
        let typed = self.typed.text();
        let rest: String = "_".repeat(wanted.len().saturating_sub(typed.chars().count()));
        Line::from(vec![
            Span::styled(
                format!(
                    "{mark}To confirm, type {wanted} ({}): ",
                    self.direction.hash()
                ),
                appearance.style(meaning),
            ),
            Span::styled(format!("{typed}{rest}"), appearance.style(Meaning::Strong)),
        ])
    }

    fn buttons(&self, cells: usize, appearance: Appearance, now: Timestamp) -> Line<'static> {
        let button = |name: &str, spot: LoadFocus, bar: Option<&str>| {
            let meaning = match (self.focus == spot, bar) {
                (true, None) => Meaning::ButtonFocused,
                (true, Some(_)) => Meaning::ButtonFocusedDisabled,
                (false, Some(_)) => Meaning::ButtonDisabled,
                (false, None) => Meaning::Button,
            };
            Span::styled(format!("[ {name} ]"), appearance.style(meaning))
        };
        let bar = self.blocker(now);
        let mut spans = vec![button("Keep current", LoadFocus::Keep, None)];
        let (words, meaning) = match &self.phase {
            LoadPhase::Refused(reason) => (reason.clone(), Meaning::Error),
            LoadPhase::Asking | LoadPhase::Writing => {
                spans.push(Span::raw("  "));
                spans.push(button(self.direction.button(), LoadFocus::Load, bar));
                (bar.unwrap_or_default().to_owned(), Meaning::Waiting)
            }
        };
        let used: usize = spans.iter().map(Span::width).sum();
        let words = clip(&words, cells.saturating_sub(used + 2), appearance);
        spans.push(Span::styled(
            format!("  {words}"),
            appearance.style(meaning),
        ));
        Line::from(spans)
    }
}

fn width_in(area: Rect) -> u16 {
    area.width.saturating_sub(4).min(96)
}

/// Area of the dialog: as high as its rows and buttons.
fn dialog_area(area: Rect, rows: usize) -> Rect {
    let cells = width_in(area);
    let height = coordinate(rows + 4).min(area.height.saturating_sub(2));
    Rect::new(
        area.x + area.width.saturating_sub(cells) / 2,
        area.y + area.height.saturating_sub(height) / 2,
        cells,
        height,
    )
}

/// Splits the area into changes, text input and buttons.
fn split_area(place: Rect, wanted: Option<&String>) -> (Rect, Rect, Rect) {
    let inner = Rect::new(
        place.x + 2,
        place.y + 1,
        place.width.saturating_sub(4),
        place.height.saturating_sub(2),
    );
    let code = u16::from(wanted.is_some());
    let [list, _, code, buttons] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(code),
        Constraint::Length(1),
    ])
    .areas(inner);
    (list, code, buttons)
}
