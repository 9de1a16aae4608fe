//! `cra run`: plays a scripted session with scripted answers against an Atlas, without waiting.
//!
//! The command uses the engine directly, with a simulated clock: no store, no console, no agents.
//! Extensions answer as the scenario says; extensions of this program answer themselves if the scenario
//! has no answer. A failed expectation is reported, and the run continues.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::args::{AtlasTestArgs, RunArgs};
use super::atlases::{files_in, load_all};
use super::error::{Failure, verdict};
use super::exit;
use super::settings::Settings;
use crate::base::text::one_line;
use crate::console::FailedScenarioStep;
use crate::engine::command::{AgentReply, AgentReport, Reply};
use crate::engine::resolution::Resolution;
use crate::memento::TurnOutcome;
use crate::runtime::extension::Registry;
use expectations::{FailedExpectation, code, decision, decision_effect, failures, resolution};
use scenario::{OperatorAnswers, Scenario, ScenarioStep, StepAction};
use scenario_engine::{ScenarioEngine, StepOutcome};

mod atlas_scenarios;
mod expectations;
pub(super) mod scenario;
mod scenario_engine;

pub(super) use atlas_scenarios::trials;

/// A played step.
struct PlayedStep<'s> {
    number: usize,
    step: &'s ScenarioStep,
    at: Duration,
    noted: StepOutcome,
    failed: Vec<FailedExpectation>,
}

/// Plays a scenario and reports failed expectations.
pub(super) fn run(settings: &Settings, run: &RunArgs) -> Result<u8, Failure> {
    let scenario = Scenario::read(&run.scenario).map_err(Failure::Scenario)?;
    let atlases = load_all(&scenario.atlases, &settings.configure())?;
    let mut stage = ScenarioEngine::new(
        atlases,
        scenario.extensions,
        settings.own_extensions.clone(),
    );
    let steps = scenario.steps.iter().enumerate();
    let played: Vec<_> = steps
        .map(|(index, step)| play(&mut stage, index + 1, step))
        .collect();

    let mut out = BufWriter::new(io::stdout().lock());
    let written = if run.json {
        let steps: Vec<_> = played
            .iter()
            .map(|played| to_json(played, &stage))
            .collect();
        serde_json::to_writer_pretty(&mut out, &steps)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_steps(&mut out, &played, &stage)
    };
    let holds = played.iter().all(|played| played.failed.is_empty());
    let code = if holds { exit::OK } else { exit::EXPECTATION };
    verdict(code, written.and_then(|()| out.flush()))
}

/// Plays scenarios and reports which of them pass.
pub(super) fn test(settings: &Settings, test: &AtlasTestArgs) -> Result<u8, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut reports = Vec::new();
    let mut code = exit::OK;
    for file in scenarios(&test.scenarios)? {
        let (steps, mismatches) = play_file(&file, &settings.own_extensions)?;
        if !mismatches.is_empty() {
            code = exit::EXPECTATION;
        }
        let mismatches: Vec<_> = mismatches
            .into_iter()
            .map(|failed| failed.mismatch)
            .collect();
        reports.push((file, steps, mismatches.len(), mismatches));
    }
    let written = if test.json {
        let all: Vec<_> = reports
            .iter()
            .map(|(file, steps, failed, mismatches)| {
                json!({"file": file.to_string_lossy(), "steps": steps, "ok": *failed == 0, "failed": mismatches})
            })
            .collect();
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        reports
            .iter()
            .try_for_each(|(file, steps, failed, mismatches)| {
                let (word, steps) = (
                    if *failed == 0 { "ok" } else { "FAILED" },
                    count_noun(*steps, "step"),
                );
                writeln!(
                    out,
                    "{word:<7} {}  {steps}",
                    one_line(&file.to_string_lossy())
                )?;
                mismatches
                    .iter()
                    .try_for_each(|line| writeln!(out, "        {line}"))
            })
    };
    verdict(code, written.and_then(|()| out.flush()))
}

/// Plays the scenario of a file: its number of steps, and the failed ones.
fn play_file(file: &Path, own: &Registry) -> Result<(usize, Vec<FailedScenarioStep>), Failure> {
    let scenario = Scenario::read(file).map_err(Failure::Scenario)?;
    let atlases = load_all(&scenario.atlases, &own.configuration())?;
    let mut stage = ScenarioEngine::new(atlases, scenario.extensions, own.clone());
    let steps = (1..).zip(&scenario.steps);
    let played: Vec<_> = steps.map(|(n, step)| play(&mut stage, n, step)).collect();
    Ok((played.len(), failed_steps(&played)))
}

/// Failed expectations, one line each.
fn failed_steps(played: &[PlayedStep<'_>]) -> Vec<FailedScenarioStep> {
    let failed = played.iter().flat_map(|played| {
        let (number, action) = (played.number, describe(&played.step.action));
        played.failed.iter().map(
            move |FailedExpectation { wanted, actual }| FailedScenarioStep {
                line: Some(played.step.line),
                mismatch: one_line(&format!(
                    "step {number}, {action}: expected {wanted}, got {actual}"
                )),
            },
        )
    });
    failed.collect()
}

/// Named files: a folder stands for every scenario in it.
fn scenarios(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            let found = files_in(path)?;
            if found.is_empty() {
                return Err(Failure::NoScenario(path.clone()));
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn play<'s>(stage: &mut ScenarioEngine, number: usize, step: &'s ScenarioStep) -> PlayedStep<'s> {
    let at = stage.elapsed();
    let noted = stage.play(&step.action);
    let failed = failures(&step.expected, &noted, stage);
    PlayedStep {
        number,
        step,
        at,
        noted,
        failed,
    }
}

fn write_steps(
    out: &mut impl Write,
    played: &[PlayedStep<'_>],
    stage: &ScenarioEngine,
) -> io::Result<()> {
    for PlayedStep {
        number,
        step,
        at,
        noted,
        failed,
    } in played
    {
        let action = one_line(&describe(&step.action));
        let decision = one_line(&decision(noted));
        writeln!(
            out,
            "{number:>3}  {:>6}s  {action:44}  {decision}",
            at.as_secs()
        )?;
        for line in consequences(noted, stage) {
            writeln!(out, "{:16}{}", "", one_line(&line))?;
        }
        for FailedExpectation { wanted, actual } in failed {
            let (wanted, actual) = (one_line(wanted), one_line(actual));
            writeln!(out, "{:5}FAILED     expected {wanted}, got {actual}", "")?;
        }
    }
    let failed: usize = played.iter().map(|played| played.failed.len()).sum();
    let steps = count_noun(played.len(), "step");
    match failed {
        0 => writeln!(out, "{steps}, all expectations met"),
        _ => writeln!(out, "{steps}, {} failed", count_noun(failed, "expectation")),
    }
}

/// Effects of a step on earlier requests.
fn consequences(noted: &StepOutcome, stage: &ScenarioEngine) -> Vec<String> {
    let mut lines = Vec::new();
    for decided in &noted.settled {
        let names = stage.gates_of(&decided.gate).join(", ");
        let (action, outcome) = (&decided.action, decided.outcome.as_str());
        lines.push(format!("{action} at {names}: {outcome}"));
    }
    if !noted.asked.is_empty() {
        lines.push(format!("the agent must answer {}", noted.asked.join(", ")));
    }
    if let Some(Reply::Agent(AgentReply::Denied(_))) = &noted.reply
        && !noted.held.is_empty()
    {
        let gates = noted.held.join(", ");
        lines.push(format!("an operator may override the denial at {gates}"));
    }
    if let Some(Reply::Agent(AgentReply::Resolved(resolution))) = &noted.reply {
        lines.extend(resolved(resolution));
    }
    let modified = noted.modified_input.iter();
    lines.extend(modified.map(|text| format!("input changed to: {text}")));
    let contexts = noted.injected.contexts.iter();
    lines.extend(contexts.map(|context| format!("context {}", context.context_id)));
    let refused_contexts = noted.injected.refused_contexts.iter();
    lines.extend(
        refused_contexts
            .map(|context| format!("no context {}: {}", context.context_id, context.reason)),
    );
    let guidance = noted.injected.guidance.iter();
    lines.extend(guidance.map(|guidance| format!("guidance: {}", guidance.block.content)));
    let withdrawn = noted.injected.withdrawn.iter();
    lines.extend(withdrawn.map(|from| format!("guidance of {from} no longer applies")));
    let released = noted.released.iter();
    lines.extend(released.map(|action| format!("{action} may run now")));
    let own = match &noted.reply {
        Some(Reply::Agent(AgentReply::Denied(denied))) => Some(denied),
        Some(_) | None => None,
    };
    let others = noted.denied.iter().filter(|denied| Some(*denied) != own);
    lines.extend(others.map(|denied| format!("denied ({}): {}", code(denied), denied.reason)));
    lines
}

/// Permissions that an agent was told about.
fn resolved(resolution: &Resolution) -> Vec<String> {
    let allowed = resolution.allowed.iter();
    let allowed = allowed.map(|action| format!("{action} would be allowed"));
    let denied = resolution.denied.iter();
    let denied =
        denied.map(|denied| format!("{} would be denied: {}", denied.action, denied.reason));
    let constraints = resolution.constraints.iter();
    let constraints = constraints.map(|constraint| {
        format!(
            "{} at {}: {}",
            constraint.action, constraint.by, constraint.detail
        )
    });
    allowed.chain(denied).chain(constraints).collect()
}

fn to_json(played: &PlayedStep<'_>, stage: &ScenarioEngine) -> Value {
    let noted = &played.noted;
    let settled = noted.settled.iter().map(|decided| {
        json!({
            "gate": decided.gate,
            "gates": stage.gates_of(&decided.gate),
            "outcome": decided.outcome,
            "action": decided.action,
        })
    });
    json!({
        "step": played.number,
        "seconds": played.at.as_secs(),
        "kind": step_kind(&played.step.action),
        "what": describe(&played.step.action),
        "decision": decision(noted),
        "allowed": matches!(noted.reply, Some(Reply::Agent(AgentReply::Allowed(_)))),
        "outcome": decision_effect(noted),
        "held": noted.held,
        "asked": noted.asked,
        "resolved": resolution(noted),
        "modified_input": noted.modified_input,
        "denied": noted.denied,
        "settled": settled.collect::<Vec<_>>(),
        "released": noted.released,
        "records": noted.records,
        "events": events(noted),
        "given": noted.injected,
        "turn": noted.turn.as_ref().map(|outcome| turn_json(outcome)),
        "ok": played.failed.is_empty(),
        "failed": played.failed,
    })
}

/// Recorded events, each with its fields.
fn events(noted: &StepOutcome) -> Vec<Value> {
    let events = noted.records.iter().zip(&noted.record_fields);
    let events =
        events.map(|(event_type, fields)| json!({ "event_type": event_type, "payload": fields }));
    events.collect()
}

fn turn_json(outcome: &TurnOutcome) -> Value {
    json!({
        "decision": outcome.decided.decision,
        "rule": outcome.decided.rule.number(),
        "frozen": outcome.freeze.is_frozen(),
        "summary": outcome.summary.as_str(),
        "memento": outcome.memento,
    })
}

fn step_kind(action: &StepAction) -> &'static str {
    match action {
        StepAction::Start(_) => "start",
        StepAction::Request { .. } => "request",
        StepAction::Answer { .. } => "answer",
        StepAction::Resolve(_) => "resolve",
        StepAction::Complete { .. } => "complete",
        StepAction::Leave { .. } => "leave",
        StepAction::Input(_) => "input",
        StepAction::Context(_) => "context",
        StepAction::Error(_) => "error",
        StepAction::Report(AgentReport::Feedback(_)) => "feedback",
        StepAction::Report(AgentReport::Output(_)) => "output",
        StepAction::Report(AgentReport::Wrapper(_)) => "wrapper_constructed",
        StepAction::Report(AgentReport::WrapperCheck(_)) => "wrapper_verified",
        StepAction::Report(AgentReport::Recovery(_)) | StepAction::Recovered(_) => "recovered",
        StepAction::Policy(_) => "policy",
        StepAction::Turn(_) => "turn",
        StepAction::Edit { .. } => "edit",
        StepAction::Pass(_) => "pass",
        StepAction::Deny(_) => "deny",
        StepAction::Wait(_) => "wait",
        StepAction::End(_) => "end",
    }
}

fn describe(action: &StepAction) -> String {
    match action {
        StepAction::Start(start) => format!("start {} ({})", start.session, start.agent),
        StepAction::Request {
            session,
            action,
            params,
            ..
        } => format!("request {session} {action} {params}"),
        StepAction::Answer {
            session,
            gate,
            answers,
        } => format!("answer {session} {gate} {}", json!(answers)),
        StepAction::Resolve(resolve) => match &resolve.input {
            Some(input) => format!("resolve {} {input:?}", resolve.session),
            None => format!("resolve {}", resolve.session),
        },
        StepAction::Complete {
            session,
            action,
            result,
        } => match result {
            Ok(_) => format!("complete {session} {action}"),
            Err(error) => format!("complete {session} {action}: {}", error.code),
        },
        StepAction::Leave { session, action } => match action {
            Some(action) => format!("leave {session} {action}"),
            None => format!("leave {session}"),
        },
        StepAction::Input(input) => format!("input {} {:?}", input.session, input.text),
        StepAction::Context(request) => match &request.checkpoint {
            Some(name) => format!("context {} {name}", request.session),
            None => format!("context {}", request.session),
        },
        StepAction::Error(report) => format!("error {} {}", report.session, report.error_type),
        StepAction::Report(report) => format!("{} {}", step_kind(action), report.session()),
        StepAction::Recovered(recovered) => {
            format!("recovered {} {:?}", recovered.session, recovered.method)
        }
        StepAction::Policy(asked) => {
            format!("policy {} {} {}", asked.session, asked.action, asked.params)
        }
        StepAction::Turn(take) => {
            let (session, message) = (&take.session, &take.turn.message);
            format!("turn {session} {message:?}")
        }
        StepAction::Edit { thread, .. } => format!("edit {}", thread.as_str()),
        StepAction::Pass(pass) => match &pass.answers {
            OperatorAnswers::Generated => format!("pass {} with good answers", pass.gate),
            OperatorAnswers::Explicit(answers) => format!("pass {} {}", pass.gate, json!(answers)),
        },
        StepAction::Deny(deny) => format!("deny {}: {}", deny.gate, deny.reason),
        StepAction::Wait(seconds) => format!("wait {seconds}s"),
        StepAction::End(end) => format!("end {} ({})", end.session, end.status.as_str()),
    }
}

fn count_noun(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
