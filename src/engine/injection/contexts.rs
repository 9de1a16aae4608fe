//! Injection of contexts and guidance: their validity, and the size budget.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::atlas::Atlas;
use crate::atlas::document::{GuidanceBlock, GuidanceFormat};
use crate::atlas::keyword::KeywordMatch;
use crate::base::id::SessionId;
use crate::trace::event::{
    ContextInjected, ContextRequested, InjectTrigger, KeywordPosition, RequestType,
};

use super::delivery::record_injected;
use super::withholding::{
    WithheldInjection, record_too_large, withhold_injection, withholds_injections,
};
use crate::engine::command::{Injected, InjectedContext, InjectedGuidance};
use crate::engine::sessions::session::Session;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Contexts and guidance to inject, with their cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injection<'g> {
    /// The Atlas of the contexts; any Atlas if absent.
    pub(crate) atlas: Option<&'g str>,
    /// The checkpoint or other cause.
    pub(crate) from: &'g str,
    /// Type of the checkpoint.
    pub(crate) kind: &'g str,
    /// Trigger for the record.
    pub(crate) trigger: InjectTrigger,
    /// Identifiers of the contexts.
    pub(crate) contexts: &'g [String],
    /// Guidance.
    pub(crate) guidance: Option<&'g GuidanceBlock>,
    /// Budget rule for the contexts.
    pub(crate) size: BudgetRule,
}

impl Injection<'_> {
    /// Returns whether contexts are injected although the session has them: the purpose of an interval is to
    /// repeat them.
    fn refreshes(&self) -> bool {
        matches!(self.kind, "time_interval" | "count_interval")
    }
}

/// Budget rule for injected contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetRule {
    /// The contexts count against the budget, and are dropped if they do not fit.
    Budgeted,
    /// The contexts belong to a gate, so the budget does not apply.
    Unlimited,
}

/// A context that is about to be injected.
pub(crate) struct ContextToInject {
    atlas_id: String,
    context: InjectedContext,
    cached: bool,
}

/// Injects contexts, each once per session while it is valid, and guidance, and records that.
///
/// Behind an unpassed gate they are withheld, and nothing is recorded.
pub(crate) fn inject_contexts(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    injection: &Injection<'_>,
) -> Injected {
    let mut injected = Injected::default();
    if injection.guidance.is_none() && injection.contexts.is_empty() {
        return injected;
    }
    if withholds_injections(tx, &position.session) {
        let withheld = WithheldInjection::Contexts {
            atlas: injection.atlas.map(str::to_owned),
            from: injection.from.to_owned(),
            kind: injection.kind.to_owned(),
            trigger: injection.trigger,
            contexts: injection.contexts.to_vec(),
            guidance: injection.guidance.cloned(),
        };
        withhold_injection(tx, position, withheld);
        return injected;
    }
    if let Some(block) = injection.guidance {
        injected.guidance.push(InjectedGuidance {
            checkpoint_id: injection.from.to_owned(),
            block: block.clone(),
        });
        add_guidance(tx, &position.session, injection.from, block);
    }
    let mut found = Vec::new();
    let mut dropped = Vec::new();
    for id in injection.contexts {
        let Some(context) = find_context(tx, &position.session, injection, id) else {
            continue;
        };
        if injection.size == BudgetRule::Budgeted {
            let size = context.context.content.len() as u64;
            if !fits_budget(tx, size) {
                dropped.push(id.clone());
                continue;
            }
            tx.injected_bytes += size;
        }
        mark_injected(tx, &position.session, &context);
        found.push(context);
    }
    if !found.is_empty() {
        let record = injection_record(injection, &found);
        injected
            .injections
            .push(record_injected(tx, position, record));
    }
    record_too_large(tx, position, injection.from, injection.kind, dropped);
    injected.contexts = found.into_iter().map(|found| found.context).collect();
    injected
}

/// Records that keywords in input select contexts, if any do.
pub(crate) fn record_keyword_request(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    matches: &[KeywordMatch],
) {
    if !matches.is_empty() {
        let keywords = matches.iter().map(|found| found.keyword.clone());
        let record = ContextRequested {
            request_type: RequestType::Keyword,
            query: None,
            hints: None,
            checkpoint_type: None,
            keywords_matched: Some(keywords.collect()),
            matches: matches.iter().map(keyword_position).collect(),
            redacted: Vec::new(),
        };
        tx.record_below(position, record);
    }
}

/// Returns a context that exists and that the session does not have, or no longer.
pub(crate) fn find_context(
    tx: &Transaction<'_>,
    session: &SessionId,
    injection: &Injection<'_>,
    id: &str,
) -> Option<ContextToInject> {
    let mine = |atlas: &&Atlas| injection.atlas.is_none_or(|wanted| wanted == atlas.id);
    let atlas = tx
        .engine
        .atlases
        .iter()
        .filter(mine)
        .find(|atlas| atlas.contexts.contains_key(id))?;
    let content = &atlas.contexts.get(id)?.content;
    let session = tx.engine.state.sessions.get(session)?;
    let handed = session.contexts.get(&context_key(&atlas.id, id));
    let valid = std::time::Duration::from_secs(atlas.cache.context_ttl_seconds);
    if !injection.refreshes() && handed.is_some_and(|at| tx.now.since(*at) < valid) {
        return None;
    }
    let cached = tx
        .engine
        .state
        .caches
        .has_context(&context_key(&atlas.id, id), tx.now);
    Some(ContextToInject {
        atlas_id: atlas.id.clone(),
        context: InjectedContext {
            context_id: id.to_owned(),
            content: content.clone(),
        },
        cached,
    })
}

fn mark_injected(tx: &mut Transaction<'_>, session: &SessionId, found: &ContextToInject) {
    let key = context_key(&found.atlas_id, &found.context.context_id);
    let now = tx.now;
    let ttl = tx.engine.cache_ttl(|cache| cache.context_ttl_seconds);
    tx.state().caches.keep_context(key.clone(), now.plus(ttl));
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.contexts.insert(key, now);
    }
    tx.mark_changed(session);
}

/// Returns whether `size` more bytes of context fit into the budget of one command.
pub(crate) fn fits_budget(tx: &Transaction<'_>, size: u64) -> bool {
    let budgets = tx.engine.atlases.iter().filter_map(|atlas| {
        let budget = atlas.budget.as_ref()?;
        budget.max_context_injection_size
    });
    let most = budgets.min();
    most.is_none_or(|most| tx.injected_bytes.saturating_add(size) <= most)
}

/// Puts guidance into force, and withdraws the guidance that it replaces.
fn add_guidance(tx: &mut Transaction<'_>, session: &SessionId, from: &str, block: &GuidanceBlock) {
    let system = |block: &GuidanceBlock| block.format == GuidanceFormat::SystemInstruction;
    let appends = block.append.unwrap_or(!system(block));
    let again = |earlier: &InjectedGuidance| earlier.checkpoint_id == from;
    if appends {
        // Repeated guidance is in force only once.
        if let Some(session_state) = tx.state().sessions.get_mut(session) {
            session_state.guidance.retain(|earlier| !again(earlier));
        }
    } else {
        withdraw_guidance(tx, session, |earlier| {
            again(earlier) || system(&earlier.block) == system(block)
        });
    }
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state
            .pending_injections
            .withdrawn
            .retain(|gone| gone != from);
        session_state.guidance.push(InjectedGuidance {
            checkpoint_id: from.to_owned(),
            block: block.clone(),
        });
    }
    tx.mark_changed(session);
}

/// Withdraws guidance that expires after one of these checkpoints or types.
pub(crate) fn expire_guidance(tx: &mut Transaction<'_>, session: &SessionId, after: &[&str]) {
    withdraw_guidance(tx, session, |guidance| {
        let until = guidance.block.expires_after.as_deref();
        until.is_some_and(|until| after.iter().any(|name| same_name(until, name)))
    });
}

/// Withdraws guidance. If the agent received it, the agent is told that it no longer holds.
fn withdraw_guidance(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    gone: impl Fn(&InjectedGuidance) -> bool,
) {
    let Some(session_state) = tx.state().sessions.get_mut(session) else {
        return;
    };
    if !session_state.guidance.iter().any(&gone) {
        return;
    }
    for guidance in session_state
        .guidance
        .extract_if(.., |guidance| gone(guidance))
    {
        let before = session_state.pending_injections.guidance.len();
        session_state
            .pending_injections
            .guidance
            .retain(|pending| *pending != guidance);
        let was_delivered = session_state.pending_injections.guidance.len() == before;
        if was_delivered
            && !session_state
                .pending_injections
                .withdrawn
                .contains(&guidance.checkpoint_id)
        {
            session_state
                .pending_injections
                .withdrawn
                .push(guidance.checkpoint_id);
        }
    }
    tx.mark_changed(session);
}

impl Injected {
    /// Adds the contexts and guidance of another checkpoint.
    pub(crate) fn extend(&mut self, more: Self) {
        self.contexts.extend(more.contexts);
        self.withdrawn.extend(more.withdrawn);
        self.refused_contexts.extend(more.refused_contexts);
        self.warnings.extend(more.warnings);
        self.injections.extend(more.injections);
        self.guidance.extend(more.guidance);
        // A stable sort: equal weights stay in their order. System instructions weigh most.
        self.guidance.sort_by_key(|guidance| {
            let system = guidance.block.format == GuidanceFormat::SystemInstruction;
            (Reverse(system), Reverse(guidance.block.priority))
        });
    }
}

impl Session {
    /// Forgets that a context was injected, so that it is injected again. Without a name, forgets all.
    pub(crate) fn forget_context(&mut self, id: Option<&str>) {
        self.contexts
            .retain(|key, _| id.is_some_and(|id| !key.ends_with(&format!("/{id}"))));
    }
}

/// Returns the key of a context, which includes its Atlas.
pub(crate) fn context_key(atlas_id: &str, context_id: &str) -> String {
    format!("{atlas_id}/{context_id}")
}

/// Returns whether `until`, as a steward writes it, names `name`: `session-end` is `session_end`.
fn same_name(until: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace('-', "_");
    let trigger = match name {
        "keyword_match" => "keyword",
        "capability_gate" => "capability_access",
        other => other,
    };
    plain(until) == plain(name) || plain(until) == trigger
}

fn keyword_position(found: &KeywordMatch) -> KeywordPosition {
    KeywordPosition {
        keyword: found.keyword.clone(),
        position: found.position as u64,
    }
}

fn injection_record(injection: &Injection<'_>, found: &[ContextToInject]) -> ContextInjected {
    let ids = found.iter().map(|found| found.context.context_id.clone());
    let atlases: BTreeSet<_> = found.iter().map(|found| found.atlas_id.clone()).collect();
    let sizes = found.iter().map(|found| found.context.content.len() as u64);
    ContextInjected {
        context_ids: ids.collect(),
        atlas_ids: atlases.into_iter().collect(),
        total_size_bytes: sizes.sum(),
        trigger: injection.trigger,
        checkpoint_type: Some(injection.kind.to_owned()),
        cache_hit: found.iter().all(|found| found.cached),
    }
}
