//! What the engine remembers about one agent session.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::atlas::compiled::{Atlas, Capability};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{
    CountedIds, EventId, ExecutionId, GateId, IdSource, SessionId, SpanId, TraceId,
};
use crate::base::pattern::{Pattern, Patterns};

use super::command::{Given, GivenGuidance};
use super::held::{Moment, PassEffects};
use super::successor::Earlier;
use super::withhold::Withheld;

/// One agent session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its identifier.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// What it says it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Whose it is: the digest of a secret that whoever takes it up again has to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Digest>,
    /// Whose requests count together with its own, where it comes in by a door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Digest>,
    /// The process that began it, as its sessions are counted. A restart forgets it.
    #[serde(skip)]
    pub peer: Option<String>,
    /// The process that began it, as its threads are counted. A restart keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<String>,
    /// When it started.
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
    /// The operation that its start and end belong to.
    pub trace_id: TraceId,
    /// The root of its span tree.
    pub span_id: SpanId,
    /// Digest of the Atlases it was let in under: under others it is asked anew.
    pub atlas_hash: Digest,
    /// Whether it may act at all.
    pub entry: Entry,
    /// Capabilities that gates unlocked, each with its Atlas: one Atlas opens nothing of another's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unlocked: BTreeSet<(String, String)>,
    /// Capabilities that checkpoints locked, in every Atlas that has one of that name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub locked: BTreeSet<String>,
    /// Atlases whose checkpoints locked a capability. Only a gate of the same Atlas lifts a lock; one whose Atlas
    /// is not known stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locked_by: BTreeMap<String, BTreeSet<String>>,
    /// Gates that were passed, each with its Atlas: what they give can be asked for again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passed: BTreeSet<(String, String)>,
    /// Actions that gates allowed, each with its Atlas: one Atlas lifts no denial of another's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<(String, Patterns)>,
    /// Actions that gates denied, with the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<(String, Patterns)>,
    /// Contexts it was handed, each with its Atlas, and when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Timestamp>,
    /// Guidance that holds, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<GivenGuidance>,
    /// What gates gave it and it was not told yet: it goes with the next answer.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub owed: Given,
    /// Things that a gate before the whole session keeps from it until it is passed, in the order called for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
    /// Held gates that stand before everything it asks for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pending: BTreeSet<GateId>,
    /// Gates that were put up and not passed: they are put up again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpassed: Vec<Unpassed>,
    /// When interval checkpoints last fired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beats: Vec<Beat>,
    /// The operation that the last input began: what the agent does from then on belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<TraceId>,
    /// Errors that it reported and may recover from, in the order of time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<EventId, Reported>,
    /// Tells whether the record has how its agent is wrapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper_reported: bool,
    /// Plugins that were in force for it, as the record names them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub loaded: BTreeSet<String>,
    /// Runs that were allowed and are not yet completed.
    pub running: BTreeMap<ExecutionId, Running>,
    /// Runs that were allowed.
    pub actions: u64,
    /// Events recorded.
    pub events: u64,
    /// Contexts that answers took along, each as often as one did.
    #[serde(default)]
    pub injected: u64,
}

/// Whether a session may act at all: the state of its start gates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// It may.
    Open,
    /// Its start is held.
    Held(GateId),
    /// Nobody answered: it is asked again when the session wants to act.
    Lapsed {
        /// The checkpoints that fired and were not passed. They are owed, whatever has become of
        /// the conditions they fired under.
        owed: BTreeSet<String>,
    },
    /// An operator refused it.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Gates of a moment that were not passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unpassed {
    /// What happened.
    pub moment: Moment,
    /// The checkpoints that fired.
    pub checkpoints: BTreeSet<String>,
}

/// When an interval checkpoint last fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Atlas and checkpoint.
    pub key: (String, String),
    /// When.
    pub at: Timestamp,
    /// After how many runs.
    pub actions: u64,
}

/// A run that was allowed and is not yet completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The action.
    pub action: String,
    /// The operation.
    pub trace_id: TraceId,
    /// The attempt's span.
    pub span_id: SpanId,
    /// When it was allowed.
    pub since: Timestamp,
}

/// An error that was reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// The operation.
    pub trace_id: TraceId,
    /// Its span.
    pub span_id: SpanId,
}

impl Session {
    /// A session that nothing has happened to yet.
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
            intent,
            owner: None,
            asker: None,
            peer: None,
            begun_by: None,
            started_at: now,
            continues: None,
            earlier: Earlier::default(),
            last_at: None,
            trace_id,
            span_id,
            atlas_hash,
            entry: Entry::Open,
            unlocked: BTreeSet::new(),
            locked: BTreeSet::new(),
            locked_by: BTreeMap::new(),
            passed: BTreeSet::new(),
            allowed: Vec::new(),
            denied: Vec::new(),
            contexts: BTreeMap::new(),
            guidance: Vec::new(),
            owed: Given::default(),
            withheld: Vec::new(),
            pending: BTreeSet::new(),
            unpassed: Vec::new(),
            beats: Vec::new(),
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

    /// A session that is only imagined.
    #[must_use]
    pub fn imagined(
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

    /// The contexts it was handed. Those that wait for the next answer are not among them.
    #[must_use]
    pub fn context_ids(&self) -> BTreeSet<String> {
        let owed = |name: &&str| {
            let mut owed = self.owed.contexts.iter();
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

    /// Whether the session lacks `capability` of `atlas`. A lock beats an unlock.
    #[must_use]
    pub fn lacks(&self, atlas: &Atlas, capability: &Capability) -> bool {
        let key = (atlas.id.as_str(), capability.id.as_str());
        self.locked.contains(&capability.id)
            || (capability.starts_locked && !self.unlocked.contains(&key as &dyn Pair))
    }

    /// The gate and pattern that deny `action`, if one does.
    #[must_use]
    pub fn denial_of(&self, action: &str) -> Option<(&str, &Pattern)> {
        self.denied
            .iter()
            .find_map(|(gate, patterns)| Some((gate.as_str(), patterns.first_match(action)?)))
    }

    /// Whether a passed gate allows `action` by name.
    #[must_use]
    pub fn allows(&self, action: &str) -> bool {
        self.allowed
            .iter()
            .any(|(_, patterns)| patterns.matches(action))
    }

    /// Whether a passed gate of this Atlas does.
    #[must_use]
    pub fn allows_under(&self, atlas_id: &str, action: &str) -> bool {
        let mut allowed = self.allowed.iter();
        allowed.any(|(of, patterns)| of == atlas_id && patterns.matches(action))
    }

    /// Whether exactly these checkpoints are owed already.
    #[must_use]
    pub fn owes(&self, checkpoints: &BTreeSet<String>) -> bool {
        let mut owed = self.unpassed.iter();
        owed.any(|unpassed| unpassed.checkpoints == *checkpoints)
    }

    /// Tells whether a passed gate of this Atlas would lift the lock on a capability.
    #[must_use]
    pub fn can_lift(&self, atlas_id: &str, capability: &str) -> bool {
        let owners = self.locked_by.get(capability);
        owners.is_some_and(|owners| owners.len() == 1 && owners.contains(atlas_id))
    }

    /// Takes over what passing `gate` of an Atlas does. A lock that it sets counts after what it lifts.
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
        // A lock from before, of an Atlas that is not known, stays one that no gate lifts.
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

/// Two texts, owned or not: what is unlocked is looked up with every request, without owning it.
trait Pair {
    fn pair(&self) -> (&str, &str);
}

impl Pair for (String, String) {
    fn pair(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl Pair for (&str, &str) {
    fn pair(&self) -> (&str, &str) {
        *self
    }
}

impl<'p> Borrow<dyn Pair + 'p> for (String, String) {
    fn borrow(&self) -> &(dyn Pair + 'p) {
        self
    }
}

// The order of the owned pairs: `Borrow` promises that it is the same.
impl Ord for dyn Pair + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pair().cmp(&other.pair())
    }
}

impl PartialOrd for dyn Pair + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Pair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for dyn Pair + '_ {}
