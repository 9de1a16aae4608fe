//! Loading of other Atlases: recorded first, used after that.

use super::super::acknowledgement::Acknowledgement;
use super::super::atlas_load::{AtlasLoad, LoadRefusal};
use super::super::shadow::ShadowAtlases;
use super::super::snapshot::AtlasLoadInfo;
use super::super::{atlas_text, loaded_entry};
use super::Actor;
use crate::atlas::{Atlas, recording};
use crate::base::clock::Timestamp;
use crate::engine::command::EngineCommand;
use crate::store::{Batch, StoreError};
use crate::trace::event::AtlasLoaded;

impl Actor {
    /// Replaces the Atlases. Requests wait meanwhile: each request is judged by Atlases that are on record.
    pub(super) async fn load_atlases(&mut self, load: AtlasLoad) -> Result<(), LoadRefusal> {
        if let Some(what) = &self.store_failure {
            return Err(LoadRefusal::Unavailable(what.clone()));
        }
        if let Some(fault) = load.refusal(&self.engine) {
            return Err(fault);
        }
        // Decisions under the old Atlases are recorded before the entry that replaces them.
        self.flush().await;
        let before = self.engine.shared_atlases();
        let all = load.atlases.iter();
        let is_new = |atlas: &&Atlas| before.iter().all(|old| old.hash != atlas.hash);
        let mut new: Vec<&Atlas> = all.clone().filter(is_new).collect();
        if new.is_empty() {
            // Only the order changed, which decides between equals, or Atlases were removed: the record
            // lists the loaded ones.
            new.extend(all);
        }
        let now = self.clock.now();
        let acknowledge = recording::acknowledge_mode(&load.atlases);
        let mut batch = Batch {
            state: vec![Acknowledgement::running(acknowledge).row()],
            atlases: new.iter().map(|atlas| atlas_text(atlas)).collect(),
            ..Batch::default()
        };
        let is_gone = |old: &&Atlas| load.atlases.iter().all(|new| new.id != old.id);
        let gone = before.iter().filter(is_gone);
        let mut removes: Vec<String> = gone.map(|old| old.hash.to_string()).collect();
        for atlas in &new {
            let replaced = before.iter().find(|old| old.id == atlas.id);
            let payload = AtlasLoaded {
                replaces: replaced.map(|old| old.hash.to_string()),
                // Recorded once, with the first entry.
                removes: std::mem::take(&mut removes),
                loaded_by: Some(load.operator.clone()),
                ..loaded_entry(atlas, &load.operator)
            };
            batch.records.push(self.ledger.entry(payload, now));
        }
        let accepted = self.engine.budgets_accepted();
        batch.state.extend(accepted.map(super::replies::state_row));
        // INVARIANT: on disk before these Atlases decide anything. A crash in between leaves a record of
        // Atlases that decided nothing, never a decision by Atlases that are not on record.
        if let Err(error) = self.write_durably(batch).await {
            self.on_write_failure(&error, Vec::new());
            return Err(LoadRefusal::Unavailable(error.to_string()));
        }
        self.engine.reload(load.atlases);
        self.acknowledge = acknowledge;
        self.live.rebuild(&self.engine);
        // The shadow Atlases were compared with Atlases that are no longer loaded.
        self.watching.shadow = None;
        self.in_force = AtlasLoadInfo {
            hash: Some(self.engine.atlas_hash()),
            since: Some(now),
            before: Some(before),
        };
        self.changed = true;
        self.publish_changes();
        Ok(())
    }

    /// Starts or stops shadow Atlases, which only observe.
    pub(super) fn set_shadow(&mut self, load: Option<AtlasLoad>) {
        let now = self.clock.now();
        let sound = load.filter(|load| load.refusal(&self.engine).is_none());
        let begun = sound.map(|load| ShadowAtlases::new(&self.engine, load.atlases, now));
        self.watching.shadow = begun;
        self.changed = true;
        self.publish_changes();
    }

    /// Shows a command to the shadow Atlases. This has no effect on the decision.
    pub(super) fn look_on(&mut self, command: &EngineCommand, now: Timestamp) {
        if let Some(shadow) = &mut self.watching.shadow
            && shadow.evaluate(&self.engine, command, now)
        {
            self.changed = true;
        }
    }

    async fn write_durably(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        self.state_seal.add_seal(&mut batch, &self.ledger);
        self.store.append(batch).await?.await
    }
}
