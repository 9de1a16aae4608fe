//! Number tokens: exactness in `serde_json`, and comparison of numbers.

use std::cmp::Ordering;

use serde_json::Number;

/// Maximum number of digits of a decimal that always survives conversion to a double.
const MAX_SAFE_DIGITS: usize = 15;

/// Returns true if a token is short enough to be exact without further checks: few digits, perhaps a point, no
/// exponent.
pub(super) fn is_short(token: &[u8]) -> bool {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    if digits.len() > MAX_SAFE_DIGITS || token == b"-0" {
        return false;
    }
    match digits {
        [] | [b'0', b'0'..=b'9', ..] => return false,
        _ => {}
    }
    let mut parts = digits.split(|byte| *byte == b'.');
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    parts.by_ref().take(2).all(is_digits) && parts.next().is_none()
}

/// Returns true if a token is a JSON number.
pub(super) fn is_token(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent
            .is_none_or(|digits| is_digits(digits.strip_prefix(['+', '-']).unwrap_or(digits)))
}

/// Returns true if the value that `serde_json` keeps for a token equals the written decimal value exactly.
///
/// An integer must fit in 64 bits. `-0` is not exact: `serde_json` keeps the fraction -0.0, and integer readers get
/// 0. For a fraction, the shortest text of its double must be the same decimal number. So doubles written in their
/// shortest form, as in most languages, are always accepted.
#[must_use]
pub fn is_exact(token: &str) -> bool {
    if !token.contains(['.', 'e', 'E']) {
        let fits = token.parse::<u64>().is_ok() || token.parse::<i64>().is_ok();
        return is_token(token) && fits && token != "-0";
    }
    let number = serde_json::from_str::<Number>(token).ok();
    let number = number.and_then(|number| number.as_f64());
    number.is_some_and(|number| is_same_decimal(token, number))
}

/// Returns true if the shortest text of a double equals the written decimal number exactly.
#[must_use]
pub fn is_same_decimal(written: &str, double: f64) -> bool {
    let written = written.strip_prefix('+').unwrap_or(written);
    // Uses the text that is shown and recorded. Where two decimals are equally short and equally near, the
    // formatter of the standard library may choose the other one.
    let shown = Number::from_f64(double).map(|number| number.to_string());
    shown.is_some_and(|shown| Decimal::of(written) == Decimal::of(&shown))
}

/// A decimal number: `0.DIGITS` times ten to the power of `exponent`, without zeros at either end.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(token: &str) -> Self {
        let (negative, token) = match token.strip_prefix('-') {
            Some(token) => (true, token),
            None => (false, token),
        };
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // An exponent beyond 64 bits belongs to zero, or to a number that is not near any double.
        let far = if exponent.starts_with('-') {
            i64::MIN
        } else {
            i64::MAX
        };
        let exponent = exponent.parse::<i64>().unwrap_or(far);
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let zeros = as_i64(all.len() - significant.len());
        let digits = significant.trim_end_matches('0').to_owned();
        let exponent = if digits.is_empty() {
            0
        } else {
            exponent
                .saturating_add(as_i64(whole.len()))
                .saturating_sub(zeros)
        };
        Self {
            negative,
            digits,
            exponent,
        }
    }
}

fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Compares two numbers by value. The result is also exact for an integer that no double can represent.
#[must_use]
pub fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => compare_integer(one, other.as_f64()?),
        (None, Some(other)) => compare_integer(other, one.as_f64()?).map(Ordering::reverse),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Compares a number and a double by value.
#[must_use]
pub fn compare_with(number: &Number, double: f64) -> Option<Ordering> {
    match integer(number) {
        Some(integer) => compare_integer(integer, double),
        None => number.as_f64()?.partial_cmp(&double),
    }
}

fn integer(number: &Number) -> Option<i128> {
    let positive = number.as_u64().map(i128::from);
    positive.or_else(|| number.as_i64().map(i128::from))
}

/// Every double beyond this is larger than any 64-bit integer.
const BEYOND_INTEGERS: f64 = 1e20;

#[expect(
    clippy::cast_possible_truncation,
    reason = "the double is whole and within the bound above"
)]
fn compare_integer(integer: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() > BEYOND_INTEGERS {
        let order = if double > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        return Some(order);
    }
    let whole = double.floor();
    Some(match integer.cmp(&(whole as i128)) {
        Ordering::Equal if double > whole => Ordering::Less,
        order => order,
    })
}
