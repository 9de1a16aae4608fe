//! State changes of each event. The fold reads only the event and trusts nothing: missing or invalid
//! fields change nothing.

use crate::base::id::SpanId;
use crate::base::limits::MAX_RUNNING_PER_SESSION;
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};

use super::ReplayState;
use super::state::{
    ActionOutcome, ContextInForce, ErrorEntry, FinishedAction, GateResult, HeldApproval, HeldGate,
    HeldRequest, HoldScope, OngoingAction, OverrideEntry, PendingRequest, ReleaseKind, ReplayPhase,
    RiskVerification, SessionEnd, StartGateState, push_recent,
};

/// Placeholder for an unreadable name.
const UNKNOWN: &str = "?";

impl ReplayState {
    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        self.session.get_or_insert_with(|| event.session_id.clone());
        self.sequence = Some(event.sequence);
        self.time = Some(event.timestamp);
        self.operation = Some(event.trace_id.clone());
        self.hash = Some(event.hash);
        self.events += 1;
        self.pruned += u64::from(event.pruned);
        let details = Details::of(event);
        match canonical_type(&event.event_type) {
            "session_started" => self.start(event, details),
            "session_ended" => self.end(event, details),
            "atlas_loaded" => self
                .agent
                .atlases
                .extend(details.text("atlas_id").map(str::to_owned)),
            "action_attempted" => self.attempt(event, details),
            "action_blocked" => self.block(event, details),
            "action_completed" => self.complete(event, details),
            "context_injected" => self.inject_context(event, details),
            "checkpoint_triggered" => self.trigger(event, details),
            "checkpoint_response" => self.answer(event, details),
            "checkpoint_approved" => self.approve(event, details),
            "request_claimed" => self.claim(event, details),
            "checkpoint_passed" => self.pass(event, details),
            "checkpoint_blocked" => self.refuse(event, details),
            "checkpoint_completed" => self.finish(event, details),
            "policy_override" => self.record_override(event, details),
            "risk_verified" => self.verify_risk(event, details),
            "error_occurred" => self.fail(event, details),
            "error_recovered" => self.recover(details),
            "breakpoint_decided" => self.turn(event, details),
            _ => {}
        }
        self.phase = self.phase_now();
    }

    fn phase_now(&self) -> ReplayPhase {
        if self.ended.is_some() {
            return ReplayPhase::Ended;
        }
        match self.fold_context.entry {
            StartGateState::Held => ReplayPhase::AtStart,
            StartGateState::Lapsed => ReplayPhase::StartLapsed,
            StartGateState::Refused => ReplayPhase::StartRefused,
            StartGateState::Open if self.held.is_empty() => ReplayPhase::Working,
            StartGateState::Open => ReplayPhase::Held,
        }
    }

    fn start(&mut self, event: &Event, details: Details<'_>) {
        self.fold_context.root = Some(event.span_id.clone());
        self.fold_context.entered_at = Some(event.timestamp);
        self.agent.name = details.text_or_empty("agent_type");
        self.agent.version = details.text("agent_version").map(str::to_owned);
        self.agent.intent = details.text("intent").map(str::to_owned);
        self.agent.atlases = details.texts("atlas_ids").map(str::to_owned).collect();
        self.agent.started_at = Some(event.timestamp);
    }

    fn end(&mut self, event: &Event, details: Details<'_>) {
        self.ended = Some(SessionEnd {
            status: details.text("final_status").unwrap_or(UNKNOWN).to_owned(),
            summary: details.text("summary").map(str::to_owned),
            at: event.timestamp,
        });
    }

    fn attempt(&mut self, event: &Event, details: Details<'_>) {
        self.actions.attempted += 1;
        let parent = event.parent_span_id.as_ref();
        // An attempt that joins a held request is below it and has no outcome of its own.
        let joined = self.held.iter().any(|held| {
            held.holds == HoldScope::Action
                && held.span_id.is_some()
                && held.span_id.as_ref() == parent
        });
        if joined {
            return;
        }
        self.fold_context.asking = PendingRequest {
            span: Some(event.span_id.clone()),
            ..PendingRequest::default()
        };
        if self.actions.going.len() >= MAX_RUNNING_PER_SESSION {
            // The engine also drops the oldest run that was never completed.
            self.actions.going.pop_front();
        }
        self.actions.going.push_back(OngoingAction {
            action: details.text("action_type").unwrap_or(UNKNOWN).to_owned(),
            tier: details.text_or_empty("risk_tier"),
            span_id: event.span_id.clone(),
            sequence: event.sequence,
            since: event.timestamp,
            way: ReleaseKind::Open,
        });
    }

    fn block(&mut self, event: &Event, details: Details<'_>) {
        self.actions.blocked += 1;
        self.finish_action(event, details, ActionOutcome::Blocked);
    }

    fn complete(&mut self, event: &Event, details: Details<'_>) {
        let outcome = match details.flag("success") {
            Some(true) => ActionOutcome::Completed,
            Some(false) | None => ActionOutcome::Failed,
        };
        self.actions.completed += 1;
        self.actions.failed += u64::from(outcome == ActionOutcome::Failed);
        self.fold_context.asking = PendingRequest::default();
        self.finish_action(event, details, outcome);
    }

    fn finish_action(&mut self, event: &Event, details: Details<'_>, outcome: ActionOutcome) {
        let gone = self.take_ongoing(event.parent_span_id.as_ref());
        let named = details.text("action_type").map(str::to_owned);
        let done = FinishedAction {
            action: named
                .or_else(|| gone.map(|going| going.action))
                .unwrap_or_else(|| UNKNOWN.to_owned()),
            outcome,
            sequence: event.sequence,
            at: event.timestamp,
            reason: details.text("reason").map(str::to_owned),
        };
        push_recent(&mut self.actions.recent, done);
    }

    fn take_ongoing(&mut self, span: Option<&SpanId>) -> Option<OngoingAction> {
        let going = &mut self.actions.going;
        let place = going
            .iter()
            .position(|action| Some(&action.span_id) == span)?;
        going.remove(place)
    }

    fn inject_context(&mut self, event: &Event, details: Details<'_>) {
        let handed = ContextInForce {
            at: event.timestamp,
            sequence: event.sequence,
        };
        let asking = &mut self.fold_context.asking;
        let parent = event.parent_span_id.as_ref();
        let for_action = parent.is_some()
            && asking.span.as_ref() == parent
            && self
                .actions
                .going
                .iter()
                .any(|held| Some(&held.span_id) == parent);
        for id in details.texts("context_ids") {
            self.contexts.insert(id.to_owned(), handed);
            if for_action {
                asking.contexts.push(id.to_owned());
            }
        }
    }

    fn trigger(&mut self, event: &Event, details: Details<'_>) {
        let place = event.parent_span_id.clone();
        let starts = place.is_some() && place == self.fold_context.root;
        let kind = details.text_or_empty("checkpoint_type");
        if starts && kind == "session_start" {
            self.run_start_checkpoints(event);
        }
        if self.fold_context.asking.span != place {
            self.fold_context.asking = PendingRequest {
                span: place.clone(),
                ..PendingRequest::default()
            };
        }
        if let Some("advisory" | "observational") = details.text("mode") {
            self.fold_context.asking.advice.push(event.span_id.clone());
            return;
        }
        // An unknown mode also counts as a gate: a checkpoint that does not stop the agent is completed at
        // once.
        let gate = HeldGate {
            span_id: event.span_id.clone(),
            checkpoint: details.text("checkpoint_id").unwrap_or(UNKNOWN).to_owned(),
            kind,
            why: details.text_or_empty("trigger_condition"),
            sequence: event.sequence,
            wrong_answers: 0,
        };
        let same =
            |held: &&mut HeldRequest| held.span_id == place && held.trace_id == event.trace_id;
        if let Some(held) = self.held.iter_mut().find(same) {
            held.gates.push(gate);
            return;
        }
        let going = self.take_ongoing(place.as_ref());
        let holds = match (&going, starts) {
            (Some(_), _) => HoldScope::Action,
            (None, true) => HoldScope::Start,
            (None, false) => holds_by_kind(&gate.kind, details),
        };
        if holds == HoldScope::Start {
            self.fold_context.entry = StartGateState::Held;
        }
        let contexts = match holds {
            // Contexts injected at the session's start stay in force.
            HoldScope::Start => Vec::new(),
            HoldScope::Session | HoldScope::Action => {
                std::mem::take(&mut self.fold_context.asking.contexts)
            }
        };
        let what = match (&going, holds) {
            (Some(going), _) => going.action.clone(),
            (None, HoldScope::Start) => "the start of the session".to_owned(),
            (None, HoldScope::Session) => gate.kind.clone(),
            (None, HoldScope::Action) => trigger_action(details),
        };
        self.held.push(HeldRequest {
            trace_id: event.trace_id.clone(),
            span_id: place,
            what,
            holds,
            sequence: event.sequence,
            since: event.timestamp,
            gates: vec![gate],
            approved: None,
            claimed_by: None,
            contexts,
            going,
        });
    }

    /// The start checkpoints of the session run, for the first time or again.
    fn run_start_checkpoints(&mut self, event: &Event) {
        let again = self.fold_context.entered_at != Some(event.timestamp);
        if again && self.fold_context.entry == StartGateState::Open {
            // Other Atlases are in force: decisions made under the previous ones no longer count.
            self.unlocked.clear();
        }
        self.fold_context.entered_at = Some(event.timestamp);
    }

    fn answer(&mut self, event: &Event, details: Details<'_>) {
        let Some((request, gate)) = self.held_gate(event, details) else {
            return;
        };
        let Some(held) = self.held.get_mut(request) else {
            return;
        };
        let invalid = details.text("validation_result") == Some("invalid");
        let by = details.text("answered_by").unwrap_or_default();
        if !invalid && by.starts_with("agent ") {
            // The approval was given before the agent gave this answer.
            held.approved = None;
        }
        if let (true, Some(gate)) = (invalid, held.gates.get_mut(gate)) {
            gate.wrong_answers += 1;
        }
    }

    /// The first of two operators approved the request. It is still held.
    fn approve(&mut self, event: &Event, details: Details<'_>) {
        let Some((request, _)) = self.held_gate(event, details) else {
            return;
        };
        if let Some(held) = self.held.get_mut(request) {
            held.approved = Some(HeldApproval {
                by: details.text("approved_by").unwrap_or(UNKNOWN).to_owned(),
                justification: details.justification(),
                sequence: event.sequence,
                at: event.timestamp,
            });
        }
    }

    fn claim(&mut self, event: &Event, details: Details<'_>) {
        let parent = event.parent_span_id.as_ref();
        let same = |held: &&mut HeldRequest| {
            held.span_id.as_ref() == parent && held.trace_id == event.trace_id
        };
        if let Some(held) = self.held.iter_mut().find(same) {
            held.claimed_by = match details.text("claim") {
                Some("released") => None,
                Some(_) | None => details.text("by").map(str::to_owned),
            };
        }
    }

    fn pass(&mut self, event: &Event, details: Details<'_>) {
        let checkpoint = self.decided_name(event, details);
        self.take_gate(event, details, StartGateState::Open);
        self.take_effects(details);
        self.passed.add(GateResult {
            checkpoint,
            outcome: "passed".to_owned(),
            by: details.text("passed_by").map(str::to_owned),
            justification: details.justification(),
            sequence: event.sequence,
            at: event.timestamp,
        });
    }

    fn take_effects(&mut self, details: Details<'_>) {
        let unlocked = details.texts("unlocked_capabilities");
        self.unlocked.extend(unlocked.map(str::to_owned));
        let locked = details.texts("locked_capabilities");
        self.locked.extend(locked.map(str::to_owned));
    }

    fn refuse(&mut self, event: &Event, details: Details<'_>) {
        let checkpoint = self.decided_name(event, details);
        let outcome = details.text("outcome").unwrap_or(UNKNOWN).to_owned();
        let entry = match outcome.as_str() {
            "expired" | "withdrawn" | "voided" => StartGateState::Lapsed,
            _ => StartGateState::Refused,
        };
        if let Some((request, _)) = self.held_gate(event, details)
            && let Some(held) = self.held.get_mut(request)
        {
            for context in std::mem::take(&mut held.contexts) {
                self.contexts.remove(&context);
            }
        }
        self.take_gate(event, details, entry);
        self.blocked.add(GateResult {
            checkpoint,
            outcome,
            by: details.text("decided_by").map(str::to_owned),
            justification: None,
            sequence: event.sequence,
            at: event.timestamp,
        });
    }

    /// A checkpoint completed: an advisory one, or one whose decision is not on record.
    fn finish(&mut self, event: &Event, details: Details<'_>) {
        self.take_effects(details);
        let asking = &mut self.fold_context.asking;
        let parent = event.parent_span_id.as_ref();
        if parent.is_some_and(|parent| asking.advice.contains(parent)) {
            let given = details.texts("contexts_injected");
            asking.contexts.extend(given.map(str::to_owned));
        }
        let entry = match details.text("action_taken") {
            Some("block") => StartGateState::Refused,
            Some(_) | None => StartGateState::Open,
        };
        self.take_gate(event, details, entry);
    }

    fn decided_name(&self, event: &Event, details: Details<'_>) -> String {
        if let Some(named) = details.text("checkpoint_id") {
            return named.to_owned();
        }
        let found = self.held_gate(event, details);
        let gate = found.and_then(|(request, gate)| self.held.get(request)?.gates.get(gate));
        gate.map_or_else(|| UNKNOWN.to_owned(), |gate| gate.checkpoint.clone())
    }

    /// The gate that an event refers to: the gate whose span is the event's parent, else one of the same
    /// operation and name.
    fn held_gate(&self, event: &Event, details: Details<'_>) -> Option<(usize, usize)> {
        let parent = event.parent_span_id.as_ref();
        let find = |is: &dyn Fn(&HeldRequest, &HeldGate) -> bool| {
            self.held.iter().enumerate().find_map(|(request, held)| {
                let gate = held.gates.iter().position(|gate| is(held, gate))?;
                Some((request, gate))
            })
        };
        find(&|_, gate| Some(&gate.span_id) == parent).or_else(|| {
            // Events that follow the decision of a gate do not refer to another gate of the same name.
            if parent.is_some() && self.fold_context.decided.as_ref() == parent {
                return None;
            }
            let named = details.text("checkpoint_id").unwrap_or(UNKNOWN);
            find(&|held, gate| held.trace_id == event.trace_id && gate.checkpoint == named)
        })
    }

    /// Removes a decided gate. After its last gate a request continues or ends.
    fn take_gate(&mut self, event: &Event, details: Details<'_>, entry: StartGateState) {
        let Some((request, gate)) = self.held_gate(event, details) else {
            return;
        };
        let Some(held) = self.held.get_mut(request) else {
            return;
        };
        let gate = held.gates.remove(gate);
        self.fold_context.decided = Some(gate.span_id);
        if held.holds == HoldScope::Start {
            self.fold_context.entry = match (entry, held.gates.is_empty()) {
                (StartGateState::Open | StartGateState::Held, false) => StartGateState::Held,
                (entry, _) => entry,
            };
        }
        if !held.gates.is_empty() {
            return;
        }
        let held = self.held.remove(request);
        // A request that was denied and is now overridden has to be made again.
        if entry == StartGateState::Open
            && let Some(going) = held.going
        {
            self.actions.going.push_back(OngoingAction {
                since: event.timestamp,
                way: ReleaseKind::Released,
                ..going
            });
        }
    }

    fn record_override(&mut self, event: &Event, details: Details<'_>) {
        self.overrides.add(OverrideEntry {
            policy: details.text("policy_id").unwrap_or(UNKNOWN).to_owned(),
            action: details.text("action_type").unwrap_or(UNKNOWN).to_owned(),
            approver: details.text("approver").unwrap_or(UNKNOWN).to_owned(),
            justification: details.justification(),
            sequence: event.sequence,
            at: event.timestamp,
        });
    }

    fn verify_risk(&mut self, event: &Event, details: Details<'_>) {
        self.verified.add(RiskVerification {
            action: details.text("action_type").unwrap_or(UNKNOWN).to_owned(),
            tier: details.text_or_empty("risk_tier"),
            by: details.text("verified_by").map(str::to_owned),
            justification: details.justification(),
            sequence: event.sequence,
            at: event.timestamp,
        });
    }

    fn fail(&mut self, event: &Event, details: Details<'_>) {
        self.errors.add(ErrorEntry {
            event_id: event.event_id.clone(),
            kind: details.text("error_type").unwrap_or(UNKNOWN).to_owned(),
            message: details.text_or_empty("message"),
            recovered: false,
            sequence: event.sequence,
            at: event.timestamp,
        });
    }

    fn recover(&mut self, details: Details<'_>) {
        let (Some(id), Some(true)) = (details.text("original_error_id"), details.flag("success"))
        else {
            return;
        };
        let mut errors = self.errors.recent.iter_mut();
        if let Some(error) = errors.find(|error| error.event_id.as_str() == id) {
            error.recovered = true;
        }
    }
}

fn trigger_action(details: Details<'_>) -> String {
    let data = details.value("trigger_data");
    let action = data.and_then(|data| data.get("action_id"));
    let action = action.and_then(serde_json::Value::as_str);
    action.unwrap_or(UNKNOWN).to_owned()
}

/// Scope of a gate whose request is not running. A denied request that may be overridden still concerns
/// its action.
fn holds_by_kind(kind: &str, details: Details<'_>) -> HoldScope {
    let acts = details
        .value("trigger_data")
        .and_then(|data| data.get("action_id"))
        .is_some();
    if acts && kind != "action_post" {
        HoldScope::Action
    } else {
        HoldScope::Session
    }
}
