//! Engine with a simulated clock: plays steps and collects their outcomes.
//!
//! Nothing waits and nothing is stored: the same scenario gives the same result, byte for byte. Gates
//! are found by checkpoint, by policy or by their number; of several held ones the oldest is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::scenario::{ScriptedAnswers, StepAction};
use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::id::{CountedIds, EventId, ExecutionId, HeldRequestId, SessionId};
use crate::engine::Engine;
use crate::engine::command::{
    ActionRequest, AgentQuestions, AgentReply, DenialReply, Effect, EngineCommand, Injected, Reply,
    ReplyId, SettledRequest,
};
use crate::engine::extensions::{CallResult, ExtensionCall};
use crate::engine::held::{Gate, Held, HeldSubject};
use crate::memento::{ExternalName, Thread, TurnOutcome};
use crate::runtime::extension::{InlineExtensions, Registry};
use crate::trace::event::{Durability, Payload};

mod agent;
mod answers;
#[cfg(test)]
mod replay_tests;
mod steps;
mod turns;

/// Start time of every scenario: 2026-01-01T00:00:00Z, a Thursday.
const START_MICROS: i64 = 1_767_225_600_000_000;

/// Engine with its clock and its open requests.
pub(super) struct ScenarioEngine {
    engine: Engine,
    now: Timestamp,
    asks: u64,
    deadlines: BTreeSet<(Timestamp, HeldRequestId)>,
    /// Open requests, by the id of the waiting requester.
    open_requests: BTreeMap<ReplyId, OpenRequest>,
    /// Allowed runs that are not completed, in order.
    runs: Vec<AllowedRun>,
    /// All requests that were ever held, in order.
    held_so_far: Vec<Arc<Held>>,
    /// Scripted answers of extensions.
    extensions: ScriptedAnswers,
    /// Extensions of this program, which answer if the scenario has no answer.
    own: InlineExtensions,
    /// Last resolution of each session.
    resolutions: BTreeMap<SessionId, String>,
    /// Event of the last error of each session.
    errors: BTreeMap<SessionId, EventId>,
    /// Conversations.
    threads: BTreeMap<ExternalName, Thread>,
    /// Recorded events, for tests that read them back.
    #[cfg(test)]
    drafts: Vec<crate::trace::event::Draft>,
}

/// An open request.
struct OpenRequest {
    session: SessionId,
    /// The action; `None` for requests that are not about an action.
    action: Option<String>,
}

/// An allowed run.
struct AllowedRun {
    session: SessionId,
    action: String,
    execution: ExecutionId,
}

/// Outcome of a step.
#[derive(Default)]
pub(super) struct StepOutcome {
    /// Reply to the requester; `None` while it waits.
    pub(super) reply: Option<Reply>,
    /// Gates that are now open because of this step.
    pub(super) held: Vec<String>,
    /// Held requests that ended.
    pub(super) settled: Vec<SettledRequest>,
    /// Actions requested in earlier steps that may run now.
    pub(super) released: Vec<String>,
    /// Checkpoints that the agent itself must answer.
    pub(super) asked: Vec<String>,
    /// Changed input, if an extension changed it.
    pub(super) modified_input: Option<String>,
    /// Everything that was injected, for any requester.
    pub(super) injected: Injected,
    /// All denials, of this step or of earlier requests.
    pub(super) denied: Vec<DenialReply>,
    /// True if the keywords of an input were in the cache.
    pub(super) keywords_cached: bool,
    /// Outcome of a turn.
    pub(super) turn: Option<Box<TurnOutcome>>,
    /// Types of the events recorded.
    pub(super) records: Vec<String>,
    /// Types of the events that are on disk before the agent is answered.
    pub(super) synced: Vec<String>,
    /// Fields of the recorded events, in the same order.
    pub(super) record_fields: Vec<Map<String, Value>>,
    /// Reason why the step could not be played as written.
    pub(super) fault: Option<StepFault>,
}

impl StepOutcome {
    fn add_injected(&mut self, injected: &Injected) {
        self.injected
            .contexts
            .extend(injected.contexts.iter().cloned());
        self.injected
            .guidance
            .extend(injected.guidance.iter().cloned());
        self.injected
            .withdrawn
            .extend(injected.withdrawn.iter().cloned());
        self.injected
            .refused_contexts
            .extend(injected.refused_contexts.iter().cloned());
    }

    fn record(&mut self, payload: &Payload) {
        self.records.push(payload.event_type().to_owned());
        self.record_fields.push(payload.fields());
    }

    fn ask_agent(&mut self, asked: &AgentQuestions) {
        let gates = asked.gates.iter();
        self.asked
            .extend(gates.map(|gate| gate.checkpoint_id.clone()));
    }
}

/// Fault of a step that names a missing item.
pub(super) struct StepFault {
    /// Short description.
    pub(super) what: &'static str,
    pub(super) wanted: String,
    pub(super) actual: String,
}

impl ScenarioEngine {
    pub(super) fn new(atlases: Vec<Atlas>, extensions: ScriptedAnswers, own: Registry) -> Self {
        let own = InlineExtensions::new(own);
        let mut engine = Engine::new(atlases, Box::new(CountedIds::default()));
        engine.set_extensions(extensions.added_to(own.table()));
        Self {
            engine,
            extensions,
            own,
            resolutions: BTreeMap::new(),
            errors: BTreeMap::new(),
            threads: BTreeMap::new(),
            now: Timestamp::from_micros(START_MICROS),
            asks: 0,
            deadlines: BTreeSet::new(),
            open_requests: BTreeMap::new(),
            runs: Vec::new(),
            held_so_far: Vec::new(),
            #[cfg(test)]
            drafts: Vec::new(),
        }
    }

    /// Time since the start of the scenario.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(Timestamp::from_micros(START_MICROS))
    }

    /// Plays a step.
    pub(super) fn play(&mut self, action: &StepAction) -> StepOutcome {
        let mut noted = StepOutcome::default();
        match action {
            StepAction::Start(start) => {
                self.run_request(
                    |reply_id| EngineCommand::StartSession(reply_id, start.clone()),
                    &mut noted,
                );
            }
            StepAction::Request {
                session,
                action,
                params,
                resolution,
            } => {
                let resolution = self.resolution(session, resolution.as_deref(), &mut noted);
                self.request((session, action, params, resolution), &mut noted);
            }
            StepAction::Answer {
                session,
                gate,
                answers,
            } => self.answer(session, gate, answers, &mut noted),
            StepAction::Resolve(resolve) => self.resolve(resolve, &mut noted),
            StepAction::Complete {
                session,
                action,
                result,
            } => self.complete(session, action, result, &mut noted),
            StepAction::Leave { session, action } => {
                self.leave(session, action.as_deref(), &mut noted);
            }
            StepAction::Input(input) => {
                noted.keywords_cached = self.engine.has_cached_keywords(&input.text, self.now);
                self.play_call(&input.session, &mut noted, |reply_id| {
                    EngineCommand::Input(reply_id, input.clone())
                });
            }
            StepAction::Context(request) => {
                self.play_call(&request.session, &mut noted, |reply_id| {
                    EngineCommand::RequestContext(reply_id, request.clone())
                });
            }
            StepAction::Error(report) => self.report_error(report, &mut noted),
            StepAction::Report(report) => self.report(report, &mut noted),
            StepAction::Recovered(recovered) => self.recover(recovered, &mut noted),
            StepAction::Policy(asked) => self.ask_policy(asked, &mut noted),
            StepAction::Turn(take) => self.turn(take, &mut noted),
            StepAction::Edit { thread, shape } => self.edit(thread, shape, &mut noted),
            StepAction::Pass(pass) => self.pass(pass, &mut noted),
            StepAction::Deny(deny) => self.deny(deny, &mut noted),
            StepAction::Wait(seconds) => self.wait(Duration::from_secs(*seconds), &mut noted),
            StepAction::End(end) => {
                self.run_request(
                    |reply_id| EngineCommand::EndSession(reply_id, end.clone()),
                    &mut noted,
                );
            }
        }
        noted
    }

    /// True if `name` means a gate of the held request with this identifier.
    pub(super) fn is_named(&self, gate: &HeldRequestId, name: &str) -> bool {
        let mut seen = self.held_so_far.iter().filter(|held| held.id == *gate);
        seen.any(|held| goes_by(held, name))
    }

    /// Gates of a held request, by checkpoint or policy.
    pub(super) fn gates_of(&self, gate: &HeldRequestId) -> Vec<String> {
        let held = self.held_so_far.iter().find(|held| held.id == *gate);
        held.map(|held| gate_names(held)).unwrap_or_default()
    }

    fn request(
        &mut self,
        (session, action, params, resolution): (&SessionId, &str, &Value, Option<String>),
        noted: &mut StepOutcome,
    ) {
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: session.clone(),
            action: action.to_owned(),
            params: params.clone(),
            deadline: None,
            resolution,
            call: None,
        };
        let open_request = OpenRequest {
            session: session.clone(),
            action: Some(action.to_owned()),
        };
        self.open_requests
            .insert(ReplyId(self.asks + 1), open_request);
        self.run_request(
            |reply_id| EngineCommand::RequestAction(reply_id, request),
            noted,
        );
        if noted.reply.is_none() && noted.held.is_empty() {
            // The request joined an identical one, or waits for the start of its session.
            let held = self.engine.held();
            let of_session = || held.iter().filter(|held| held.session == *session);
            let same = of_session().find(|held| match &held.subject {
                HeldSubject::Action(call) => call.action == action && call.params == *params,
                HeldSubject::SessionStart | HeldSubject::Moment(_) => false,
            });
            let whole = |held: &&Arc<Held>| !matches!(held.subject, HeldSubject::Action(_));
            let start = || of_session().find(whole);
            noted.held = same
                .or_else(start)
                .map(|held| gate_names(held))
                .unwrap_or_default();
        }
    }

    /// Advances the clock; timers that expire run at their own time, in order.
    fn wait(&mut self, span: Duration, noted: &mut StepOutcome) {
        let end = self.now.plus(span);
        while let Some((at, gate)) = self.deadlines.first().cloned() {
            if at > end {
                break;
            }
            self.deadlines.pop_first();
            self.now = self.now.max(at);
            self.run_command(EngineCommand::DeadlineReached(gate), None, noted);
        }
        self.now = end;
    }

    fn run_request(
        &mut self,
        command: impl FnOnce(ReplyId) -> EngineCommand,
        noted: &mut StepOutcome,
    ) {
        self.asks += 1;
        let reply_id = ReplyId(self.asks);
        self.run_command(command(reply_id), Some(reply_id), noted);
    }

    fn run_command(
        &mut self,
        command: EngineCommand,
        asker: Option<ReplyId>,
        noted: &mut StepOutcome,
    ) {
        let mut calls = Vec::new();
        for effect in self.engine.handle(command, self.now) {
            match effect {
                Effect::Record(draft) => {
                    let draft = self.own.before_event(draft);
                    self.own.on_event(&draft);
                    noted.record(&draft.payload);
                    if draft.durability == Durability::Sync {
                        noted.synced.push(draft.payload.event_type().to_owned());
                    }
                    #[cfg(test)]
                    self.drafts.push(draft);
                }
                Effect::AppendToLog(payload) => noted.record(&payload),
                // Notices are not sent for a played session.
                Effect::Persist(_) | Effect::SetOperator(_) | Effect::Notify(_) => {}
                Effect::CallExtension(call) => calls.push(call),
                Effect::Reply(reply_id, reply) => self.handle_reply(reply_id, asker, reply, noted),
                Effect::SetDeadline(gate, at) => drop(self.deadlines.insert((at, gate))),
                Effect::RequestHeld(gate) => {
                    let held = self.engine.held();
                    let held = held.into_iter().find(|held| held.id == gate);
                    noted
                        .held
                        .extend(held.iter().flat_map(|held| gate_names(held)));
                    self.held_so_far.extend(held);
                }
                Effect::RequestSettled(decided) => noted.settled.push(decided),
            }
        }
        for call in calls {
            let returned = CallResult {
                outcome: self.answer_of(&call),
                duration: Duration::ZERO,
            };
            self.run_command(
                EngineCommand::ExtensionReturned(call.id, returned),
                asker,
                noted,
            );
        }
    }

    /// Answer of an extension: the scripted one, or that of this program.
    fn answer_of(&mut self, call: &ExtensionCall) -> Result<Value, String> {
        if let Some(scripted) = self.extensions.outcome(call) {
            return scripted;
        }
        if !self.own.answers(call) {
            return Err("the scenario has no answer for this extension".to_owned());
        }
        let (engine, now) = (&mut self.engine, self.now);
        self.own.ask(call, |command| {
            let effects = engine.handle(command, now).into_iter();
            let mut replies = effects.filter_map(|effect| match effect {
                Effect::Reply(_, reply) => Some(reply),
                _ => None,
            });
            replies.next()
        })
    }

    fn handle_reply(
        &mut self,
        reply_id: ReplyId,
        asker: Option<ReplyId>,
        reply: Reply,
        noted: &mut StepOutcome,
    ) {
        let request = self.open_requests.remove(&reply_id);
        let action = request.as_ref().and_then(|request| request.action.clone());
        match &reply {
            Reply::Agent(AgentReply::Denied(denied)) => noted.denied.push(denied.clone()),
            Reply::Agent(AgentReply::Started(started)) => {
                noted.add_injected(&started.injected);
                started
                    .asked
                    .iter()
                    .for_each(|asked| noted.ask_agent(asked));
            }
            Reply::Agent(AgentReply::Accepted(accepted)) => {
                noted.add_injected(&accepted.injected);
                noted.modified_input.clone_from(&accepted.modified_input);
            }
            Reply::Agent(AgentReply::Asked(questions)) => noted.ask_agent(questions),
            Reply::Agent(AgentReply::Resolved(resolution)) => {
                noted.injected.contexts.extend(resolution.contexts.clone());
                noted.injected.guidance.extend(resolution.guidance.clone());
                let (session, id) = (resolution.session.clone(), resolution.id.clone());
                self.resolutions.insert(session, id);
            }
            Reply::Agent(AgentReply::Allowed(allowed)) => {
                noted.add_injected(&allowed.injected);
                let run = request
                    .zip(action.clone())
                    .map(|(request, action)| AllowedRun {
                        session: request.session,
                        action,
                        execution: allowed.execution.clone(),
                    });
                self.runs.extend(run);
            }
            Reply::Agent(AgentReply::Ended(injected) | AgentReply::Completed(injected)) => {
                noted.add_injected(injected);
            }
            Reply::Agent(AgentReply::Noted(reply)) => noted.add_injected(&reply.injected),
            Reply::Agent(AgentReply::Consulted(_) | AgentReply::Invalid(_))
            | Reply::Operator(_) => {}
        }
        if asker == Some(reply_id) {
            noted.reply = Some(reply);
        } else if let Reply::Agent(AgentReply::Allowed(_)) = reply {
            noted.released.extend(action);
        }
    }

    /// Held request that `name` means; if none is held, the last one that was.
    fn named(&self, name: &str, noted: &mut StepOutcome) -> Option<Arc<Held>> {
        let held = self.engine.held();
        let now = held.iter().find(|held| goes_by(held, name));
        let before = || {
            self.held_so_far
                .iter()
                .rev()
                .find(|held| goes_by(held, name))
        };
        let found = now.or_else(before).cloned();
        if found.is_none() {
            let names: Vec<_> = held.iter().flat_map(|held| gate_names(held)).collect();
            noted.fault = Some(StepFault {
                what: "no such gate",
                wanted: format!("gate {name}"),
                actual: format!("held at [{}]", names.join(", ")),
            });
        }
        found
    }
}

fn goes_by(held: &Held, name: &str) -> bool {
    held.id.as_str() == name
        || held
            .gates
            .iter()
            .any(|gate| gate.origin.id() == name || gate.origin.full_name() == name)
}

fn gate_names(held: &Held) -> Vec<String> {
    let names = held.gates.iter().map(Gate::name);
    names.collect()
}
