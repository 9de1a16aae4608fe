//! Extensions: code that an Atlas can call in addition to its own rules.
//!
//! All kinds of extensions look alike to the engine: a question goes out, and an answer always comes back
//! in time. An extension that is slow, wrong or gone never permits anything: a missing answer counts
//! against the agent, and never keeps other agents waiting.
//!
//! Code of this process is registered in a [`Registry`]: single checkpoint types, handlers and validators,
//! or a [`CheckpointPlugin`] with several of them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cra_core::engine::extension::{CheckpointContext, CheckpointResult};
//! use cra_core::runtime::extension::{CheckpointTypeDefinition, HandlerFn, Registry};
//!
//! let mut registry = Registry::default();
//! registry.register_checkpoint_type(CheckpointTypeDefinition {
//!     name: "all-caps".to_owned(),
//!     description: "input that shouts".to_owned(),
//!     evaluator: Arc::new(|context: &CheckpointContext| {
//!         let input = context.input.as_ref();
//!         input.is_some_and(|input| input.content == input.content.to_uppercase())
//!     }),
//!     default_handler: Some(Arc::new(HandlerFn(|_: &CheckpointContext| {
//!         CheckpointResult::block("please do not shout")
//!     }))),
//!     default_priority: Some(650),
//! })?;
//! assert!(registry.table().triggers.contains("all-caps"));
//! # Ok::<(), cra_core::runtime::extension::RegisterError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::atlas::ManifestTransform;
use crate::atlas::document::{AtlasManifest, CheckpointTrigger};
use crate::base::clock::Boxed;
use crate::base::limits::{EXTENSION_TIMEOUT, MAX_EXTENSION_CALLS};
use crate::base::pattern::Pattern;
use crate::engine::extension::{CallQuestion, ExtensionCall, Extensions, Plugin};

mod client;
mod config;
mod event_types;
mod http;
mod inline_extensions;
mod plugin;
mod program;
mod wasm;

pub use super::hooks::EventHook;
use super::hooks::RegisteredHook;
pub use client::Client;
pub use event_types::{EventTypeDefinition, EventTypes, EventValidator};
pub use http::HttpExtension;
pub(crate) use inline_extensions::InlineExtensions;
pub use plugin::{
    AnswerValidator, CheckpointHandler, CheckpointPlugin, CheckpointTypeDefinition, Evaluator,
    HandlerContext, HandlerFn,
};
pub use program::ProgramExtension;
pub use wasm::{WasmExtension, WasmLimits};

/// An extension that can be called.
pub trait Extension: Send + Sync {
    /// Answers a question, as JSON. The extension can ask back through `client`; those answers permit
    /// nothing.
    fn call<'a>(
        &'a self,
        call: &'a ExtensionCall,
        client: Client,
    ) -> Boxed<'a, Result<Value, String>>;
}

/// Kind of question that an extension answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Decides whether a custom trigger fires.
    Trigger,
    /// Decides what happens at a checkpoint.
    Handler,
    /// Decides whether an answer is valid.
    Validator,
}

impl Role {
    /// Returns the role's name in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Handler => "handler",
            Self::Validator => "validator",
        }
    }

    fn of(question: &CallQuestion) -> Self {
        match question {
            CallQuestion::Trigger { .. } => Self::Trigger,
            CallQuestion::Handler => Self::Handler,
            CallQuestion::Validator { .. } => Self::Validator,
        }
    }
}

/// Reason why an extension cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("a {} with the name `{name}` already exists", role.as_str())]
    Taken {
        /// Role of the extension.
        role: Role,
        /// The name.
        name: String,
    },
    /// The name of the event type is taken, belongs to this program, or cannot be recorded.
    #[error("the event type `{name}` cannot be registered: {what}")]
    Event {
        /// The name.
        name: String,
        /// Reason.
        what: String,
    },
}

/// All extensions by role and name.
#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<(Role, String), ExtensionEntry>,
    /// Handlers of all checkpoints of a type, in the order of registration.
    by_type: BTreeMap<String, Vec<String>>,
    /// Checkpoint types of this process, by name.
    types: BTreeMap<String, CheckpointTypeInfo>,
    plugins: Vec<Arc<dyn CheckpointPlugin>>,
    hooks: Vec<RegisteredHook>,
    events: EventTypes,
    /// Registered plugins, for the record.
    loaded: Vec<Plugin>,
    /// Names that belong to one of the plugins.
    owned: BTreeSet<String>,
}

/// Description and default priority of a checkpoint type.
#[derive(Clone)]
struct CheckpointTypeInfo {
    description: String,
    priority: Option<i64>,
}

/// A checkpoint type beyond the built-in ones: `type: custom` with its name as `trigger_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomType {
    /// The `trigger_id` of its triggers.
    pub trigger_id: String,
    /// Condition under which it fires, for people.
    pub description: String,
    /// Priority of its checkpoints that state none.
    pub priority: i64,
}

#[derive(Clone)]
struct ExtensionEntry {
    extension: Arc<dyn Extension>,
    timeout: Duration,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.keys()).finish()
    }
}

impl Registry {
    /// Registers an extension for a role, with the time that it has to answer.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn register(
        &mut self,
        role: Role,
        name: &str,
        extension: Arc<dyn Extension>,
        timeout: Duration,
    ) -> Result<(), RegisterError> {
        let key = (role, name.to_owned());
        if self.entries.contains_key(&key) {
            let name = name.to_owned();
            return Err(RegisterError::Taken { role, name });
        }
        self.entries
            .insert(key, ExtensionEntry { extension, timeout });
        Ok(())
    }

    /// Has a registered handler called at every checkpoint of a type.
    pub fn handle_type(&mut self, checkpoint_type: &str, handler: &str) {
        let handlers = self.by_type.entry(checkpoint_type.to_owned()).or_default();
        if !handlers.iter().any(|known| known == handler) {
            handlers.push(handler.to_owned());
        }
    }

    /// Registers a checkpoint type: its evaluator decides whether custom triggers of its name fire, and its
    /// handler is called where a checkpoint names no other.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn register_checkpoint_type(
        &mut self,
        definition: CheckpointTypeDefinition,
    ) -> Result<(), RegisterError> {
        let name = definition.name.clone();
        let note = CheckpointTypeInfo {
            description: definition.description.clone(),
            priority: definition.default_priority,
        };
        let handler = definition.default_handler.clone();
        self.register(
            Role::Trigger,
            &name,
            Arc::new(definition),
            EXTENSION_TIMEOUT,
        )?;
        self.types.insert(name.clone(), note);
        match handler {
            Some(handler) => self.register_handler(&name, handler),
            None => Ok(()),
        }
    }

    /// Registers a handler.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn register_handler(
        &mut self,
        name: &str,
        handler: Arc<dyn CheckpointHandler>,
    ) -> Result<(), RegisterError> {
        let handler = Arc::new(plugin::HandlerExtension(handler));
        self.register(Role::Handler, name, handler, EXTENSION_TIMEOUT)
    }

    /// Registers a validator of answers.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub fn register_validator(
        &mut self,
        name: &str,
        validator: Arc<dyn AnswerValidator>,
    ) -> Result<(), RegisterError> {
        let validator = Arc::new(plugin::ValidatorExtension(validator));
        self.register(Role::Validator, name, validator, EXTENSION_TIMEOUT)
    }

    /// Registers a hook for events whose type matches a pattern such as `action_*`.
    pub fn register_hook(&mut self, event_types: &str, hook: Arc<dyn EventHook>) {
        self.hooks.push((Pattern::new(event_types), hook));
    }

    /// Registers an event type: events that a handler records under its name are checked against it.
    ///
    /// # Errors
    /// Fails when the name is taken or invalid, or a field is invalid.
    pub fn register_event_type(
        &mut self,
        definition: EventTypeDefinition,
    ) -> Result<(), RegisterError> {
        self.events.register(definition)
    }

    /// Returns the registered event types.
    pub(super) fn events(&self) -> &EventTypes {
        &self.events
    }

    /// Returns the hooks in the order of registration.
    pub(super) fn hooks(&self) -> &[RegisteredHook] {
        &self.hooks
    }

    /// Registers all parts of a plugin.
    ///
    /// # Errors
    /// Fails when a name is taken.
    pub fn register_plugin(
        &mut self,
        plugin: Arc<dyn CheckpointPlugin>,
    ) -> Result<(), RegisterError> {
        let mut capabilities = Vec::new();
        for definition in plugin.checkpoint_types() {
            let name = definition.name.clone();
            capabilities.push(format!("checkpoint_type {name}"));
            self.register_checkpoint_type(definition)?;
            self.owned.insert(name);
        }
        for (index, (checkpoint_type, handler)) in plugin.handlers().into_iter().enumerate() {
            let name = format!("{}.{}", plugin.name(), index + 1);
            capabilities.push(format!("handler {checkpoint_type}"));
            self.register_handler(&name, handler)?;
            self.handle_type(&checkpoint_type, &name);
            self.owned.insert(name);
        }
        for (name, validator) in plugin.validators() {
            capabilities.push(format!("validator {name}"));
            self.register_validator(&name, validator)?;
            self.owned.insert(name);
        }
        for (event_types, hook) in plugin.event_hooks() {
            capabilities.push(format!("event_hook {event_types}"));
            self.register_hook(&event_types, hook);
        }
        for definition in plugin.event_types() {
            capabilities.push(format!("event_type {}", definition.name));
            self.register_event_type(definition)?;
        }
        self.loaded.push(Plugin {
            name: plugin.name().to_owned(),
            version: plugin.version().to_owned(),
            capabilities,
        });
        self.plugins.push(plugin);
        Ok(())
    }

    /// Adds an extension of the operator's list, with its version if it has one.
    fn add_listed(
        &mut self,
        name: &str,
        version: Option<String>,
        roles: impl Iterator<Item = Role>,
    ) {
        self.owned.insert(name.to_owned());
        self.loaded.push(Plugin {
            name: name.to_owned(),
            version: version.unwrap_or_else(|| UNVERSIONED.to_owned()),
            capabilities: roles.map(|role| role.as_str().to_owned()).collect(),
        });
    }

    /// Returns all registered plugins and single extensions, for the record.
    fn all_plugins(&self) -> Vec<Plugin> {
        let mut alone: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (role, name) in self.entries.keys() {
            if !self.owned.contains(name) {
                let roles = alone.entry(name).or_default();
                roles.push(role.as_str().to_owned());
            }
        }
        let alone = alone.into_iter().map(|(name, capabilities)| Plugin {
            name: name.clone(),
            version: UNVERSIONED.to_owned(),
            capabilities,
        });
        self.loaded.iter().cloned().chain(alone).collect()
    }

    /// Returns the names of all extensions, for the engine.
    #[must_use]
    pub fn table(&self) -> Extensions {
        let of = |role: Role| {
            let names = self.entries.keys().filter(move |(known, _)| *known == role);
            names.map(|(_, name)| name.clone()).collect()
        };
        Extensions {
            triggers: of(Role::Trigger),
            handlers: of(Role::Handler),
            validators: of(Role::Validator),
            by_type: self.by_type.clone(),
            events: self.events.table(),
            plugins: self.all_plugins(),
        }
    }

    /// Returns the plugins, for the record.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<dyn CheckpointPlugin>> {
        self.plugins.iter()
    }

    /// Returns the checkpoint types beyond the built-in ones by name: those of this process and of an
    /// operator's list.
    #[must_use]
    pub fn custom_types(&self) -> Vec<CustomType> {
        let names = self
            .entries
            .keys()
            .filter(|(role, _)| *role == Role::Trigger);
        let of = |name: &String| {
            let note = self.types.get(name);
            CustomType {
                trigger_id: name.clone(),
                description: note.map_or_else(
                    || "decided by an extension in the operator's list".to_owned(),
                    |note| note.description.clone(),
                ),
                priority: note
                    .and_then(|note| note.priority)
                    .unwrap_or(CheckpointTrigger::CUSTOM_PRIORITY),
            }
        };
        names.map(|(_, name)| of(name)).collect()
    }

    /// Changes a manifest before it is validated: default priorities of registered types, then each
    /// plugin's changes.
    pub fn configure(&self, manifest: &mut AtlasManifest) {
        for checkpoint in &mut manifest.checkpoints {
            if let CheckpointTrigger::Custom { trigger_id, .. } = &checkpoint.trigger
                && checkpoint.priority.is_none()
            {
                let note = self.types.get(trigger_id);
                checkpoint.priority = note.and_then(|note| note.priority);
            }
        }
        for plugin in &self.plugins {
            let written = manifest.checkpoint_config.clone();
            let changed = plugin.configure_checkpoints(written.clone().unwrap_or_default());
            // A plugin that changes nothing leaves the manifest, and so its hash, as written.
            if changed != written.unwrap_or_default() {
                manifest.checkpoint_config = Some(changed);
            }
        }
    }

    /// Returns the changes of [`Registry::configure`] as a function, for all code that loads Atlases.
    #[must_use]
    pub fn configuration(&self) -> ManifestTransform {
        if self.types.is_empty() && self.plugins.is_empty() {
            return ManifestTransform::default();
        }
        let registry = self.clone();
        ManifestTransform::new(move |manifest| registry.configure(manifest))
    }

    /// Sends a question to its extension. An answer always comes, and in time.
    pub(super) async fn ask(self, call: ExtensionCall, client: Client) -> Result<Value, String> {
        let key = (Role::of(&call.question), call.name.clone());
        let Some(entry) = self.entries.get(&key) else {
            return Err(format!("no {} has the name `{}`", key.0.as_str(), key.1));
        };
        let answer = entry.extension.call(&call, client);
        match tokio::time::timeout(entry.timeout, answer).await {
            Ok(Ok(answer)) => Ok(self.events.validate_events(answer)),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(format!("no answer within {} ms", entry.timeout.as_millis())),
        }
    }
}

/// Version of an extension that states none.
const UNVERSIONED: &str = "unversioned";

/// Most questions that run at once.
pub(super) const MAX_RUNNING_CALLS: usize = MAX_EXTENSION_CALLS;
