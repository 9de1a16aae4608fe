//! Parser of the filter language; errors carry the column.

use super::{
    EventFilter, EventFilterField, EventFilterSign, EventFilterTerm, EventFilterTest,
    RiskComparison, SearchText, TimeSide,
};
use crate::base::text::one_line;
use crate::trace::event::RiskTierInfo;

/// Reason why a text is not a valid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct EventFilterError {
    /// Column of the error, in characters from 1.
    pub column: usize,
    /// Description of the error.
    pub what: String,
    /// Text that is allowed at this position.
    pub help: &'static str,
}

const FIELDS: &str = "type: agent: actor: action: checkpoint: thread: risk>= after: before: text: or a word; - in front negates";
const TIERS: &str = "low, medium, high or critical";
const MOMENTS: &str = "14:02, 14:02:31, 2026-09-23 or 2026-09-23T14:02:31";
const NAMES: &str = "a name, names separated by |, or quoted text";

/// True if a character ends an unquoted value.
pub(super) fn ends_value(c: char) -> bool {
    c.is_whitespace() || c == '|' || c == '"'
}

pub(super) fn parse_filter(text: &str) -> Result<EventFilter, EventFilterError> {
    let mut rest = FilterInput {
        chars: text.chars().collect(),
        at: 0,
    };
    let mut terms = Vec::new();
    loop {
        rest.skip_blanks();
        if rest.peek().is_none() {
            return Ok(EventFilter { terms });
        }
        let sign = if rest.take_if('-') {
            EventFilterSign::MustNot
        } else {
            EventFilterSign::Must
        };
        terms.push(EventFilterTerm {
            sign,
            test: rest.test()?,
        });
    }
}

/// Remaining input of the parser.
struct FilterInput {
    chars: Vec<char>,
    at: usize,
}

impl FilterInput {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn error_at(&self, at: usize, what: impl Into<String>, help: &'static str) -> EventFilterError {
        let column = at.min(self.chars.len()) + 1;
        let what = what.into();
        EventFilterError { column, what, help }
    }

    fn test(&mut self) -> Result<EventFilterTest, EventFilterError> {
        let start = self.at;
        let Some(name) = self.field_name() else {
            return Ok(EventFilterTest::Text(self.needles()?));
        };
        let order = self.order();
        let field = match name.as_str() {
            "risk" => return self.risk(order),
            "text" => {
                self.colon(order, start)?;
                return Ok(EventFilterTest::Text(self.needles()?));
            }
            "after" | "before" => {
                self.colon(order, start)?;
                return self.moment(&name);
            }
            "type" => EventFilterField::Type,
            "agent" => EventFilterField::Agent,
            "actor" => EventFilterField::Actor,
            "action" => EventFilterField::Action,
            "checkpoint" => EventFilterField::Checkpoint,
            "thread" => EventFilterField::Thread,
            _ => {
                let what = format!("`{}` is not a field", one_line(&name));
                return Err(self.error_at(start, what, FIELDS));
            }
        };
        self.colon(order, start)?;
        Ok(EventFilterTest::Named(field, self.values()?))
    }

    /// Parses a field name at this position: letters followed by an operator.
    fn field_name(&mut self) -> Option<String> {
        let rest = self.chars.get(self.at..)?;
        let length = rest.iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let sign = rest.get(length)?;
        if length == 0 || !matches!(sign, ':' | '=' | '<' | '>') {
            return None;
        }
        self.at += length;
        Some(rest.get(..length)?.iter().collect())
    }

    fn order(&mut self) -> RiskComparison {
        if self.take_if('>') {
            return if self.take_if('=') {
                RiskComparison::Least
            } else {
                RiskComparison::More
            };
        }
        if self.take_if('<') {
            return if self.take_if('=') {
                RiskComparison::Most
            } else {
                RiskComparison::Less
            };
        }
        self.at += 1;
        RiskComparison::Equal
    }

    fn colon(&self, order: RiskComparison, start: usize) -> Result<(), EventFilterError> {
        match order {
            RiskComparison::Equal => Ok(()),
            RiskComparison::Least
            | RiskComparison::More
            | RiskComparison::Most
            | RiskComparison::Less => Err(self.error_at(start, "only `risk` takes < or >", FIELDS)),
        }
    }

    fn risk(&mut self, order: RiskComparison) -> Result<EventFilterTest, EventFilterError> {
        let start = self.at;
        let word = self.bare();
        let tier = match word.as_str() {
            "low" => RiskTierInfo::Low,
            "medium" | "med" => RiskTierInfo::Medium,
            "high" => RiskTierInfo::High,
            "critical" | "crit" => RiskTierInfo::Critical,
            "" => return Err(self.error_at(start, "risk tier missing", TIERS)),
            _ => {
                let what = format!("`{}` is not a risk tier", one_line(&word));
                return Err(self.error_at(start, what, TIERS));
            }
        };
        self.must_end(TIERS)?;
        Ok(EventFilterTest::Risk(order, tier))
    }

    fn moment(&mut self, name: &str) -> Result<EventFilterTest, EventFilterError> {
        let start = self.at;
        let word = self.bare();
        let shapes = [
            "dd:dd",
            "dd:dd:dd",
            "dddd-dd-dd",
            "dddd-dd-ddTdd:dd",
            "dddd-dd-ddTdd:dd:dd",
        ];
        if !shapes.iter().any(|shape| has_shape(&word, shape)) {
            let what = if word.is_empty() {
                "time missing".to_owned()
            } else {
                format!("`{}` is not a time", one_line(&word))
            };
            return Err(self.error_at(start, what, MOMENTS));
        }
        self.must_end(MOMENTS)?;
        let side = if name == "after" {
            TimeSide::After
        } else {
            TimeSide::Before
        };
        Ok(EventFilterTest::Time(side, word))
    }

    fn must_end(&self, help: &'static str) -> Result<(), EventFilterError> {
        match self.peek() {
            Some(c) if !c.is_whitespace() => {
                Err(self.error_at(self.at, "only one value is allowed here", help))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn needles(&mut self) -> Result<Vec<SearchText>, EventFilterError> {
        let values = self.values()?;
        Ok(values.iter().map(|value| SearchText::new(value)).collect())
    }

    fn values(&mut self) -> Result<Vec<String>, EventFilterError> {
        let mut values = vec![self.value()?];
        while self.take_if('|') {
            values.push(self.value()?);
        }
        self.must_end(NAMES)?;
        Ok(values)
    }

    fn value(&mut self) -> Result<String, EventFilterError> {
        let start = self.at;
        if self.take_if('"') {
            return self.quoted(start);
        }
        let word = self.bare();
        if word.is_empty() {
            return Err(self.error_at(start, "value missing", NAMES));
        }
        Ok(word)
    }

    fn quoted(&mut self, start: usize) -> Result<String, EventFilterError> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '"' if text.is_empty() => {
                    return Err(self.error_at(start, "quoted text is empty", NAMES));
                }
                '"' => return Ok(text),
                '\\' => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                c => text.push(c),
            }
        }
        Err(self.error_at(start, "closing quote missing", NAMES))
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| !ends_value(*c)) {
            word.push(c);
            self.at += 1;
        }
        word
    }
}

/// True if a text has digits where the shape has `d`, and equals the shape elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    let same = |(c, wanted): (char, char)| match wanted {
        'd' => c.is_ascii_digit(),
        wanted => c == wanted,
    };
    text.chars().count() == shape.len() && text.chars().zip(shape.chars()).all(same)
}
