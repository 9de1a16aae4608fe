//! Canonical JSON (RFC 8785): one text per value.

use serde::Serialize;
use serde_json::{Map, Number, Value};

mod scanner;
mod writer;

pub(super) use scanner::ordinary;
pub use scanner::{is_canonical_object, object_length, object_length_interleaved};

/// Largest integer that every JSON reader represents exactly.
const MAX_EXACT: u64 = 1 << 53;
const MAX_EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// Lower bound of the doubles that RFC 8785 writes with an exponent.
const FIRST_EXPONENT: f64 = 1e21;

/// Returns the canonical text of `value`.
///
/// RFC 8785 converts numbers to doubles. That would round an integer beyond 2^53, and two different requests would
/// have the same hash. So such an integer is first converted to a string of its digits.
#[must_use]
pub fn canonical(value: &(impl Serialize + ?Sized)) -> String {
    let mut text = String::with_capacity(256);
    write_canonical(value, &mut text);
    text
}

/// Appends the canonical text of `value` to `out`.
pub fn write_canonical(value: &(impl Serialize + ?Sized), out: &mut String) {
    let before = out.len();
    // INVARIANT: values written here have only string keys and finite numbers, the two things that canonicalization
    // can reject. An incomplete text would match no hash and no reader.
    if writer::write(value, out).is_err() {
        out.truncate(before);
    }
}

/// Converts every integer beyond 2^53 to a string of its digits, as `canonical` writes it.
#[cfg(test)]
fn with_exact_integers(value: &Value) -> Value {
    match value {
        Value::Number(number) => exact_number(number),
        Value::Array(items) => Value::Array(items.iter().map(with_exact_integers).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, field)| (key.clone(), with_exact_integers(field)))
                .collect::<Map<_, _>>(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Returns a text that distinguishes values with the same canonical text, or `None` where the canonical text is
/// unique.
///
/// The text distinguishes integers beyond 2^53 from the strings of their digits, `1` from `1.0`, and `0` from `-0`.
#[must_use]
pub fn number_kinds(value: &Value) -> Option<String> {
    has_hidden_kind(value).then(|| canonical(&scalar_kinds(value)))
}

/// Returns true if `value` contains a number whose kind is not visible in its canonical text.
fn has_hidden_kind(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_hidden(number) || is_large(number),
        Value::Array(items) => items.iter().any(has_hidden_kind),
        Value::Object(fields) => fields.values().any(has_hidden_kind),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Tells whether the canonical text of a double is that of an integer: `1.0` is written as `1`, `-0.0` as `0`.
#[must_use]
pub fn is_hidden(number: &Number) -> bool {
    // From there on an exponent tells it from an integer.
    let reads_as_integer = |double: f64| double.fract() == 0.0 && double.abs() < FIRST_EXPONENT;
    number.is_f64() && number.as_f64().is_some_and(reads_as_integer)
}

/// `value` with the kind of each scalar in its place: 0 null, 1 boolean, 2 integer, 3 text, 4 fraction,
/// 5 negative zero.
fn scalar_kinds(value: &Value) -> Value {
    match value {
        Value::Null => 0.into(),
        Value::Bool(_) => 1.into(),
        Value::Number(number) => match number.as_f64() {
            Some(double) if number.is_f64() && double == 0.0 && double.is_sign_negative() => {
                5.into()
            }
            Some(_) if number.is_f64() => 4.into(),
            _ => 2.into(),
        },
        Value::String(_) => 3.into(),
        Value::Array(items) => items.iter().map(scalar_kinds).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), scalar_kinds(field)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// Returns true if the canonical text of a number is a string of its digits.
#[must_use]
pub fn is_large(number: &Number) -> bool {
    exact_number(number).is_string()
}

/// Returns the digits of a number if its canonical text is a string.
#[must_use]
pub fn digits_of_large(number: &Number) -> Option<String> {
    match exact_number(number) {
        Value::String(digits) => Some(digits),
        _ => None,
    }
}

fn exact_number(number: &Number) -> Value {
    let magnitude = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    match (magnitude, number.as_f64()) {
        (Some(magnitude), _) if magnitude > MAX_EXACT => Value::String(number.to_string()),
        // RFC 8785 writes such a double without point or exponent, so it would be read back as an integer beyond
        // 2^53. The number is the same, so the text must be the same.
        (None, Some(double))
            if MAX_EXACT_DOUBLE < double.abs() && double.abs() < FIRST_EXPONENT =>
        {
            Value::String(serde_json_canonicalizer::to_string(number).unwrap_or_default())
        }
        _ => Value::Number(number.clone()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_and_escaped() {
        let value = json!({"b": 1, "a\"": "naïve \"q\"", "a": [true, null, 1.0, 1e21]});
        assert_eq!(
            canonical(&value),
            r#"{"a":[true,null,1,1e+21],"a\"":"naïve \"q\"","b":1}"#
        );
    }

    #[test]
    fn integers_beyond_double_precision_stay_distinct() {
        let one = json!({"id": 9_007_199_254_740_993_u64});
        let other = json!({"id": 9_007_199_254_740_992_u64});
        assert_eq!(canonical(&one), r#"{"id":"9007199254740993"}"#);
        assert_eq!(canonical(&other), r#"{"id":9007199254740992}"#);
        assert_eq!(canonical(&json!(i64::MIN)), r#""-9223372036854775808""#);
    }

    #[test]
    fn large_double_round_trips() {
        for value in [
            json!(1e16),
            json!(-1e20),
            json!(1e21),
            json!(9_007_199_254_740_994.0),
        ] {
            let text = canonical(&value);
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(canonical(&read), text);
        }
        assert_eq!(
            canonical(&json!(1e16)),
            canonical(&json!(10_000_000_000_000_000_u64))
        );
    }

    pub(in crate::base) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_is_a_fixed_point(value in any_json()) {
            let text = canonical(&value);
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&read), text);
        }
    }
}
