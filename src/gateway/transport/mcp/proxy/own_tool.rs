//! The proxy's own tool, with which an agent answers checkpoints.
//!
//! Contract: its name differs from all tools that the server has listed. So it is added to the last page of
//! a list, when all names are known.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

/// Name of the tool, unless the server has a tool with that name.
const NAME: &str = "cra_answer_checkpoint";

/// The proxy's own tool.
#[derive(Debug, Default)]
pub(super) struct OwnTool(Mutex<ToolNames>);

#[derive(Debug, Default)]
struct ToolNames {
    /// Number that is appended to the name, if the server has a tool with the plain name.
    number: Option<u32>,
    /// Tools of the server on earlier pages of its list.
    listed: BTreeSet<String>,
}

impl ToolNames {
    fn own_name(&self) -> String {
        match self.number {
            None => NAME.to_owned(),
            Some(number) => format!("{NAME}_{number}"),
        }
    }
}

impl OwnTool {
    fn lock(&self) -> MutexGuard<'_, ToolNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its name.
    pub(super) fn name(&self) -> String {
        self.lock().own_name()
    }

    /// Returns true if a call names it.
    pub(super) fn is_named(&self, tool: &str) -> bool {
        self.name() == tool
    }

    /// Notes a page of the server's list. Returns the tool if the page is the last one.
    pub(super) fn note_page(&self, answer: &Value) -> Option<Value> {
        let tools = answer.pointer("/result/tools")?.as_array()?;
        let listed = tools.iter().filter_map(|tool| tool.get("name")?.as_str());
        let mut names = self.lock();
        names.listed.extend(listed.map(str::to_owned));
        let more = answer.pointer("/result/nextCursor");
        if more.is_some_and(|cursor| !cursor.is_null()) {
            return None;
        }
        names.number = None;
        while names.listed.contains(&names.own_name()) {
            names.number = Some(names.number.unwrap_or(1).saturating_add(1));
        }
        names.listed.clear();
        Some(tool(&names.own_name()))
    }
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Answers the questions that a checkpoint asks you about one of your held tool calls. Then repeat \
                        the call. Only an operator can approve a call; you cannot.",
        "inputSchema": {
            "type": "object",
            "required": ["gate", "answers"],
            "additionalProperties": false,
            "properties": {
                "gate": {"type": "string", "description": "The held call, such as `c-12`."},
                "answers": {
                    "type": "object",
                    "description": "Answers by checkpoint, then by question.",
                },
            },
        },
    })
}

/// Converts arguments of the tool into parameters of the console's call.
///
/// # Errors
/// A text for the agent, when the arguments do not fit.
pub(super) fn read(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (gate, answers) = (arguments.get("gate"), arguments.get("answers"));
    match (gate, answers, arguments.len()) {
        (Some(Value::String(gate)), Some(Value::Object(answers)), 2) => {
            Ok(json!({"gate": gate, "answers": answers, "release": "repeat"}))
        }
        _ => Err(
            "cra: wrong arguments: `gate` must be text, `answers` an object by checkpoint and question"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_own_tool_differs_from_the_servers_tools_on_all_pages() {
        let own = OwnTool::default();
        let first = json!({"result": {"tools": [{"name": NAME}], "nextCursor": "2"}});
        assert_eq!(own.note_page(&first), None);
        let last = json!({"result": {"tools": [{"name": format!("{NAME}_2")}]}});
        let listed = own.note_page(&last).unwrap();
        assert_eq!(listed["name"], format!("{NAME}_3"));
        assert!(own.is_named(&format!("{NAME}_3")) && !own.is_named(NAME));
        let other = json!({"result": {"tools": [{"name": "echo"}]}});
        assert_eq!(own.note_page(&other).unwrap()["name"], NAME);
        assert_eq!(own.note_page(&json!({"error": {}})), None);
    }
}
