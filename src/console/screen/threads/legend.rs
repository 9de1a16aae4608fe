//! Explanation of the terms on the conversations screen.

use crate::console::atlas_study::PageLine;
use crate::console::theme::Meaning;
use crate::memento::{
    AffectPhase, DecisionRule, Intensity, SignalCategory, SignalKind, TurnDecision,
};

/// Returns the lines of the legend.
pub(crate) fn lines() -> Vec<PageLine> {
    let mut lines = Vec::new();
    add_heading(&mut lines, "PHASE: the trend of the intensity");
    for phase in AffectPhase::ALL {
        add_entry(&mut lines, phase.as_str(), phase_text(phase));
    }
    add_heading(&mut lines, "INTENSITY");
    for intensity in Intensity::ALL {
        add_entry(&mut lines, intensity.as_str(), intensity_text(intensity));
    }
    add_heading(&mut lines, "BREAKPOINT: the effect of a turn");
    for decision in TurnDecision::ALL {
        add_entry(&mut lines, decision.as_str(), decision.meaning());
    }
    add_heading(&mut lines, "RULES: the first match decides");
    for rule in DecisionRule::ALL {
        let words = format!("{} ({})", rule.description(), rule.decision().as_str());
        add_entry(&mut lines, &format!("rule {}", rule.number()), &words);
    }
    add_heading(
        &mut lines,
        "SIGNALS: name, confidence/source, as in high/model",
    );
    for kind in SignalKind::ALL {
        let set = match kind.category() {
            SignalCategory::Must => "must",
            SignalCategory::Should => "should",
            SignalCategory::Skip => "skip",
        };
        let words = format!("{} ({set})", kind.description());
        add_entry(&mut lines, &kind.as_str().replace('_', " "), &words);
    }
    add_heading(&mut lines, "INPUTS");
    add_entry(
        &mut lines,
        "ack-only -",
        "not evaluated: an earlier rule decided",
    );
    add_heading(&mut lines, "GUARDRAIL");
    add_entry(
        &mut lines,
        "freeze",
        "(peak or high) and not must, as before the turn",
    );
    lines
}

fn add_heading(lines: &mut Vec<PageLine>, text: &str) {
    if !lines.is_empty() {
        lines.push(PageLine::new(Meaning::Text, ""));
    }
    lines.push(PageLine::new(Meaning::Label, text));
}

fn add_entry(lines: &mut Vec<PageLine>, name: &str, words: &str) {
    lines.push(PageLine::new(Meaning::Text, format!("  {name:<20}{words}")));
}

fn phase_text(phase: AffectPhase) -> &'static str {
    match phase {
        AffectPhase::Rising => "rises by 0.1 or more since the previous message",
        AffectPhase::Peak => "0.8 or more and steady, or one message of 0.7 or more",
        AffectPhase::Downshift => "falls by 0.1 or more since the previous message",
        AffectPhase::Settled => "calm",
    }
}

fn intensity_text(intensity: Intensity) -> &'static str {
    match intensity {
        Intensity::Low => "below 0.34",
        Intensity::Med => "from 0.34 on",
        Intensity::High => "from 0.7 on",
    }
}
