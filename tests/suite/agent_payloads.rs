//! Payloads that the real agents sent, as `tests/agents/record` wrote them.

use std::fs;
use std::path::{Path, PathBuf};

use cra_core::gateway::agents::CodingAgent;
use cra_core::gateway::hook::{HookEvent, HookEventKind, ToolAction};
use serde_json::{Value, json};

/// Working directory of the recorded agents.
const PROJECT: &str = "/home/tester/project";

/// Agent, file of the payload, and its actions: name, deciding parameter, value.
type ExpectedActions = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
);

/// Payloads before a tool: folder, event, and for each tool its action and its target below the project.
/// An action without a target has none that decides.
const ACTIONS: &[ExpectedActions] = &[
    (
        "claude-code",
        "PreToolUse",
        &[
            ("Agent", "agent.run", "[[part]] please say hello"),
            ("Bash", "shell.run", "echo hello > out.txt"),
            ("Edit", "file.write", "/new.txt"),
            ("Read", "file.read", "/readme.txt"),
            ("WebFetch", "web.fetch", "http://127.0.0.1:9/x"),
            ("Write", "file.write", "/new.txt"),
            ("mcp__suite__touch", "mcp.suite.touch", ""),
        ],
    ),
    (
        "codex",
        "PreToolUse",
        &[
            ("Bash", "shell.run", "echo hello > out.txt"),
            ("apply_patch", "file.write", "/new.txt"),
            ("list_mcp_resources", "tool.list_mcp_resources", ""),
            ("mcp__suite__touch", "mcp.suite.touch", ""),
            ("multi_agent_v1wait_agent", "tool.wait_agent", ""),
            ("spawn_agent", "agent.run", "[[part]] please say hello"),
            ("view_image", "file.read", "/readme.txt"),
        ],
    ),
    (
        "codex-code-mode",
        "PreToolUse",
        &[
            ("Bash", "shell.run", "echo hello > out.txt"),
            ("apply_patch", "file.write", "/new.txt"),
            (
                "collaborationspawn_agent",
                "agent.run",
                "[[part]] please say hello",
            ),
            ("collaborationwait_agent", "tool.wait_agent", ""),
            ("mcp__suite__touch", "mcp.suite.touch", ""),
        ],
    ),
    (
        "copilot",
        "preToolUse",
        &[
            ("bash", "shell.run", "echo hello > out.txt"),
            ("create", "file.write", "/new.txt"),
            ("edit", "file.write", "/new.txt"),
            ("glob", "file.read", "/*.txt"),
            ("grep", "file.read", "/readme.txt"),
            ("report_intent", "tool.report_intent", ""),
            ("sql", "tool.sql", ""),
            ("suite-touch", "mcp.suite.touch", ""),
            ("task", "agent.run", "[[part]] please say hello"),
            ("view", "file.read", "/readme.txt"),
        ],
    ),
    (
        "gemini",
        "BeforeTool",
        &[
            ("complete_task", "tool.complete_task", ""),
            ("glob", "file.read", "/*.txt"),
            ("grep_search", "file.read", "/readme.txt"),
            ("invoke_agent", "agent.run", "[[part]] please say hello"),
            ("list_directory", "file.read", "/"),
            ("mcp_suite_touch", "mcp.suite.touch", ""),
            ("read_file", "file.read", "/readme.txt"),
            ("replace", "file.write", "/new.txt"),
            ("run_shell_command", "shell.run", "echo hello > out.txt"),
            ("update_topic", "tool.update_topic", ""),
            ("write_file", "file.write", "/new.txt"),
        ],
    ),
    (
        "opencode",
        "tool.execute.before",
        &[
            ("bash", "shell.run", "echo hello > out.txt"),
            ("edit", "file.write", "/new.txt"),
            ("glob", "file.read", "/*.txt"),
            ("grep", "file.read", "/readme.txt"),
            ("read", "file.read", "/readme.txt"),
            ("suite_touch", "mcp.suite.touch", ""),
            ("task", "agent.run", "[[part]] please say hello"),
            ("todowrite", "tool.todowrite", ""),
            ("write", "file.write", "/new.txt"),
        ],
    ),
    (
        "qwen",
        "PreToolUse",
        &[
            ("agent", "agent.run", "[[part]] please say hello"),
            ("edit", "file.write", "/new.txt"),
            ("glob", "file.read", "/*.txt"),
            ("grep_search", "file.read", "/readme.txt"),
            ("mcp__suite__touch", "mcp.suite.touch", ""),
            ("read_file", "file.read", "/new.txt"),
            ("run_shell_command", "shell.run", "echo hello > out.txt"),
            ("write_file", "file.write", "/new.txt"),
        ],
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agent-payloads")
}

/// A recorded payload with the folder and the name of its file.
struct Recorded {
    folder: String,
    name: String,
    payload: Value,
}

impl Recorded {
    fn agent(&self) -> CodingAgent {
        let name = match self.folder.as_str() {
            "codex-code-mode" => "codex",
            name => name,
        };
        CodingAgent::from_name(name).unwrap()
    }

    /// Reads the payload as the hook gets it.
    fn read(&self) -> HookEvent {
        let mut payload = self.payload.clone();
        if self.folder == "opencode" {
            // The plugin adds the name of the event and the folder.
            let event = self.name.split('-').next().unwrap();
            let event = event.strip_prefix("event.").unwrap_or(event);
            payload["hook_event_name"] = json!(event);
            payload["cwd"] = json!(PROJECT);
        }
        let read = HookEvent::read(self.agent(), payload.to_string().as_bytes());
        read.unwrap_or_else(|error| panic!("{}/{}: {error}", self.folder, self.name))
    }
}

fn recorded() -> Vec<Recorded> {
    let mut found = Vec::new();
    for folder in fs::read_dir(folder()).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            let payload = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            found.push(Recorded {
                folder: name(&folder),
                name: name(&file),
                payload,
            });
        }
    }
    found
}

/// Returns the value that decides about an action.
fn target(action: &ToolAction) -> &str {
    let key = match action.name.as_str() {
        "shell.run" => "command",
        "file.read" | "file.write" => "path",
        "web.fetch" => "url",
        "agent.run" => "prompt",
        _ => return "",
    };
    action.params[key].as_str().unwrap()
}

#[test]
fn every_recorded_payload_is_read_as_its_own_agents() {
    let recorded = recorded();
    assert!(recorded.len() > 150, "{}", recorded.len());
    for one in &recorded {
        assert_eq!(one.read().agent, one.agent(), "{}/{}", one.folder, one.name);
    }
}

#[test]
fn payloads_of_qwen_code_are_recognized_in_hooks_of_claude_code() {
    let claude_code = CodingAgent::from_name("claude-code").unwrap();
    for one in recorded().iter().filter(|one| one.folder == "qwen") {
        let read = HookEvent::read(claude_code, one.payload.to_string().as_bytes());
        assert_eq!(read.unwrap().agent, one.agent(), "{}", one.name);
    }
}

#[test]
fn recorded_tools_become_the_actions_that_the_atlas_declares() {
    let atlas = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/atlas/coding-agents.yaml");
    let atlas = fs::read_to_string(atlas).unwrap();
    let recorded = recorded();
    for (folder, event, tools) in ACTIONS {
        let before: Vec<_> = recorded
            .iter()
            .filter(|one| one.folder == *folder && one.name.starts_with(&format!("{event}-")))
            .collect();
        assert_eq!(before.len(), tools.len(), "{folder}: the table is complete");
        for (tool, name, place) in *tools {
            let file = format!("{event}-{tool}");
            let one = before.iter().find(|one| one.name == file);
            let one = one.unwrap_or_else(|| panic!("{folder} has no {file}"));
            let HookEventKind::BeforeTool { actions, .. } = one.read().kind else {
                panic!("{folder}/{file} precedes no tool");
            };
            let actions = actions.unwrap();
            let [action] = actions.as_slice() else {
                panic!("{folder}/{file}: {actions:?}");
            };
            let expected = match place.strip_prefix('/') {
                Some("") => PROJECT.to_owned(),
                Some(below) => format!("{PROJECT}/{below}"),
                None => (*place).to_owned(),
            };
            assert_eq!(
                (action.name.as_str(), target(action)),
                (*name, expected.as_str()),
                "{folder}/{file}"
            );
            let is_declared = atlas.contains(&format!("action_id: \"{name}\""));
            assert!(
                is_declared || name.starts_with("mcp."),
                "{folder}/{file}: {name}"
            );
        }
    }
}

#[test]
fn recorded_results_belong_to_the_calls_before_them() {
    let after = [
        "PostToolUse-",
        "AfterTool-",
        "postToolUse-",
        "tool.execute.after-",
    ];
    let mut count = 0;
    for one in recorded() {
        if !after.iter().any(|event| one.name.starts_with(event)) {
            continue;
        }
        count += 1;
        let HookEventKind::AfterTool {
            result, actions, ..
        } = one.read().kind
        else {
            panic!("{}/{} follows no tool", one.folder, one.name);
        };
        assert!(result.is_ok(), "{}/{}: {result:?}", one.folder, one.name);
        assert!(!actions.is_empty(), "{}/{}", one.folder, one.name);
    }
    assert!(count > 40, "{count}");
}
