use proptest::prelude::*;

use super::*;

fn leaf(path: &str, operator: Operator, wanted: Value) -> ConditionDef {
    ConditionDef::Leaf {
        path: path.to_owned(),
        tests: vec![(operator, wanted)],
    }
}

fn facts(params: &Value) -> Facts<'_> {
    Facts {
        action: Some("payment.refund"),
        params: Some(params),
        input: Some("please refund order 7"),
        session: "s-1",
        agent: "billing-bot",
        intent: None,
        actions: 3,
        started_at: "2026-01-02T10:00:00.000000Z".parse().unwrap(),
        now: "2026-01-02T10:01:30.000000Z".parse().unwrap(),
    }
}

fn truth(definition: &ConditionDef, params: &Value) -> Truth {
    Condition::compile(definition)
        .unwrap()
        .evaluate(&facts(params))
}

#[test]
fn every_operator_returns_the_expected_truth() {
    use Operator::*;
    use Truth::{False, True, Unknown};
    let params = json!({
        "amount": 1500, "text": "abcdef", "flag": true, "list": [1, "x"], "none": null,
        "deep": {"items": [{"id": "T-1"}]}, "big": 9_007_199_254_740_993_u64,
    });
    let cases = [
        ("params.amount", Eq, json!(1500), True),
        ("params.amount", Eq, json!(1500.0), True),
        ("params.amount", Eq, json!("1500"), Unknown),
        ("params.missing", Eq, json!(1), Unknown),
        ("params.missing", Ne, json!(1), Unknown),
        ("params.none", Eq, json!(null), True),
        ("params.none", Eq, json!(1), False),
        ("params.big", Eq, json!(9_007_199_254_740_992_u64), False),
        ("params.flag", Ne, json!(false), True),
        ("params.amount", In, json!([1, 1500]), True),
        ("params.amount", In, json!(["1500"]), Unknown),
        ("params.text", In, json!(["x", "y"]), False),
        ("params.amount", Gt, json!(1500), False),
        ("params.amount", Gte, json!(1500), True),
        ("params.amount", Lt, json!(1500.5), True),
        ("params.amount", Lte, json!(1499), False),
        ("params.text", Gt, json!(5), Unknown),
        ("params.missing", Lt, json!(5), Unknown),
        ("params.text", Matches, json!("^a.*f$"), True),
        ("params.amount", Matches, json!("1"), Unknown),
        ("action", Glob, json!("payment.*"), True),
        ("action", Glob, json!("payment"), False),
        ("params.text", Contains, json!("cd"), True),
        ("params.list", Contains, json!("x"), True),
        ("params.list", Contains, json!("y"), Unknown),
        ("params.deep", Contains, json!("items"), True),
        ("params.text", StartsWith, json!("abc"), True),
        ("params.text", EndsWith, json!("abc"), False),
        ("params.missing", StartsWith, json!("a"), Unknown),
        ("params.missing", EndsWith, json!("a"), Unknown),
        ("params.missing", In, json!([1]), Unknown),
        ("params.missing", Matches, json!("a"), Unknown),
        ("params.missing", Glob, json!("a"), Unknown),
        ("params.missing", Contains, json!("a"), Unknown),
        ("session.intent", Matches, json!("a"), Unknown),
        ("params.missing", Exists, json!(true), False),
        ("params.missing", Exists, json!(false), True),
        ("params.none", Exists, json!(true), True),
        ("params.deep.items.0.id", Eq, json!("T-1"), True),
        ("params.deep.items.9.id", Exists, json!(true), False),
        ("input", Contains, json!("refund"), True),
        ("session.agent", Eq, json!("billing-bot"), True),
        ("session.intent", Exists, json!(true), False),
        ("session.actions", Gte, json!(3), True),
        ("session.age_seconds", Eq, json!(90), True),
        ("time.hour", Eq, json!(10), True),
        ("time.weekday", In, json!(["fri", "sat"]), True),
        ("time.date", Gte, json!("2026-01-02"), True),
    ];
    for (path, operator, wanted, expected) in cases {
        let definition = leaf(path, operator, wanted.clone());
        assert_eq!(
            truth(&definition, &params),
            expected,
            "{path} {operator:?} {wanted}"
        );
    }
}

#[test]
fn unknown_propagates_unless_the_other_parts_decide() {
    use Truth::{False, True, Unknown};
    let yes = || leaf("action", Operator::Exists, json!(true));
    let no = || leaf("action", Operator::Exists, json!(false));
    let unknown = || leaf("params.x", Operator::Gt, json!(1));
    let all = |parts: Vec<ConditionDef>| truth(&ConditionDef::All(parts), &json!({}));
    let any = |parts: Vec<ConditionDef>| truth(&ConditionDef::Any(parts), &json!({}));
    assert_eq!(all(vec![yes(), yes()]), True);
    assert_eq!(all(vec![unknown(), no()]), False);
    assert_eq!(all(vec![yes(), unknown()]), Unknown);
    assert_eq!(any(vec![unknown(), yes()]), True);
    assert_eq!(any(vec![no(), unknown()]), Unknown);
    assert_eq!(any(vec![no(), no()]), False);
    assert_eq!(
        truth(&ConditionDef::Not(Box::new(unknown())), &json!({})),
        Unknown
    );
    assert_eq!(truth(&ConditionDef::Not(Box::new(no())), &json!({})), True);
}

#[test]
fn a_condition_that_asks_for_a_parameter_is_false_without_it() {
    let exists = leaf("params.command", Operator::Exists, json!(true));
    let matches = leaf("params.command", Operator::Matches, json!("rm"));
    let both = ConditionDef::All(vec![exists, matches.clone()]);
    let params = json!({"cmd": "rm"});
    assert_eq!(truth(&matches, &params), Truth::Unknown);
    assert_eq!(truth(&both, &params), Truth::False);
    let one = ConditionDef::Leaf {
        path: "params.command".to_owned(),
        tests: vec![
            (Operator::Matches, json!("rm")),
            (Operator::Exists, json!(true)),
        ],
    };
    assert_eq!(truth(&one, &params), Truth::False);
}

#[test]
fn a_fact_that_the_moment_never_has_is_not_missing() {
    let params = json!({});
    let at_input = Facts {
        action: None,
        params: None,
        ..facts(&params)
    };
    for (operator, wanted, expected) in [
        (Operator::Eq, json!("x"), Truth::False),
        (Operator::Matches, json!("x"), Truth::False),
        (Operator::Ne, json!("x"), Truth::True),
        (Operator::Exists, json!(true), Truth::False),
        (Operator::Gt, json!(1), Truth::Unknown),
    ] {
        let compiled = Condition::compile(&leaf("params.x", operator, wanted)).unwrap();
        assert_eq!(compiled.evaluate(&at_input), expected, "{operator:?}");
    }
}

#[test]
fn each_leaf_explains_itself() {
    let definition = ConditionDef::All(vec![
        leaf("params.amount", Operator::Gt, json!(1000)),
        leaf("params.country", Operator::Eq, json!("DE")),
    ]);
    let params = json!({"amount": 750});
    let reports = Condition::compile(&definition)
        .unwrap()
        .explain(&facts(&params));
    let results: Vec<_> = reports
        .iter()
        .map(|r| {
            (
                r.path.as_str(),
                r.wanted.as_str(),
                r.actual.clone(),
                r.truth,
            )
        })
        .collect();
    assert_eq!(
        results,
        [
            ("params.amount", "gt 1000", Some(json!(750)), Truth::False),
            ("params.country", "eq \"DE\"", None, Truth::Unknown),
        ]
    );
}

#[test]
fn invalid_conditions_are_reported_with_their_paths() {
    let definition = ConditionDef::All(vec![
        leaf("parms.amount", Operator::Gt, json!(1)),
        ConditionDef::Any(vec![]),
        ConditionDef::Not(Box::new(leaf("action", Operator::Matches, json!("(")))),
        leaf("action", Operator::Exists, json!("yes")),
        leaf("params..x", Operator::In, json!([])),
        ConditionDef::Leaf {
            path: "action".to_owned(),
            tests: vec![],
        },
    ]);
    let errors = Condition::compile(&definition).unwrap_err();
    let places: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        places,
        [
            "all[0].path",
            "all[1].any",
            "all[2].not.matches",
            "all[3].exists",
            "all[4].path",
            "all[4].in",
            "all[5]",
        ]
    );
}

proptest! {
    /// Every condition has a result for any parameters, and its negation has the opposite result.
    #[test]
    fn negation_inverts_the_truth(wanted in -5_i64..5, actual in prop::option::of(-5_i64..5)) {
        let params = actual.map_or(json!({}), |n| json!({"n": n}));
        let plain = leaf("params.n", Operator::Lte, json!(wanted));
        let negated = ConditionDef::Not(Box::new(plain.clone()));
        prop_assert_eq!(truth(&plain, &params).not(), truth(&negated, &params));
        if let Some(actual) = actual {
            prop_assert_eq!(truth(&plain, &params), Truth::from(actual <= wanted));
        }
    }
}

#[test]
fn condition_displays_as_a_sentence() {
    let both = ConditionDef::All(vec![
        leaf("params.amount", Operator::Gt, json!(1000)),
        ConditionDef::Any(vec![
            leaf("session.agent", Operator::Eq, json!("bot")),
            ConditionDef::Not(Box::new(leaf("input", Operator::Contains, json!("ok")))),
        ]),
    ]);
    let words = Condition::compile(&both).unwrap().to_string();
    assert_eq!(
        words,
        "params.amount gt 1000 and (session.agent eq \"bot\" or not (input contains \"ok\"))"
    );
}
