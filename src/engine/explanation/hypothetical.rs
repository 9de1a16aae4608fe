//! A hypothetical session.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use crate::atlas::model::Atlas;
use crate::base::clock::Timestamp;
use crate::base::id::{CountedIds, IdSource, SessionId};
use crate::engine::combined_hash;
use crate::engine::sessions::session::Session;

/// A hypothetical session: it has passed its start gates, and has the properties given here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HypotheticalSession {
    /// The agent that would ask.
    pub agent: Option<String>,
    /// Purpose of the session.
    pub intent: Option<String>,
    /// Capabilities it would have unlocked.
    pub unlocked: BTreeSet<String>,
    /// Capabilities it would have locked.
    pub locked: BTreeSet<String>,
    /// Actions it would have run.
    pub actions: u64,
    /// Age of the session, in seconds.
    pub age_seconds: u64,
}

impl HypotheticalSession {
    /// Builds the engine's session from these properties.
    pub(crate) fn to_session(&self, atlases: &[Atlas], now: Timestamp) -> Session {
        let mut ids = CountedIds::default();
        let unlocked = atlases.iter().flat_map(|atlas| {
            let capabilities = atlas.capabilities.iter();
            let named = capabilities.filter(|capability| self.unlocked.contains(&capability.id));
            named.map(|capability| (atlas.id.clone(), capability.id.clone()))
        });
        let id = SessionId::from(ids.next());
        let spans = (ids.next().into(), ids.next().into());
        let agent = self.agent.clone().unwrap_or_else(|| "agent".to_owned());
        let started_at = before(now, Duration::from_secs(self.age_seconds));
        let hash = combined_hash(atlases);
        Session {
            unlocked: unlocked.collect(),
            locked: self.locked.clone(),
            actions: self.actions,
            ..Session::new(id, agent, self.intent.clone(), spans, hash, started_at)
        }
    }
}

fn before(now: Timestamp, span: Duration) -> Timestamp {
    let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.micros().saturating_sub(micros))
}
