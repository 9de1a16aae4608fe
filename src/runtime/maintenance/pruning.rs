//! Pruning of old events by the Atlases that were loaded when they were recorded, and never under a legal
//! hold.
//!
//! Contract: an Atlas that was never loaded shortens nothing. An event is kept forever if no Atlas was
//! loaded, if one of them has no rule for its type, or if the text of one is no longer in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Maintenance, MaintenanceError, MaintenanceMode, OldRecords, PAGE};
use crate::atlas::load_str;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::retention::{Retention, Schedule};
use crate::store::{Batch, PruneRanges, StoreError};
use crate::trace::event::{AtlasLoaded, Payload, RetentionApplied, RetentionRule};
use crate::trace::governance::LegalHold;
use crate::trace::record::Record;

/// Most rules that a reason names. The full list is in a separate field.
const MAX_NAMED_RULES: usize = 4;

/// Parameters of pruning.
#[derive(Clone, Copy, Debug)]
pub struct PruneRequest<'o> {
    /// The operator.
    pub by: &'o str,
    /// Minimum retention, in addition to that of the loaded Atlases.
    pub at_least: Option<&'o Retention>,
    /// Tells whether to execute or only report.
    pub mode: MaintenanceMode,
}

/// Result of pruning.
#[derive(Clone, Debug, Default)]
pub struct PruneResult {
    /// Sessions, each with the number of events that lost their content.
    pub sessions: Vec<(SessionId, u64)>,
    /// Sessions with old events that a legal hold keeps.
    pub held: Vec<LegalHold>,
    /// True if no Atlas with a retention was ever loaded.
    pub keeps_all: bool,
}

impl Maintenance {
    /// Prunes events that exceed the retention of the Atlases that were loaded when they were recorded. The
    /// content is removed; envelope and hash stay.
    ///
    /// # Errors
    /// Fails when the store fails.
    pub async fn prune(
        &mut self,
        order: PruneRequest<'_>,
    ) -> Result<PruneResult, MaintenanceError> {
        let now = self.clock.now();
        let notes = self.session_notes().await?;
        let (old, keeps_all) = self.old_events(order.at_least, now).await?;
        let mut pruned = PruneResult {
            keeps_all,
            ..PruneResult::default()
        };
        for (session, old) in old {
            if let Some(hold) = notes.hold(&session) {
                pruned.held.push(hold.clone());
                continue;
            }
            pruned.sessions.push((session.clone(), old.old.count));
            if order.mode == MaintenanceMode::Report {
                continue;
            }
            let rules: Vec<_> = old.rules.into_iter().collect();
            let entry = RetentionApplied {
                reason: reason(&rules),
                rules,
                by: Some(order.by.to_owned()),
                ..old.old.entry(&session)
            };
            let mut batch = Batch::of(vec![self.ledger.entry(entry, now)]);
            let ranges = old.old.ranges;
            batch.prune.push(PruneRanges { session, ranges });
            self.write(batch).await?;
        }
        Ok(pruned)
    }

    /// Returns events by session that are older than their rule, and whether no rule ever applied. The
    /// record is read in the order of writing, so that each event is matched with the Atlases loaded at
    /// that time.
    async fn old_events(
        &self,
        at_least: Option<&Retention>,
        now: Timestamp,
    ) -> Result<(BTreeMap<SessionId, OldEvents>, bool), MaintenanceError> {
        let mut in_force = LoadedAtlasSet::default();
        let mut texts = RetentionCache::default();
        let mut unruled = BTreeSet::new();
        let mut old: BTreeMap<SessionId, OldEvents> = BTreeMap::new();
        let mut from = 0;
        loop {
            let page = self.store.records(from, PAGE).await?;
            for record in &page {
                if record.session == *self.ledger.log() {
                    in_force.apply_entry(record, self, &mut texts).await?;
                    continue;
                }
                let envelope = record.envelope();
                let envelope = envelope.map_err(|what| StoreError::Damaged { what })?;
                if record.sequence == 0 && (in_force.atlases.is_empty() || has_no_atlas(record)) {
                    unruled.insert(record.session.clone());
                }
                if envelope.is_pruned() || unruled.contains(&record.session) {
                    continue;
                }
                let age = now.since(record.timestamp);
                let is_older = |days: u32| age > Duration::from_hours(24) * days;
                let rule = in_force.retention_rule(envelope.event_type);
                let Some(rule) = rule.filter(|rule| is_older(rule.days)) else {
                    continue;
                };
                let longer = at_least.map(|stored| stored.days_for(envelope.event_type));
                if longer.is_none_or(|days| days.is_some_and(is_older)) {
                    let of_session = old.entry(record.session.clone()).or_default();
                    of_session.old.note(record);
                    of_session.rules.insert(rule);
                }
            }
            from += page.len() as u64;
            if page.len() < PAGE {
                return Ok((old, !texts.has_retention()));
            }
        }
    }
}

/// Returns true for the first event of a session that started without a loaded Atlas.
fn has_no_atlas(first: &Record) -> bool {
    let event = first.event_of().ok();
    let atlases = event.and_then(|event| event.payload.get("atlas_ids")?.as_array().cloned());
    atlases.is_some_and(|atlases| atlases.is_empty())
}

/// Old events of a session, and the rules that apply.
#[derive(Default)]
struct OldEvents {
    old: OldRecords,
    rules: BTreeSet<RetentionRule>,
}

/// A loaded Atlas, as far as it matters for pruning.
struct LoadedAtlas {
    id: String,
    hash: String,
    /// `None` keeps everything.
    schedule: Option<Arc<Schedule>>,
}

/// Atlases that were loaded at a position of the record.
#[derive(Default)]
struct LoadedAtlasSet {
    atlases: Vec<LoadedAtlas>,
    /// Position of the last entry of a start: entries of one start are adjacent.
    start: Option<u64>,
}

impl LoadedAtlasSet {
    async fn apply_entry(
        &mut self,
        entry: &Record,
        upkeep: &Maintenance,
        texts: &mut RetentionCache,
    ) -> Result<(), MaintenanceError> {
        let event = entry.event_of();
        let event = event.map_err(|what| StoreError::Damaged { what })?;
        let read = Payload::read(&event.event_type, event.payload);
        let Ok(Payload::AtlasLoaded(loaded)) = read else {
            return Ok(());
        };
        self.remove_replaced(&loaded, entry.sequence);
        let schedule = texts.schedule(&loaded.atlas_hash, upkeep).await?;
        self.atlases.push(LoadedAtlas {
            id: loaded.atlas_id,
            hash: loaded.atlas_hash,
            schedule,
        });
        Ok(())
    }

    /// Removes the Atlases that an entry replaces. After a start no earlier Atlas is loaded.
    fn remove_replaced(&mut self, loaded: &AtlasLoaded, place: u64) {
        if loaded.loaded_by.is_none() {
            let follows = self
                .start
                .is_some_and(|last| last.checked_add(1) == Some(place));
            if !follows {
                self.atlases.clear();
            }
            self.start = Some(place);
        }
        self.atlases
            .retain(|atlas| atlas.id != loaded.atlas_id && !loaded.removes.contains(&atlas.hash));
    }

    /// Returns the retention rule for an event type; `None` keeps it forever.
    fn retention_rule(&self, event_type: &str) -> Option<RetentionRule> {
        let mut longest: Option<RetentionRule> = None;
        for atlas in &self.atlases {
            let days = atlas.schedule.as_ref()?.days_for(event_type)?;
            if longest.as_ref().is_none_or(|rule| days > rule.days) {
                longest = Some(RetentionRule {
                    event_type: event_type.to_owned(),
                    days,
                    atlas_id: atlas.id.clone(),
                    atlas_hash: atlas.hash.clone(),
                });
            }
        }
        longest
    }
}

/// Retention of the Atlases whose texts are in the store, by the digest of the text.
#[derive(Default)]
struct RetentionCache(BTreeMap<String, Option<Arc<Schedule>>>);

impl RetentionCache {
    /// Returns the retention of an Atlas; `None` if it has none, or if its text cannot be read.
    async fn schedule(
        &mut self,
        hash: &str,
        upkeep: &Maintenance,
    ) -> Result<Option<Arc<Schedule>>, MaintenanceError> {
        if let Some(known) = self.0.get(hash) {
            return Ok(known.clone());
        }
        let stored = upkeep.store.atlas(hash.to_owned()).await?;
        let loaded = stored.and_then(|stored| load_str(&stored.atlas_id, &stored.text).ok());
        // The text has to be the one that was loaded.
        let loaded = loaded.filter(|loaded| loaded.atlas.hash.to_string() == hash);
        let schedule = loaded.and_then(|loaded| loaded.atlas.recording.retention);
        let schedule = schedule.map(Arc::new);
        self.0.insert(hash.to_owned(), schedule.clone());
        Ok(schedule)
    }

    fn has_retention(&self) -> bool {
        self.0.values().any(Option::is_some)
    }
}

/// Describes why events were pruned, for people.
fn reason(rules: &[RetentionRule]) -> String {
    let named = rules.iter().take(MAX_NAMED_RULES);
    let named = named.map(|rule| {
        let RetentionRule {
            event_type,
            days,
            atlas_id,
            ..
        } = rule;
        format!("{event_type} {days} days by {atlas_id}")
    });
    let mut named: Vec<_> = named.collect();
    if rules.len() > MAX_NAMED_RULES {
        named.push(format!("and {} more", rules.len() - MAX_NAMED_RULES));
    }
    format!(
        "older than the retention of the Atlases that were loaded at the time: {}",
        named.join(", ")
    )
}
