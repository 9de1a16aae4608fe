//! Command palette: all commands by name.
//!
//! Commands come from the key table, and from a short list of commands that take an argument or must
//! be typed in full. Contract: the palette decides nothing. A command has the effect of a key, or
//! opens a dialog that decides by its own rules.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::cells::{clip, fit, width};
use super::super::keymap::{Action, BINDINGS, Scope, lookup};
use super::super::layer::{Change, Handled};
use super::super::line::{LineEdit, Typed};
use super::super::screen::queue::highlighted;
use super::super::theme::{Focus, Look, Meaning};
use crate::base::id::{GateId, SessionId};

/// Command chosen in the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Runs the action of a key.
    Act(Action),
    /// Opens a request to override the denial behind it.
    Override(GateId),
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
struct Typable {
    name: &'static str,
    /// Placeholder of the argument; empty if the command takes none.
    wants: &'static str,
    help: &'static str,
}

/// Commands typed in full. Recorded ones come last, because two presses of Enter run the first one.
const TYPABLE: [Typable; 9] = [
    Typable {
        name: "filter",
        wants: "TEXT",
        help: "narrows the queue; without a text shows all of it",
    },
    Typable {
        name: "snapshot",
        wants: "PATH",
        help: "opens a snapshot file, to go on from it; without a path asks for one",
    },
    Typable {
        name: "seek",
        wants: "N",
        help: "to the event of that number in the record",
    },
    Typable {
        name: "operator",
        wants: "NAME",
        help: "somebody else takes the chair: recorded; a name is claimed here, nothing proves it",
    },
    Typable {
        name: "hand-over",
        wants: "SESSION",
        help: "hands the chosen thread over to another session: recorded",
    },
    Typable {
        name: "quit",
        wants: "",
        help: "leaves the console; asks first while requests are held",
    },
    Typable {
        name: "ack-override",
        wants: "",
        help: "you know that a denial was overruled: recorded, and taken out of the header",
    },
    Typable {
        name: "ack-broken-chain",
        wants: "",
        help: "you know that the record is broken or unreadable: recorded, and deciding goes on",
    },
    Typable {
        name: "override",
        wants: "ID",
        help: "opens a denied request in order to overrule the denial: never by a key, never in a batch",
    },
];

/// Dialog that shows the palette.
#[derive(Debug)]
pub(crate) struct PaletteDialog {
    scope: Scope,
    line: LineEdit,
    at: usize,
    problem: Option<String>,
}

/// A row of the list.
struct Row {
    name: String,
    key: String,
    help: &'static str,
    run: Run,
}

enum Run {
    Act(Action),
    Type(&'static Typable),
}

impl PaletteDialog {
    /// Creates the palette over a screen.
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            line: LineEdit::default(),
            at: 0,
            problem: None,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        match lookup(Scope::Palette, key) {
            Some(Action::Back) => return Handled::with(Change::Close),
            Some(Action::Open) => return self.run(),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.at = motion.from(self.at, self.rows().len());
                }
            }
            None => {
                if self.line.on_key(key) == Typed::Changed {
                    self.typed();
                }
            }
        }
        Handled::quietly()
    }

    /// Handles a pasted text: it is typed and runs nothing.
    pub(crate) fn on_paste(&mut self, text: &str) {
        self.line.paste(text);
        self.typed();
    }

    fn typed(&mut self) {
        self.at = 0;
        self.problem = None;
    }

    /// Handles Enter.
    fn run(&mut self) -> Handled {
        let text = self.line.text().trim().to_owned();
        let (name, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let exact = TYPABLE.iter().find(|typable| typable.name == name);
        let rows = self.rows();
        let chosen = match (exact, rows.get(self.at)) {
            (Some(typable), _) => Run::Type(typable),
            (None, Some(Row { run, .. })) => match run {
                Run::Act(action) => Run::Act(*action),
                Run::Type(typable) => Run::Type(typable),
            },
            (None, None) => return Handled::quietly(),
        };
        match chosen {
            Run::Act(action) => ran(Command::Act(action)),
            // An incomplete name is completed, not run: the operator must mean it.
            Run::Type(typable) if exact.is_none() => {
                let gap = if typable.wants.is_empty() { "" } else { " " };
                self.line = LineEdit::of(&format!("{}{gap}", typable.name));
                self.typed();
                Handled::quietly()
            }
            Run::Type(typable) => match command(typable, rest.trim()) {
                Ok(command) => ran(command),
                Err(problem) => {
                    self.problem = Some(problem);
                    Handled::quietly()
                }
            },
        }
    }

    fn rows(&self) -> Vec<Row> {
        let text = self.line.text().trim();
        let name = text.split(' ').next().unwrap_or_default();
        let keys = BINDINGS.iter().filter(|binding| {
            let here = binding.scope == self.scope || binding.scope == Scope::Global;
            // These actions make no sense in the palette.
            let sense = !matches!(
                binding.action,
                Action::Palette | Action::Cancel | Action::Back | Action::Quit
            );
            here && sense
        });
        let keys = keys.map(|binding| Row {
            name: binding.label.to_owned(),
            key: binding.first_name(),
            help: binding.help,
            run: Run::Act(binding.action),
        });
        let typable = TYPABLE.iter().map(|typable| Row {
            name: format!("{} {}", typable.name, typable.wants)
                .trim()
                .to_owned(),
            key: String::new(),
            help: typable.help,
            run: Run::Type(typable),
        });
        let scored = typable.chain(keys).filter_map(|row| {
            let exact = matches!(row.run, Run::Type(typable) if typable.name == name);
            let score = if exact {
                Some(0)
            } else {
                score(&row.name, text)
            };
            let score = score.or_else(|| contains(row.help, text).then_some(1000));
            score.map(|score| (score, row))
        });
        let mut scored: Vec<(usize, Row)> = scored.collect();
        scored.sort_by_key(|(score, _)| *score);
        scored.into_iter().map(|(_, row)| row).collect()
    }

    /// Paints the palette at the top.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
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
            Span::styled(" Palette ", look.style(Meaning::Title)),
            Span::styled("nothing is decided here ", look.style(Meaning::Dim)),
        ]);
        let block = look.panel(Focus::Here).title(title);
        let inner = block.inner(place);
        frame.render_widget(block, place);
        let [typed, said, list] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Fill(1),
        ])
        .areas(inner);
        let cells = usize::from(inner.width);
        let line = Line::from(vec![
            Span::styled(":", look.style(Meaning::Key)),
            Span::styled(
                clip(self.line.text(), cells.saturating_sub(2), look),
                look.style(Meaning::Strong),
            ),
            Span::styled(" ", look.style(Meaning::Selected)),
        ]);
        frame.render_widget(line, typed);
        if let Some(problem) = &self.problem {
            let text = clip(problem, cells, look);
            frame.render_widget(Line::styled(text, look.style(Meaning::Error)), said);
        }
        let rows = self.rows();
        let room = usize::from(list.height).max(1);
        let top = (self.at + 1).saturating_sub(room);
        let shown = rows.iter().enumerate().skip(top).take(room);
        let mut lines: Vec<Line> = shown
            .map(|(at, row)| row.line(Focus::from(at == self.at), cells, look))
            .collect();
        if lines.is_empty() {
            let text = format!(
                "No command matches `{}`. Backspace shows more.",
                self.line.text()
            );
            lines.push(Line::styled(
                clip(&text, cells, look),
                look.style(Meaning::Dim),
            ));
        }
        frame.render_widget(Paragraph::new(lines), list);
    }
}

impl Row {
    fn line(&self, chosen: Focus, cells: usize, look: Look) -> Line<'static> {
        let pointer = match chosen {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let (name, key) = (20, 7);
        let help = clip(self.help, cells.saturating_sub(2 + name + key), look);
        let rest = cells.saturating_sub(2 + name + key + width(&help));
        let line = Line::from(vec![
            Span::raw(pointer),
            Span::raw(fit(&self.name, name, look)),
            Span::styled(fit(&self.key, key, look), look.style(Meaning::Key)),
            Span::styled(help, look.style(Meaning::Dim)),
            Span::raw(" ".repeat(rest)),
        ]);
        match chosen {
            Focus::Here => highlighted(line, look),
            Focus::Elsewhere => line,
        }
    }
}

fn ran(command: Command) -> Handled {
    Handled::Consumed(vec![Change::Close, Change::Run(command)])
}

/// Parses the typed text as a command.
fn command(typable: &Typable, rest: &str) -> Result<Command, String> {
    let none = |command: Command| {
        if rest.is_empty() {
            Ok(command)
        } else {
            Err(format!("`{}` takes nothing after it", typable.name))
        }
    };
    match typable.name {
        "override" => {
            let gate = rest.parse::<GateId>();
            let gate = gate.map_err(|_| "which one? `override c-12`".to_owned())?;
            Ok(Command::Override(gate))
        }
        "seek" => {
            let number = rest.parse::<u64>();
            let number = number.map_err(|_| "to which event? `seek 120`".to_owned())?;
            Ok(Command::Seek(number))
        }
        "operator" if rest.is_empty() => Err("who? `operator ann@ops`".to_owned()),
        "operator" => Ok(Command::Operator(rest.to_owned())),
        "hand-over" => {
            let session = rest.parse::<SessionId>();
            let session = session.map_err(|_| "to which session? `hand-over s-2`".to_owned())?;
            Ok(Command::HandOver(session))
        }
        "filter" => Ok(Command::Filter(rest.to_owned())),
        "snapshot" => Ok(Command::Snapshot(rest.to_owned())),
        "ack-override" => none(Command::AckOverride),
        "ack-broken-chain" => none(Command::AckBrokenChain),
        _ => none(Command::Quit),
    }
}

/// Scores how well a name matches the typed text: its letters in this order, close together. Lower is
/// better.
fn score(name: &str, typed: &str) -> Option<usize> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let mut at = 0;
    let mut gaps = 0;
    for c in typed.to_lowercase().chars() {
        let next = name.iter().skip(at).position(|letter| *letter == c)?;
        // A gap before the first letter counts less than a gap between letters.
        gaps += if at == 0 { next } else { next * 4 };
        at += next + 1;
    }
    Some(gaps + 1)
}

fn contains(help: &str, typed: &str) -> bool {
    help.to_lowercase().contains(&typed.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_letters_in_order_and_close_letters_score_best() {
        assert_eq!(score("sort", "xo"), None);
        assert!(score("override ID", "over") < score("move over", "over"));
        assert!(score("ack-broken-chain", "abc").is_some());
        assert!(score("batch", "bat") < score("ab at", "bat"));
    }
}
