//! The parts of the JSON Schema that the types do not express: draft spellings, number ranges, no `null`.
//!
//! Contract: the schema accepts exactly the documents that the decoder of files reads without an error. What a document means (references, patterns, rules that contradict each other) is the linter's alone.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::{CheckpointTrigger, CustomTriggerEvent, MatchMode, RiskTier};
use crate::atlas::condition::ConditionDef;
use crate::atlas::decoder::OWN_KEY;

/// The schema of a JSON Schema inside a manifest.
pub(super) fn json_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "boolean"] })
}

/// The schema of the delivery mode; only one exists so far.
pub(super) fn delivery_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["embedded"] })
}

/// Accepts the booleans `true` and `false` in addition to the words.
pub(super) fn expect(schema: &mut Schema) {
    let description = schema.get("description").cloned();
    *schema = json_schema!({ "enum": [true, false, "true", "false", "any"] });
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
}

/// Parts in which a steward may add keys, beside the manifest itself. The decoder has the same list in
/// `Section::is_strict`, and a test holds both against each other.
const TAKES_OWN_KEYS: [&str; 8] = [
    "Steward",
    "Delivery",
    "CapabilityDef",
    "StewardCheckpointDef",
    "CheckpointQuestion",
    "GuidanceBlock",
    "ContextBlockDef",
    "ActionDef",
];

/// Lets a steward add keys where they can do no harm.
fn add_own_keys(schema: &mut Value) {
    let own = json!({ format!("^{OWN_KEY}"): true });
    let places = TAKES_OWN_KEYS.map(|name| format!("/$defs/{name}"));
    for place in places.iter().map(String::as_str).chain([""]) {
        if let Some(Value::Object(part)) = schema.pointer_mut(place) {
            part.insert("patternProperties".to_owned(), own.clone());
        }
    }
}

/// The keys that call for a context may stand in a map of their own, but not in both places.
pub(super) fn context(schema: &mut Schema) {
    let keys = ["keywords", "actions", "priority"];
    let Some(Value::Object(properties)) = schema.get("properties").cloned() else {
        return;
    };
    let own = properties
        .iter()
        .filter(|(key, _)| keys.contains(&key.as_str()));
    let own: Map<String, Value> = own
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let nested = json!({
        "type": "object", "deprecated": true, "properties": own, "additionalProperties": false,
    });
    add_property(schema, "checkpoint_config", nested);
    let outside: Vec<_> = keys
        .iter()
        .map(|key| json!({ "required": [key] }))
        .collect();
    forbid(
        schema,
        &json!({ "required": ["checkpoint_config"], "anyOf": outside }),
    );
}

/// Rejects a checkpoint with a priority both in the checkpoint and in its trigger.
pub(super) fn checkpoint(schema: &mut Schema) {
    let inside = json!({ "required": ["priority"] });
    forbid(
        schema,
        &json!({ "required": ["priority"], "properties": { "trigger": inside } }),
    );
}

pub(super) fn keyword_config(schema: &mut Schema) {
    alias(schema, "mappings", "keywords");
}

pub(super) fn action_config(schema: &mut Schema) {
    alias(schema, "mappings", "actions");
}

pub(super) fn risk_config(schema: &mut Schema) {
    alias(schema, "require_sync_trace", "require_sync");
}

/// Adds an alias of a key with the same value schema, and forbids both together.
fn alias(schema: &mut Schema, name: &str, other: &str) {
    let pointer = format!("/properties/{name}");
    let Some(mut value) = schema.pointer(&pointer).cloned() else {
        return;
    };
    if let Value::Object(fields) = &mut value {
        fields.insert("deprecated".to_owned(), Value::Bool(true));
    }
    add_property(schema, other, value);
    forbid(schema, &json!({ "required": [name, other] }));
}

fn add_property(schema: &mut Schema, key: &str, value: Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert(key.to_owned(), value);
    }
}

/// Forbids documents that match `wrong`.
fn forbid(schema: &mut Schema, wrong: &Value) {
    let rule = json!({ "not": wrong });
    match schema.get_mut("allOf") {
        Some(Value::Array(rules)) => rules.push(rule),
        Some(_) | None => drop(schema.insert("allOf".to_owned(), json!([rule]))),
    }
}

/// A key of a trigger: its meaning, its value schema, its draft alias and its necessity.
struct TriggerKey {
    name: &'static str,
    description: &'static str,
    other: Option<&'static str>,
    value: Value,
    required: bool,
}

impl TriggerKey {
    fn required(name: &'static str, description: &'static str, value: Value) -> Self {
        Self {
            name,
            description,
            other: None,
            value,
            required: true,
        }
    }

    fn optional(name: &'static str, description: &'static str, value: Value) -> Self {
        Self {
            required: false,
            ..Self::required(name, description, value)
        }
    }

    fn with_alias(self, other: &'static str) -> Self {
        Self {
            other: Some(other),
            ..self
        }
    }

    /// The value schema with the meaning of the key.
    fn schema(&self) -> Value {
        let mut value = self.value.clone();
        if let Value::Object(fields) = &mut value {
            fields.insert("description".to_owned(), json!(self.description));
        }
        value
    }

    /// The value schema of the draft alias.
    fn alias_schema(&self) -> Value {
        let mut value = self.schema();
        if let Value::Object(fields) = &mut value {
            fields.insert("deprecated".to_owned(), Value::Bool(true));
        }
        value
    }
}

/// One way to write a trigger: the words for its type, and the keys that follow.
struct TriggerForm {
    canonical: &'static str,
    words: &'static [&'static str],
    keys: Vec<TriggerKey>,
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn whole(format: &str) -> Value {
    json!({ "type": "integer", "format": format, "minimum": 0 })
}

fn case() -> TriggerKey {
    let value = json!({ "type": "boolean" });
    TriggerKey::optional("case_sensitive", "Makes the search case-sensitive.", value)
        .with_alias("caseSensitive")
}

fn patterns() -> TriggerKey {
    let description = "Patterns of actions, or keywords to search for.";
    TriggerKey::required("patterns", description, texts())
}

fn keyword_keys(mode: Value) -> Vec<TriggerKey> {
    let edits = "Edits that a word may differ by in mode `fuzzy`.";
    vec![
        patterns().with_alias("keywords"),
        case(),
        TriggerKey::optional("match_mode", "Search mode.", mode).with_alias("matchMode"),
        TriggerKey::optional("threshold", edits, whole("uint")),
    ]
}

fn custom_keys(moment: &Value, condition: Value) -> Vec<TriggerKey> {
    let moments = json!({ "type": "array", "minItems": 1, "items": moment });
    vec![
        TriggerKey::required(
            "trigger_id",
            "Name of the extension that is asked.",
            json!({ "type": "string" }),
        ),
        TriggerKey::optional(
            "params",
            "Parameters for the extension.",
            json!({ "type": "object" }),
        ),
        TriggerKey::optional("on", "Events on which the extension is asked.", moments),
        TriggerKey::optional("when", "Condition to ask the extension.", condition),
    ]
}

fn forms(generator: &mut SchemaGenerator) -> Vec<TriggerForm> {
    let form = |canonical, words, keys| TriggerForm {
        canonical,
        words,
        keys,
    };
    let tier = generator.subschema_for::<RiskTier>().to_value();
    let mode = generator.subschema_for::<MatchMode>().to_value();
    let moment = generator.subschema_for::<CustomTriggerEvent>().to_value();
    let condition = generator.subschema_for::<ConditionDef>().to_value();
    vec![
        form("session_start", &["session_start"], vec![]),
        form("session_end", &["session_end"], vec![]),
        form("action_pre", &["action_pre"], vec![patterns()]),
        form(
            "action_pre",
            &["action"],
            vec![patterns().with_alias("actions")],
        ),
        form("action_pre", &["always"], vec![]),
        form("action_post", &["action_post"], vec![patterns()]),
        form("keyword", &["keyword", "keyword_match"], keyword_keys(mode)),
        form(
            "keyword",
            &["regex"],
            vec![
                TriggerKey::required(
                    "pattern",
                    "Regular expression to search for.",
                    json!({ "type": "string" }),
                ),
                case(),
            ],
        ),
        form(
            "risk_threshold",
            &["risk_threshold", "risk"],
            vec![
                TriggerKey::optional("min_tier", "Lowest tier that fires.", tier)
                    .with_alias("minTier"),
            ],
        ),
        form(
            "capability_access",
            &["capability_access", "capability_gate"],
            vec![TriggerKey::required(
                "capability_ids",
                "Capabilities whose actions fire.",
                texts(),
            )],
        ),
        form(
            "time_interval",
            &["time_interval", "interval"],
            vec![TriggerKey::optional(
                "seconds",
                "Seconds between two firings.",
                whole("uint64"),
            )],
        ),
        form(
            "count_interval",
            &["count_interval", "count"],
            vec![TriggerKey::optional(
                "actions",
                "Actions between two firings.",
                whole("uint64"),
            )],
        ),
        form("explicit_request", &["explicit_request"], vec![]),
        form("error_occurred", &["error_occurred"], vec![]),
        form("interactive", &["interactive"], vec![]),
        form("custom", &["custom"], custom_keys(&moment, condition)),
    ]
}

/// The schema of one way to write a trigger, with `more` keys.
fn trigger_schema(words: &[&str], keys: &[TriggerKey], more: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    properties.insert(
        "type".to_owned(),
        json!({ "type": "string", "enum": words }),
    );
    let (mut required, mut rules) = (vec!["type"], Vec::new());
    for key in keys {
        properties.insert(key.name.to_owned(), key.schema());
        if let Some(other) = key.other {
            properties.insert(other.to_owned(), key.alias_schema());
            rules.push(json!({ "not": { "required": [key.name, other] } }));
        }
        match key.other {
            Some(other) if key.required => rules.push(json!({
                "anyOf": [{ "required": [key.name] }, { "required": [other] }],
            })),
            None if key.required => required.push(key.name),
            Some(_) | None => {}
        }
    }
    for (name, value) in more {
        properties.insert((*name).to_owned(), value.clone());
    }
    let mut schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    if let (Value::Object(fields), false) = (&mut schema, rules.is_empty()) {
        fields.insert("allOf".to_owned(), Value::Array(rules));
    }
    schema
}

/// Triggers that need no details; drafts wrote `always` as their condition.
const TYPES_WITHOUT_DETAILS: [&str; 10] = [
    "session_start",
    "session_end",
    "action_pre",
    "action_post",
    "risk_threshold",
    "time_interval",
    "count_interval",
    "explicit_request",
    "error_occurred",
    "interactive",
];

/// The schema of a trigger with its details in a nested `condition`, as in drafts.
fn nested_trigger_schema(canonical: &str, forms: &[TriggerForm], priority: &Value) -> Value {
    let own = || forms.iter().filter(|form| form.canonical == canonical);
    let words: Vec<_> = own().flat_map(|form| form.words).copied().collect();
    let mut details: Vec<_> = own()
        .map(|form| trigger_schema(form.words, &form.keys, &[]))
        .collect();
    if TYPES_WITHOUT_DETAILS.contains(&canonical) && canonical != "action_pre" {
        details.push(trigger_schema(&["always"], &[], &[]));
    }
    if canonical == "action_post" {
        let action = forms.iter().filter(|form| form.words == ["action"]);
        details.extend(action.map(|form| trigger_schema(form.words, &form.keys, &[])));
    }
    let mut whole = trigger_schema(
        &words,
        &[],
        &[
            ("condition", json!({ "anyOf": details })),
            ("priority", priority.clone()),
        ],
    );
    if let Value::Object(fields) = &mut whole {
        fields.insert("required".to_owned(), json!(["type", "condition"]));
        fields.insert("deprecated".to_owned(), Value::Bool(true));
    }
    whole
}

impl JsonSchema for CheckpointTrigger {
    fn schema_name() -> Cow<'static, str> {
        "CheckpointTrigger".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = forms(generator);
        let priority = json!({ "type": "integer", "format": "int64", "deprecated": true });
        let extra = [("priority", priority.clone())];
        let flat = forms.iter();
        let flat = flat.map(|form| trigger_schema(form.words, &form.keys, &extra));
        let drafts = Self::NAMES.iter();
        let drafts = drafts.map(|canonical| nested_trigger_schema(canonical, &forms, &priority));
        let all: Vec<_> = flat.chain(drafts).collect();
        json_schema!({
            "description": "Event that fires the checkpoint: its `type`, and the keys of that type.",
            "anyOf": all,
        })
    }
}

/// Tightens a derived schema: a present key has a value, and a whole number fits its type.
pub(super) fn tighten_schema(mut schema: Value) -> Value {
    tighten(&mut schema);
    add_own_keys(&mut schema);
    schema
}

fn tighten(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tighten),
        Value::Object(fields) => {
            without_null(fields);
            within_range(fields);
            fields.values_mut().for_each(tighten);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_null(fields: &mut Map<String, Value>) {
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(parts)) = fields.get_mut("anyOf") {
        parts.retain(|part| part.get("type").is_none_or(|name| name != "null"));
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
}

fn within_range(fields: &mut Map<String, Value>) {
    let (least, most) = match fields.get("format").and_then(Value::as_str) {
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("uint64") => (json!(0), json!(u64::MAX)),
        Some("uint") => (json!(0), json!(usize::MAX)),
        Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
        // As many as the decoder reads: see `LARGEST_NUMBER`.
        Some("double") => (json!(-(1_i64 << 53)), json!(1_i64 << 53)),
        Some(_) | None => return,
    };
    fields.insert("minimum".to_owned(), least);
    fields.insert("maximum".to_owned(), most);
}
