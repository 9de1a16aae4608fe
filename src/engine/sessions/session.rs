//! State of one agent session.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::atlas::model::{Atlas, Capability};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{
    CountedIds, EventId, ExecutionId, HeldRequestId, IdSource, SessionId, SpanId, TraceId,
};
use crate::base::pattern::{Pattern, Patterns};

use super::successor::Earlier;
use crate::engine::command::{Injected, InjectedGuidance};
use crate::engine::gates::held::{PassEffects, SessionEvent};
use crate::engine::injection::withholding::WithheldInjection;

/// Purpose of a session. Conditions see it as the agent wrote it; what is stored and shown has no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Intent {
    /// As the agent wrote it. A restart forgets it.
    pub original: String,
    /// Without secrets.
    pub recorded: String,
}

impl From<String> for Intent {
    fn from(original: String) -> Self {
        let recorded = original.clone();
        Self { original, recorded }
    }
}

impl From<Intent> for String {
    fn from(intent: Intent) -> Self {
        intent.recorded
    }
}

/// One agent session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The session's identifier.
    pub id: SessionId,
    /// Name of the agent.
    pub agent: String,
    /// Purpose of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// Owner of the session: the digest of a secret that a caller shows to continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Digest>,
    /// Key under which its requests are counted, if it was started through a server.
    #[serde(rename = "asker", default, skip_serializing_if = "Option::is_none")]
    pub rate_key: Option<Digest>,
    /// Caller group that started it, for the session limit. A restart forgets it.
    #[serde(skip)]
    pub peer: Option<String>,
    /// Caller group that started it, for the thread limit. A restart keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<String>,
    /// Start time.
    pub started_at: Timestamp,
    /// Session whose conversation it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
    /// Time and runs of its conversation before it.
    #[serde(default, skip_serializing_if = "Earlier::is_none")]
    pub earlier: Earlier,
    /// Time of the last thing that happened to it.
    #[serde(default)]
    pub last_at: Option<Timestamp>,
    /// The trace of its start and end.
    pub trace_id: TraceId,
    /// Root of its span tree.
    pub span_id: SpanId,
    /// Digest of the Atlases it was admitted under. Under others it starts anew.
    pub atlas_hash: Digest,
    /// State of its start gates.
    pub entry: StartState,
    /// Capabilities that gates unlocked, with their Atlas: an Atlas unlocks only its own capabilities.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unlocked: BTreeSet<(String, String)>,
    /// Capabilities that checkpoints locked, in every Atlas that has one of that name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub locked: BTreeSet<String>,
    /// Atlases whose checkpoints locked a capability. Only a gate of the same Atlas lifts a lock; a lock of
    /// an unknown Atlas stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locked_by: BTreeMap<String, BTreeSet<String>>,
    /// Passed gates, with their Atlas. Their contexts can be requested again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passed: BTreeSet<(String, String)>,
    /// Actions that gates allowed, with their Atlas: an Atlas does not lift denials of another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<(String, Patterns)>,
    /// Actions that gates denied, with the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<(String, Patterns)>,
    /// Contexts it received, by Atlas and identifier, with the time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Timestamp>,
    /// Guidance in force, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<InjectedGuidance>,
    /// Contexts and guidance that wait for the next reply.
    #[serde(rename = "owed", default, skip_serializing_if = "Injected::is_empty")]
    pub pending_injections: Injected,
    /// Injections and grants that wait until a gate of the whole session is passed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<WithheldInjection>,
    /// Held gates that block all requests of the session.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pending: BTreeSet<HeldRequestId>,
    /// Gates that were held and not passed. They are held again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpassed: Vec<UnpassedGates>,
    /// Last firings of interval checkpoints.
    #[serde(rename = "beats", default, skip_serializing_if = "Vec::is_empty")]
    pub interval_marks: Vec<IntervalMark>,
    /// The trace that the last input started. Later actions of the agent belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<TraceId>,
    /// Reported errors that it may recover from, ordered by time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<EventId, ReportedError>,
    /// True when the record describes how its agent is wrapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper_reported: bool,
    /// Plugins that were loaded for it, as the record names them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub loaded: BTreeSet<String>,
    /// Allowed runs that are not yet completed.
    pub running: BTreeMap<ExecutionId, RunningAction>,
    /// Number of allowed runs.
    pub actions: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Number of contexts that replies carried. A repeated context counts each time.
    #[serde(default)]
    pub injected: u64,
}

/// State of a session's start gates. It decides whether the session may act at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartState {
    /// The session may act.
    Open,
    /// The start is held.
    Held(HeldRequestId),
    /// The gate was not answered in time. It is held again when the session wants to act.
    Lapsed {
        /// Checkpoints that fired and were not passed. They stay required even if their conditions no longer
        /// hold.
        owed: BTreeSet<String>,
    },
    /// An operator refused the session.
    Refused {
        /// Reason of the refusal.
        reason: String,
    },
}

/// Gates of a session event that were not passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpassedGates {
    /// The event.
    pub moment: SessionEvent,
    /// The checkpoints that fired.
    pub checkpoints: BTreeSet<String>,
}

/// The last firing of an interval checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalMark {
    /// Atlas and checkpoint.
    pub key: (String, String),
    /// Multiple of the interval that counts as its last firing.
    pub at: Timestamp,
    /// Number of runs at the firing.
    pub actions: u64,
}

/// A run that was allowed and is not yet completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningAction {
    /// The action.
    pub action: String,
    /// The trace.
    pub trace_id: TraceId,
    /// The attempt's span.
    pub span_id: SpanId,
    /// Time at which it was allowed.
    pub since: Timestamp,
}

/// A reported error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedError {
    /// The trace.
    pub trace_id: TraceId,
    /// The error's span.
    pub span_id: SpanId,
}

impl Session {
    /// Creates a new session.
    #[must_use]
    pub fn new(
        id: SessionId,
        agent: String,
        intent: Option<String>,
        (trace_id, span_id): (TraceId, SpanId),
        atlas_hash: Digest,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            agent,
            intent: intent.map(Intent::from),
            owner: None,
            rate_key: None,
            peer: None,
            begun_by: None,
            started_at: now,
            continues: None,
            earlier: Earlier::default(),
            last_at: None,
            trace_id,
            span_id,
            atlas_hash,
            entry: StartState::Open,
            unlocked: BTreeSet::new(),
            locked: BTreeSet::new(),
            locked_by: BTreeMap::new(),
            passed: BTreeSet::new(),
            allowed: Vec::new(),
            denied: Vec::new(),
            contexts: BTreeMap::new(),
            guidance: Vec::new(),
            pending_injections: Injected::default(),
            withheld: Vec::new(),
            pending: BTreeSet::new(),
            unpassed: Vec::new(),
            interval_marks: Vec::new(),
            operation: None,
            errors: BTreeMap::new(),
            wrapper_reported: false,
            loaded: BTreeSet::new(),
            running: BTreeMap::new(),
            actions: 0,
            events: 0,
            injected: 0,
        }
    }

    /// Creates a hypothetical session.
    #[must_use]
    pub fn hypothetical(
        id: SessionId,
        agent: String,
        intent: Option<String>,
        atlas_hash: Digest,
        now: Timestamp,
    ) -> Self {
        let mut ids = CountedIds::default();
        let spans = (ids.next().into(), ids.next().into());
        Self::new(id, agent, intent, spans, atlas_hash, now)
    }

    /// Returns the contexts it received. Contexts that wait for the next reply are not included.
    #[must_use]
    pub fn context_ids(&self) -> BTreeSet<String> {
        let owed = |name: &&str| {
            let mut owed = self.pending_injections.contexts.iter();
            owed.any(|context| context.context_id == *name)
        };
        let names = self
            .contexts
            .keys()
            .filter_map(|key| key.rsplit('/').next());
        names
            .filter(|name| !owed(name))
            .map(str::to_owned)
            .collect()
    }

    /// Returns whether the session lacks `capability` of `atlas`. A lock beats an unlock.
    #[must_use]
    pub fn lacks(&self, atlas: &Atlas, capability: &Capability) -> bool {
        let key = (atlas.id.as_str(), capability.id.as_str());
        self.locked.contains(&capability.id)
            || (capability.starts_locked && !self.unlocked.contains(&key as &dyn StringPair))
    }

    /// Returns the gate and the pattern that deny `action`, if any.
    #[must_use]
    pub fn denial_of(&self, action: &str) -> Option<(&str, &Pattern)> {
        self.denied
            .iter()
            .find_map(|(gate, patterns)| Some((gate.as_str(), patterns.first_match(action)?)))
    }

    /// Returns whether a passed gate allows `action` by name.
    #[must_use]
    pub fn allows(&self, action: &str) -> bool {
        self.allowed
            .iter()
            .any(|(_, patterns)| patterns.matches(action))
    }

    /// Returns whether a passed gate of this Atlas allows `action` by name.
    #[must_use]
    pub fn allows_under(&self, atlas_id: &str, action: &str) -> bool {
        let mut allowed = self.allowed.iter();
        allowed.any(|(of, patterns)| of == atlas_id && patterns.matches(action))
    }

    /// Returns whether exactly these checkpoints are already required.
    #[must_use]
    pub fn requires(&self, checkpoints: &BTreeSet<String>) -> bool {
        let mut owed = self.unpassed.iter();
        owed.any(|unpassed| unpassed.checkpoints == *checkpoints)
    }

    /// Returns whether a passed gate of this Atlas would lift the lock on a capability.
    #[must_use]
    pub fn can_lift(&self, atlas_id: &str, capability: &str) -> bool {
        let owners = self.locked_by.get(capability);
        owners.is_some_and(|owners| owners.len() == 1 && owners.contains(atlas_id))
    }

    /// Applies the effects of passing `gate` of an Atlas. Lifts are applied first, so a lock that it sets
    /// stays.
    pub fn apply(&mut self, atlas_id: &str, gate: &str, effects: &PassEffects) {
        for capability in &effects.lift {
            self.lift(atlas_id, capability);
        }
        let unlocked = effects.unlock.iter();
        self.unlocked
            .extend(unlocked.map(|id| (atlas_id.to_owned(), id.clone())));
        for capability in &effects.lock {
            self.lock(atlas_id, capability);
        }
        let permission = (atlas_id.to_owned(), effects.allow.clone());
        if !effects.allow.is_empty() && !self.allowed.contains(&permission) {
            self.allowed.push(permission);
        }
        let denial = (gate.to_owned(), effects.deny.clone());
        if !effects.deny.is_empty() && !self.denied.contains(&denial) {
            self.denied.push(denial);
        }
    }
}

impl Session {
    fn lock(&mut self, atlas_id: &str, capability: &str) {
        let known = self.locked.insert(capability.to_owned());
        // An earlier lock of an unknown Atlas can still not be lifted by any gate.
        if known || self.locked_by.contains_key(capability) {
            let owners = self.locked_by.entry(capability.to_owned()).or_default();
            owners.insert(atlas_id.to_owned());
        }
        for withheld in &mut self.withheld {
            withheld.keep_locked(capability);
        }
    }

    fn lift(&mut self, atlas_id: &str, capability: &str) {
        let Some(owners) = self.locked_by.get_mut(capability) else {
            return;
        };
        owners.remove(atlas_id);
        if owners.is_empty() {
            self.locked_by.remove(capability);
            self.locked.remove(capability);
        }
    }
}

/// A pair of strings, owned or borrowed, so that `unlocked` is searched without allocation on every request.
trait StringPair {
    fn pair(&self) -> (&str, &str);
}

impl StringPair for (String, String) {
    fn pair(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl StringPair for (&str, &str) {
    fn pair(&self) -> (&str, &str) {
        *self
    }
}

impl<'p> Borrow<dyn StringPair + 'p> for (String, String) {
    fn borrow(&self) -> &(dyn StringPair + 'p) {
        self
    }
}

// `Borrow` requires the order of the owned pairs.
impl Ord for dyn StringPair + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pair().cmp(&other.pair())
    }
}

impl PartialOrd for dyn StringPair + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn StringPair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for dyn StringPair + '_ {}
