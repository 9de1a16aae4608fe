//! Extensions in explanations. None is called: the explanation lists the handlers that would be.

use serde::Serialize;

use super::{CheckpointEvidence, CheckpointOutcome, ExplainedVerdict};
use crate::atlas::Atlas;
use crate::atlas::model::{Checkpoint, Trigger};
use crate::engine::command::{DenialReply, DenyCode};
use crate::engine::extension::Extensions;

/// A handler that is called when a checkpoint fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandlerPreview {
    /// The checkpoint.
    pub checkpoint_id: String,
    /// The handler.
    pub handler: String,
    /// True when the operator's list of extensions contains the handler.
    pub listed: bool,
}

/// Returns the handlers of fired checkpoints.
///
/// A handler that is not listed causes a denial. A listed custom trigger counts as fired, because it is not
/// called here.
#[must_use]
pub fn preview_handlers(
    atlases: &[Atlas],
    listed: &Extensions,
    checkpoints: &mut [CheckpointEvidence],
    verdict: &mut ExplainedVerdict,
) -> Vec<HandlerPreview> {
    let mut handlers = Vec::new();
    for evidence in checkpoints {
        let CheckpointOutcome::Fired { why } = &mut evidence.outcome else {
            continue;
        };
        let atlas = atlases.iter().find(|atlas| atlas.id == evidence.atlas_id);
        let of_atlas = atlas.into_iter().flat_map(|atlas| &atlas.checkpoints);
        let mut named = of_atlas.filter(|checkpoint| checkpoint.id == evidence.checkpoint_id);
        let Some(checkpoint) = named.next() else {
            continue;
        };
        if let Trigger::Custom(custom) = &checkpoint.trigger
            && listed.triggers.contains(&custom.trigger_id)
        {
            let name = &custom.trigger_id;
            *why = format!("trigger `{name}` is not called here, so it counts as fired");
        }
        handlers.extend(
            checkpoint_handlers(checkpoint, listed)
                .into_iter()
                .map(|handler| HandlerPreview {
                    checkpoint_id: checkpoint.id.clone(),
                    listed: listed.handlers.contains(&handler),
                    handler,
                }),
        );
    }
    let missing = handlers.iter().find(|handler| !handler.listed);
    if let (Some(missing), ExplainedVerdict::Allowed | ExplainedVerdict::Held { .. }) =
        (missing, &*verdict)
    {
        let handler = &missing.handler;
        *verdict = ExplainedVerdict::Denied(DenialReply {
            code: DenyCode::Extension,
            reason: format!("handler `{handler}` is not in the operator's list"),
            help: Some("add it to the operator's list (`--extensions FILE`)".to_owned()),
            gate: None,
        });
    }
    handlers
}

/// Returns the handlers of a checkpoint: its own, the one of its custom trigger, and those of its type.
fn checkpoint_handlers(checkpoint: &Checkpoint, listed: &Extensions) -> Vec<String> {
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
