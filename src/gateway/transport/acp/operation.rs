//! Operations that an agent asks its editor for: files, terminals, and settings of the session.

use serde_json::{Map, Value, json};

use super::message::{AcpRequest, text};
use super::permission;
use crate::gateway::agents::tool_actions::{ToolAction, actions};
use crate::gateway::connect::quote;

/// Requests of an agent that handle a terminal which the console permitted.
const TERMINAL_CARE: [&str; 4] = [
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
];

/// Operations on files that the editor offers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EditorFiles {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// Returns true if a request of the agent needs a permission. An unknown operation on files or terminals
/// needs one too.
pub(super) fn is_gated(method: &str) -> bool {
    method == "session/request_permission"
        || method.starts_with("fs/")
        || (method.starts_with("terminal/") && !TERMINAL_CARE.contains(&method))
}

/// Returns the setting and the value of a request that would let the agent act without asking.
pub(super) fn permissive_change(request: &AcpRequest) -> Option<(String, Value)> {
    let (setting, value) = match text(&request.params, "modeId") {
        Some(mode) => ("mode".to_owned(), Value::from(mode)),
        None => (
            text(&request.params, "configId")?,
            request.params.get("value")?.clone(),
        ),
    };
    permission::is_permissive_setting(&setting, &value).then_some((setting, value))
}

/// Returns the action of a setting that lets the agent act without asking.
pub(super) fn mode_action(setting: &str, value: &Value) -> ToolAction {
    ToolAction {
        name: "acp.permissive_mode".to_owned(),
        params: Map::from_iter([
            ("setting".to_owned(), setting.into()),
            ("value".to_owned(), value.clone()),
        ]),
    }
}

/// Returns the actions of an operation on a file or a terminal.
pub(super) fn operation_actions(
    request: &AcpRequest,
    cwd: Option<&str>,
) -> Result<Vec<ToolAction>, String> {
    let mut input = request.params.clone();
    input.remove("sessionId");
    let path = input.remove("path").unwrap_or_default();
    match request.method.as_str() {
        "fs/read_text_file" => {
            input.insert("file_path".to_owned(), path);
            actions("Read", &input, cwd, None)
        }
        "fs/write_text_file" => {
            input.insert("file_path".to_owned(), path);
            actions("Write", &input, cwd, None)
        }
        "terminal/create" => {
            let command = text(&input, "command").ok_or_else(|| "it has no command".to_owned())?;
            let cwd = text(&input, "cwd").or_else(|| cwd.map(str::to_owned));
            let args = input.get("args").and_then(Value::as_array);
            let args = args.into_iter().flatten().map(|word| match word {
                Value::String(word) => quote(word),
                other => quote(&other.to_string()),
            });
            let line = std::iter::once(command).chain(args).collect::<Vec<_>>();
            input.insert("command".to_owned(), line.join(" ").into());
            actions("Bash", &input, cwd.as_deref(), None)
        }
        method => Ok(vec![ToolAction {
            name: "acp.other".to_owned(),
            params: Map::from_iter([
                ("method".to_owned(), method.into()),
                ("params".to_owned(), request.params.clone().into()),
            ]),
        }]),
    }
}

/// Makes the agent believe that the editor reads and writes files, and returns what the editor does itself.
pub(super) fn offer_files(params: &mut Map<String, Value>) -> EditorFiles {
    let capabilities = params
        .entry("clientCapabilities")
        .or_insert_with(|| json!({}));
    let Some(capabilities) = capabilities.as_object_mut() else {
        return EditorFiles::default();
    };
    let files = capabilities.entry("fs").or_insert_with(|| json!({}));
    if !files.is_object() {
        *files = json!({});
    }
    let mut offer = |name: &str| {
        let known = files.get(name) == Some(&json!(true));
        if let Some(fields) = files.as_object_mut() {
            fields.insert(name.to_owned(), json!(true));
        }
        known
    };
    EditorFiles {
        read: offer("readTextFile"),
        write: offer("writeTextFile"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other} is not an object"),
        }
    }

    #[test]
    fn unknown_operations_on_files_and_terminals_are_gated() {
        for method in [
            "fs/read_text_file",
            "fs/delete",
            "terminal/create",
            "terminal/write",
        ] {
            assert!(is_gated(method), "{method}");
        }
        for method in ["terminal/output", "terminal/release", "session/elicit"] {
            assert!(!is_gated(method), "{method}");
        }
    }

    #[test]
    fn the_agent_is_offered_files_that_the_editor_does_not_handle() {
        let mut params = fields(json!({"clientCapabilities": {"fs": {"readTextFile": true}}}));
        let editor = offer_files(&mut params);
        assert!(editor.read && !editor.write);
        assert_eq!(
            params["clientCapabilities"]["fs"]["writeTextFile"],
            json!(true)
        );
        let mut none = Map::new();
        assert!(!offer_files(&mut none).read);
        assert_eq!(
            none["clientCapabilities"]["fs"]["readTextFile"],
            json!(true)
        );
    }
}
