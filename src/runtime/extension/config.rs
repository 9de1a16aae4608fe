//! The operator's list of extensions: allowed modules, addresses and programs, with their roles.
//!
//! Only extensions in this list are called, by their exact address or path. An Atlas can only name
//! extensions that an operator has allowed.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::http::HttpExtension;
use super::program::ProgramExtension;
use super::wasm::{WasmExtension, WasmLimits};
use super::{EventTypeDefinition, Extension, Registry, Role};
use crate::atlas::LoadError;
use crate::atlas::diagnostic::Code;
use crate::atlas::document::CheckpointTrigger;
use crate::atlas::located_values::{FileProblems, LocatedValue, decode_file};
use crate::base::id::is_restricted;
use crate::base::limits::{
    DEFAULT_WASM_FUEL, DEFAULT_WASM_MEMORY_BYTES, EXTENSION_TIMEOUT, MAX_EXTENSION_TIMEOUT,
    MAX_WASM_BYTES,
};

const ROLES: [&str; 3] = ["trigger", "handler", "validator"];
const KEYS: [&str; 10] = [
    "name",
    "version",
    "answers",
    "handles",
    "timeout_ms",
    "wasm",
    "fuel",
    "memory_bytes",
    "http",
    "command",
];

impl Registry {
    /// Loads the extensions that an operator allows.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or a part of it is invalid; nothing is loaded then.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::default().with_list(path)
    }

    /// Adds the extensions that an operator allows to those of this process.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or a part of it is invalid, such as a name that is taken.
    pub fn with_list(self, path: &Path) -> Result<Self, LoadError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        decode_file(path, |root, faults| load_list(self, root, folder, faults))
    }

    /// Decodes a list that is not in a file.
    #[cfg(test)]
    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self, LoadError> {
        let decode = |root: &LocatedValue<'_>, faults: &mut FileProblems<'_>| {
            load_list(Self::default(), root, Path::new(""), faults)
        };
        crate::atlas::located_values::decode_bytes("extensions", bytes, decode)
    }
}

fn load_list(
    mut registry: Registry,
    root: &LocatedValue<'_>,
    folder: &Path,
    faults: &mut FileProblems<'_>,
) -> Option<Registry> {
    root.reject_unknown_keys(&["extensions", "events"], faults);
    let events = root.get("events").map(|events| events.items(faults));
    for item in events.unwrap_or_default() {
        event_type(&item, &mut registry, faults);
    }
    let list = root.require("extensions", faults)?;
    for item in list.items(faults) {
        extension(&item, folder, &mut registry, faults);
    }
    Some(registry)
}

fn extension(
    item: &LocatedValue<'_>,
    folder: &Path,
    registry: &mut Registry,
    faults: &mut FileProblems<'_>,
) -> Option<()> {
    item.reject_unknown_keys(&KEYS, faults);
    let name = item.require("name", faults)?;
    let id = name.text(faults)?;
    if !is_restricted(&id) {
        let message = "a name may have only letters, digits, dots, dashes and underscores";
        name.report(Code::BadId, message, faults);
        return None;
    }
    // Everything is read before anything is registered, so that all faults are reported at once.
    let timeout = timeout(item, faults);
    let extension = build_extension(item, folder, timeout.unwrap_or(EXTENSION_TIMEOUT), faults);
    let answers = item.require("answers", faults)?;
    let roles = answers.items(faults);
    if answers.is_list() && roles.is_empty() {
        answers.report(
            Code::EmptyPattern,
            "`answers` must list at least one kind of question",
            faults,
        );
    }
    let roles: Vec<_> = roles
        .iter()
        .filter_map(|role| Some((role, role_of(role, faults)?)))
        .collect();
    let kinds = handled_types(item, faults);
    let (timeout, extension) = (timeout?, extension?);
    let version = item.get("version").map(|version| version.text(faults));
    registry.add_listed(&id, version.flatten(), roles.iter().map(|(_, role)| *role));
    for (role, known) in roles {
        let taken = registry.register(known, &id, Arc::clone(&extension), timeout);
        if let Err(error) = taken {
            role.report(Code::DuplicateId, &error.to_string(), faults);
        }
    }
    for kind in kinds {
        registry.handle_type(kind, &id);
    }
    if let Some(handles) = item.get("handles")
        && !registry.table().handlers.contains(&id)
    {
        handles.report(
            Code::Contradiction,
            "only an extension with the role `handler` may have `handles`",
            faults,
        );
    }
    Some(())
}

/// Reads an event type that extensions may record.
fn event_type(
    item: &LocatedValue<'_>,
    registry: &mut Registry,
    faults: &mut FileProblems<'_>,
) -> Option<()> {
    item.reject_unknown_keys(&["name", "description", "sync", "schema"], faults);
    let name = item.require("name", faults)?;
    let text = |key: &str, faults: &mut FileProblems<'_>| {
        item.get(key).and_then(|value| value.text(faults))
    };
    let schema = item.require("schema", faults)?;
    let definition = EventTypeDefinition {
        name: name.text(faults)?,
        description: text("description", faults).unwrap_or_default(),
        sync: match item.get("sync") {
            Some(sync) => sync.boolean(faults)?,
            None => false,
        },
        schema: fields(&schema, faults)?,
        validate: None,
    };
    if let Err(error) = registry.register_event_type(definition) {
        name.report(Code::BadId, &error.to_string(), faults);
    }
    Some(())
}

/// Reads the fields of an event type: a map of names to types.
fn fields(
    schema: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<Vec<(String, String)>> {
    let serde_json::Value::Object(fields) = schema.json() else {
        schema.report(Code::WrongType, "expected a map of fields", faults);
        return None;
    };
    let mut read = Vec::new();
    for (field, _) in fields {
        let kind = schema.get(&field)?.text(faults)?;
        read.push((field, kind));
    }
    Some(read)
}

fn role_of(role: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<Role> {
    let name = role.word("kind of question", &ROLES, faults)?;
    let known = [Role::Trigger, Role::Handler, Role::Validator];
    known.into_iter().find(|role| role.as_str() == name)
}

/// Reads the checkpoint types at which the handler is always called.
fn handled_types(item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Vec<&'static str> {
    let kinds = item.get("handles").map(|handles| handles.items(faults));
    let kinds = kinds.into_iter().flatten();
    kinds
        .filter_map(|kind| kind.word("checkpoint type", &CheckpointTrigger::TYPES, faults))
        .collect()
}

fn timeout(item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<Duration> {
    let Some(written) = item.get("timeout_ms") else {
        return Some(EXTENSION_TIMEOUT);
    };
    let timeout = Duration::from_millis(written.count(faults)?);
    if timeout.is_zero() || timeout > MAX_EXTENSION_TIMEOUT {
        let most = MAX_EXTENSION_TIMEOUT.as_millis();
        let message = format!("`timeout_ms` must be between 1 and {most}");
        written.report(Code::OutOfRange, &message, faults);
        return None;
    }
    Some(timeout)
}

/// Creates the extension: exactly one of a module, an address and a program.
fn build_extension(
    item: &LocatedValue<'_>,
    folder: &Path,
    timeout: Duration,
    faults: &mut FileProblems<'_>,
) -> Option<Arc<dyn Extension>> {
    let (wasm, http, command) = (item.get("wasm"), item.get("http"), item.get("command"));
    match (&wasm, &http, &command) {
        (Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_)) => {}
        _ => {
            let message = "an extension must have exactly one of `wasm`, `http` and `command`";
            item.report(Code::Contradiction, message, faults);
            return None;
        }
    }
    for key in ["fuel", "memory_bytes"] {
        if let (Some(limit), None) = (item.get(key), &wasm) {
            let message = format!("`{key}` is allowed only with `wasm`");
            limit.report(Code::Contradiction, &message, faults);
        }
    }
    if let Some(place) = wasm {
        let limits = wasm_limits(item, faults)?;
        let path = folder.join(place.text(faults)?);
        let made = module(&path).and_then(|bytes| WasmExtension::new(&bytes, limits));
        return accept_extension(&place, made, faults);
    }
    if let Some(place) = http {
        let address = place.text(faults)?;
        return accept_extension(&place, HttpExtension::new(&address, timeout), faults);
    }
    let place = command?;
    let mut words = place.texts(faults).into_iter();
    let program = words.next().unwrap_or_default();
    let made = ProgramExtension::new(&program, words.collect());
    accept_extension(&place, made, faults)
}

fn accept_extension<E: Extension + 'static>(
    place: &LocatedValue<'_>,
    made: Result<E, String>,
    faults: &mut FileProblems<'_>,
) -> Option<Arc<dyn Extension>> {
    match made {
        Ok(extension) => Some(Arc::new(extension)),
        Err(fault) => {
            let message = format!("the extension cannot be used: {fault}");
            place.report(Code::BadExtension, &message, faults);
            None
        }
    }
}

fn wasm_limits(item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<WasmLimits> {
    let mut limit = |key: &str, default: u64, most: u64| {
        let Some(written) = item.get(key) else {
            return Some(default);
        };
        let number = written.count(faults)?;
        if number == 0 || number > most {
            let message = format!("`{key}` must be between 1 and {most}");
            written.report(Code::OutOfRange, &message, faults);
            return None;
        }
        Some(number)
    };
    let fuel = limit("fuel", DEFAULT_WASM_FUEL, 1000 * DEFAULT_WASM_FUEL)?;
    let memory = limit(
        "memory_bytes",
        DEFAULT_WASM_MEMORY_BYTES,
        64 * DEFAULT_WASM_MEMORY_BYTES,
    )?;
    Some(WasmLimits {
        fuel,
        memory_bytes: usize::try_from(memory).ok()?,
    })
}

fn module(path: &Path) -> Result<Vec<u8>, String> {
    let describe = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(describe)?;
    if !file.metadata().map_err(describe)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(MAX_WASM_BYTES + 1);
    bounded.read_to_end(&mut bytes).map_err(describe)?;
    if bytes.len() as u64 > MAX_WASM_BYTES {
        return Err(format!("the file has more than {MAX_WASM_BYTES} bytes"));
    }
    Ok(bytes)
}
