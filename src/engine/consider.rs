//! Extension calls that a command needs before it can be executed.

use crate::atlas::compiled::{Checkpoint, Trigger};
use crate::atlas::condition::{Facts, Truth};
use crate::atlas::index::{Sightings, When};
use crate::base::id::SessionId;

use super::action::request_fault;
use super::command::{ActionRequest, Command, Input, StartSession};
use super::customs::{CustomFiring, Customs, key};
use super::evaluate::{self, Case, Fired, Occasion};
use super::extension::{
    Action, AgentInput, CallQuestion, CheckpointContext, Extensions, SessionState,
};
use super::hear::hear;
use super::held::{ActionCall, request_hash};
use super::session::{Entry, Session};
use super::suspend::{About, Answers, Needed};
use super::turn::Turn;

/// Subject of extension calls: the session, and its input or action.
struct Scene<'s> {
    session: &'s Session,
    input: Option<AgentInput>,
    action: Option<Action>,
}

impl Turn<'_> {
    /// Returns the extension calls that `command` needs before it can be executed.
    ///
    /// Triggers are called at the same time. Handlers are called one after the other, because each sees the
    /// input as the previous one left it.
    pub(super) fn needed(&self, command: &Command, answers: &Answers) -> Vec<Needed> {
        if self.engine.extensions == Extensions::default() {
            return Vec::new();
        }
        let renewal = self.needed_at_renewal(command, answers);
        if !renewal.is_empty() {
            return renewal;
        }
        match command {
            Command::StartSession(_, start) => self.needed_at_start(start, answers),
            Command::RequestAction(_, request) => self.needed_for_action(request, answers),
            Command::Input(_, input) => {
                let told = told_input(input);
                self.needed_on_input(&input.session, &input.text, told, answers)
            }
            Command::CompleteAction(_, completed) => {
                let session = self.live(&completed.session);
                let running = session.and_then(|session| session.running.get(&completed.execution));
                let Some(action) = running.map(|running| running.action.clone()) else {
                    return Vec::new();
                };
                let occasion = match &completed.result {
                    Ok(_) => Occasion::Done(&action),
                    Err(_) => Occasion::Failed(&action),
                };
                self.needed_on(&completed.session, occasion, answers)
            }
            Command::ReportError(_, report) => {
                self.needed_on(&report.session, Occasion::Error, answers)
            }
            Command::RequestContext(_, request) => {
                let named = request.checkpoint.as_deref();
                let occasion = named.map_or(Occasion::Context, Occasion::Named);
                self.needed_on(&request.session, occasion, answers)
            }
            Command::EndSession(_, end) => {
                self.needed_on(&end.session, Occasion::SessionEnd, answers)
            }
            Command::Decide(_, decide) => self.needed_for_decision(decide, answers),
            Command::Answer(_, answer) => self.needed_for_answer(answer, answers),
            Command::Resolve(_, resolve) => {
                let Some(text) = &resolve.input else {
                    return Vec::new();
                };
                let told = AgentInput {
                    content: text.clone(),
                    source: "user".to_owned(),
                };
                self.needed_on_input(&resolve.session, text, told, answers)
            }
            Command::Report(..)
            | Command::Consult(..)
            | Command::AskerLeft(_)
            | Command::Operate(..)
            | Command::Note(..)
            | Command::RecordSound
            | Command::ClockMoved(_)
            | Command::DeadlineReached(_)
            | Command::Returned(..) => Vec::new(),
        }
    }

    fn needed_at_start(&self, start: &StartSession, answers: &Answers) -> Vec<Needed> {
        if self.live(&start.session).is_some() {
            return Vec::new();
        }
        let hash = self.engine.atlas_hash;
        let session = Session::imagined(
            start.session.clone(),
            start.agent.clone(),
            start.intent.clone(),
            hash,
            self.now,
        );
        self.start_handlers(&session, answers)
    }

    /// Returns the calls for a session that was admitted under other Atlases: its next command starts it
    /// anew.
    fn needed_at_renewal(&self, command: &Command, answers: &Answers) -> Vec<Needed> {
        let session = match command {
            Command::StartSession(..)
            | Command::RequestAction(..)
            | Command::Input(..)
            | Command::ReportError(..)
            | Command::RequestContext(..)
            | Command::Resolve(..) => command.session().and_then(|id| self.live(id)),
            Command::EndSession(..)
            | Command::CompleteAction(..)
            | Command::Report(..)
            | Command::AskerLeft(_)
            | Command::Decide(..)
            | Command::Operate(..)
            | Command::Note(..)
            | Command::RecordSound
            | Command::ClockMoved(_)
            | Command::Answer(..)
            | Command::Consult(..)
            | Command::DeadlineReached(_)
            | Command::Returned(..) => None,
        };
        let anew = session.filter(|session| {
            let refused = matches!(session.entry, Entry::Refused { .. });
            session.atlas_hash != self.engine.atlas_hash && !refused
        });
        anew.map(|session| self.start_handlers(session, answers))
            .unwrap_or_default()
    }

    fn start_handlers(&self, session: &Session, answers: &Answers) -> Vec<Needed> {
        let owed = std::collections::BTreeSet::new();
        let fired = evaluate::session_start(
            &self.engine.atlases,
            (session, &self.engine.extensions),
            &owed,
            self.now,
        );
        let scene = Scene {
            session,
            input: None,
            action: None,
        };
        self.next_handler(&fired, &scene, answers)
    }

    fn needed_on(
        &self,
        session: &SessionId,
        occasion: Occasion<'_>,
        answers: &Answers,
    ) -> Vec<Needed> {
        let Some(session) = self.live(session) else {
            return Vec::new();
        };
        let scene = Scene {
            session,
            input: None,
            action: None,
        };
        let customs = self.customs(answers);
        let fired = evaluate::on(&self.engine.atlases, session, occasion, customs, self.now);
        self.next_handler(&fired, &scene, answers)
    }

    fn needed_on_input(
        &self,
        session: &SessionId,
        text: &str,
        input: AgentInput,
        answers: &Answers,
    ) -> Vec<Needed> {
        let Some(session) = self.live(session) else {
            return Vec::new();
        };
        let scene = Scene {
            session,
            input: Some(input),
            action: None,
        };
        let customs = self.customs(answers);
        if !session.is_closed() {
            let atlases = &self.engine.atlases;
            let due = evaluate::on(atlases, session, Occasion::Beat, customs, self.now);
            let needed = self.next_handler(&due, &scene, answers);
            if !needed.is_empty() {
                return needed;
            }
        }
        let seen = Sightings::of(&self.engine.atlases, text);
        let occasion = Occasion::Input { text, seen: &seen };
        let facts = evaluate::facts_of(session, occasion, self.now);
        let asked = self.triggers(&scene, customs, &facts, When::CustomInput);
        if !asked.is_empty() {
            return asked;
        }
        let fired = evaluate::on(&self.engine.atlases, session, occasion, customs, self.now);
        let (fired, _) = self.within_budget(fired, |fired| fired.checkpoint);
        self.next_handler(&fired, &scene, answers)
    }

    fn needed_for_action(&self, request: &ActionRequest, answers: &Answers) -> Vec<Needed> {
        let Some(session) = self.live(&request.session) else {
            return Vec::new();
        };
        if request_fault(request).is_some() {
            return Vec::new();
        }
        // Gates of the whole session come first. The request is handled again after that.
        let waits = session.entry != Entry::Open
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
        let customs = self.customs(answers);
        let beats = evaluate::on(
            &self.engine.atlases,
            session,
            Occasion::Beat,
            customs,
            self.now,
        );
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        let scene = Scene {
            session,
            input: None,
            action: Some(Action::of(&call)),
        };
        let needed = self.next_handler(&beats, &scene, answers);
        if !needed.is_empty() {
            return needed;
        }
        let overridden = self.permitted_overrides(hash);
        let case = Case {
            customs,
            overridden: &overridden,
            ..self.case(session, &call)
        };
        let facts = case.facts();
        let asked = self.triggers(&scene, customs, &facts, When::CustomAction);
        if !asked.is_empty() {
            return asked;
        }
        let found = evaluate::action(case);
        if found.denial.is_some() {
            return Vec::new();
        }
        self.next_handler(&found.fired, &scene, answers)
    }

    /// Returns the calls for custom triggers.
    fn triggers(
        &self,
        scene: &Scene<'_>,
        customs: Customs<'_>,
        facts: &Facts<'_>,
        moment: When<'_>,
    ) -> Vec<Needed> {
        let mut needed = Vec::new();
        for atlas in self.engine.atlases.iter() {
            for (_, checkpoint) in atlas.checkpoints_when(moment) {
                let Trigger::Custom(trigger) = &checkpoint.trigger else {
                    continue;
                };
                let when = checkpoint.when.as_ref();
                let may = when.is_none_or(|when| when.evaluate(facts) != Truth::False);
                if may && let CustomFiring::Ask = customs.firing(atlas, checkpoint, trigger, facts)
                {
                    needed.push(Needed {
                        key: key(atlas, checkpoint, &trigger.trigger_id, About::Trigger),
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

    fn next_handler(
        &self,
        fired: &[Fired<'_>],
        scene: &Scene<'_>,
        answers: &Answers,
    ) -> Vec<Needed> {
        let checkpoints = fired
            .iter()
            .map(|fired| (fired.atlas.id.as_str(), fired.checkpoint));
        let heard = hear(self, answers, checkpoints);
        let Some((index, handler)) = heard.next else {
            return Vec::new();
        };
        let Some(next) = fired.get(index) else {
            return Vec::new();
        };
        vec![Needed {
            key: key(next.atlas, next.checkpoint, &handler, About::Handler),
            question: CallQuestion::Handler,
            context: self.context(scene, next.checkpoint, heard.input, &next.why),
        }]
    }

    fn context(
        &self,
        scene: &Scene<'_>,
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
    pub(super) fn session_state(&self, session: &Session) -> SessionState {
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
    pub(super) fn customs<'s>(&'s self, answers: &'s Answers) -> Customs<'s> {
        Customs {
            extensions: &self.engine.extensions,
            answers,
        }
    }
}

fn told_input(input: &Input) -> AgentInput {
    AgentInput {
        content: input.text.clone(),
        source: input.source.as_str().to_owned(),
    }
}
