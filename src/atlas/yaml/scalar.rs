//! Plain scalars, interpreted by the core schema of YAML 1.2.

use serde_json::Number;

use super::YamlValue;
use crate::base::json::is_same_decimal;

/// The reason why a plain scalar cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarError {
    /// A whole number of more than 64 bits.
    TooLarge,
    /// Infinity or NaN.
    NotFinite,
    /// A fraction with more digits than a double can hold.
    Inexact,
}

/// Resolves a plain scalar to a value.
pub(super) fn resolve(text: &str) -> Result<YamlValue, ScalarError> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(YamlValue::Null),
        // The core schema also has `True` and `TRUE`; one spelling is safer for a policy.
        "true" => return Ok(YamlValue::Bool(true)),
        "false" => return Ok(YamlValue::Bool(false)),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(YamlValue::String(text.to_owned()));
    }
    if let Some(number) = parse_integer(text) {
        return number.map(YamlValue::Number);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(ScalarError::NotFinite);
    }
    if is_fraction(unsigned) {
        let double: f64 = text.parse().map_err(|_| ScalarError::NotFinite)?;
        let number = Number::from_f64(double).ok_or(ScalarError::NotFinite)?;
        if !is_same_decimal(text, double) {
            return Err(ScalarError::Inexact);
        }
        return Ok(YamlValue::Number(number));
    }
    Ok(YamlValue::String(text.to_owned()))
}

/// Parses a whole number; returns `None` for another form.
fn parse_integer(text: &str) -> Option<Result<Number, ScalarError>> {
    let based = |digits: &str, radix: u32| {
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        is_number.then(|| u64::from_str_radix(digits, radix).map(Number::from))
    };
    let read = if let Some(digits) = text.strip_prefix("0x") {
        based(digits, 16)
    } else if let Some(digits) = text.strip_prefix("0o") {
        based(digits, 8)
    } else if let Some(digits) = text.strip_prefix('-') {
        based(digits, 10).map(|_| text.parse::<i64>().map(Number::from))
    } else {
        based(text.strip_prefix('+').unwrap_or(text), 10)
    };
    read.map(|number| number.map_err(|_| ScalarError::TooLarge))
}

/// `\.[0-9]+ | [0-9]+(\.[0-9]*)?`, then `([eE][-+]?[0-9]+)?`
fn is_fraction(unsigned: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent_is_fine
        && all_digits(before)
        && all_digits(after)
        && !(before.is_empty() && after.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: impl Into<Number>) -> YamlValue {
        YamlValue::Number(value.into())
    }

    fn fraction(value: f64) -> YamlValue {
        number(Number::from_f64(value).unwrap())
    }

    #[test]
    fn scalars_follow_the_core_schema_with_strict_booleans() {
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(resolve(text), Ok(YamlValue::Null), "{text:?}");
        }
        assert_eq!(resolve("true"), Ok(YamlValue::Bool(true)));
        assert_eq!(resolve("false"), Ok(YamlValue::Bool(false)));
        for (text, value) in [
            ("0", 0),
            ("+12", 12),
            ("007", 7),
            ("0x1F", 31),
            ("0o17", 15),
        ] {
            assert_eq!(resolve(text), Ok(number(value)), "{text:?}");
        }
        assert_eq!(resolve("-3"), Ok(number(-3)));
        assert_eq!(resolve("18446744073709551615"), Ok(number(u64::MAX)));
        for (text, value) in [("1.0", 1.0), ("-.5", -0.5), ("1.", 1.0), ("2e3", 2000.0)] {
            assert_eq!(resolve(text), Ok(fraction(value)), "{text:?}");
        }
    }

    #[test]
    fn other_scalars_are_text() {
        let texts = [
            "yes",
            "no",
            "on",
            "off",
            "True",
            "TRUE",
            "y",
            "0x",
            "0xg",
            "0o8",
            "1_000",
            "1e",
            "e1",
            ".",
            "-",
            "+",
            "1.2.3",
            "12:30",
            "2024-01-01",
            "nan",
            "inf",
            "- 1",
            "0b1",
            "-0x1",
        ];
        for text in texts {
            assert_eq!(resolve(text), Ok(YamlValue::String(text.to_owned())));
        }
    }

    #[test]
    fn numbers_that_cannot_be_represented_are_rejected() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "0xfffffffffffffffff",
        ] {
            assert_eq!(resolve(text), Err(ScalarError::TooLarge), "{text}");
        }
        for text in ["1e-400", "9007199254740993.0", "0.12345678901234567890123"] {
            assert_eq!(resolve(text), Err(ScalarError::Inexact), "{text}");
        }
        for text in [".inf", "-.INF", "+.Inf", ".nan", "1e999"] {
            assert_eq!(resolve(text), Err(ScalarError::NotFinite), "{text}");
        }
    }
}
