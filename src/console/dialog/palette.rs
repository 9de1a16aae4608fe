//! Command palette: all commands by name.
//!
//! Commands come from the key table, and from a short list of commands that take an argument or must
//! be typed in full. Contract: the palette decides nothing. A command has the effect of a key, or
//! opens a dialog that decides by its own rules.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Matcher, Utf32Str};
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::dialog::{Dialog, KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyScope, Motion, all_bindings, find_action};
use super::super::line_edit::{InputChange, LineEdit};
use super::super::request::ConsoleRequest;
use super::super::screen::queue::highlighted;
use super::super::text_cells::{clip, fit, width};
use super::super::theme::{Appearance, Focus, Meaning};
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};

/// Command chosen in the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PaletteCommand {
    /// Runs the action of a key.
    Act(KeyAction),
    /// Opens a request to override the denial behind it.
    Override(HeldRequestId),
    /// Acknowledges that a denial was overridden.
    AckOverride,
    /// Acknowledges that the record is broken, so that deciding is possible again.
    AckBrokenChain,
    /// Changes the operator.
    Operator(String),
    /// Goes to an event of the record.
    Seek(u64),
    /// Filters the queue.
    Filter(String),
    /// Opens a snapshot file.
    Snapshot(String),
    /// Hands the selected thread over to a session.
    HandOver(SessionId),
    /// Quits the console.
    Quit,
}

/// A command that is typed in full.
struct TypedCommand {
    name: &'static str,
    /// Placeholder of the argument; empty if the command takes none.
    argument: &'static str,
    help: &'static str,
}

/// Commands typed in full. Recorded ones come last, because two presses of Enter run the first one.
const TYPED_COMMANDS: [TypedCommand; 9] = [
    TypedCommand {
        name: "filter",
        argument: "TEXT",
        help: "filter the queue (no text: show all)",
    },
    TypedCommand {
        name: "snapshot",
        argument: "PATH",
        help: "open a snapshot file (asks for the path)",
    },
    TypedCommand {
        name: "seek",
        argument: "N",
        help: "go to event N of the record",
    },
    TypedCommand {
        name: "operator",
        argument: "NAME",
        help: "switch operator (recorded, not verified)",
    },
    TypedCommand {
        name: "hand-over",
        argument: "SESSION",
        help: "hand the thread to another session (recorded)",
    },
    TypedCommand {
        name: "quit",
        argument: "",
        help: "quit (asks first while requests are held)",
    },
    TypedCommand {
        name: "ack-override",
        argument: "",
        help: "acknowledge an overruled denial (recorded)",
    },
    TypedCommand {
        name: "ack-broken-chain",
        argument: "",
        help: "acknowledge a broken record (recorded)",
    },
    TypedCommand {
        name: "override",
        argument: "ID",
        help: "open a denied request to overrule the denial",
    },
];

/// Dialog that shows the palette.
#[derive(Debug)]
pub(crate) struct PaletteDialog {
    scope: KeyScope,
    line: LineEdit,
    at: usize,
    problem: Option<String>,
}

/// A row of the list.
struct PaletteRow {
    name: String,
    key: String,
    help: &'static str,
    run: RowAction,
}

enum RowAction {
    Act(KeyAction),
    Type(&'static TypedCommand),
}

impl PaletteDialog {
    /// Creates the palette over a screen.
    pub(crate) fn new(scope: KeyScope) -> Self {
        Self {
            scope,
            line: LineEdit::default(),
            at: 0,
            problem: None,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        match find_action(KeyScope::Palette, key) {
            Some(KeyAction::Back) => return KeyResult::with(LayerChange::Close),
            Some(KeyAction::Open) => return self.run(),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.at = motion.target_row(self.at, self.rows().len());
                }
            }
            None => {
                if self.line.on_key(key) == InputChange::Changed {
                    self.on_text_changed();
                }
            }
        }
        KeyResult::quietly()
    }

    /// Handles a pasted text: it is typed and runs nothing.
    pub(crate) fn on_paste(&mut self, text: &str) {
        self.line.paste(text);
        self.on_text_changed();
    }

    fn on_text_changed(&mut self) {
        self.at = 0;
        self.problem = None;
    }

    /// Handles Enter.
    fn run(&mut self) -> KeyResult {
        let text = self.line.text().trim().to_owned();
        let (name, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let exact = TYPED_COMMANDS.iter().find(|typable| typable.name == name);
        let rows = self.rows();
        let chosen = match (exact, rows.get(self.at)) {
            (Some(typable), _) => RowAction::Type(typable),
            (None, Some(PaletteRow { run, .. })) => match run {
                RowAction::Act(action) => RowAction::Act(*action),
                RowAction::Type(typable) => RowAction::Type(typable),
            },
            (None, None) => return KeyResult::quietly(),
        };
        match chosen {
            RowAction::Act(action) => run_and_close(PaletteCommand::Act(action)),
            // An incomplete name is completed, not run: the operator must mean it.
            RowAction::Type(typable) if exact.is_none() => {
                let gap = if typable.argument.is_empty() { "" } else { " " };
                self.line = LineEdit::of(&format!("{}{gap}", typable.name));
                self.on_text_changed();
                KeyResult::quietly()
            }
            RowAction::Type(typable) => match command(typable, rest.trim()) {
                Ok(command) => run_and_close(command),
                Err(problem) => {
                    self.problem = Some(problem);
                    KeyResult::quietly()
                }
            },
        }
    }

    fn rows(&self) -> Vec<PaletteRow> {
        let text = self.line.text().trim();
        let name = text.split(' ').next().unwrap_or_default();
        let keys = all_bindings().filter(|binding| {
            let here = binding.scope == self.scope || binding.scope == KeyScope::Global;
            // These actions make no sense in the palette.
            let sense = !matches!(
                binding.action,
                KeyAction::Palette | KeyAction::Cancel | KeyAction::Back | KeyAction::Quit
            );
            here && sense
        });
        let keys = keys.map(|binding| PaletteRow {
            name: binding.label.to_owned(),
            key: binding.footer_key_name(),
            help: binding.help,
            run: RowAction::Act(binding.action),
        });
        let typable = TYPED_COMMANDS.iter().map(|typable| PaletteRow {
            name: format!("{} {}", typable.name, typable.argument)
                .trim()
                .to_owned(),
            key: String::new(),
            help: typable.help,
            run: RowAction::Type(typable),
        });
        let mut matcher = matcher();
        let typed = pattern(text);
        let ranked = typable.chain(keys).filter_map(|row| {
            let exact = matches!(row.run, RowAction::Type(typable) if typable.name == name);
            let rank = if exact {
                Some(0)
            } else {
                rank(&mut matcher, &row.name, &typed)
            };
            let rank = rank.or_else(|| contains(row.help, text).then_some(u32::MAX));
            rank.map(|rank| (rank, row))
        });
        let mut ranked: Vec<(u32, PaletteRow)> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, row)| row).collect()
    }

    /// Paints the palette at the top.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        // Narrow terminals give it the whole width.
        let cells = if area.width < 100 { area.width } else { 92 };
        let place = Rect::new(
            area.x + area.width.saturating_sub(cells) / 2,
            area.y + 1,
            cells,
            area.height.saturating_sub(2).min(18),
        );
        frame.render_widget(Clear, place);
        let title = Line::from(vec![
            Span::styled(" Palette ", appearance.style(Meaning::Title)),
            Span::styled("cannot pass or deny ", appearance.style(Meaning::Dim)),
        ]);
        let block = appearance.panel(Focus::Here).title(title);
        let inner = block.inner(place);
        frame.render_widget(block, place);
        let [typed, problem_row, list] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Fill(1),
        ])
        .areas(inner);
        let cells = usize::from(inner.width);
        let line = Line::from(vec![
            Span::styled(":", appearance.style(Meaning::Key)),
            Span::styled(
                clip(self.line.text(), cells.saturating_sub(2), appearance),
                appearance.style(Meaning::Strong),
            ),
            Span::styled(" ", appearance.style(Meaning::Selected)),
        ]);
        frame.render_widget(line, typed);
        if let Some(problem) = &self.problem {
            let text = clip(problem, cells, appearance);
            frame.render_widget(
                Line::styled(text, appearance.style(Meaning::Error)),
                problem_row,
            );
        }
        let rows = self.rows();
        let room = usize::from(list.height).max(1);
        let top = (self.at + 1).saturating_sub(room);
        let shown = rows.iter().enumerate().skip(top).take(room);
        let mut lines: Vec<Line> = shown
            .map(|(at, row)| row.line(Focus::from(at == self.at), cells, appearance))
            .collect();
        if lines.is_empty() {
            let text = format!(
                "No command matches `{}`. Backspace shows more.",
                self.line.text()
            );
            lines.push(Line::styled(
                clip(&text, cells, appearance),
                appearance.style(Meaning::Dim),
            ));
        }
        frame.render_widget(Paragraph::new(lines), list);
    }
}

impl PaletteRow {
    fn line(&self, chosen: Focus, cells: usize, appearance: Appearance) -> Line<'static> {
        let pointer = match chosen {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let (name, key) = (20, 7);
        let help = clip(self.help, cells.saturating_sub(2 + name + key), appearance);
        let rest = cells.saturating_sub(2 + name + key + width(&help));
        let line = Line::from(vec![
            Span::raw(pointer),
            Span::raw(fit(&self.name, name, appearance)),
            Span::styled(
                fit(&self.key, key, appearance),
                appearance.style(Meaning::Key),
            ),
            Span::styled(help, appearance.style(Meaning::Dim)),
            Span::raw(" ".repeat(rest)),
        ]);
        match chosen {
            Focus::Here => highlighted(line, appearance),
            Focus::Elsewhere => line,
        }
    }
}

fn run_and_close(command: PaletteCommand) -> KeyResult {
    KeyResult::Consumed(vec![LayerChange::Close, LayerChange::Run(command)])
}

/// Parses the typed text as a command.
fn command(typable: &TypedCommand, rest: &str) -> Result<PaletteCommand, String> {
    let none = |command: PaletteCommand| {
        if rest.is_empty() {
            Ok(command)
        } else {
            Err(format!("`{}` takes no argument", typable.name))
        }
    };
    match typable.name {
        "override" => {
            let gate = rest.parse::<HeldRequestId>();
            let gate = gate.map_err(|_| "enter a request, such as `override c-12`".to_owned())?;
            Ok(PaletteCommand::Override(gate))
        }
        "seek" => {
            let number = rest.parse::<u64>();
            let number =
                number.map_err(|_| "enter an event number, such as `seek 120`".to_owned())?;
            Ok(PaletteCommand::Seek(number))
        }
        "operator" if rest.is_empty() => Err("enter a name, such as `operator ann@ops`".to_owned()),
        "operator" => Ok(PaletteCommand::Operator(rest.to_owned())),
        "hand-over" => {
            let session = rest.parse::<SessionId>();
            let session =
                session.map_err(|_| "enter a session, such as `hand-over s-2`".to_owned())?;
            Ok(PaletteCommand::HandOver(session))
        }
        "filter" => Ok(PaletteCommand::Filter(rest.to_owned())),
        "snapshot" => Ok(PaletteCommand::Snapshot(rest.to_owned())),
        "ack-override" => none(PaletteCommand::AckOverride),
        "ack-broken-chain" => none(PaletteCommand::AckBrokenChain),
        _ => none(PaletteCommand::Quit),
    }
}

fn matcher() -> Matcher {
    let mut config = nucleo_matcher::Config::DEFAULT;
    config.prefer_prefix = true;
    Matcher::new(config)
}

fn pattern(typed: &str) -> Pattern {
    let normalization = Normalization::Smart;
    Pattern::new(typed, CaseMatching::Ignore, normalization, AtomKind::Fuzzy)
}

/// Ranks a name against typed letters, which must occur in their order: a lower rank is a better match.
fn rank(matcher: &mut Matcher, name: &str, typed: &Pattern) -> Option<u32> {
    let mut letters = Vec::new();
    let score = typed.score(Utf32Str::new(name, &mut letters), matcher)?;
    Some(u32::MAX - 1 - score)
}

fn contains(help: &str, typed: &str) -> bool {
    help.to_lowercase().contains(&typed.to_lowercase())
}

impl Dialog for PaletteDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::Palette
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_letters_in_order_and_close_letters_score_best() {
        let rank = |name: &str, typed: &str| {
            let mut matcher = matcher();
            rank(&mut matcher, name, &pattern(typed))
        };
        assert_eq!(rank("sort", "xo"), None);
        assert!(rank("override ID", "over") < rank("move over", "over"));
        assert!(rank("ack-broken-chain", "abc").is_some());
        assert!(rank("batch", "bat") < rank("ab at", "bat"));
    }
}
