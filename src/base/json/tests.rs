use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fault(text: &str) -> JsonFault {
    match read::<Value>(text.as_bytes()) {
        Err(StrictJsonError::Ambiguous(fault)) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

fn inexact(token: &str) -> JsonFaultKind {
    JsonFaultKind::InexactNumber(token.to_owned())
}

#[test]
fn inexact_number_is_rejected_with_its_path_and_token() {
    for token in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
        "9007199254740993.0",
        "1.00000000000000000001",
        "1e309",
        "-1e400",
        "1e-400",
        "4.9e-324",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "-0",
    ] {
        let found = fault(&format!(
            r#"{{"params": {{"list": [1, {{"to": {token}}}]}}}}"#
        ));
        assert_eq!(found.path, "params.list[1].to", "{token}");
        assert_eq!(found.kind, inexact(token));
        assert!(found.to_string().contains(token), "{found}");
    }
    assert_eq!(fault("18446744073709551616").path, "");
}

#[test]
fn exact_numbers_are_accepted_in_every_spelling() {
    for (token, value) in [
        ("0", json!(0)),
        ("-0.0", json!(-0.0)),
        ("1", json!(1)),
        ("1.0", json!(1.0)),
        ("1e0", json!(1.0)),
        ("10e-1", json!(1.0)),
        ("100e-2", json!(1.0)),
        ("1E+2", json!(100.0)),
        ("0.1", json!(0.1)),
        ("0.30000000000000004", json!(0.300_000_000_000_000_04)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("1e21", json!(1e21)),
        ("1.2712706130000417e+48", json!(1.271_270_613_000_041_7e48)),
        ("5e-324", json!(5e-324)),
        ("0e99999999999", json!(0.0)),
        ("0.000", json!(0.0)),
        ("1.5000000000000000000000000000000000000000", json!(1.5)),
    ] {
        let kept = read::<Value>(token.as_bytes()).unwrap();
        assert_eq!(kept.to_string(), value.to_string(), "{token}");
    }
}

#[test]
fn duplicate_key_is_rejected_with_its_path() {
    for (text, path) in [
        (r#"{"a":1,"a":1}"#, "a"),
        (r#"{"a":1,"\u0061":2}"#, "a"),
        (r#"{"x":[{},{"b":{"c":1,"d":2,"c":3}}]}"#, "x[1].b.c"),
        (r#"{"":1,"":2}"#, r#"[""]"#),
        (r#"{"a b":{"é":1,"\u00e9":2}}"#, r#"["a b"].é"#),
        (r#"{"\ud83d\ude00":1,"😀":2}"#, r#"["😀"]"#),
    ] {
        let found = fault(text);
        assert_eq!(found.path, path, "{text}");
        assert_eq!(found.kind, JsonFaultKind::DuplicateKey, "{text}");
    }
    let many = (0..500).map(|key| format!("\"k{key}\":1,"));
    let many = format!("{{{}\"k77\":2}}", many.collect::<String>());
    assert_eq!(fault(&many).path, "k77");
}

#[test]
fn keys_that_only_look_alike_are_different() {
    let text = "{\"\u{e9}\":1,\"e\u{301}\":2,\"A\":1,\"a\":2,\"b\":{\"a\":1},\"c\":{\"a\":1}}";
    let read = read::<Value>(text.as_bytes()).unwrap();
    assert_eq!(read.as_object().unwrap().len(), 6);
}

#[test]
fn invalid_json_gets_the_message_of_serde_json() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    for text in [
        "",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "tru",
        "nul",
        "\"\n\"",
        "\"\\x\"",
        "{\"\\ud800\":1}",
        "\"\\ud800\"",
        "1 2",
        "{a:1}",
        "\u{feff}1",
        &deep,
        "--1",
        "1-2",
        "NaN",
        "Infinity",
        "0x10",
    ] {
        let error = serde_json::from_str::<Value>(text).unwrap_err();
        match read::<Value>(text.as_bytes()) {
            Err(StrictJsonError::Syntax(own)) => assert_eq!(own.to_string(), error.to_string()),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn json_fault_has_its_line_and_column() {
    let text = "{\n  \"a\": 1,\n  \"a\": 2\n}";
    assert_eq!(fault(text).place(text.as_bytes()), (3, 3));
}

#[test]
fn inexact_number_in_a_result_becomes_text() {
    let text = br#"{"a":[1e400,5,"x"],"b":-123456789012345678901}"#;
    let value = read_with_inexact_as_text(text).unwrap();
    assert_eq!(
        value,
        json!({"a": ["1e400", 5, "x"], "b": "-123456789012345678901"})
    );
    assert!(read_with_inexact_as_text(br#"{"a":1,"a":2}"#).is_err());
}

#[test]
fn locate_finds_a_value_by_its_path() {
    let text = br#" {"a": {"x":[1]}, "result" : {"n":1e999, "content":[ {"t":"]"} ] }}"#;
    let found = locate(text, &["result", "content"]).unwrap();
    assert_eq!(text.get(found).unwrap(), br#"[ {"t":"]"} ]"#);
    assert_eq!(locate(text, &["result", "other"]), None);
    assert_eq!(locate(text, &["a", "x", "y"]), None);
    assert_eq!(locate(b"{}", &["a"]), None);
}

#[test]
fn integers_and_fractions_compare_by_value() {
    let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
    for (one, other, order) in [
        ("9007199254740993", "9007199254740992.0", Ordering::Greater),
        ("9007199254740992", "9007199254740992.0", Ordering::Equal),
        ("9007199254740991", "9007199254740992.0", Ordering::Less),
        (
            "18446744073709551615",
            "18446744073709551614",
            Ordering::Greater,
        ),
        (
            "18446744073709551615",
            "18446744073709551616.0",
            Ordering::Less,
        ),
        (
            "-9223372036854775808",
            "-9223372036854775808.0",
            Ordering::Equal,
        ),
        (
            "-9223372036854775807",
            "-9223372036854775808.0",
            Ordering::Greater,
        ),
        ("1", "0.5", Ordering::Greater),
        ("0", "0.5", Ordering::Less),
        ("-1", "-0.5", Ordering::Less),
        ("5", "1e300", Ordering::Less),
        ("5", "-1e300", Ordering::Greater),
        ("0", "-0.0", Ordering::Equal),
        ("0.25", "0.5", Ordering::Less),
    ] {
        assert_eq!(
            compare(&number(one), &number(other)),
            Some(order),
            "{one} {other}"
        );
        let reversed = Some(order.reverse());
        assert_eq!(
            compare(&number(other), &number(one)),
            reversed,
            "{other} {one}"
        );
    }
}

use std::cmp::Ordering;

fn any_token() -> impl Strategy<Value = String> {
    let digits = prop_oneof!["0", "[1-9][0-9]{0,24}"];
    let fraction = prop_oneof![Just(String::new()), "\\.[0-9]{1,24}", "\\.0{1,9}"];
    let exponent = prop_oneof![
        Just(String::new()),
        "[eE][+-]?[0-9]{1,3}",
        "[eE]-3[0-4][0-9]"
    ];
    let parts = ("-?", digits, fraction, exponent);
    let written = parts.prop_map(|(sign, digits, fraction, exponent)| {
        format!("{sign}{digits}{fraction}{exponent}")
    });
    let of_double = any::<f64>().prop_filter_map("finite", |double| {
        serde_json::Number::from_f64(double).map(|number| number.to_string())
    });
    prop_oneof![
        3 => written,
        1 => of_double,
        1 => any::<u64>().prop_map(|number| number.to_string()),
    ]
}

/// Returns the value of a token as an integer times a power of ten, with schoolbook arithmetic only.
fn by_hand(token: &str) -> (bool, String, i64) {
    let negative = token.starts_with('-');
    let token = token.trim_start_matches('-').to_lowercase();
    let (mantissa, exponent) = token.split_once('e').unwrap_or((&token, "0"));
    let mut exponent: i64 = exponent.parse().unwrap();
    let mut digits = String::new();
    let mut behind = false;
    for c in mantissa.chars() {
        match c {
            '.' => behind = true,
            digit => {
                digits.push(digit);
                exponent -= i64::from(behind);
            }
        }
    }
    while digits.ends_with('0') && digits.len() > 1 {
        digits.pop();
        exponent += 1;
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        exponent = 0;
    }
    (negative, digits, exponent)
}

#[test]
fn of_two_equally_near_decimals_the_displayed_one_is_exact() {
    // The double is -215022078105996.625: both texts parse to it, and the first is its shortest text.
    let text = |token: &str| format!("{{\"n\":{token}}}");
    let value: Value = read(text("-215022078105996.62").as_bytes()).unwrap();
    assert_eq!(value["n"].to_string(), "-215022078105996.62");
    assert!(read::<Value>(text("-215022078105996.63").as_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn number_token_is_rejected_or_keeps_its_decimal_value(token in any_token()) {
        let text = format!("{{\"n\":{token}}}");
        match read::<Value>(text.as_bytes()) {
            Ok(value) => {
                let again = value["n"].to_string();
                prop_assert_eq!(by_hand(&token), by_hand(&again), "{} became {}", token, again);
            }
            Err(StrictJsonError::Ambiguous(fault)) => {
                prop_assert_eq!(&fault.kind, &inexact(&token));
                // Only inexact tokens are rejected.
                let kept = serde_json::from_str::<Number>(&token);
                if let Ok(kept) = kept {
                    prop_assert_ne!(
                        (kept.is_f64() && token.contains(['.', 'e', 'E']), by_hand(&kept.to_string())),
                        (true, by_hand(&token))
                    );
                }
            }
            Err(other) => prop_assert!(false, "{}: {}", token, other),
        }
    }

    #[test]
    fn scanner_accepts_every_text_that_serde_json_accepts(
        value in crate::base::canonical_json::tests::any_json(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = value.to_string().into_bytes();
        prop_assert!(read::<Value>(&bytes).is_ok());
        let place = place.index(bytes.len());
        if let Some(old) = bytes.get_mut(place) {
            *old = byte;
        }
        let theirs = serde_json::from_slice::<Value>(&bytes);
        match (check(&bytes), theirs) {
            (Ok(()) | Err(StrictJsonError::Ambiguous(_)), _) | (Err(StrictJsonError::Syntax(_)), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
        }
    }
}
