//! Tests of filter matching and parse errors.

use proptest::prelude::*;

use super::*;

const EVENTS: [(&str, &str); 5] = [
    ("session_started", r#"{"agent_type":"returns-bot"}"#),
    (
        "action_attempted",
        r#"{"action_type":"ticket.delete","risk_tier":"high"}"#,
    ),
    (
        "checkpoint_passed",
        r#"{"checkpoint_id":"high-risk-gate","passed_by":"op-1@ops"}"#,
    ),
    (
        "risk_verified",
        r#"{"note":"say \"Hi\"\nÄ","risk_tier":"critical","verified_by":"o2@ops"}"#,
    ),
    (
        "action_blocked",
        r#"{"risk_tier":7,"reason":"Wrong tenant"}"#,
    ),
];

fn envelope(at: usize) -> Envelope<'static> {
    let (event_type, payload) = EVENTS[at];
    Envelope {
        trace_version: "1.0",
        event_id: "e",
        trace_id: "t",
        span_id: "s",
        parent_span_id: "",
        session_id: "s-1",
        sequence: at as u64,
        timestamp: ["2026-09-23T14:02:31.000000Z", "2026-09-24T09:00:00.000000Z"][at / 3],
        event_type,
        payload,
        previous_hash: "",
    }
}

fn found(text: &str) -> Vec<usize> {
    let filter: EventFilter = text.parse().unwrap();
    let all = 0..EVENTS.len();
    all.filter(|at| filter.matches(&envelope(*at), "returns-bot"))
        .collect()
}

#[test]
fn each_kind_of_term_selects_its_events() {
    let cases: [(&str, &[usize]); 24] = [
        ("", &[0, 1, 2, 3, 4]),
        ("type:action", &[1, 4]),
        ("type:checkpoint|risk", &[2, 3]),
        ("type:*_passed", &[2]),
        ("-type:action", &[0, 2, 3]),
        ("agent:returns", &[0, 1, 2, 3, 4]),
        ("agent:other", &[]),
        ("actor:o2", &[3]),
        ("actor:o2|op-1@ops", &[2, 3]),
        ("action:ticket.*", &[1]),
        ("checkpoint:high", &[2]),
        ("risk>=high", &[1, 3]),
        ("risk>high", &[3]),
        ("risk<=high", &[1]),
        ("risk:critical", &[3]),
        ("-risk>=high", &[0, 2, 4]),
        ("TENANT", &[4]),
        ("\"wrong tenant\" type:action", &[4]),
        ("text:tenant|bot", &[0, 4]),
        (r#""\"hi\"""#, &[3]),
        ("ä", &[3]),
        ("after:14:00", &[0, 1, 2]),
        ("before:2026-09-24", &[0, 1, 2]),
        ("after:2026-09-23T14:02:32 -risk>=high", &[4]),
    ];
    for (text, expected) in cases {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn a_parse_error_names_its_column_and_the_allowed_input() {
    let cases = [
        ("type:a colour:b", 8, "`colour` is not a field", FIELDS_HELP),
        (
            "risk>=hgih",
            7,
            "`hgih` is not a risk tier",
            "low, medium, high or critical",
        ),
        (
            "risk>=",
            7,
            "risk tier missing",
            "low, medium, high or critical",
        ),
        (
            "type:",
            6,
            "value missing",
            "a name, names separated by |, or quoted text",
        ),
        (
            "type:a|",
            8,
            "value missing",
            "a name, names separated by |, or quoted text",
        ),
        ("type>=a", 1, "only `risk` takes < or >", FIELDS_HELP),
        (
            "x \"open",
            3,
            "closing quote missing",
            "a name, names separated by |, or quoted text",
        ),
        (
            "after:noon",
            7,
            "`noon` is not a time",
            "14:02, 14:02:31, 2026-09-23 or 2026-09-23T14:02:31",
        ),
        (
            "-",
            2,
            "value missing",
            "a name, names separated by |, or quoted text",
        ),
    ];
    for (text, column, what, help) in cases {
        let error = text.parse::<EventFilter>().unwrap_err();
        let what = what.to_owned();
        assert_eq!(error, EventFilterError { column, what, help }, "{text}");
    }
}

const FIELDS_HELP: &str = "type: agent: actor: action: checkpoint: thread: risk>= after: before: text: or a word; - in front negates";

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z*.@_-]{1,8}",
        "\\PC{1,12}",
        Just("a \"b\" \\ c|d".to_owned())
    ]
}

fn test() -> impl Strategy<Value = EventFilterTest> {
    let field = prop::sample::select(vec![
        EventFilterField::Type,
        EventFilterField::Agent,
        EventFilterField::Actor,
        EventFilterField::Action,
        EventFilterField::Checkpoint,
    ]);
    let order = prop::sample::select(vec![
        RiskComparison::Least,
        RiskComparison::More,
        RiskComparison::Most,
        RiskComparison::Less,
        RiskComparison::Equal,
    ]);
    let side = prop::sample::select(vec![TimeSide::After, TimeSide::Before]);
    let moment = prop::sample::select(vec!["14:02", "14:02:31", "2026-09-23", "2026-09-23T14:02"]);
    let values = || prop::collection::vec(value(), 1..4);
    prop_oneof![
        (field, values()).prop_map(|(field, names)| EventFilterTest::Named(field, names)),
        (order, prop::sample::select(RiskTierInfo::ALL))
            .prop_map(|(order, tier)| EventFilterTest::Risk(order, tier)),
        (side, moment).prop_map(|(side, moment)| EventFilterTest::Time(side, moment.to_owned())),
        values().prop_map(|texts| EventFilterTest::Text(
            texts.iter().map(|text| SearchText::new(text)).collect()
        )),
    ]
}

proptest! {
    #[test]
    fn parser_never_panics(text in "\\PC{0,40}", more in "[-a-z:|\"\\\\<>= ]{0,40}") {
        for text in [text, more] {
            if let Err(error) = text.parse::<EventFilter>() {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }
    }

    #[test]
    fn a_printed_filter_parses_back_to_itself(
        terms in prop::collection::vec((any::<bool>(), test()), 0..5),
    ) {
        let term = |(not, test)| EventFilterTerm { sign: if not { EventFilterSign::MustNot } else { EventFilterSign::Must }, test };
        let filter = EventFilter { terms: terms.into_iter().map(term).collect() };
        let printed = filter.to_string();
        prop_assert_eq!(printed.parse::<EventFilter>(), Ok(filter), "{}", printed);
    }
}

#[test]
fn thread_term_matches_turns_and_operator_events() {
    let of = |event_type, payload| Envelope {
        event_type,
        payload,
        ..envelope(0)
    };
    let turn = of(
        "breakpoint_decided",
        r#"{"thread":{"thread_id":"t-31","etag":"x"}}"#,
    );
    let drifts = of("drift_flagged", r#"{"by":"op-1","thread_id":"t-31"}"#);
    let other = of("drift_flagged", r#"{"by":"t-31","thread_id":"t-7"}"#);
    let odd = of("breakpoint_decided", r#"{"thread":"thread_id t-31"}"#);
    let filter: EventFilter = "thread:t-3*|t-4".parse().unwrap();
    assert_eq!(filter.to_string(), "thread:t-3*|t-4");
    let hits = [turn, drifts, other, odd].map(|envelope| filter.matches(&envelope, "bot"));
    assert_eq!(hits, [true, true, false, false]);
}
