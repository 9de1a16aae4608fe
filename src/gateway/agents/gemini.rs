//! Gemini CLI.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hook_event::{self, EventMeaning, HookEvent};
use super::hook_output::HookOutput;
use super::settings::{
    CompanionFile, ConnectScope, Folders, HOOK_NAME, HookEntry, HookHandler, HookLine, json_value,
};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, PayloadFields, SettingPath};

/// Folder of our extension, in the home folder. Gemini runs the hooks of extensions in every folder.
const EXTENSION: &str = ".gemini/extensions/cra";

/// Manifest of our extension.
const MANIFEST: &str = "{\n  \"name\": \"cra\",\n  \"version\": \"1.0.0\",\n  \"description\": \"Hooks of cra. \
                        `cra disconnect gemini` removes this extension.\"\n}\n";

/// Adapter of Gemini CLI.
pub(super) struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("SessionStart", EventMeaning::Start),
            ("BeforeAgent", EventMeaning::Prompt),
            ("BeforeTool", EventMeaning::BeforeTool),
            ("AfterTool", EventMeaning::AfterTool),
            ("AfterAgent", EventMeaning::Output),
            ("SessionEnd", EventMeaning::End),
        ]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("run_shell_command", ToolKind::Shell),
            ("read_file", ToolKind::Read),
            ("read_many_files", ToolKind::ReadMany),
            ("glob", ToolKind::Find),
            ("search_file_content", ToolKind::Grep),
            ("grep_search", ToolKind::Grep),
            ("list_directory", ToolKind::List),
            ("write_file", ToolKind::Write),
            ("replace", ToolKind::Write),
            ("web_fetch", ToolKind::FetchAny),
            ("google_web_search", ToolKind::Search),
            ("invoke_agent", ToolKind::Agent),
        ]
    }

    /// Gemini glues the names of server and tool; its `mcp_context` has them apart.
    fn tool_name(&self, fields: &PayloadFields) -> Option<String> {
        match fields.get("mcp_context").and_then(Value::as_object) {
            Some(context) => Some(hook_event::mcp_name(context)),
            None => hook_event::named_tool(fields),
        }
    }

    fn deny_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "deny", "reason": reason}))
    }

    fn ask_about_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "ask", "reason": reason}))
    }

    fn pass_tool(
        &self,
        _event: &HookEvent,
        _context: Option<&str>,
        _approved: Option<&str>,
    ) -> HookOutput {
        HookOutput::json(&json!({"decision": "allow"}))
    }

    /// Gemini ignores the context of `BeforeTool`.
    fn takes_context_before_tools(&self) -> bool {
        false
    }

    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "deny", "reason": reason}))
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        match scope {
            ConnectScope::Project => folders.project.join(".gemini").join("settings.json"),
            ConnectScope::User => folders.home.join(EXTENSION).join("hooks/hooks.json"),
        }
    }

    /// An extension needs a manifest.
    fn companion_files(&self, file: &Path) -> Vec<CompanionFile> {
        let extension = extension_folder(file).map(|folder| CompanionFile {
            path: folder.join("gemini-extension.json"),
            text: MANIFEST,
        });
        extension.into_iter().collect()
    }

    /// Settings of the user do not apply in folders that are not trusted.
    fn former_settings_files(&self, scope: ConnectScope, folders: &Folders) -> Vec<PathBuf> {
        match scope {
            ConnectScope::Project => Vec::new(),
            ConnectScope::User => vec![folders.home.join(".gemini").join("settings.json")],
        }
    }

    fn other_settings_files(&self, file: &Path, folders: Option<&Folders>) -> Vec<PathBuf> {
        let mut found = vec!["/etc/gemini-cli/settings.json".into()];
        let home = folders.map(|folders| folders.home.join(".gemini"));
        let extensions = extension_folder(file).and_then(Path::parent);
        let own = home.or_else(|| Some(extensions?.parent()?.to_owned()));
        found.extend(own.map(|folder| folder.join("settings.json")));
        found
    }

    fn reads_comments(&self) -> bool {
        true
    }

    /// Gemini counts in milliseconds.
    fn entry(&self, line: HookLine) -> HookEntry {
        let milliseconds = line.timeout_s * 1000;
        HookEntry::group(HookHandler {
            name: Some(HOOK_NAME),
            timeout: Some(milliseconds),
            ..line.handler()
        })
    }

    fn handler_timeout_s(&self, handler: &Value) -> Option<u64> {
        let milliseconds = handler.get("timeout")?.as_u64()?;
        Some(milliseconds / 1000)
    }

    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[
            (&["hooksConfig", "enabled"], false),
            (&["hooks", "enabled"], false),
            (&["tools", "enableHooks"], false),
        ]
    }

    fn disabled_hook_lists(&self) -> &'static [SettingPath] {
        &[&["hooksConfig", "disabled"], &["hooks", "disabled"]]
    }

    fn project_scope_gap(&self) -> Option<&'static str> {
        Some("agents in a folder that Gemini does not trust, or started in another folder")
    }

    fn trust_files(&self, folders: &Folders) -> Vec<PathBuf> {
        let folder = folders.home.join(".gemini");
        vec![
            folder.join("trustedFolders.json"),
            folder.join("settings.json"),
            folder.join("extensions/extension-enablement.json"),
        ]
    }

    fn trust_problem(&self, trust: &[String], file: &Path) -> Option<String> {
        let [folders, settings, enablement] = trust else {
            return None;
        };
        if extension_folder(file).is_some() {
            return is_extension_disabled(enablement).then(|| {
                "the extension `cra` is disabled in Gemini: run gemini extensions enable cra"
                    .to_owned()
            });
        }
        let project = file.parent()?.parent()?;
        let read = json_value;
        let off = read(settings).pointer("/security/folderTrust/enabled") == Some(&json!(false));
        let trusted = off || is_trusted(&read(folders), project);
        (!trusted).then(|| {
            "Gemini does not trust this folder and runs no hooks of the project: trust it, or connect \
             with --scope user"
                .to_owned()
        })
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "tools of `gemini --acp` in an editor: put `cra acp-proxy` in front",
        }
    }
}

/// Returns the folder of our extension, if the settings in `file` are part of it.
fn extension_folder(file: &Path) -> Option<&Path> {
    let folder = file.parent()?.parent()?;
    folder.ends_with(EXTENSION).then_some(folder)
}

/// Returns true if a folder is trusted, by the list of folders and the longest path in it that applies.
fn is_trusted(list: &Value, folder: &Path) -> bool {
    let rules = list.as_object().into_iter().flatten();
    let rules = rules.filter_map(|(path, rule)| {
        let path = Path::new(path);
        match rule.as_str()? {
            "TRUST_FOLDER" => Some((path, true)),
            "TRUST_PARENT" => Some((path.parent()?, true)),
            "DO_NOT_TRUST" => Some((path, false)),
            _ => None,
        }
    });
    let applying = rules.filter(|(path, _)| folder.starts_with(path));
    // A distrusted folder wins over the same folder as a parent.
    let decisive =
        applying.max_by_key(|(path, is_trusted)| (path.components().count(), !is_trusted));
    decisive.is_some_and(|(_, is_trusted)| is_trusted)
}

/// Returns true if a rule disables our extension in any folder.
fn is_extension_disabled(enablement: &str) -> bool {
    let rules = json_value(enablement);
    let rules = rules.pointer("/cra/overrides").and_then(Value::as_array);
    let mut rules = rules.into_iter().flatten().filter_map(Value::as_str);
    rules.any(|rule| rule.starts_with('!'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides_about_trust() {
        let list = json!({"/p": "TRUST_FOLDER", "/p/a": "DO_NOT_TRUST", "/q/x": "TRUST_PARENT", "/r": "WHATEVER"});
        for (folder, expected) in [
            ("/p", true),
            ("/p/b/c", true),
            ("/p/a", false),
            ("/p/a/b", false),
            ("/pp", false),
            ("/q/y", true),
            ("/r", false),
        ] {
            assert_eq!(is_trusted(&list, Path::new(folder)), expected, "{folder}");
        }
        assert!(!is_trusted(&Value::Null, Path::new("/p")));
    }

    #[test]
    fn an_extension_is_disabled_by_a_rule_with_an_exclamation_mark() {
        assert!(!is_extension_disabled(""));
        assert!(!is_extension_disabled(
            r#"{"cra": {"overrides": ["/home/me/*"]}}"#
        ));
        assert!(!is_extension_disabled(
            r#"{"other": {"overrides": ["!/home/me/*"]}}"#
        ));
        assert!(is_extension_disabled(
            r#"{"cra": {"overrides": ["/x/*", "!/home/me/*"]}}"#
        ));
    }
}
