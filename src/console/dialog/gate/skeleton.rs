//! Answer skeleton generated from the schema of a question.
//!
//! The skeleton has every field that the schema names, with placeholder values. The skeleton need not
//! satisfy the schema: the answer's validation decides that, and placeholders usually fail it.

use serde_json::{Map, Number, Value};

/// Maximum nesting that is generated.
const MOST_LEVELS: usize = 8;
/// Maximum number of parts that are generated. A schema can be far larger than any answer.
const MOST_PARTS: usize = 200;

/// Generates a skeleton as text to fill in.
pub(crate) fn skeleton(schema: &Value) -> String {
    let mut builder = SkeletonBuilder {
        root: schema,
        parts: MOST_PARTS,
    };
    let value = builder.value(schema, MOST_LEVELS);
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

struct SkeletonBuilder<'s> {
    root: &'s Value,
    parts: usize,
}

impl<'s> SkeletonBuilder<'s> {
    fn value(&mut self, schema: &'s Value, levels: usize) -> Value {
        if levels == 0 || self.parts == 0 {
            return Value::Null;
        }
        self.parts -= 1;
        for name in ["default", "const"] {
            if let Some(value) = schema.get(name) {
                return value.clone();
            }
        }
        for name in ["enum", "examples"] {
            if let Some(value) = schema.get(name).and_then(|values| values.get(0)) {
                return value.clone();
            }
        }
        if let Some(named) = self.named(schema) {
            return self.value(named, levels - 1);
        }
        for name in ["oneOf", "anyOf", "allOf"] {
            if let Some(first) = schema.get(name).and_then(|all| all.get(0)) {
                return self.value(first, levels - 1);
            }
        }
        match required_type(schema) {
            "object" => self.object(schema, levels),
            "array" => self.array(schema, levels),
            "string" => Value::from(""),
            "boolean" => Value::Bool(false),
            "integer" | "number" => smallest_number(schema),
            _ => Value::Null,
        }
    }

    /// Resolves a reference within the schema.
    fn named(&self, schema: &'s Value) -> Option<&'s Value> {
        let name = schema.get("$ref")?.as_str()?;
        self.root.pointer(name.strip_prefix('#')?)
    }

    fn object(&mut self, schema: &'s Value, levels: usize) -> Value {
        let mut fields = Map::new();
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                fields.insert(name.clone(), self.value(property, levels - 1));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            fields.entry(name).or_insert(Value::Null);
        }
        Value::Object(fields)
    }

    fn array(&mut self, schema: &'s Value, levels: usize) -> Value {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        match schema.get("items") {
            Some(items) if least > 0 => Value::Array(vec![self.value(items, levels - 1)]),
            Some(_) | None => Value::Array(Vec::new()),
        }
    }
}

/// Returns the type that a schema requires; the first if it allows several.
fn required_type(schema: &Value) -> &str {
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first(),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some(kind) => kind,
        None if schema.get("properties").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None => "null",
    }
}

/// Returns the smallest number that a schema allows, or 0.
fn smallest_number(schema: &Value) -> Value {
    let least = schema.get("minimum").filter(|least| least.is_number());
    least.cloned().unwrap_or(Value::Number(Number::from(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn skeleton_of(schema: &Value) -> Value {
        serde_json::from_str(&skeleton(schema)).unwrap()
    }

    #[test]
    fn skeleton_has_every_field_with_a_value_of_its_type() {
        let schema = json!({
            "type": "object",
            "required": ["ticket", "extra"],
            "$defs": {"who": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "properties": {
                "ticket": {"type": "string"},
                "count": {"type": "integer", "minimum": 3},
                "ratio": {"type": ["number", "null"]},
                "sure": {"type": "boolean"},
                "kind": {"enum": ["bug", "task"]},
                "who": {"$ref": "#/$defs/who"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "parts": {"type": "array", "minItems": 1, "items": {"properties": {"id": {"type": "integer"}}}},
                "either": {"oneOf": [{"type": "string"}, {"type": "number"}]},
                "given": {"default": {"a": 1}},
            },
        });
        assert_eq!(
            skeleton_of(&schema),
            json!({
                "ticket": "", "extra": null, "count": 3, "ratio": 0, "sure": false, "kind": "bug",
                "who": {"name": ""}, "tags": [], "parts": [{"id": 0}], "either": "",
                "given": {"a": 1},
            })
        );
    }

    #[test]
    fn a_recursive_schema_makes_a_finite_skeleton() {
        let endless = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(skeleton(&endless).len() < 20_000);
        assert_eq!(skeleton_of(&json!({"$ref": "#"})), json!(null));
        assert_eq!(skeleton_of(&json!(true)), json!(null));
    }
}
