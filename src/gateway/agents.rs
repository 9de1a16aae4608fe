//! Formats of the coding agents: events, tools, answers and settings.

pub(super) mod hook_event;
pub(super) mod hook_output;
pub(super) mod settings;
pub(super) mod tool_actions;
