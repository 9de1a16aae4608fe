//! The page of the Atlas schema: every key of a manifest, made from the JSON Schema of `cra atlas schema`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cra_core::atlas::document::{AtlasManifest, CheckpointTrigger};
use serde_json::Value;

use super::check_fresh;

const HEAD: &str = "# Atlas schema\n\n\
    <!-- Generated from src/atlas/document. Run the tests with UPDATE_DOCS=1 to write it anew. -->\n\n\
    Every key of an Atlas, as `cra atlas schema` prints it for editors. The [reference](../atlas/reference.md) explains \
    them. `[]` stands for an item of a list, `*` for a name of your own. Draft spellings are left out.\n";

const TABLE: &str = "| key | type | default | meaning |\n|---|---|---|---|\n";

/// A key of the manifest: its path, type, default and meaning.
struct Row {
    path: String,
    type_words: String,
    default: String,
    description: String,
}

/// Makes rows from a schema and its definitions.
struct Rows<'a> {
    definitions: &'a Value,
    rows: Vec<Row>,
}

impl<'a> Rows<'a> {
    /// Follows a reference to the definition it names, with the name.
    fn resolve(&self, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
        let single = schema["anyOf"].as_array().filter(|parts| parts.len() == 1);
        let schema = single.map_or(schema, |parts| &parts[0]);
        match schema["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                (Some(name), &self.definitions[name])
            }
            None => (None, schema),
        }
    }

    fn type_words(&self, schema: &'a Value) -> String {
        let (name, schema) = self.resolve(schema);
        match name {
            Some("Condition") => return "[condition](../atlas/conditions.md)".to_owned(),
            Some("CheckpointTrigger") => return "map".to_owned(),
            _ => {}
        }
        if let Some(words) = words(schema) {
            return words;
        }
        match schema["type"].as_str() {
            Some("array") => match self.type_words(&schema["items"]).as_str() {
                "text" => "list of texts".to_owned(),
                "map" => "list of maps".to_owned(),
                item => format!("list of {item}"),
            },
            Some("string") => "text".to_owned(),
            Some("integer" | "number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("object") => "map".to_owned(),
            // A JSON Schema, or any value.
            _ => "JSON".to_owned(),
        }
    }

    /// Adds the keys of a map below `path`.
    fn add_keys(&mut self, path: &str, schema: &'a Value) {
        let required = schema["required"].as_array();
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let is_required =
            |key: &str| required.is_some_and(|keys| keys.iter().any(|name| name == key));
        // Keys that a manifest needs come first.
        let (first, rest): (Vec<_>, Vec<_>) =
            properties.iter().partition(|(key, _)| is_required(key));
        for (key, value) in first.into_iter().chain(rest) {
            if value["deprecated"] != true {
                self.add_key(&join(path, key), value, is_required(key));
            }
        }
    }

    fn add_key(&mut self, path: &str, schema: &'a Value, is_required: bool) {
        let default = match &schema["default"] {
            _ if is_required => "required".to_owned(),
            Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            Value::String(text) => format!("`{text}`"),
            value => format!("`{value}`"),
        };
        self.rows.push(Row {
            path: path.to_owned(),
            type_words: self.type_words(schema),
            default,
            description: one_line(&schema["description"]),
        });
        self.add_below(path, schema);
    }

    /// Adds the keys inside a value: of a map, of the items of a list, or of the values of a map with free keys.
    fn add_below(&mut self, path: &str, schema: &'a Value) {
        let (name, schema) = self.resolve(schema);
        match name {
            // A condition contains conditions; its own page has the keys.
            Some("Condition") => return,
            Some("CheckpointTrigger") => return self.add_trigger(path, schema),
            _ => {}
        }
        if schema["items"].is_object() {
            self.add_below(&format!("{path}[]"), &schema["items"]);
        }
        if schema["additionalProperties"].is_object() {
            self.add_below(&join(path, "*"), &schema["additionalProperties"]);
        }
        self.add_keys(path, schema);
    }

    /// Adds the keys of triggers, each with the types that have it.
    fn add_trigger(&mut self, path: &str, schema: &'a Value) {
        let names = CheckpointTrigger::NAMES.map(|name| format!("`{name}`"));
        self.rows.push(Row {
            path: join(path, "type"),
            type_words: names.join(", "),
            default: "required".to_owned(),
            description: "Event that fires the checkpoint.".to_owned(),
        });
        let mut keys: BTreeMap<&str, (&Value, Vec<String>)> = BTreeMap::new();
        for form in schema["anyOf"].as_array().unwrap() {
            let word = form["properties"]["type"]["enum"][0].as_str().unwrap();
            if form["deprecated"] == true || !CheckpointTrigger::NAMES.contains(&word) {
                continue;
            }
            for (key, value) in form["properties"].as_object().unwrap() {
                if key != "type" && value["deprecated"] != true {
                    let entry = keys.entry(key).or_insert((value, Vec::new()));
                    entry.1.push(format!("`{word}`"));
                }
            }
        }
        for (key, (value, types)) in keys {
            let description = format!("{} ({})", one_line(&value["description"]), types.join(", "));
            self.rows.push(Row {
                path: join(path, key),
                type_words: self.type_words(value),
                default: String::new(),
                description,
            });
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        return key.to_owned();
    }
    format!("{path}.{key}")
}

/// A description as one line of a table.
fn one_line(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

/// The words of an enumeration, in code quotes.
fn words(schema: &Value) -> Option<String> {
    let of_variants = || {
        let variants = schema["oneOf"].as_array()?;
        let words = variants.iter().map(|variant| match &variant["const"] {
            Value::Null => None,
            word => Some(word.clone()),
        });
        words.collect::<Option<Vec<_>>>()
    };
    let words = schema["enum"].as_array().cloned().or_else(of_variants)?;
    // `true` and `"true"` are one word in YAML.
    let mut quoted: Vec<_> = words
        .iter()
        .map(|word| match word.as_str() {
            Some(text) => format!("`{text}`"),
            None => format!("`{word}`"),
        })
        .collect();
    let mut seen = Vec::new();
    quoted.retain(|word| {
        let is_new = !seen.contains(word);
        seen.push(word.clone());
        is_new
    });
    Some(quoted.join(", "))
}

fn table(rows: &[&Row]) -> String {
    let lines = rows.iter().map(|row| {
        format!(
            "| `{}` | {} | {} | {} |\n",
            row.path, row.type_words, row.default, row.description
        )
    });
    format!("{TABLE}{}", lines.collect::<String>())
}

/// Rows of the whole manifest.
fn rows(schema: &Value) -> Vec<Row> {
    let mut rows = Rows {
        definitions: &schema["$defs"],
        rows: Vec::new(),
    };
    rows.add_keys("", schema);
    rows.rows
}

#[test]
fn the_page_of_the_atlas_schema_is_the_schema_of_the_program() {
    let rows = rows(&AtlasManifest::json_schema());
    let (top, below): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| !row.path.contains(['.', '[']));
    let mut page = format!("{HEAD}\n## The manifest\n\n{}", table(&top));
    for key in &top {
        let own = below.iter().filter(|row| {
            let rest = row.path.strip_prefix(key.path.as_str());
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        });
        let own: Vec<_> = own.copied().collect();
        if !own.is_empty() {
            let _ = write!(page, "\n## {}\n\n{}", key.path, table(&own));
        }
    }
    check_fresh("docs/src/reference/schema.md", &page);
}

#[test]
fn every_key_in_the_schema_page_has_a_meaning() {
    let rows = rows(&AtlasManifest::json_schema());
    assert!(rows.len() > 100, "{}", rows.len());
    for row in rows {
        assert!(row.description.len() > 3, "{}", row.path);
        assert_ne!(row.description.chars().next(), Some(' '), "{}", row.path);
    }
}
