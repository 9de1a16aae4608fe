//! Extension calls that a command needs before it can be executed.

use crate::atlas::condition::{Facts, Truth};
use crate::atlas::index::{CheckpointEvent, KeywordMatches};
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::id::SessionId;

use super::custom_triggers::{CustomTriggerFiring, CustomTriggers, call_key};
use super::handler_outcomes::collect_outcomes;
use super::suspension::{CallPurpose, ExtensionAnswers, RequiredCall};
use super::{
    AgentInput, CallQuestion, CheckpointContext, Extensions, RequestedAction, SessionState,
};
use crate::engine::command::{ActionRequest, EngineCommand, InputReport, StartSession};
use crate::engine::evaluation::{self, EvaluationCase, FiredCheckpoint, TriggerEvent};
use crate::engine::gates::held::{ActionCall, request_hash};
use crate::engine::requests::action::request_fault;
use crate::engine::sessions::session::{Session, StartState};
use crate::engine::transaction::Transaction;

/// Subject of extension calls: the session, and its input or action.
struct CallSubject<'s> {
    session: &'s Session,
    input: Option<AgentInput>,
    action: Option<RequestedAction>,
}

impl Transaction<'_> {
    /// Returns the extension calls that `command` needs before it can be executed.
    ///
    /// Triggers are called at the same time. Handlers are called one after the other, because each sees the
    /// input as the previous one left it.
    pub(crate) fn required_calls(
        &self,
        command: &EngineCommand,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        if self.engine.extensions == Extensions::default() {
            return Vec::new();
        }
        let renewal = self.calls_at_renewal(command, answers);
        if !renewal.is_empty() {
            return renewal;
        }
        match command {
            EngineCommand::StartSession(_, start) => self.calls_at_start(start, answers),
            EngineCommand::RequestAction(_, request) => self.calls_for_action(request, answers),
            EngineCommand::Input(_, input) => {
                let told = agent_input(input);
                self.calls_on_input(&input.session, &input.text, told, answers)
            }
            EngineCommand::CompleteAction(_, completed) => {
                let session = self.live_session(&completed.session);
                let running = session.and_then(|session| session.running.get(&completed.execution));
                let Some(action) = running.map(|running| running.action.clone()) else {
                    return Vec::new();
                };
                let occasion = match &completed.result {
                    Ok(_) => TriggerEvent::ActionSucceeded(&action),
                    Err(_) => TriggerEvent::ActionFailed(&action),
                };
                self.calls_on_event(&completed.session, occasion, answers)
            }
            EngineCommand::ReportError(_, report) => {
                self.calls_on_event(&report.session, TriggerEvent::ErrorReported, answers)
            }
            EngineCommand::RequestContext(_, request) => {
                let named = request.checkpoint.as_deref();
                let occasion = named.map_or(
                    TriggerEvent::ContextRequested,
                    TriggerEvent::CheckpointRequested,
                );
                self.calls_on_event(&request.session, occasion, answers)
            }
            EngineCommand::EndSession(_, end) => {
                self.calls_on_event(&end.session, TriggerEvent::SessionEnd, answers)
            }
            EngineCommand::Decide(_, decide) => self.calls_for_decision(decide, answers),
            EngineCommand::Answer(_, answer) => self.calls_for_answer(answer, answers),
            EngineCommand::Resolve(_, resolve) => {
                let Some(text) = &resolve.input else {
                    return Vec::new();
                };
                let told = AgentInput {
                    content: text.clone(),
                    source: "user".to_owned(),
                };
                self.calls_on_input(&resolve.session, text, told, answers)
            }
            EngineCommand::Report(..)
            | EngineCommand::Consult(..)
            | EngineCommand::CallerLeft(_)
            | EngineCommand::Operate(..)
            | EngineCommand::RecordFinding(..)
            | EngineCommand::RecordIntact
            | EngineCommand::ClockMoved(_)
            | EngineCommand::DeadlineReached(_)
            | EngineCommand::ExtensionReturned(..) => Vec::new(),
        }
    }

    fn calls_at_start(
        &self,
        start: &StartSession,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        if self.live_session(&start.session).is_some() {
            return Vec::new();
        }
        let hash = self.engine.atlas_hash;
        let session = Session::hypothetical(
            start.session.clone(),
            start.agent.clone(),
            start.intent.clone(),
            hash,
            self.now,
        );
        self.start_handler_calls(&session, answers)
    }

    /// Returns the calls for a session that was admitted under other Atlases: its next command starts it
    /// anew.
    fn calls_at_renewal(
        &self,
        command: &EngineCommand,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let session = match command {
            EngineCommand::StartSession(..)
            | EngineCommand::RequestAction(..)
            | EngineCommand::Input(..)
            | EngineCommand::ReportError(..)
            | EngineCommand::RequestContext(..)
            | EngineCommand::Resolve(..) => command.session().and_then(|id| self.live_session(id)),
            EngineCommand::EndSession(..)
            | EngineCommand::CompleteAction(..)
            | EngineCommand::Report(..)
            | EngineCommand::CallerLeft(_)
            | EngineCommand::Decide(..)
            | EngineCommand::Operate(..)
            | EngineCommand::RecordFinding(..)
            | EngineCommand::RecordIntact
            | EngineCommand::ClockMoved(_)
            | EngineCommand::Answer(..)
            | EngineCommand::Consult(..)
            | EngineCommand::DeadlineReached(_)
            | EngineCommand::ExtensionReturned(..) => None,
        };
        let anew = session.filter(|session| {
            let refused = matches!(session.entry, StartState::Refused { .. });
            session.atlas_hash != self.engine.atlas_hash && !refused
        });
        anew.map(|session| self.start_handler_calls(session, answers))
            .unwrap_or_default()
    }

    fn start_handler_calls(
        &self,
        session: &Session,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let owed = std::collections::BTreeSet::new();
        let fired = evaluation::fired_at_start(
            &self.engine.atlases,
            (session, &self.engine.extensions),
            &owed,
            self.now,
        );
        let scene = CallSubject {
            session,
            input: None,
            action: None,
        };
        self.next_handler_call(&fired, &scene, answers)
    }

    fn calls_on_event(
        &self,
        session: &SessionId,
        occasion: TriggerEvent<'_>,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let Some(session) = self.live_session(session) else {
            return Vec::new();
        };
        let scene = CallSubject {
            session,
            input: None,
            action: None,
        };
        let customs = self.custom_triggers(answers);
        let fired =
            evaluation::fired_on_event(&self.engine.atlases, session, occasion, customs, self.now);
        self.next_handler_call(&fired, &scene, answers)
    }

    fn calls_on_input(
        &self,
        session: &SessionId,
        text: &str,
        input: AgentInput,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let Some(session) = self.live_session(session) else {
            return Vec::new();
        };
        let scene = CallSubject {
            session,
            input: Some(input),
            action: None,
        };
        let customs = self.custom_triggers(answers);
        if !session.is_blocked() {
            let atlases = &self.engine.atlases;
            let due = evaluation::fired_on_event(
                atlases,
                session,
                TriggerEvent::IntervalCheck,
                customs,
                self.now,
            );
            let needed = self.next_handler_call(&due, &scene, answers);
            if !needed.is_empty() {
                return needed;
            }
        }
        let seen = KeywordMatches::of(&self.engine.atlases, text);
        let occasion = TriggerEvent::Input { text, seen: &seen };
        let facts = evaluation::facts_of(session, occasion, self.now);
        let asked = self.trigger_calls(&scene, customs, &facts, CheckpointEvent::CustomInput);
        if !asked.is_empty() {
            return asked;
        }
        let fired =
            evaluation::fired_on_event(&self.engine.atlases, session, occasion, customs, self.now);
        let (fired, _) = self.within_budget(fired, |fired| fired.checkpoint);
        self.next_handler_call(&fired, &scene, answers)
    }

    fn calls_for_action(
        &self,
        request: &ActionRequest,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let Some(session) = self.live_session(&request.session) else {
            return Vec::new();
        };
        if request_fault(request).is_some() {
            return Vec::new();
        }
        // Gates of the whole session come first. The request is handled again after that.
        let waits = session.entry != StartState::Open
            || !session.pending.is_empty()
            || !session.unpassed.is_empty()
            || session.atlas_hash != self.engine.atlas_hash;
        let hash = request_hash(&request.session, &request.action, &request.params);
        if waits
            || self.joinable(request, hash).is_some()
            || self.resolution_fault(request).is_some()
        {
            return Vec::new();
        }
        let customs = self.custom_triggers(answers);
        let beats = evaluation::fired_on_event(
            &self.engine.atlases,
            session,
            TriggerEvent::IntervalCheck,
            customs,
            self.now,
        );
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        let scene = CallSubject {
            session,
            input: None,
            action: Some(RequestedAction::of(&call)),
        };
        let needed = self.next_handler_call(&beats, &scene, answers);
        if !needed.is_empty() {
            return needed;
        }
        let overridden = self.permitted_overrides(hash);
        let case = EvaluationCase {
            custom_triggers: customs,
            overridden: &overridden,
            ..self.evaluation_case(session, &call)
        };
        let facts = case.facts();
        let asked = self.trigger_calls(&scene, customs, &facts, CheckpointEvent::CustomAction);
        if !asked.is_empty() {
            return asked;
        }
        let found = evaluation::evaluate_action(case);
        if found.denial.is_some() {
            return Vec::new();
        }
        self.next_handler_call(&found.fired, &scene, answers)
    }

    /// Returns the calls for custom triggers.
    fn trigger_calls(
        &self,
        scene: &CallSubject<'_>,
        customs: CustomTriggers<'_>,
        facts: &Facts<'_>,
        moment: CheckpointEvent<'_>,
    ) -> Vec<RequiredCall> {
        let mut needed = Vec::new();
        for atlas in self.engine.atlases.iter() {
            for (_, checkpoint) in atlas.checkpoints_for_event(moment) {
                let Trigger::Custom(trigger) = &checkpoint.trigger else {
                    continue;
                };
                let when = checkpoint.when.as_ref();
                let may = when.is_none_or(|when| when.evaluate(facts) != Truth::False);
                if may
                    && let CustomTriggerFiring::Ask =
                        customs.firing(atlas, checkpoint, trigger, facts)
                {
                    needed.push(RequiredCall {
                        key: call_key(atlas, checkpoint, &trigger.trigger_id, CallPurpose::Trigger),
                        question: CallQuestion::Trigger {
                            params: trigger.params.clone(),
                        },
                        context: self.context(scene, checkpoint, None, &trigger.trigger_id),
                    });
                }
            }
        }
        needed
    }

    fn next_handler_call(
        &self,
        fired: &[FiredCheckpoint<'_>],
        scene: &CallSubject<'_>,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let checkpoints = fired
            .iter()
            .map(|fired| (fired.atlas.id.as_str(), fired.checkpoint));
        let heard = collect_outcomes(self, answers, checkpoints);
        let Some((index, handler)) = heard.next else {
            return Vec::new();
        };
        let Some(next) = fired.get(index) else {
            return Vec::new();
        };
        vec![RequiredCall {
            key: call_key(next.atlas, next.checkpoint, &handler, CallPurpose::Handler),
            question: CallQuestion::Handler,
            context: self.context(scene, next.checkpoint, heard.input, &next.why),
        }]
    }

    fn context(
        &self,
        scene: &CallSubject<'_>,
        checkpoint: &Checkpoint,
        modified: Option<String>,
        trigger: &str,
    ) -> CheckpointContext {
        let mut input = scene.input.clone();
        if let (Some(input), Some(text)) = (&mut input, modified) {
            input.content = text;
        }
        CheckpointContext {
            checkpoint_type: checkpoint.kind.to_owned(),
            checkpoint_id: checkpoint.id.clone(),
            trigger: trigger.to_owned(),
            input,
            action: scene.action.clone(),
            session: self.session_state(scene.session),
            cache: scene.session.context_ids(),
        }
    }

    /// Returns the session data for extensions.
    pub(crate) fn session_state(&self, session: &Session) -> SessionState {
        let atlases = self.engine.atlases.iter();
        SessionState {
            id: session.id.clone(),
            agent: session.agent.clone(),
            intent: session.intent.as_ref().map(|intent| intent.said.clone()),
            actions: session.conversation_actions(),
            atlas_ids: atlases.map(|atlas| atlas.id.clone()).collect(),
        }
    }

    /// Returns the evaluator for custom triggers with these answers.
    pub(crate) fn custom_triggers<'s>(
        &'s self,
        answers: &'s ExtensionAnswers,
    ) -> CustomTriggers<'s> {
        CustomTriggers {
            extensions: &self.engine.extensions,
            answers,
        }
    }
}

fn agent_input(input: &InputReport) -> AgentInput {
    AgentInput {
        content: input.text.clone(),
        source: input.source.as_str().to_owned(),
    }
}
