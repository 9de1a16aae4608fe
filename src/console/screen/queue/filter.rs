//! Filter of the list: words and conditions on fields.
//!
//! `delete risk>=high agent:triage -state:draft`: every part must match. A word is searched in all the text
//! of a row. Case is ignored.

use std::fmt;

use super::RequestState;
use crate::atlas::document::RiskTier;
use crate::engine::held::Held;

/// Parsed filter for requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueFilter {
    text: String,
    terms: Vec<QueueFilterTerm>,
}

/// Parse error of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueFilterError {
    /// Column of the error, counted from 1.
    pub(crate) column: usize,
    /// Description of the error.
    pub(crate) what: String,
}

impl fmt::Display for QueueFilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.what)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct QueueFilterTerm {
    sign: QueueTermSign,
    test: QueueTermTest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueTermSign {
    Must,
    MustNot,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum QueueTermTest {
    Word(String),
    Risk(Relation, RiskTier),
    Agent(String),
    Action(String),
    Session(String),
    Checkpoint(String),
    State(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtLeast,
    AtMost,
    Above,
    Below,
    Exactly,
}

const FIELDS: &str = "risk, agent, action, session, checkpoint, state";
const STATES: [&str; 6] = ["open", "draft", "attempt", "changed", "approved", "claimed"];
/// Longest first, so that `>=` is not read as `>`.
const RELATIONS: [(&str, Relation); 6] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Exactly),
    (":", Relation::Exactly),
];

impl QueueFilter {
    /// Parses a filter.
    pub(crate) fn parse(text: &str) -> Result<Self, QueueFilterError> {
        let mut terms = Vec::new();
        let mut column = 1;
        for word in text.split(' ') {
            if !word.is_empty() {
                terms.push(parse_term(word, column)?);
            }
            column += word.chars().count() + 1;
        }
        Ok(Self {
            text: text.trim().to_owned(),
            terms,
        })
    }

    /// Returns true if the filter matches all requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the filter as it was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if a request matches.
    pub(crate) fn matches(&self, held: &Held, state: RequestState) -> bool {
        self.terms.iter().all(|term| {
            let holds = term.test.matches(held, state);
            match term.sign {
                QueueTermSign::Must => holds,
                QueueTermSign::MustNot => !holds,
            }
        })
    }
}

fn parse_term(word: &str, column: usize) -> Result<QueueFilterTerm, QueueFilterError> {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) if !rest.is_empty() => (QueueTermSign::MustNot, rest),
        Some(_) | None => (QueueTermSign::Must, word),
    };
    let column = column + word.chars().count() - rest.chars().count();
    let test = parse_test(rest, column)?;
    Ok(QueueFilterTerm { sign, test })
}

fn parse_test(word: &str, column: usize) -> Result<QueueTermTest, QueueFilterError> {
    let wrong = |column, what| Err(QueueFilterError { column, what });
    let Some(at) = word.find([':', '<', '>', '=']) else {
        return Ok(QueueTermTest::Word(word.to_lowercase()));
    };
    let (field, rest) = word.split_at(at);
    let relation = RELATIONS.iter().find(|(sign, _)| rest.starts_with(sign));
    let (sign, relation) = *relation.unwrap_or(&(":", Relation::Exactly));
    let value = rest.strip_prefix(sign).unwrap_or_default().to_lowercase();
    let behind = column + field.chars().count() + sign.len();
    let field = field.to_lowercase();
    if field != "risk" && relation != Relation::Exactly {
        return wrong(
            column + field.chars().count(),
            format!("only risk can be compared with `{sign}`"),
        );
    }
    if value.is_empty() && FIELDS.split(", ").any(|known| known == field) {
        return wrong(behind, format!("`{field}{sign}` needs a value"));
    }
    match field.as_str() {
        "risk" => match parse_tier(&value) {
            Some(tier) => Ok(QueueTermTest::Risk(relation, tier)),
            None => wrong(
                behind,
                format!("unknown risk `{value}`: low, medium, high, critical"),
            ),
        },
        "agent" => Ok(QueueTermTest::Agent(value)),
        "action" => Ok(QueueTermTest::Action(value)),
        "session" => Ok(QueueTermTest::Session(value)),
        "checkpoint" => Ok(QueueTermTest::Checkpoint(value)),
        "state" if STATES.contains(&value.as_str()) => Ok(QueueTermTest::State(value)),
        "state" => wrong(
            behind,
            format!("unknown state `{value}`: {}", STATES.join(", ")),
        ),
        other => wrong(column, format!("unknown field `{other}`: {FIELDS}")),
    }
}

fn parse_tier(word: &str) -> Option<RiskTier> {
    match word {
        "low" => Some(RiskTier::Low),
        "med" | "medium" => Some(RiskTier::Medium),
        "high" => Some(RiskTier::High),
        "crit" | "critical" => Some(RiskTier::Critical),
        _ => None,
    }
}

impl QueueTermTest {
    fn matches(&self, held: &Held, state: RequestState) -> bool {
        let checkpoint = |word: &str| {
            let mut gates = held.gates.iter();
            gates.any(|gate| contains(&gate.name(), word))
        };
        match self {
            Self::Risk(relation, tier) => {
                let actual = held.tier();
                match relation {
                    Relation::AtLeast => actual >= *tier,
                    Relation::AtMost => actual <= *tier,
                    Relation::Above => actual > *tier,
                    Relation::Below => actual < *tier,
                    Relation::Exactly => actual == *tier,
                }
            }
            Self::Agent(word) => contains(&held.agent, word),
            Self::Action(word) => contains(held.action(), word),
            Self::Session(word) => contains(held.session.as_str(), word),
            Self::Checkpoint(word) => checkpoint(word),
            Self::State(word) => state.word() == word,
            Self::Word(word) => {
                contains(held.id.as_str(), word)
                    || contains(held.action(), word)
                    || contains(&held.agent, word)
                    || contains(held.session.as_str(), word)
                    || contains(held.tier().as_str(), word)
                    || state.word() == word
                    || checkpoint(word)
            }
        }
    }
}

/// Returns true if `text` contains `word`, which is in lower case. The filter checks up to a hundred thousand
/// rows at once, so ASCII text is compared without a copy.
fn contains(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty()
        || text
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::tests::fixture::{onboarding, others, ticket_delete, user_ban};

    fn hits(text: &str) -> Vec<String> {
        let filter = QueueFilter::parse(text).unwrap();
        let [refund, update] = others();
        let all = [onboarding(), user_ban(), ticket_delete(), refund, update];
        let hits = all
            .iter()
            .filter(|held| filter.matches(held, RequestState::Open));
        hits.map(|held| held.id.to_string()).collect()
    }

    #[test]
    fn a_request_must_match_every_part_of_the_filter() {
        assert_eq!(hits("risk>=high"), ["c-118", "c-121", "c-122"]);
        assert_eq!(hits("risk>high"), ["c-118"]);
        assert_eq!(hits("risk<=med"), ["c-119", "c-124"]);
        assert_eq!(hits("risk<medium"), ["c-119"]);
        assert_eq!(hits("TICKET risk:high"), ["c-121"]);
        assert_eq!(hits("agent:bot -agent:triage"), ["c-119", "c-118"]);
        assert_eq!(hits("action:refund state:open"), ["c-122"]);
        assert_eq!(hits("checkpoint:onboard"), ["c-119"]);
        assert_eq!(hits("session:s-07"), ["c-118"]);
        assert_eq!(hits("state:draft"), [] as [&str; 0]);
        assert_eq!(hits("  ").len(), 5);
    }

    #[test]
    fn a_filter_parse_error_names_its_column() {
        let error_text = |text: &str| QueueFilter::parse(text).unwrap_err().to_string();
        assert_eq!(
            error_text("x riks:high"),
            "column 3: unknown field `riks`: risk, agent, action, session, checkpoint, state"
        );
        assert_eq!(
            error_text("risk>=hgih"),
            "column 7: unknown risk `hgih`: low, medium, high, critical"
        );
        assert_eq!(
            error_text("a agent>b"),
            "column 8: only risk can be compared with `>`"
        );
        assert_eq!(error_text("-risk>="), "column 8: `risk>=` needs a value");
        assert_eq!(
            error_text("state:gone"),
            "column 7: unknown state `gone`: open, draft, attempt, changed, approved, claimed"
        );
    }

    #[test]
    fn the_filter_ignores_case_in_every_script() {
        assert!(contains("Ärger", "ärg"));
        assert!(contains("ABC", "bc"));
        assert!(!contains("ab", "abc"));
    }
}
