//! Explanation of an evaluation as lines: checkpoints, policies, capabilities. The deciding rule comes
//! first and is marked, then rules that fired, that did not fire, and that did not apply.

use ratatui::text::{Line, Span};

use super::text_cells::{clip, fit, width, wrap};
use super::theme::{Appearance, Mark, Meaning, of_tier};
use crate::atlas::condition::{LeafReport, Truth};
use crate::atlas::document::PolicyKind;
use crate::base::text::one_line;
use crate::engine::explanation::{
    CheckpointEvidence, CheckpointOutcome, ExplainedVerdict, FullExplanation, PolicyEvidence,
};
use crate::engine::held::TierSource;

/// Width of the outcome word, in cells.
const OUTCOME_CELLS: usize = 10;

/// Label of a condition.
const WHEN: &str = "when   ";

/// Value of `wanted` in the report if only the condition kept a checkpoint from firing.
const CONDITION: &str = "when";

/// A rule as it is shown.
struct EvidenceRow {
    decides: bool,
    id: String,
    word: &'static str,
    meaning: Meaning,
    texts: Vec<(&'static str, String)>,
}

/// Renders an account, or the reason why there is none.
pub(crate) fn render_result(
    result: &Result<Box<FullExplanation>, String>,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    match result {
        Ok(account) => render_account(account, cells, appearance),
        Err(what) => {
            let rows = wrap(&one_line(what), cells).into_iter();
            rows.map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                .collect()
        }
    }
}

/// Renders an account in lines of at most `cells` cells.
pub(crate) fn render_account(
    account: &FullExplanation,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut lines = heading_lines(account, cells, appearance);
    let ids = account
        .checkpoints
        .iter()
        .map(|evidence| width(&evidence.checkpoint_id));
    let ids = ids.chain(
        account
            .policies
            .iter()
            .map(|evidence| width(&evidence.policy_id)),
    );
    let names = ids.max().unwrap_or(0).clamp(8, (cells / 3).max(8));
    let (fired, unfired, skipped) = account.counts();
    if !account.checkpoints.is_empty() {
        let counts = format!("{fired} fired, {unfired} not fired, {skipped} skipped");
        lines.push(title("CHECKPOINTS", &counts, cells, appearance));
    }
    let mut rules: Vec<EvidenceRow> = account
        .checkpoints
        .iter()
        .map(|evidence| checkpoint(account, evidence))
        .collect();
    rules.sort_by_key(|rule| (!rule.decides, rank(rule)));
    push_all(&mut lines, rules, names, cells, appearance);
    if !account.policies.is_empty() {
        let apply = account
            .policies
            .iter()
            .filter(|evidence| evidence.applies)
            .count();
        let words = format!("{apply} of {} apply", account.policies.len());
        lines.push(title("POLICIES", &words, cells, appearance));
    }
    let mut rules: Vec<EvidenceRow> = account
        .policies
        .iter()
        .map(|evidence| policy(account, evidence))
        .collect();
    rules.sort_by_key(|rule| (!rule.decides, rank(rule)));
    push_all(&mut lines, rules, names, cells, appearance);
    let others = other_rows(account);
    if !others.is_empty() {
        lines.push(title("OTHER", "", cells, appearance));
        push_all(&mut lines, others, names, cells, appearance);
    }
    if account.left_out > 0 {
        let words = format!("and {} more, not kept", account.left_out);
        lines.push(Line::styled(words, appearance.style(Meaning::Dim)));
    }
    lines
}

/// Text and meaning of a verdict.
pub(crate) fn verdict(verdict: &ExplainedVerdict) -> (String, Meaning) {
    match verdict {
        ExplainedVerdict::Allowed => ("ALLOWED".to_owned(), Meaning::Passed),
        ExplainedVerdict::Held { gates } => (
            format!("HELD at {}", one_line(&gates.join(", "))),
            Meaning::Waiting,
        ),
        ExplainedVerdict::Denied(denied) => (
            format!("DENIED: {}", one_line(&denied.reason)),
            Meaning::Denied,
        ),
    }
}

fn heading_lines(
    account: &FullExplanation,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let (words, meaning) = verdict(&account.verdict);
    let mut spans = vec![Span::styled(
        clip(
            &one_line(&account.subject),
            cells.saturating_sub(24),
            appearance,
        ),
        appearance.style(Meaning::Strong),
    )];
    if let Some((tier, source)) = account.tier {
        let source = match source {
            TierSource::Declared => "declared",
            TierSource::Detected => "detected",
        };
        spans.push(Span::styled(
            format!("  tier {tier} ({source})"),
            appearance.style(of_tier(tier)),
        ));
    }
    let mut lines = vec![Line::from(spans)];
    let rows = wrap(&words, cells);
    lines.extend(
        rows.into_iter()
            .map(|row| Line::styled(row, appearance.style(meaning))),
    );
    if let Some(waits) = &account.session_gates {
        let rows = wrap(&one_line(waits), cells).into_iter();
        lines.extend(rows.map(|row| Line::styled(row, appearance.style(Meaning::Warning))));
    }
    if has_deciding_rule(account) {
        let words = format!("{} marks the deciding rule", appearance.mark(Mark::Arrow));
        lines.push(Line::styled(words, appearance.style(Meaning::Dim)));
    }
    if let ExplainedVerdict::Denied(denied) = &account.verdict
        && let Some(help) = &denied.help
    {
        let rows = wrap(&format!("help: {}", one_line(help)), cells);
        lines.extend(
            rows.into_iter()
                .map(|row| Line::styled(row, appearance.style(Meaning::Hint))),
        );
    }
    lines
}

/// Returns true if one of the listed rules decides.
fn has_deciding_rule(account: &FullExplanation) -> bool {
    account
        .checkpoints
        .iter()
        .any(|evidence| account.is_deciding_checkpoint(evidence))
        || account
            .policies
            .iter()
            .any(|evidence| account.ruled_by(evidence))
        || account
            .capabilities
            .iter()
            .any(|capability| account.is_deciding_capability(capability))
}

fn title(name: &str, words: &str, cells: usize, appearance: Appearance) -> Line<'static> {
    let words = clip(
        &format!("  {words}"),
        cells.saturating_sub(width(name)),
        appearance,
    );
    Line::from(vec![
        Span::styled(name.to_owned(), appearance.style(Meaning::Label)),
        Span::styled(words, appearance.style(Meaning::Dim)),
    ])
}

/// Ranks a rule: fired ones first, then those that failed only at their condition.
fn rank(rule: &EvidenceRow) -> u8 {
    match rule.word {
        "FIRED" | "APPLIES" => 0,
        "NOT FIRED" | "NO MATCH" if rule.texts.iter().any(|(label, _)| *label == WHEN) => 1,
        "NOT FIRED" | "NO MATCH" => 2,
        _ => 3,
    }
}

fn checkpoint(account: &FullExplanation, evidence: &CheckpointEvidence) -> EvidenceRow {
    let (word, meaning, mut texts) = outcome(&evidence.outcome);
    // A condition that was not evaluated is not shown.
    let looked = match &evidence.outcome {
        CheckpointOutcome::Fired { .. } => true,
        CheckpointOutcome::NotFired { wanted, .. } => wanted == CONDITION,
        CheckpointOutcome::Skipped { .. } => false,
    };
    if looked {
        texts.extend(evidence.conditions.iter().map(condition_text));
    }
    EvidenceRow {
        decides: account.is_deciding_checkpoint(evidence),
        id: evidence.checkpoint_id.clone(),
        word,
        meaning,
        texts,
    }
}

fn outcome(outcome: &CheckpointOutcome) -> (&'static str, Meaning, Vec<(&'static str, String)>) {
    match outcome {
        CheckpointOutcome::Fired { why: reason } => {
            ("FIRED", Meaning::Waiting, vec![("", reason.clone())])
        }
        CheckpointOutcome::NotFired { wanted, actual } if wanted == CONDITION => {
            ("NOT FIRED", Meaning::Text, vec![("", actual.clone())])
        }
        CheckpointOutcome::NotFired { wanted, actual } => (
            "NOT FIRED",
            Meaning::Text,
            vec![("wanted ", wanted.clone()), ("actual ", actual.clone())],
        ),
        CheckpointOutcome::Skipped { why: reason } => {
            ("SKIPPED", Meaning::Dim, vec![("", reason.clone())])
        }
    }
}

fn policy(account: &FullExplanation, evidence: &PolicyEvidence) -> EvidenceRow {
    let kind = policy_word(evidence.kind);
    let (word, meaning) = if evidence.applies {
        ("APPLIES", Meaning::Waiting)
    } else {
        ("NO MATCH", Meaning::Dim)
    };
    let rule = evidence.rule.strip_prefix("wanted ");
    let mut texts = match rule {
        Some(wanted) => vec![("wanted ", format!("{wanted} ({kind})"))],
        None => vec![("", format!("{kind}: `{}` matches", evidence.rule))],
    };
    if rule.is_none() {
        texts.extend(evidence.conditions.iter().map(condition_text));
    }
    EvidenceRow {
        decides: account.ruled_by(evidence),
        id: evidence.policy_id.clone(),
        word,
        meaning,
        texts,
    }
}

/// Name of a policy kind, as in manifests.
pub(crate) fn policy_word(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Allow => "allow",
        PolicyKind::Deny => "deny",
        PolicyKind::RequiresApproval => "requires approval",
        PolicyKind::RateLimit => "rate limit",
        PolicyKind::Budget => "budget",
    }
}

/// Builds the rules other than checkpoints and policies: capabilities, contexts, extensions.
fn other_rows(account: &FullExplanation) -> Vec<EvidenceRow> {
    let mut rules = Vec::new();
    for capability in &account.capabilities {
        let (word, meaning) = if capability.locked {
            ("LOCKED", Meaning::High)
        } else {
            ("UNLOCKED", Meaning::Passed)
        };
        rules.push(EvidenceRow {
            decides: account.is_deciding_capability(capability),
            id: capability.capability_id.clone(),
            word,
            meaning,
            texts: vec![("", "capability that lists the action".to_owned())],
        });
    }
    for context in &account.contexts {
        let (word, meaning, mut texts) = outcome(&context.outcome);
        texts.insert(0, ("", "context".to_owned()));
        rules.push(EvidenceRow {
            decides: false,
            id: context.context_id.clone(),
            word: if word == "FIRED" {
                "GIVEN"
            } else {
                "NOT GIVEN"
            },
            meaning,
            texts,
        });
    }
    for handler in &account.handlers {
        let text = if handler.listed {
            "not called here; it may deny the request"
        } else {
            "not in the operator's list, so the request is denied"
        };
        rules.push(EvidenceRow {
            decides: !handler.listed,
            id: handler.handler.clone(),
            word: "EXTENSION",
            meaning: Meaning::Warning,
            texts: vec![("", format!("{text} (at {})", handler.checkpoint_id))],
        });
    }
    rules
}

fn condition_text(leaf: &LeafReport) -> (&'static str, String) {
    let actual = leaf.actual.as_ref();
    let actual = actual.map_or_else(|| "no value".to_owned(), ToString::to_string);
    let truth = match leaf.truth {
        Truth::True => "holds",
        Truth::False => "does not hold",
        Truth::Unknown => "unknown, so it counts against the agent",
    };
    let (path, wanted) = (&leaf.path, &leaf.wanted);
    if leaf.is_missing() {
        return (
            WHEN,
            format!("{path} {wanted}: cannot evaluate, {path} is missing"),
        );
    }
    (WHEN, format!("{path} {wanted}, actual {actual}: {truth}"))
}

fn push_all(
    lines: &mut Vec<Line<'static>>,
    rules: Vec<EvidenceRow>,
    names: usize,
    cells: usize,
    appearance: Appearance,
) {
    let mark = appearance.mark(Mark::Arrow);
    let margin = width(mark) + 1;
    // Next to the name if there is room for both, otherwise below it.
    let same_row = cells >= margin + names + 1 + OUTCOME_CELLS + 30;
    let indent = if same_row {
        margin + names + 1 + OUTCOME_CELLS
    } else {
        margin + 2
    };
    for rule in rules {
        let lead = if rule.decides { mark } else { "" };
        let id = fit(&one_line(&rule.id), names, appearance);
        let mut first = vec![
            Span::styled(
                fit(lead, margin, appearance),
                appearance.style(Meaning::Key),
            ),
            Span::styled(
                id,
                appearance.style(if rule.decides {
                    Meaning::Strong
                } else {
                    Meaning::Text
                }),
            ),
            Span::raw(" "),
            Span::styled(
                fit(rule.word, OUTCOME_CELLS, appearance),
                appearance.style(rule.meaning),
            ),
        ];
        if !same_row {
            lines.push(Line::from(std::mem::take(&mut first)));
        }
        let faded = if rule.meaning == Meaning::Dim {
            Meaning::Dim
        } else {
            Meaning::Text
        };
        for (label, text) in rule.texts {
            let room = cells.saturating_sub(indent + label.len()).max(10);
            for (at, row) in wrap(&one_line(&text), room).into_iter().enumerate() {
                let mut spans = std::mem::take(&mut first);
                if spans.is_empty() {
                    spans.push(Span::raw(" ".repeat(indent)));
                }
                let label = if at == 0 {
                    label.to_owned()
                } else {
                    " ".repeat(label.len())
                };
                spans.push(Span::styled(label, appearance.style(Meaning::Label)));
                spans.push(Span::styled(row, appearance.style(faded)));
                lines.push(Line::from(spans));
            }
        }
    }
}

/// Text such as `2 fired, 5 not`: a short summary of an evaluation.
pub(crate) fn counts_text((fired, unfired, _): (usize, usize, usize)) -> String {
    match fired {
        0 => format!("0 fired, {unfired} not"),
        fired => format!("{fired} fired, {unfired} not"),
    }
}
