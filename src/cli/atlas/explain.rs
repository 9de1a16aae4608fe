//! `cra atlas explain`: the outcome of a request or of input, with the reasons.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::atlas::condition::LeafReport;
use crate::atlas::document::CheckpointMode;
use crate::base::clock::{Clock, SystemClock};
use crate::base::json;
use crate::base::text::one_line;
use crate::cli::args::ExplainArgs;
use crate::cli::atlases::load_all;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::engine::explanation::{
    CheckpointEvidence, CheckpointOutcome, ContextEvidence, ExplainedVerdict, Explanation,
    HandlerPreview, HypotheticalRequest, HypotheticalSession, InputExplanation,
    explain_input_under, explain_under, preview_handlers,
};

/// Label of the condition that kept a checkpoint from firing.
const CONDITION: &str = "when";

/// An explanation, with the handlers that take part in the decision.
struct ExplanationWithHandlers<T> {
    explanation: T,
    handlers: Vec<HandlerPreview>,
}

/// Explains the outcome. Exits with 5 on a denial, for scripts.
pub(in crate::cli) fn explain(settings: &Settings, explain: &ExplainArgs) -> Result<u8, Failure> {
    let listed = settings.extensions()?.table();
    let session = described_session(explain)?;
    let params = json::read(explain.params.as_bytes()).map_err(Failure::Params)?;
    let atlases = load_all(&explain.files, &settings.configure())?;
    let now = SystemClock.now();
    let input = explain.input.as_ref();
    let input = input.map(|text| {
        let mut explained = explain_input_under(&atlases, text, &session, now);
        ExplanationWithHandlers {
            handlers: preview_handlers(
                &atlases,
                &listed,
                &mut explained.checkpoints,
                &mut explained.verdict,
            ),
            explanation: explained,
        }
    });
    let action = explain.action.clone().map(|action| {
        let what_if = HypotheticalRequest {
            action,
            params,
            session,
        };
        let mut explained = explain_under(&atlases, &what_if, now);
        ExplanationWithHandlers {
            handlers: preview_handlers(
                &atlases,
                &listed,
                &mut explained.checkpoints,
                &mut explained.verdict,
            ),
            explanation: explained,
        }
    });
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if explain.json {
        serde_json::to_writer_pretty(&mut out, &to_json(action.as_ref(), input.as_ref()))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_all(&mut out, action.as_ref(), input.as_ref())
    };
    let code = match action.map(|explained| explained.explanation.verdict) {
        Some(ExplainedVerdict::Denied(_)) => exit::DENIED,
        Some(ExplainedVerdict::Allowed | ExplainedVerdict::Held { .. }) | None => exit::OK,
    };
    verdict(code, written.and_then(|()| out.flush()))
}

/// The described session, from `--session` and the flags for parts of it.
fn described_session(explain: &ExplainArgs) -> Result<HypotheticalSession, Failure> {
    let mut session: HypotheticalSession =
        json::read(explain.session.as_bytes()).map_err(Failure::Session)?;
    if let Some(agent) = &explain.agent {
        if session.agent.as_ref().is_some_and(|named| named != agent) {
            return Err(Failure::TwoSessions("agent"));
        }
        session.agent = Some(agent.clone());
    }
    let unlocked: BTreeSet<_> = explain.unlocked.iter().cloned().collect();
    if !unlocked.is_empty() {
        if !session.unlocked.is_empty() && session.unlocked != unlocked {
            return Err(Failure::TwoSessions("unlocked"));
        }
        session.unlocked = unlocked;
    }
    Ok(session)
}

/// Outcome of the request at the top level; outcome of input under a separate key.
fn to_json(
    action: Option<&ExplanationWithHandlers<Explanation>>,
    input: Option<&ExplanationWithHandlers<InputExplanation>>,
) -> Value {
    let mut combined = action.map_or_else(|| json!({}), one_json);
    if let (Some(input), Some(fields)) = (input, combined.as_object_mut()) {
        fields.insert("input".to_owned(), one_json(input));
    }
    combined
}

fn one_json<T: Serialize>(explained: &ExplanationWithHandlers<T>) -> Value {
    let mut one = json!(explained.explanation);
    if let Some(fields) = one.as_object_mut() {
        fields.insert("handlers".to_owned(), json!(explained.handlers));
    }
    one
}

fn write_all(
    out: &mut impl Write,
    action: Option<&ExplanationWithHandlers<Explanation>>,
    input: Option<&ExplanationWithHandlers<InputExplanation>>,
) -> io::Result<()> {
    if let Some(input) = input {
        write_input(out, input)?;
    }
    if let (Some(_), Some(_)) = (input, action) {
        writeln!(out)?;
    }
    action.map_or(Ok(()), |action| write_action(out, action))
}

fn write_input(
    out: &mut impl Write,
    input: &ExplanationWithHandlers<InputExplanation>,
) -> io::Result<()> {
    let explained = &input.explanation;
    writeln!(out, "input")?;
    match &explained.verdict {
        ExplainedVerdict::Allowed => writeln!(out, "ACCEPTED")?,
        ExplainedVerdict::Held { .. } | ExplainedVerdict::Denied(_) => {
            write_verdict(out, &explained.verdict)?;
        }
    }
    write_handlers(out, &input.handlers)?;
    write_checkpoints(out, &explained.checkpoints)?;
    write_contexts(out, &explained.contexts)
}

fn write_contexts(out: &mut impl Write, contexts: &[ContextEvidence]) -> io::Result<()> {
    for context in contexts {
        write_outcome(out, "context", &context.context_id, &context.outcome)?;
    }
    Ok(())
}

fn write_action(
    out: &mut impl Write,
    action: &ExplanationWithHandlers<Explanation>,
) -> io::Result<()> {
    let (explained, handlers) = (&action.explanation, &action.handlers);
    let source = match explained.tier_source {
        crate::engine::held::TierSource::Declared => "declared",
        crate::engine::held::TierSource::Detected => "detected",
    };
    let (action, tier) = (one_line(&explained.action), explained.tier);
    writeln!(out, "{action}  tier {tier} ({source})")?;
    write_verdict(out, &explained.verdict)?;
    write_handlers(out, handlers)?;
    for capability in &explained.capabilities {
        let state = if capability.locked {
            "locked"
        } else {
            "unlocked"
        };
        writeln!(out, "capability  {:24} {state}", capability.capability_id)?;
    }
    write_checkpoints(out, &explained.checkpoints)?;
    for policy in &explained.policies {
        let state = if policy.applies {
            "APPLIES"
        } else {
            "no match"
        };
        let (id, rule) = (&policy.policy_id, one_line(&policy.rule));
        writeln!(out, "policy      {id:24} {state:10} {rule}")?;
        if let (true, Some(limit)) = (policy.applies, &policy.limit) {
            writeln!(out, "{:36} limit: {limit}", "")?;
        }
        write_leaves(out, &policy.conditions)?;
    }
    write_contexts(out, &explained.contexts)
}

fn write_verdict(out: &mut impl Write, verdict: &ExplainedVerdict) -> io::Result<()> {
    match verdict {
        ExplainedVerdict::Allowed => writeln!(out, "ALLOWED"),
        ExplainedVerdict::Held { gates } => writeln!(out, "HELD at {}", gates.join(", ")),
        ExplainedVerdict::Denied(denied) => {
            writeln!(out, "DENIED  {}", one_line(&denied.reason))?;
            let help = denied.help.as_ref();
            help.map_or(Ok(()), |help| writeln!(out, "  help: {}", one_line(help)))
        }
    }
}

/// Writes the handlers that take part in addition to the Atlases.
fn write_handlers(out: &mut impl Write, handlers: &[HandlerPreview]) -> io::Result<()> {
    for handler in handlers {
        let (name, at) = (&handler.handler, &handler.checkpoint_id);
        let state = if handler.listed {
            "is not called here and may deny the request"
        } else {
            "is not in the operator's list, so the request is denied"
        };
        writeln!(out, "extension   {name:24} {state} (at {at})")?;
    }
    Ok(())
}

fn write_checkpoints(out: &mut impl Write, checkpoints: &[CheckpointEvidence]) -> io::Result<()> {
    for checkpoint in checkpoints {
        write_outcome(
            out,
            "checkpoint",
            &checkpoint.checkpoint_id,
            &checkpoint.outcome,
        )?;
        // A condition that was not evaluated gives no information about the request.
        match &checkpoint.outcome {
            CheckpointOutcome::Fired { .. } => {
                write_place(out, checkpoint)?;
                write_leaves(out, &checkpoint.conditions)?;
            }
            CheckpointOutcome::NotFired { wanted, .. } if wanted == CONDITION => {
                write_leaves(out, &checkpoint.conditions)?;
            }
            CheckpointOutcome::NotFired { .. } | CheckpointOutcome::Skipped { .. } => {}
        }
    }
    Ok(())
}

/// Writes the priority, mode and Atlas of a checkpoint that fires, and each of its effects.
fn write_place(out: &mut impl Write, checkpoint: &CheckpointEvidence) -> io::Result<()> {
    let (priority, mode) = (checkpoint.priority, checkpoint.mode.as_str());
    let atlas = &checkpoint.atlas_id;
    writeln!(out, "{:36} priority {priority}, {mode}, Atlas {atlas}", "")?;
    let after = if checkpoint.mode == CheckpointMode::Blocking {
        "when passed "
    } else {
        ""
    };
    for (verb, what) in checkpoint.effects.lines() {
        writeln!(out, "{:36} {after}{verb} {}", "", one_line(&what))?;
    }
    Ok(())
}

fn write_outcome(
    out: &mut impl Write,
    noun: &str,
    id: &str,
    outcome: &CheckpointOutcome,
) -> io::Result<()> {
    let text = match outcome {
        CheckpointOutcome::Fired { why } => format!("FIRED      {}", one_line(why)),
        CheckpointOutcome::NotFired { wanted, actual } => {
            let (wanted, actual) = (one_line(wanted), one_line(actual));
            format!("not fired  wanted {wanted}, actual {actual}")
        }
        CheckpointOutcome::Skipped { why } => format!("skipped    {why}"),
    };
    writeln!(out, "{noun:11} {id:24} {text}")
}

fn write_leaves(out: &mut impl Write, leaves: &[LeafReport]) -> io::Result<()> {
    for leaf in leaves {
        let actual = leaf
            .actual
            .as_ref()
            .map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let truth = format!("{:?}", leaf.truth).to_lowercase();
        let (path, wanted) = (one_line(&leaf.path), one_line(&leaf.wanted));
        let found = if leaf.is_missing() {
            format!("cannot be evaluated: `{path}` is missing")
        } else {
            format!("actual {}: {truth}", one_line(&actual))
        };
        writeln!(out, "{:36} when {path}: wanted {wanted}, {found}", "")?;
    }
    Ok(())
}
