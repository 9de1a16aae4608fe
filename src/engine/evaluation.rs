//! Evaluation: every denial, checkpoint and approval in the way of a request or event.
//!
//! This folder owns triggers, policies, risk tiers, limits, and the judgement of an attempt.
//!
//! Contract: an evaluation reads state and changes none. A condition that cannot be judged counts against the
//! agent. The result is data; `gates` and `requests` act on it.

mod action_evaluation;
pub(crate) mod attempt_judgement;
pub(crate) mod denial;
pub(crate) mod fired_checkpoint;
pub mod judgement;
pub(crate) mod policy;
pub mod risk;
mod session_events;
pub mod usage;

pub(crate) use action_evaluation::{
    CheckpointFiring, Evaluation, EvaluationCase, FiredCheckpoint, NOTHING_OVERRIDDEN,
    capabilities_of, checkpoint_firing, evaluate_action, evaluate_matched_action,
    matched_risk_tier, risk_tier,
};
pub(crate) use session_events::{TriggerEvent, facts_of, fired_at_start, fired_on_event};
