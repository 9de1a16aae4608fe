//! Whether other Atlases come into force: what changes, and where that may open a door.
//!
//! Contract: the focus starts on keeping what is loaded. What is sent is exactly what was shown, by its
//! hash. Keys that come too soon are dropped, all of it has to have been on screen, and where a gate may
//! be weaker the first characters of the new hash are typed.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::base::clock::Timestamp;
use crate::base::limits::ARMING;
use crate::console::cells::{clip, coordinate, wrap};
use crate::console::keymap::{Action, Scope, lookup};
use crate::console::layer::{Change, Handled};
use crate::console::line::LineEdit;
use crate::console::request::Request;
use crate::console::study::PageLine;
use crate::console::theme::{Focus, Look, Meaning};
use crate::runtime::{Load, LoadRefused};

/// Characters of the new hash that are typed where a gate may be weaker.
const TYPED: usize = 4;

/// The question.
#[derive(Debug)]
pub(crate) struct LoadDialog {
    load: Load,
    way: Way,
    /// What changes.
    lines: Vec<PageLine>,
    /// What has to be typed; nothing where no gate is weaker.
    wanted: Option<String>,
    typed: LineEdit,
    spot: Spot,
    step: Step,
    armed_at: Timestamp,
    rows: Vec<Line<'static>>,
    area: Rect,
    place: Rect,
    visible: usize,
    top: usize,
    /// Rows that were on screen, from the first on.
    seen: usize,
}

/// A place the focus can be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Keep,
    Code,
    Load,
}

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Asking,
    Writing,
    Refused(String),
}

/// Whether something weaker has to be confirmed by more than a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// No gate is weaker.
    Same,
    /// Some gate may be.
    Weaker,
}

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// On to what the files say.
    Load,
    /// Back to what was loaded before.
    Back,
}

impl Way {
    fn title(self) -> &'static str {
        match self {
            Self::Load => "Load what the files say?",
            Self::Back => "Go back to what was loaded before?",
        }
    }

    /// What would come into force, in a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Load => "new",
            Self::Back => "before",
        }
    }

    /// What its hash is called.
    fn hash(self) -> &'static str {
        match self {
            Self::Load => "the new hash",
            Self::Back => "the hash before",
        }
    }

    fn button(self) -> &'static str {
        match self {
            Self::Load => "Load",
            Self::Back => "Go back",
        }
    }
}

impl LoadDialog {
    /// Asks whether to load this, opened now. `code` is the hash of what would come into force.
    pub(crate) fn new(
        load: Load,
        (way, lines): (Way, Vec<PageLine>),
        (strength, code): (Strength, &str),
        now: Timestamp,
    ) -> Self {
        let wanted = match strength {
            Strength::Same => None,
            Strength::Weaker => Some(code.chars().take(TYPED).collect()),
        };
        Self {
            load,
            way,
            lines,
            wanted,
            typed: LineEdit::default(),
            spot: Spot::Keep,
            step: Step::Asking,
            armed_at: now.plus(ARMING),
            rows: Vec::new(),
            area: Rect::ZERO,
            place: Rect::ZERO,
            visible: 0,
            top: 0,
            seen: 0,
        }
    }

    /// When keys begin to count, if they do not yet.
    pub(super) fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        (self.armed_at > now).then_some(self.armed_at)
    }

    /// What became of it, where it was not taken.
    pub(crate) fn on_refused(&mut self, why: &LoadRefused) {
        self.step = Step::Refused(why.to_string());
        self.spot = Spot::Keep;
    }

    /// Why it cannot be loaded, if so.
    fn bar(&self, now: Timestamp) -> Option<&'static str> {
        match &self.step {
            Step::Writing => return Some("being recorded"),
            Step::Refused(_) => return Some("not loaded"),
            Step::Asking => {}
        }
        if self.arms_at(now).is_some() {
            return Some("arming");
        }
        if self.seen < self.rows.len() {
            return Some("more below (PgDn)");
        }
        let wanted = self.wanted.as_deref().unwrap_or_default();
        (self.typed.text() != wanted).then_some("type it first")
    }

    /// A key press.
    pub(super) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Handled {
        // Until it is recorded or not, nobody knows which Atlases are in force.
        if self.arms_at(now).is_some() || self.step == Step::Writing {
            return Handled::quietly();
        }
        let action = lookup(Scope::Load, key);
        match action {
            Some(Action::Back) => return Handled::with(Change::Close),
            Some(Action::Help) => return Handled::with(Change::Help(Scope::Load)),
            Some(Action::Next) => self.spot = self.step_on(1),
            Some(Action::Previous) => self.spot = self.step_on(self.spots().len() - 1),
            Some(Action::Press) => return self.press(now),
            Some(other) => {
                if let Some(motion) = other.motion() {
                    self.top = motion.from(self.top, self.most() + 1);
                    self.see();
                }
            }
            None if self.spot == Spot::Code => drop(self.typed.on_key(key)),
            None => {}
        }
        Handled::quietly()
    }

    /// A pasted text is typed where something is typed, and presses nothing.
    pub(super) fn on_paste(&mut self, text: &str, now: Timestamp) {
        if self.spot == Spot::Code && self.arms_at(now).is_none() {
            self.typed.paste(text);
        }
    }

    fn press(&mut self, now: Timestamp) -> Handled {
        match self.spot {
            Spot::Keep => Handled::with(Change::Close),
            Spot::Code => Handled::quietly(),
            Spot::Load if self.bar(now).is_some() => Handled::quietly(),
            Spot::Load => {
                self.step = Step::Writing;
                Handled::with(Change::Ask(Request::Load(self.load.clone())))
            }
        }
    }

    fn spots(&self) -> &'static [Spot] {
        match (&self.step, &self.wanted) {
            (Step::Refused(_), _) => &[Spot::Keep],
            (Step::Asking | Step::Writing, None) => &[Spot::Keep, Spot::Load],
            (Step::Asking | Step::Writing, Some(_)) => &[Spot::Keep, Spot::Code, Spot::Load],
        }
    }

    fn step_on(&self, steps: usize) -> Spot {
        let spots = self.spots();
        let at = spots.iter().position(|it| *it == self.spot).unwrap_or(0);
        let next = spots.get((at + steps) % spots.len().max(1));
        next.copied().unwrap_or(Spot::Keep)
    }

    fn most(&self) -> usize {
        self.rows.len().saturating_sub(self.visible)
    }

    fn see(&mut self) {
        // What was jumped over was not seen.
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + self.visible);
        }
    }

    /// Prepares the lines for the place they will be painted in.
    pub(super) fn lay_out(&mut self, area: Rect, look: Look) {
        if self.area == area {
            return;
        }
        self.area = area;
        let cells = usize::from(width_in(area)).saturating_sub(4);
        let lines = self.lines.iter();
        let rows = lines.flat_map(|line| {
            let rows = wrap(&line.text, cells).into_iter();
            rows.map(|row| Line::styled(row, look.style(line.meaning)))
        });
        self.rows = rows.collect();
        let place = place(area, self.rows.len() + usize::from(self.wanted.is_some()));
        self.place = place;
        self.visible = usize::from(parts(place, self.wanted.as_ref()).0.height);
        self.top = self.top.min(self.most());
        self.seen = 0;
        self.see();
    }

    /// Paints it in the middle.
    pub(super) fn draw(&self, frame: &mut Frame, look: Look, now: Timestamp) {
        let place = self.place;
        frame.render_widget(Clear, place);
        let title = Line::styled(
            format!(" {} ", self.way.title()),
            look.style(Meaning::Title),
        );
        let below = self.rows.len().saturating_sub(self.top + self.visible);
        let hint = match below {
            0 => String::new(),
            below => format!(" {below} more below "),
        };
        let hint = Line::styled(hint, look.style(Meaning::Waiting)).right_aligned();
        frame.render_widget(look.panel(Focus::Here).title(title).title(hint), place);
        let (list, code, buttons) = parts(place, self.wanted.as_ref());
        let shown = self.rows.iter().skip(self.top).take(self.visible);
        frame.render_widget(Paragraph::new(shown.cloned().collect::<Vec<_>>()), list);
        if let Some(wanted) = &self.wanted {
            frame.render_widget(self.code_line(wanted, look), code);
        }
        frame.render_widget(self.buttons(usize::from(buttons.width), look, now), buttons);
    }

    fn code_line(&self, wanted: &str, look: Look) -> Line<'static> {
        let (mark, meaning) = match self.spot {
            Spot::Code => ("> ", Meaning::Strong),
            Spot::Keep | Spot::Load => ("  ", Meaning::Text),
        };
        let typed = self.typed.text();
        let rest: String = "_".repeat(wanted.len().saturating_sub(typed.chars().count()));
        Line::from(vec![
            Span::styled(
                format!("{mark}type {wanted}, as {} begins: ", self.way.hash()),
                look.style(meaning),
            ),
            Span::styled(format!("{typed}{rest}"), look.style(Meaning::Strong)),
        ])
    }

    fn buttons(&self, cells: usize, look: Look, now: Timestamp) -> Line<'static> {
        let button = |name: &str, spot: Spot, bar: Option<&str>| {
            let meaning = match (self.spot == spot, bar) {
                (true, None) => Meaning::ButtonFocused,
                (true, Some(_)) => Meaning::ButtonBarred,
                (false, Some(_)) => Meaning::ButtonDisabled,
                (false, None) => Meaning::Button,
            };
            Span::styled(format!("[ {name} ]"), look.style(meaning))
        };
        let bar = self.bar(now);
        let mut spans = vec![button("Keep what is loaded", Spot::Keep, None)];
        let (words, meaning) = match &self.step {
            Step::Refused(why) => (why.clone(), Meaning::Error),
            Step::Asking | Step::Writing => {
                spans.push(Span::raw("  "));
                spans.push(button(self.way.button(), Spot::Load, bar));
                (bar.unwrap_or_default().to_owned(), Meaning::Waiting)
            }
        };
        let used: usize = spans.iter().map(Span::width).sum();
        let words = clip(&words, cells.saturating_sub(used + 2), look);
        spans.push(Span::styled(format!("  {words}"), look.style(meaning)));
        Line::from(spans)
    }
}

fn width_in(area: Rect) -> u16 {
    area.width.saturating_sub(4).min(96)
}

/// Where it goes: as high as what it shows, and the buttons.
fn place(area: Rect, rows: usize) -> Rect {
    let cells = width_in(area);
    let height = coordinate(rows + 4).min(area.height.saturating_sub(2));
    Rect::new(
        area.x + area.width.saturating_sub(cells) / 2,
        area.y + area.height.saturating_sub(height) / 2,
        cells,
        height,
    )
}

/// What changes, what is typed, the buttons.
fn parts(place: Rect, wanted: Option<&String>) -> (Rect, Rect, Rect) {
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
