//! Permission requests of an agent, and the modes in which an agent asks for no permission.

use serde_json::{Map, Value, json};

use super::message::text;

/// Words in modes and settings with which an agent acts without asking.
const PERMISSIVE_WORDS: [&str; 12] = [
    "yolo",
    "auto",
    "bypass",
    "skip",
    "dontask",
    "accept",
    "allow",
    "full",
    "trust",
    "always",
    "never",
    "unrestricted",
];

/// Kind of an option that permits one call.
const ALLOW_ONCE: &str = "allow_once";

/// Options of a permission request.
#[derive(Debug, Default)]
pub(super) struct PermissionOptions {
    /// Option that permits one call.
    pub(super) allow_once: Option<String>,
    /// Options that reject.
    pub(super) rejects: Vec<String>,
}

impl PermissionOptions {
    pub(super) fn read(params: &Map<String, Value>) -> Self {
        let options = params.get("options").and_then(Value::as_array);
        let options = options.into_iter().flatten().filter_map(Value::as_object);
        let mut found = Self::default();
        for option in options {
            let Some(id) = text(option, "optionId") else {
                continue;
            };
            match text(option, "kind").as_deref() {
                Some(ALLOW_ONCE) if found.allow_once.is_none() => found.allow_once = Some(id),
                Some("reject_once") => found.rejects.insert(0, id),
                Some("reject_always") => found.rejects.push(id),
                Some(_) | None => {}
            }
        }
        found
    }

    /// Returns the result that rejects the call.
    pub(super) fn rejection(&self) -> Value {
        match self.rejects.first() {
            Some(option) => selected(option),
            None => cancelled(),
        }
    }
}

/// Returns the result that selects an option.
pub(super) fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Returns the result of a permission request that was cancelled.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// Removes the options that permit more than one call: the agent would not ask again.
pub(super) fn remove_lasting_options(params: &mut Map<String, Value>) {
    if let Some(options) = params.get_mut("options").and_then(Value::as_array_mut) {
        options.retain(|option| {
            let kind = option.get("kind").and_then(Value::as_str);
            kind.is_some_and(|kind| kind == ALLOW_ONCE || kind.starts_with("reject"))
        });
    }
}

/// Returns the option that the editor's user selected.
pub(super) fn selected_option(message: &Map<String, Value>) -> Option<String> {
    let outcome = message.get("result")?.get("outcome")?.as_object()?;
    if text(outcome, "outcome")? != "selected" {
        return None;
    }
    text(outcome, "optionId")
}

/// Returns true if a mode's name tells that the agent acts without asking.
pub(super) fn is_permissive_mode(mode: &str) -> bool {
    let letters = mode.chars().filter(|letter| letter.is_alphanumeric());
    let folded: String = letters.flat_map(char::to_lowercase).collect();
    PERMISSIVE_WORDS.iter().any(|word| folded.contains(word))
}

/// Returns true if the value of a setting lets the agent act without asking.
pub(super) fn is_permissive_setting(setting: &str, value: &Value) -> bool {
    match value {
        Value::Bool(on) => *on && is_permissive_mode(setting),
        Value::String(value) if matches!(value.as_str(), "off" | "false" | "none" | "ask") => false,
        Value::String(value) if matches!(value.as_str(), "on" | "true") => {
            is_permissive_mode(setting)
        }
        Value::String(value) => {
            // A mode can be a web address, whose last part names it.
            is_permissive_mode(value.rsplit(['#', '/']).next().unwrap_or(value))
        }
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns the settings that apply in a new session and let the agent act without asking: name and value.
pub(super) fn permissive_settings(result: &Map<String, Value>) -> Vec<(String, Value)> {
    let mode = result
        .get("modes")
        .and_then(|modes| modes.get("currentModeId"))
        .filter(|mode| is_permissive_setting("mode", mode))
        .map(|mode| ("mode".to_owned(), mode.clone()));
    let options = result.get("configOptions").and_then(Value::as_array);
    let options = options.into_iter().flatten().filter_map(|option| {
        let option = option.as_object()?;
        let category = text(option, "category").unwrap_or_default();
        if !matches!(category.as_str(), "mode" | "permissions") {
            return None;
        }
        let (name, value) = (text(option, "id")?, option.get("currentValue")?);
        is_permissive_setting(&name, value).then(|| (name, value.clone()))
    });
    mode.into_iter().chain(options).collect()
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
    fn lasting_and_unknown_options_are_removed() {
        let mut params = fields(json!({"options": [
            {"optionId": "a", "kind": "allow_always"}, {"optionId": "b", "kind": "allow_once"},
            {"optionId": "c", "kind": "reject_once"}, {"optionId": "d", "kind": "allow_forever"},
            {"optionId": "e"}]}));
        remove_lasting_options(&mut params);
        let left: Vec<_> = params["options"].as_array().unwrap().iter().collect();
        assert_eq!(left.len(), 2);
        let options = PermissionOptions::read(&params);
        assert_eq!(options.allow_once.as_deref(), Some("b"));
        assert_eq!(options.rejection(), selected("c"));
        assert_eq!(PermissionOptions::default().rejection(), cancelled());
    }

    #[test]
    fn modes_of_known_agents_that_act_without_asking_are_permissive() {
        for mode in [
            "yolo",
            "autoEdit",
            "auto_edit",
            "bypassPermissions",
            "acceptEdits",
            "dontAsk",
        ] {
            assert!(is_permissive_setting("mode", &json!(mode)), "{mode}");
        }
        for mode in ["default", "plan", "ask", "read-only"] {
            assert!(!is_permissive_setting("mode", &json!(mode)), "{mode}");
        }
        let base = "https://agentclientprotocol.com/protocol/session-modes";
        assert!(is_permissive_setting(
            "mode",
            &json!(format!("{base}#autopilot"))
        ));
        assert!(!is_permissive_setting(
            "mode",
            &json!(format!("{base}#agent"))
        ));
        assert!(is_permissive_setting("allow_all", &json!("on")));
        assert!(!is_permissive_setting("allow_all", &json!("off")));
        assert!(is_permissive_setting("autoApprove", &json!(true)));
    }

    #[test]
    fn permissive_settings_of_a_new_session_are_found() {
        let result = fields(
            json!({"sessionId": "s", "modes": {"currentModeId": "yolo"}, "configOptions": [
            {"id": "allow_all", "category": "permissions", "currentValue": "on"},
            {"id": "model", "category": "model", "currentValue": "auto"}]}),
        );
        let names: Vec<_> = permissive_settings(&result)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["mode", "allow_all"]);
    }
}
