use super::*;

// covers D5
#[test]
fn message_with_only_acknowledging_words_is_an_acknowledgment() {
    let table = [
        ("ok thanks", true),
        ("Sounds good!", true),
        ("yep!", true),
        ("ok,thanks", true),
        ("ok let's do it", false),
        ("", false),
        ("!!!", false),
        ("  Got   IT.  ", true),
        ("all right?", true),
        ("kk thx cool yup sure okay", true),
        ("ok\nthanks", true),
        ("okthanks", false),
        ("ok; thanks", false),
        ("OK 👍", false),
    ];
    for (message, wanted) in table {
        assert_eq!(is_ack_only(message), wanted, "{message:?}");
    }
}

// covers D3, D4
#[test]
fn four_signals_are_must_three_are_should_and_one_is_skip() {
    let of = |category| {
        let kinds = SignalKind::ALL.into_iter();
        let kinds = kinds.filter(move |kind| kind.category() == category);
        kinds.map(SignalKind::as_str).collect::<Vec<_>>()
    };
    assert_eq!(
        of(SignalCategory::Must),
        ["decision_made", "scope_changed", "pivot", "answer_provided"]
    );
    assert_eq!(
        of(SignalCategory::Should),
        [
            "open_loop_created",
            "open_loop_resolved",
            "risk_or_conflict"
        ]
    );
    assert_eq!(of(SignalCategory::Skip), ["ack_only"]);
    for kind in SignalKind::ALL {
        assert_eq!(json!(kind), json!(kind.as_str()));
        assert!(kind.description().len() > 10);
    }
}

// covers D1, D2, D6, D7, D8
#[test]
fn first_matching_rule_decides_for_every_combination_of_inputs() {
    use SignalKind::{AckOnly, DecisionMade, RiskOrConflict};
    let kinds = [DecisionMade, RiskOrConflict, AckOnly];
    let mut seen = std::collections::BTreeSet::new();
    for bits in 0..2_u32.pow(7) {
        let bit = |place: u32| bits >> place & 1 == 1;
        let chosen = (0..).zip(kinds).filter(|(place, _)| bit(*place));
        let signals: Vec<_> = chosen.map(|(_, kind)| kind).collect();
        let message = if bit(6) { "ok thanks" } else { "delete 4411" };
        let inputs = DecisionInputs {
            message,
            signals: &signals,
            context_pressure: bit(3),
            drift_risk: bit(4),
            summary_changed: bit(5),
        };
        // In the order of the specification's table.
        let (number, wanted) = if bit(5) {
            (1, "must")
        } else if bit(0) {
            (2, "must")
        } else if bit(1) {
            (3, "should")
        } else if bit(3) || bit(4) {
            (4, "should")
        } else if bit(2) || bit(6) {
            (5, "skip")
        } else {
            (6, "should")
        };
        let decided = classify_turn(&inputs);
        assert_eq!(decided.rule.number(), number, "{inputs:?}");
        assert_eq!(decided.decision.as_str(), wanted, "{inputs:?}");
        seen.insert(number);
    }
    assert_eq!(seen.len(), DecisionRule::ALL.len());
    let meanings = TurnDecision::ALL.map(TurnDecision::meaning);
    assert_eq!(
        meanings
            .iter()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        3
    );
}

// covers D9, D10, D11
#[test]
fn summary_is_frozen_only_at_peak_or_high_and_without_must() {
    for decision in TurnDecision::ALL {
        for phase in AffectPhase::ALL {
            for intensity_bucket in Intensity::ALL {
                let rollup = AffectRollup {
                    phase,
                    intensity_bucket,
                    updated_at: at(0).into(),
                };
                let peak = phase == AffectPhase::Peak;
                let high = intensity_bucket == Intensity::High;
                let must = decision == TurnDecision::Must;
                let freeze = Freeze::of(Some(&rollup), decision);
                assert_eq!(freeze, Freeze { peak, high, must });
                let wanted = match (peak || high, decision) {
                    (true, TurnDecision::Should | TurnDecision::Skip) => true,
                    (true, TurnDecision::Must) | (false, _) => false,
                };
                assert_eq!(freeze.is_frozen(), wanted, "{freeze:?}");
            }
        }
        assert!(!Freeze::of(None, decision).is_frozen());
    }
}

// covers D15
#[test]
fn rollup_derives_phase_and_intensity() {
    use AffectPhase::{Downshift, Peak, Rising, Settled};
    use Intensity::{High, Low, Med};
    let table: [(&[f64], _); 18] = [
        (&[], (Settled, Low)),
        (&[0.8], (Peak, High)),
        (&[0.7], (Peak, High)),
        (&[0.69], (Settled, Med)),
        (&[0.2], (Settled, Low)),
        (&[0.34], (Settled, Med)),
        (&[0.2, 0.8], (Rising, High)),
        (&[0.85, 0.83], (Peak, High)),
        (&[0.85, 0.8], (Peak, High)),
        (&[0.75, 0.8], (Peak, High)),
        (&[0.74, 0.8], (Settled, High)),
        (&[0.79, 0.79], (Settled, High)),
        (&[0.9, 0.5], (Downshift, Med)),
        (&[0.5, 0.52], (Settled, Med)),
        (&[0.3, 0.4], (Rising, Med)),
        (&[0.4, 0.3], (Downshift, Low)),
        (&[1.0, 0.9], (Downshift, High)),
        (&[0.9, 0.1, 0.5, 0.52], (Settled, Med)),
    ];
    for (intensities, wanted) in table {
        assert_eq!(rollup(intensities), wanted, "{intensities:?}");
    }
}

#[test]
fn at_most_five_points_of_the_last_half_hour_count() {
    let point = |number: i64| {
        let point = AffectPoint {
            end_message_id: format!("m-{number}").parse().unwrap(),
            label: "calm".parse().unwrap(),
            intensity: 0.5,
            confidence: Confidence::Med,
            source: AffectSource::Server,
        };
        (point, at(number))
    };
    let points: Vec<_> = (0..8).map(point).collect();
    let left = |now| {
        let left = within_window(&points, at(now)).into_iter();
        left.map(|entry| entry.0.end_message_id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(left(8), ["m-3", "m-4", "m-5", "m-6", "m-7"]);
    assert_eq!(left(36), ["m-6", "m-7"]);
    assert!(left(38).is_empty());
}

#[test]
fn context_pressure_is_high_from_four_fifths() {
    let high = |used, limit| ContextPressure { used, limit }.is_high();
    assert!(high(80, 100));
    assert!(!high(79, 100));
    assert!(!high(799, 1000));
    assert!(high(u64::MAX, u64::MAX));
    assert!(high(0, 0), "a window without room is full");
}
