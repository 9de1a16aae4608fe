//! Records of attempts, redaction of recorded texts, and notices to stewards.
//!
//! Contract: an attempt is recorded once, before its reply. A text of an agent or extension is recorded
//! without the parts that a steward wants redacted. The engine only creates records and notices as data; the
//! runtime stores and sends them.

pub(crate) mod action_records;
pub(crate) mod attempts;
pub mod notice;
pub(crate) mod redaction;
