//! Gates: requests that are held until an operator, or the agent where its steward allows it, answers.
//!
//! This folder owns the queue of held requests, their questions and answers, decisions, permits, intervals, and the
//! ends of held requests.
//!
//! Contract: a held request passes only by valid answers to every gate. Silence, a full queue and every fault
//! end it without passing. An agent never approves.

pub(crate) mod agent_answers;
pub mod answer;
pub(crate) mod answer_validation;
pub mod approval;
pub(crate) mod decision;
pub(crate) mod dual_approval;
pub mod held;
pub(crate) mod holding;
pub(crate) mod identical_requests;
pub(crate) mod intervals;
pub(crate) mod invalid_answers;
pub(crate) mod operator_actions;
pub(crate) mod passing;
pub(crate) mod permits;
pub(crate) mod queue;
pub(crate) mod session_gates;
pub(crate) mod settlement;
