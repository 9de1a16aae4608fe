//! The page of event types, made from their declarations.
//!
//! Sync and level are not declared for a type: the code decides for each event. The page is made from sample events,
//! one for each value of a field that can change the outcome.

use std::fmt::Write as _;

use cra_core::atlas::document::TraceLevel;
use cra_core::trace::event::{
    Acknowledged, ActionTaken, ClaimWord, Durability, FieldDescription, FinalStatus, InjectTrigger,
    InputSource, JustificationSource, OutputType, Payload, PolicyOutcome, Recommendation,
    RequestType, RiskTierInfo, TYPE_GROUPS, TypeDescription, UsageOutcome, Validity,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::check_fresh;

const HEAD: &str = "# Event types\n\n\
    <!-- Generated from src/trace/event. Run the tests with UPDATE_DOCS=1 to write it anew. -->\n\n\
    All built-in event types with their fields. [Events](events.md) explains the envelope, sync and levels.\n";

/// Type of a field: its name in the documentation, for one value and for a list, and sample values.
struct FieldType {
    one: String,
    many: String,
    samples: Vec<Value>,
}

impl FieldType {
    fn plain(one: &str, sample: Value) -> Self {
        Self {
            one: one.to_owned(),
            many: format!("{one}s"),
            samples: vec![sample],
        }
    }

    /// A struct, described by the keys of a sample.
    fn map(sample: Value) -> Self {
        let keys = sample.as_object().unwrap().keys();
        let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
        let keys = keys.join(", ");
        Self {
            one: format!("map of {keys}"),
            many: format!("maps of {keys}"),
            samples: vec![sample],
        }
    }

    /// An enumeration, described by its words.
    fn words<T: Serialize>(all: &[T]) -> Self {
        let words: Vec<_> = all.iter().map(|word| json!(word)).collect();
        let one = either(&words);
        Self {
            many: one.clone(),
            one,
            samples: words,
        }
    }

    fn of(field: &FieldDescription) -> Self {
        let modes = ["blocking", "advisory", "observational"];
        match field.name {
            "mode" => Self::words(&modes),
            _ => Self::parse(&field.type_name.replace(char::is_whitespace, "")),
        }
    }

    fn parse(name: &str) -> Self {
        let inside = |outer: &str| {
            let rest = name.strip_prefix(outer)?.strip_prefix('<')?;
            rest.strip_suffix('>')
        };
        if let Some(inner) = inside("Option") {
            return Self::parse(inner);
        }
        if let Some(inner) = inside("Vec") {
            let inner = Self::parse(inner);
            return Self::plain(&format!("list of {}", inner.many), json!(inner.samples));
        }
        Self::enumeration(name).unwrap_or_else(|| Self::value(name))
    }

    fn enumeration(name: &str) -> Option<Self> {
        let words = match name {
            "Acknowledged" => Self::words(Acknowledged::ALL),
            "ActionTaken" => Self::words(ActionTaken::ALL),
            "ClaimWord" => Self::words(ClaimWord::ALL),
            "FinalStatus" => Self::words(FinalStatus::ALL),
            "InjectTrigger" => Self::words(InjectTrigger::ALL),
            "InputSource" => Self::words(InputSource::ALL),
            "JustificationSource" => Self::words(JustificationSource::ALL),
            "OutputType" => Self::words(OutputType::ALL),
            "PolicyOutcome" => Self::words(PolicyOutcome::ALL),
            "Recommendation" => Self::words(Recommendation::ALL),
            "RequestType" => Self::words(RequestType::ALL),
            "RiskTierInfo" => Self::words(RiskTierInfo::ALL),
            "UsageOutcome" => Self::words(UsageOutcome::ALL),
            "Validity" => Self::words(Validity::ALL),
            _ => return None,
        };
        Some(words)
    }

    fn value(name: &str) -> Self {
        let hash = "0".repeat(64);
        match name {
            "String" => Self::plain("text", json!("x")),
            "SessionId" => Self::plain("session id", json!("s-1")),
            "EventId" => Self::plain("event id", json!("e-1")),
            "u64" | "i64" => Self::plain("number", json!(1)),
            "(u64,u64)" => Self::plain("pair", json!([0, 1])),
            "bool" => Self {
                many: "booleans".to_owned(),
                one: "boolean".to_owned(),
                samples: vec![json!(true), json!(false)],
            },
            "Value" => Self::plain("JSON value", json!({})),
            "Map<String,Value>" => Self::plain("map", json!({})),
            "AtlasRef" => Self::map(json!({"atlas_id": "a", "atlas_hash": "h"})),
            "Environment" => Self::map(json!({"platform": "linux", "runtime": "r"})),
            "ErrorDetail" => Self::map(json!({"code": "c", "message": "m"})),
            "KeywordPosition" => Self::map(json!({"keyword": "k", "position": 0})),
            "Redaction" => Self::map(json!({"rule": "r", "paths": [], "count": 0})),
            "RetentionRule" => Self::map(json!({
                "event_type": "t", "days": 1, "atlas_id": "a", "atlas_hash": "h",
            })),
            "SealedHead" => Self::map(json!({"session": "s-1", "count": 1, "hash": hash})),
            "WrapperCapabilities" => Self::map(json!({
                "intercept_input": true, "intercept_output": true, "intercept_actions": true,
            })),
            "Breakpoint" => Self::map(json!({
                "kind": "k", "decision": "must", "peakGuardrailActive": true, "source": "s",
            })),
            "BreakpointThread" => Self::map(json!({
                "thread_id": "t", "message_id": "m", "rule": 1, "signals": [],
                "affect_phase": "p", "intensity": "i", "update": "u", "version": 1, "etag": "e",
            })),
            "Owed" => Self::map(json!({
                "start": {"refused": {"reason": "r"}}, "gates": [], "locked": {}, "denied": [],
                "limits": [], "intervals": [], "earlier_ms": 0, "earlier_actions": 0,
            })),
            _ => panic!("describe the type `{name}`"),
        }
    }
}

/// Words in code quotes, with "or" before the last.
fn either(words: &[Value]) -> String {
    let mut quoted: Vec<_> = words
        .iter()
        .map(|word| match word.as_str() {
            Some(text) => format!("`{text}`"),
            None => format!("`{word}`"),
        })
        .collect();
    let last = quoted.pop().unwrap();
    if quoted.is_empty() {
        return last;
    }
    format!("{} or {last}", quoted.join(", "))
}

/// Events of a type for which something holds.
enum Extent {
    All,
    None,
    /// Those with a field of certain values: the condition in words.
    If(String),
}

/// Finds the events of a type for which `holds` is true.
fn extent(event: &TypeDescription, holds: fn(&Payload) -> bool) -> Extent {
    let types = event.fields.iter();
    let types: Vec<_> = types
        .map(|field| (field.name, FieldType::of(field).samples))
        .collect();
    let sample = types
        .iter()
        .map(|(name, samples)| ((*name).to_owned(), samples[0].clone()));
    let sample: Map<String, Value> = sample.collect();
    let holds_for = |fields: Map<String, Value>| {
        let payload = Payload::read(event.name, fields);
        holds(&payload.unwrap_or_else(|error| panic!("{error}")))
    };
    for (name, samples) in &types {
        let with = |value: &&Value| {
            let mut fields = sample.clone();
            fields.insert((*name).to_owned(), (*value).clone());
            holds_for(fields)
        };
        let matching: Vec<_> = samples.iter().filter(with).cloned().collect();
        if !matching.is_empty() && matching.len() < samples.len() {
            return Extent::If(format!("`{name}` is {}", either(&matching)));
        }
    }
    if holds_for(sample) {
        Extent::All
    } else {
        Extent::None
    }
}

fn is_sync(payload: &Payload) -> bool {
    payload.mandatory_durability() == Durability::Sync
}

/// Events that are stored at every level of detail. A sync event always is.
fn is_always_stored(payload: &Payload) -> bool {
    is_sync(payload) || payload.is_essential()
}

fn sync(event: &TypeDescription) -> String {
    match extent(event, is_sync) {
        Extent::All => "yes".to_owned(),
        Extent::None => "no".to_owned(),
        Extent::If(condition) => format!("if {condition}"),
    }
}

fn level(event: &TypeDescription) -> String {
    let levels = [
        ("minimal", TraceLevel::Minimal),
        ("standard", TraceLevel::Standard),
        ("verbose", TraceLevel::Verbose),
        ("complete", TraceLevel::Complete),
    ];
    let lowest = levels.iter().find(|(_, level)| level.stores(event.name));
    let (lowest, _) = lowest.unwrap();
    match extent(event, is_always_stored) {
        Extent::All => "every".to_owned(),
        Extent::None => format!("`{lowest}`"),
        Extent::If(condition) => format!("every if {condition}, else `{lowest}`"),
    }
}

fn write_event(page: &mut String, event: &TypeDescription) {
    let rows = event.fields.iter().map(|field| {
        let optional = if field.is_optional() {
            ", optional"
        } else {
            ""
        };
        let words = FieldType::of(field).one;
        let description = field.description.trim().replace('|', "\\|");
        format!("| `{}` | {words}{optional} | {description} |\n", field.name)
    });
    let rows: String = rows.collect();
    let _ = write!(
        page,
        "\n### {}\n\n{}\n\n| field | type | meaning |\n|---|---|---|\n{rows}",
        event.name,
        event.description.trim(),
    );
}

#[test]
fn the_page_of_event_types_is_made_from_their_declarations() {
    let mut page = HEAD.to_owned();
    for group in TYPE_GROUPS {
        let types = group.types.iter().map(|name| {
            let mut all = Payload::DESCRIPTIONS.iter();
            all.find(|event| event.name == *name).unwrap()
        });
        let types: Vec<_> = types.collect();
        let rows = types.iter().map(|event| {
            let (sync, level) = (sync(event), level(event));
            let (name, description) = (event.name, event.description.trim());
            format!("| [`{name}`](#{name}) | {description} | {sync} | {level} |\n")
        });
        let rows: String = rows.collect();
        let _ = write!(
            page,
            "\n## {}\n\n| event | recorded when | sync | level |\n|---|---|---|---|\n{rows}",
            group.title
        );
        for event in types {
            write_event(&mut page, event);
        }
    }
    check_fresh("docs/src/reference/event-types.md", &page);
}

#[test]
fn sync_and_level_in_the_page_follow_the_code() {
    let find = |name: &str| {
        let mut all = Payload::DESCRIPTIONS.iter();
        all.find(|event| event.name == name).unwrap()
    };
    let facts = |name: &str| [sync(find(name)), level(find(name))];
    assert_eq!(facts("session_started"), ["no", "`minimal`"]);
    assert_eq!(facts("session_ended"), ["yes", "every"]);
    assert_eq!(
        facts("action_attempted"),
        [
            "if `risk_tier` is `high` or `critical`",
            "every if `risk_tier` is `high` or `critical`, else `standard`"
        ]
    );
    assert_eq!(
        facts("checkpoint_triggered"),
        ["no", "every if `mode` is `blocking`, else `verbose`"]
    );
}
