//! Codex CLI.
//!
//! Codex runs a hook only while the hash that its user trusted is the hook's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::hook_event::{self, EventMeaning, HookEvent};
use super::hook_output::HookOutput;
use super::settings::{ConnectScope, Folders, HookEntry, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, PayloadFields};

/// Namespaces that Codex glues to the names of its own tools.
const NAMESPACES: [&str; 4] = ["multi_agent_v1", "multi_agent_v2", "collaboration", "clock"];

/// Adapter of Codex CLI.
pub(super) struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex CLI"
    }

    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("SessionStart", EventMeaning::Start),
            ("UserPromptSubmit", EventMeaning::Prompt),
            ("PreToolUse", EventMeaning::BeforeTool),
            ("PostToolUse", EventMeaning::AfterTool),
            ("SubagentStop", EventMeaning::Output),
            ("Stop", EventMeaning::Output),
            ("SessionEnd", EventMeaning::End),
        ]
    }

    fn ignored_events(&self) -> &'static [&'static str] {
        &["PermissionRequest"]
    }

    /// An interruption ends the turn; a held request is withdrawn with its hook.
    fn other_events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[("Interrupt", EventMeaning::Failed)]
    }

    /// Codex glues the namespace of a tool to its name.
    fn tool_name(&self, fields: &PayloadFields) -> Option<String> {
        let name = hook_event::named_tool(fields)?;
        let own = NAMESPACES
            .iter()
            .find_map(|namespace| name.strip_prefix(namespace))
            .filter(|own| !own.is_empty());
        Some(own.map_or(name.clone(), str::to_owned))
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("Bash", ToolKind::Shell),
            ("shell", ToolKind::Shell),
            ("exec_command", ToolKind::Shell),
            ("local_shell", ToolKind::Shell),
            ("apply_patch", ToolKind::Patch),
            ("web_search", ToolKind::Search),
            ("spawn_agent", ToolKind::Agent),
            ("send_input", ToolKind::Agent),
            ("view_image", ToolKind::Read),
        ]
    }

    fn sends_timestamps(&self) -> bool {
        false
    }

    fn deny_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::nested_decision(event, "deny", reason)
    }

    /// Codex treats a bare `allow` as an error, and runs the tool: it gets only the context.
    fn pass_tool(
        &self,
        event: &HookEvent,
        context: Option<&str>,
        _approved: Option<&str>,
    ) -> HookOutput {
        self.pass_prompt(event, context)
    }

    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "block", "reason": reason}))
    }

    /// Codex takes any text for a decision.
    fn empty_output(&self) -> HookOutput {
        HookOutput::empty()
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(10)
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("CODEX_HOME")
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        let folder = match scope {
            ConnectScope::Project => folders.project.join(".codex"),
            ConnectScope::User => folders.agent_folder(self, ".codex"),
        };
        folder.join("hooks.json")
    }

    fn entry(&self, line: HookLine) -> HookEntry {
        HookEntry::group(line.handler_with_status())
    }

    /// Codex allows no longer timeout.
    fn end_timeout_s(&self) -> u64 {
        3
    }

    fn trust_files(&self, folders: &Folders) -> Vec<PathBuf> {
        vec![folders.agent_folder(self, ".codex").join("config.toml")]
    }

    fn trust_problem(&self, trust: &[String], file: &Path) -> Option<String> {
        let trust = trust.first().map_or("", String::as_str);
        let problem = match codex_trust(trust, file) {
            CodexTrust::Trusted => None,
            CodexTrust::Missing => Some(
                "Codex does not trust the hooks yet and does not run them: open /hooks in Codex",
            ),
            CodexTrust::Off => {
                Some("the hooks are switched off in Codex: open /hooks in Codex, or config.toml")
            }
        };
        problem.map(str::to_owned)
    }

    fn trust_advice(&self) -> Option<&'static str> {
        Some(
            "Codex runs the hooks after two answers of yours: start `codex` in the project, trust the folder\n  \
             (\"Trust this folder?\"), then the hooks (\"Trust all and continue\", or /hooks). Hooks that are connected\n  \
             again with other settings count as modified: trust them again",
        )
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "no, denies",
            uncovered: "everything, until folder and hooks are trusted; text typed into a running program",
        }
    }
}

/// Trust in the hook before tools, as Codex' own file states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodexTrust {
    /// The user trusted a hash. Only Codex knows whether it is still the right one.
    Trusted,
    /// No hash was trusted.
    Missing,
    /// The hook, or every hook, is disabled.
    Off,
}

/// Looks for a trusted hash of the hooks in `file`. This is a text search, not a parser: the file belongs
/// to Codex.
fn codex_trust(config: &str, file: &Path) -> CodexTrust {
    let table = |rest: &str| {
        // Up to the beginning of the next table.
        let own = rest.split("\n[").next().unwrap_or_default();
        let lines = own.lines().map(|line| line.replace([' ', '\t'], ""));
        lines.collect::<Vec<_>>()
    };
    let off = |lines: &[String], names: &[&str]| {
        let is_off = |name: &&str| {
            lines
                .iter()
                .any(|line| line.starts_with(&format!("{name}=false")))
        };
        names.iter().any(is_off)
    };
    let features = config.split("[features]").nth(1).map(table);
    if features.is_some_and(|lines| off(&lines, &["hooks", "codex_hooks"])) {
        return CodexTrust::Off;
    }
    // The same feature as a dotted key, or in an inline table.
    let mut lines = config.lines().map(|line| line.replace([' ', '\t'], ""));
    let is_off = |line: String| {
        let features = line
            .strip_prefix("features.")
            .or_else(|| line.strip_prefix("features={"));
        features.is_some_and(|features| {
            let mut settings = features.trim_end_matches('}').split(',');
            settings.any(|setting| matches!(setting, "hooks=false" | "codex_hooks=false"))
        })
    };
    if lines.any(is_off) {
        return CodexTrust::Off;
    }
    let key = format!("{}:pre_tool_use:", file.display());
    let own = config.split(key.as_str()).skip(1).map(table);
    let mut trust = CodexTrust::Missing;
    for lines in own {
        if off(&lines, &["enabled"]) {
            return CodexTrust::Off;
        }
        if lines.iter().any(|line| line.starts_with("trusted_hash=")) {
            trust = CodexTrust::Trusted;
        }
    }
    trust
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_hash_of_the_same_hook_counts() {
        let file = Path::new("/p/.codex/hooks.json");
        let given = "[hooks.state.\"/p/.codex/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
        assert_eq!(codex_trust(given, file), CodexTrust::Trusted);
        let other = given.replace("pre_tool_use", "stop");
        assert_eq!(codex_trust(&other, file), CodexTrust::Missing);
        let elsewhere = given.replace("/p/", "/q/");
        assert_eq!(codex_trust(&elsewhere, file), CodexTrust::Missing);
        let next = given.replace("trusted_hash", "x = 1\n[x]\ntrusted_hash");
        assert_eq!(codex_trust(&next, file), CodexTrust::Missing);
        let off = format!("{given}enabled = false\n");
        assert_eq!(codex_trust(&off, file), CodexTrust::Off);
        let off = format!("[features]\nhooks = false\n{given}");
        assert_eq!(codex_trust(&off, file), CodexTrust::Off);
        for line in [
            "features.hooks = false",
            "features = { a = true, hooks = false }",
        ] {
            let off = format!("{line}\n{given}");
            assert_eq!(codex_trust(&off, file), CodexTrust::Off);
        }
        assert_eq!(codex_trust("", file), CodexTrust::Missing);
    }
}
