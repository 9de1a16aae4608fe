//! What extensions have to do with what is explained. None is asked: it is said which would be.

use serde::Serialize;

use super::{CheckpointEvidence, CheckpointOutcome, Verdict};
use crate::atlas::Atlas;
use crate::atlas::compiled::{Checkpoint, Trigger};
use crate::engine::command::{Denied, DenyCode};
use crate::engine::extension::Extensions;

/// A handler that is asked at a checkpoint that fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outsider {
    /// The checkpoint.
    pub checkpoint_id: String,
    /// The handler.
    pub handler: String,
    /// Whether the operator's list has it.
    pub listed: bool,
}

/// The handlers of what fires. One that is not listed denies; a trigger that is listed is not known
/// to fire before it is asked.
#[must_use]
pub fn handlers(
    atlases: &[Atlas],
    listed: &Extensions,
    checkpoints: &mut [CheckpointEvidence],
    verdict: &mut Verdict,
) -> Vec<Outsider> {
    let mut handlers = Vec::new();
    for evidence in checkpoints {
        let CheckpointOutcome::Fired { why } = &mut evidence.outcome else {
            continue;
        };
        let atlas = atlases.iter().find(|atlas| atlas.id == evidence.atlas_id);
        let of_atlas = atlas.into_iter().flat_map(|atlas| &atlas.checkpoints);
        let mut named = of_atlas.filter(|it| it.id == evidence.checkpoint_id);
        let Some(checkpoint) = named.next() else {
            continue;
        };
        if let Trigger::Custom(custom) = &checkpoint.trigger
            && listed.triggers.contains(&custom.trigger_id)
        {
            let name = &custom.trigger_id;
            *why = format!("custom: `{name}` is not asked here, so it counts as fired");
        }
        handlers.extend(of(checkpoint, listed).into_iter().map(|handler| Outsider {
            checkpoint_id: checkpoint.id.clone(),
            listed: listed.handlers.contains(&handler),
            handler,
        }));
    }
    let missing = handlers.iter().find(|it| !it.listed);
    if let (Some(missing), Verdict::Allowed | Verdict::Held { .. }) = (missing, &*verdict) {
        let handler = &missing.handler;
        *verdict = Verdict::Denied(Denied {
            code: DenyCode::Extension,
            reason: format!("no handler called `{handler}` may be asked"),
            help: Some("allow it in the operator's list (`--extensions FILE`)".to_owned()),
            gate: None,
        });
    }
    handlers
}

/// The handlers of a checkpoint: its own, that of its custom trigger, and those of its type.
fn of(checkpoint: &Checkpoint, listed: &Extensions) -> Vec<String> {
    let mut handlers: Vec<_> = checkpoint.handler.iter().cloned().collect();
    if let (Trigger::Custom(custom), None) = (&checkpoint.trigger, &checkpoint.handler)
        && listed.handlers.contains(&custom.trigger_id)
    {
        handlers.push(custom.trigger_id.clone());
    }
    let of_type = listed.by_type.get(checkpoint.kind);
    handlers.extend(of_type.into_iter().flatten().cloned());
    handlers
}
