//! The request exactly as it will run, and how much of it was on screen.
//!
//! Contract: nothing is cut, hidden or reordered. A row counts as seen only when it was painted,
//! and only from the top on without a gap, so that jumping to the end does not count as reading.

use serde_json::Value;

use crate::base::text::{Lines, is_deceptive, one_line, visible};
use crate::console::cells::{break_exactly, wrap};
use crate::console::theme::Meaning;
use crate::engine::held::{Held, Subject};
use crate::runtime::snapshot::SessionSummary;

/// The context pane.
#[derive(Debug)]
pub(crate) struct Context {
    /// The request, line by line, made safe to show.
    request: Vec<String>,
    /// What is said about it, as heading and text.
    remarks: Vec<(String, String)>,
    /// How many characters were written out.
    hidden: usize,
    /// All rows, for the width they were made for.
    rows: Vec<Row>,
    /// How many of them are the request.
    request_rows: usize,
    /// The width the rows were made for.
    cells: usize,
    /// The first row on screen.
    top: usize,
    /// Rows of the request that were on screen, from the first on.
    seen: usize,
}

/// One row of the pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What it shows.
    pub(crate) text: String,
    /// What it means.
    pub(crate) meaning: Meaning,
    /// Which part of the pane it is.
    pub(crate) part: Part,
}

/// Which part of the pane a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The beginning of this line of the request.
    Request(usize),
    /// More of this line of the request.
    Continued(usize),
    /// What is said about it.
    Remark,
}

impl Context {
    /// The context of a held request.
    pub(crate) fn new(held: &Held, session: Option<&SessionSummary>) -> Self {
        let (text, hidden) = request_text(held);
        Self {
            request: text.split('\n').map(str::to_owned).collect(),
            remarks: remarks(held, session),
            hidden,
            rows: Vec::new(),
            request_rows: 0,
            cells: 0,
            top: 0,
            seen: 0,
        }
    }

    /// Breaks the lines for a width. What was seen stays seen, whole lines only.
    pub(crate) fn reflow(&mut self, cells: usize) {
        if cells == self.cells {
            return;
        }
        let seen_lines = self.seen_lines();
        self.cells = cells;
        self.rows = self.layout(cells);
        let request = self.rows.iter().take_while(|row| row.part != Part::Remark);
        self.request_rows = request.count();
        self.seen = self.rows_of_lines(seen_lines);
        // Back to what is unseen, so that nothing is skipped.
        self.top = self.top.min(self.seen);
    }

    fn layout(&self, cells: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        // Two cells are kept for the mark of a continued line.
        let room = cells.saturating_sub(2);
        for (line, text) in self.request.iter().enumerate() {
            for (at, piece) in break_exactly(text, room).into_iter().enumerate() {
                rows.push(Row {
                    text: piece.to_owned(),
                    meaning: if line == 0 {
                        Meaning::Strong
                    } else {
                        Meaning::Text
                    },
                    part: if at == 0 {
                        Part::Request(line)
                    } else {
                        Part::Continued(line)
                    },
                });
            }
        }
        let mut remark = |text: String, meaning| {
            rows.push(Row {
                text,
                meaning,
                part: Part::Remark,
            });
        };
        remark("-- end of request --".to_owned(), Meaning::Dim);
        for (heading, text) in &self.remarks {
            remark(String::new(), Meaning::Text);
            remark(heading.clone(), Meaning::Label);
            for piece in wrap(text, cells) {
                remark(piece, Meaning::Text);
            }
        }
        rows
    }

    /// Notes that `height` rows from the top were painted.
    pub(crate) fn painted(&mut self, height: usize) {
        if self.top <= self.seen {
            let bottom = (self.top + height).min(self.request_rows);
            self.seen = self.seen.max(bottom);
        }
    }

    /// Scrolls so that `height` rows stay filled.
    pub(crate) fn scroll(&mut self, rows: isize, height: usize) {
        let most = self.rows.len().saturating_sub(height);
        self.top = self.top.saturating_add_signed(rows).min(most);
    }

    /// The rows on screen.
    pub(crate) fn window(&self, height: usize) -> &[Row] {
        let end = (self.top + height).min(self.rows.len());
        self.rows.get(self.top..end).unwrap_or_default()
    }

    /// How much of the request was on screen, in hundredths.
    pub(crate) fn percent(&self) -> usize {
        let all = self.request_rows;
        (self.seen * 100).checked_div(all).unwrap_or(0)
    }

    /// Whether the whole request was on screen.
    pub(crate) fn is_seen(&self) -> bool {
        self.request_rows > 0 && self.seen >= self.request_rows
    }

    /// How many hidden characters were written out.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Whether rows lie below a window of `height` rows.
    pub(crate) fn has_more(&self, height: usize) -> bool {
        self.top + height < self.rows.len()
    }

    /// Lines of the request whose every row was seen.
    fn seen_lines(&self) -> usize {
        match self.rows.get(self.seen).map(|row| row.part) {
            Some(Part::Request(line) | Part::Continued(line)) => line,
            Some(Part::Remark) => self.request.len(),
            None => 0,
        }
    }

    fn rows_of_lines(&self, lines: usize) -> usize {
        let before = self.rows.iter().take_while(|row| match row.part {
            Part::Request(line) | Part::Continued(line) => line < lines,
            Part::Remark => false,
        });
        before.count()
    }
}

/// `! 1 hidden character written out`.
pub(crate) fn hidden_words(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("! {count} hidden character{plural} written out")
}

/// The request as it will run, and how many hidden characters it has.
fn request_text(held: &Held) -> (String, usize) {
    match &held.subject {
        Subject::SessionStart => ("session_start".to_owned(), 0),
        Subject::Moment(moment) => {
            let data = serde_json::to_string_pretty(&moment.data).unwrap_or_default();
            let data = visible(&data, Lines::Keep).text;
            let hidden = hidden_in(&moment.label) + hidden_in_value(&moment.data);
            (format!("{}\n{data}", one_line(&moment.label)), hidden)
        }
        Subject::Action(call) => {
            let params = serde_json::to_string_pretty(&call.params).unwrap_or_default();
            // JSON already writes control characters out; the rest is written out here.
            let params = visible(&params, Lines::Keep).text;
            let hidden = hidden_in(&call.action) + hidden_in_value(&call.params);
            (format!("{}\n{params}", one_line(&call.action)), hidden)
        }
    }
}

fn hidden_in(text: &str) -> usize {
    let hidden = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\r' | '\t');
    text.chars().filter(hidden).count()
}

fn hidden_in_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => hidden_in(text),
        Value::Array(items) => items.iter().map(hidden_in_value).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| hidden_in(name) + hidden_in_value(value))
            .sum(),
    }
}

fn remarks(held: &Held, session: Option<&SessionSummary>) -> Vec<(String, String)> {
    let mut remarks = Vec::new();
    let mut who = format!("{}, session {}", one_line(&held.agent), held.session);
    if let Some(intent) = &held.intent {
        who.push_str(", for: ");
        who.push_str(&one_line(intent));
    }
    for (index, gate) in held.gates.iter().enumerate() {
        let id = one_line(gate.origin.id());
        remarks.push((format!("WHY {id}"), one_line(&gate.why)));
        if let Some(guidance) = &gate.guidance {
            let text = visible(guidance.content.trim_end(), Lines::Keep).text;
            remarks.push((format!("GUIDANCE {id}"), text));
        }
        if let Some(answers) = held.answered.get(&index) {
            let told = answers.iter().map(|(question, answer)| {
                let answer = answer
                    .as_str()
                    .map_or_else(|| answer.to_string(), str::to_owned);
                format!("{}: {}", one_line(question), one_line(&answer))
            });
            let told: Vec<_> = told.collect();
            remarks.push((format!("THE AGENT ANSWERED {id}"), told.join("; ")));
        }
    }
    remarks.push(("WHO".to_owned(), who));
    remarks.extend(session.into_iter().flat_map(aspects));
    remarks
}

/// What a session may do, can do, knows, and left on record.
fn aspects(session: &SessionSummary) -> [(String, String); 4] {
    let listed = |words: &[String]| match words {
        [] => "none".to_owned(),
        words => words
            .iter()
            .map(|word| one_line(word))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let (allowed, denied) = (listed(&session.allowed), listed(&session.denied));
    let (unlocked, locked) = (listed(&session.unlocked), listed(&session.locked));
    let (contexts, guidance) = (listed(&session.contexts), listed(&session.guidance));
    let (actions, events) = (session.actions, session.events);
    let aspect = |heading: &str, text: String| (heading.to_owned(), text);
    [
        aspect(
            "PERMISSIONS",
            format!("by gates: allowed {allowed}; denied {denied}"),
        ),
        aspect("ABILITIES", format!("unlocked {unlocked}; locked {locked}")),
        aspect("CONTEXT", format!("has {contexts}; guidance of {guidance}")),
        aspect(
            "AUDIT",
            format!("{actions} actions ran; {events} events on record"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(lines: usize) -> Context {
        Context {
            request: (0..lines).map(|line| format!("{line:_<30}")).collect(),
            remarks: Vec::new(),
            hidden: 0,
            rows: Vec::new(),
            request_rows: 0,
            cells: 0,
            top: 0,
            seen: 0,
        }
    }

    #[test]
    fn a_gap_is_not_seen() {
        let mut context = context(100);
        context.reflow(40);
        context.painted(10);
        context.scroll(50, 10);
        context.painted(10);
        assert_eq!(context.percent(), 10);
        context.scroll(-41, 10);
        context.painted(10);
        assert_eq!(context.percent(), 19);
    }

    #[test]
    fn another_width_keeps_whole_lines_seen_and_goes_back_to_the_rest() {
        let mut context = context(10);
        context.reflow(17);
        assert_eq!(context.request_rows, 20);
        context.painted(5);
        context.scroll(5, 5);
        context.reflow(40);
        assert_eq!((context.seen, context.top), (2, 2));
        context.painted(20);
        assert!(context.is_seen());
    }

    #[test]
    fn nothing_is_seen_before_it_was_laid_out() {
        assert!(!context(1).is_seen());
    }
}
