//! Requests for context: by identifier, by a search query, or by an interactive checkpoint.
//!
//! A query is compared with the identifier, name, keywords and text of every context. At most [`MAX_FOUND`]
//! contexts are injected, the best first.
//!
//! Contract: a request never reaches a context that belongs to an unpassed gate or to a capability that is
//! locked in the session, or that has `inject_mode: risk_based`. A named context that is not injected is in
//! the reply with the reason.

use std::collections::BTreeSet;

use serde_json::json;
use unicode_segmentation::UnicodeSegmentation;

use crate::atlas::Atlas;
use crate::atlas::document::{CheckpointMode, ContextBlockDef, InjectMode};
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::limits::{MAX_HINTS, MAX_TEXT_BYTES};
use crate::base::text::one_line;
use crate::trace::event::{ContextRequested, InjectTrigger, RequestType};

use super::events::{adopt_atlases_at_event, evaluate_event, hold_or_accept_event};
use crate::engine::command::{
    AgentReply, ContextRequest, DenyCode, Injected, RefusedContext, ReplyId,
};
use crate::engine::evaluation::TriggerEvent;
use crate::engine::extensions::handler_effects::{HandledCommandKind, apply_handler_outcomes};
use crate::engine::extensions::required_calls::HandledCheckpoints;
use crate::engine::gates::held::{HeldSubject, HeldText, SessionEvent};
use crate::engine::injection::contexts::{
    BudgetRule, Injection, context_key, expire_guidance, inject_contexts,
};
use crate::engine::injection::withholding::refused_session_denial;
use crate::engine::pipeline::StageResult;
use crate::engine::records::redaction::redact_optional_text;
use crate::engine::sessions::lifecycle::{add_pending_injections, reopen_start_gate};
use crate::engine::sessions::session::Session;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Maximum number of contexts that one query finds.
const MAX_FOUND: usize = 5;

/// Maximum number of words of a query that are searched for; further words are ignored.
const MAX_QUERY_WORDS: usize = 64;

/// Shortest word of a query, in characters, that is searched for.
const MIN_WORD_CHARS: usize = 3;

/// Words that say nothing about the subject of a query.
const COMMON_WORDS: [&str; 24] = [
    "about", "and", "any", "are", "can", "does", "for", "from", "has", "have", "how", "know",
    "may", "need", "not", "our", "that", "the", "this", "what", "when", "where", "which", "with",
];

/// Identifiers of an Atlas and of its context.
type ContextName = (String, String);

/// Handles a request for context, or for a checkpoint by its name.
pub(crate) fn request_context(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ContextRequest,
) -> StageResult {
    adopt_atlases_at_event(tx, reply_id, &request.session)?;
    let query = request.query.as_deref().unwrap_or_default();
    if query.len() > MAX_TEXT_BYTES || request.hints.len() > MAX_HINTS {
        let reason = format!(
            "a context request must have at most {MAX_HINTS} hints and {MAX_TEXT_BYTES} bytes of query"
        );
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return Ok(());
    }
    let occasion = match &request.checkpoint {
        Some(name) => TriggerEvent::CheckpointRequested(name),
        None => TriggerEvent::ContextRequested,
    };
    let refused = refused_session_denial(tx, &request.session);
    let mut handled = if refused.is_none() {
        evaluate_event(tx, &request.session, occasion)?
    } else {
        HandledCheckpoints::default()
    };
    let Some(position) = tx.new_position(&request.session) else {
        return Ok(());
    };
    let (query, redacted) = redact_optional_text(tx, "query", request.query.as_deref());
    // Naming a checkpoint is a request of type `checkpoint`.
    let named = request.checkpoint.as_ref();
    let record = ContextRequested {
        request_type: named.map_or(RequestType::Explicit, |_| RequestType::Checkpoint),
        query,
        hints: Some(request.hints.clone()).filter(|hints| !hints.is_empty()),
        checkpoint_type: named.map(|_| "interactive".to_owned()),
        keywords_matched: None,
        matches: Vec::new(),
        redacted,
    };
    tx.record(&position, record);
    if let Some(denied) = refused {
        tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
        return Ok(());
    }
    // A lapsed start gate is held again: the context is behind it.
    reopen_start_gate(tx, &request.session);
    if let (Some(name), true) = (&request.checkpoint, handled.fired.is_empty()) {
        let name = crate::base::text::one_line(name);
        let reason = format!("no interactive checkpoint is called `{name}`");
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return Ok(());
    }
    expire_guidance(tx, &request.session, &["explicit_request"]);
    let moment = SessionEvent {
        kind: "explicit_request".to_owned(),
        label: "context".to_owned(),
        data: json!({ "checkpoint": request.checkpoint }),
        event: None,
        text: request.query.as_deref().map(HeldText::new),
        reached_agent: false,
    };
    let subject = HeldSubject::Moment(moment.clone());
    let effects = apply_handler_outcomes(
        tx,
        &position,
        &subject,
        &mut handled,
        HandledCommandKind::Event,
    );
    let injected = inject_requested(tx, &position, request);
    add_pending_injections(tx, &request.session, injected);
    add_pending_injections(tx, &request.session, effects.injected);
    hold_or_accept_event(
        tx,
        (Some(reply_id), None),
        &position,
        moment,
        &handled.fired,
        None,
    );
    Ok(())
}

/// Injects the contexts that hints name or the query finds, and lists the named ones that are not
/// injected.
fn inject_requested(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    request: &ContextRequest,
) -> Injected {
    let mut injected = Injected::default();
    let Some(session) = tx.live_session(&request.session) else {
        return injected;
    };
    let (mut wanted, mut refused_contexts) = named_contexts(tx, session, &request.hints);
    if let Some(query) = &request.query {
        for (found, had) in found_contexts(tx, session, query) {
            let named = request.hints.contains(&found.1);
            if let (Some(reason), false) = (had, named) {
                let context_id = found.1;
                refused_contexts.push(RefusedContext { context_id, reason });
            } else if !named {
                wanted.push(found);
            }
        }
    }
    for of_atlas in wanted.chunk_by(|one, other| one.0 == other.0) {
        let Some((atlas_id, _)) = of_atlas.first() else {
            continue;
        };
        let contexts: Vec<_> = of_atlas.iter().map(|(_, id)| id.clone()).collect();
        let injection = Injection {
            atlas: Some(atlas_id),
            from: "explicit_request",
            kind: "explicit_request",
            trigger: InjectTrigger::OnDemand,
            contexts: &contexts,
            guidance: None,
            size: BudgetRule::Budgeted,
        };
        injected.extend(inject_contexts(tx, position, &injection));
    }
    injected.refused_contexts = refused_contexts;
    injected
}

/// Returns the contexts that hints name, and those that are not injected, with the reason.
fn named_contexts(
    tx: &Transaction<'_>,
    session: &Session,
    hints: &[String],
) -> (Vec<ContextName>, Vec<RefusedContext>) {
    let mut named = Vec::new();
    let mut refused_contexts = Vec::new();
    let mut seen = BTreeSet::new();
    for hint in hints.iter().filter(|hint| seen.insert(*hint)) {
        let atlases = tx.engine.atlases.iter();
        let mut having = atlases
            .filter(|atlas| atlas.contexts.contains_key(hint))
            .peekable();
        let mut reason = having
            .peek()
            .is_none()
            .then(|| "no loaded Atlas has a context with this identifier".to_owned());
        for atlas in having {
            match context_refusal(tx, session, atlas, hint) {
                None => named.push((atlas.id.clone(), hint.clone())),
                kept => reason = reason.or(kept),
            }
        }
        if let Some(reason) = reason {
            refused_contexts.push(RefusedContext {
                context_id: one_line(hint),
                reason,
            });
        }
    }
    (named, refused_contexts)
}

/// Returns the contexts that a query finds and the session may have, best first. A context that the
/// session already has comes with a reason.
fn found_contexts(
    tx: &Transaction<'_>,
    session: &Session,
    query: &str,
) -> Vec<(ContextName, Option<String>)> {
    let wanted = ContextQuery::new(query);
    let mut found = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        for (id, context) in &atlas.contexts {
            let score = wanted.score(atlas, context);
            let had = already_injected(tx, session, atlas, id);
            if score > 0 && (had.is_some() || context_refusal(tx, session, atlas, id).is_none()) {
                let rank = std::cmp::Reverse((score, context.priority));
                found.push((rank, (atlas.id.clone(), id.clone()), had));
            }
        }
    }
    found.sort();
    found.truncate(MAX_FOUND);
    let found = found.into_iter();
    found.map(|(_, named, had)| (named, had)).collect()
}

/// Returns a reason if the session already has a context and it is still valid.
fn already_injected(
    tx: &Transaction<'_>,
    session: &Session,
    atlas: &Atlas,
    id: &str,
) -> Option<String> {
    let handed = session.contexts.get(&context_key(&atlas.id, id))?;
    let valid = std::time::Duration::from_secs(atlas.cache.context_ttl_seconds);
    let had = tx.now.since(*handed) < valid;
    had.then(|| "the session already has this context".to_owned())
}

/// Returns the reason why a session does not get a requested context; `None` if it may have it.
fn context_refusal(
    tx: &Transaction<'_>,
    session: &Session,
    atlas: &Atlas,
    id: &str,
) -> Option<String> {
    let context = atlas.contexts.get(id)?;
    if let Some(had) = already_injected(tx, session, atlas, id) {
        return Some(had);
    }
    let handed = session.contexts.get(&context_key(&atlas.id, id));
    // The agent already knows a context that was injected once. A lock can have been set since.
    if let Some(gate) = gate_of_context(session, atlas, context)
        && handed.is_none()
    {
        return Some(format!(
            "the context is given when checkpoint `{}` is passed",
            gate.id
        ));
    }
    if let Some(capability) = lock_on_context(session, atlas, context) {
        return Some(format!(
            "capability `{capability}` is locked in this session"
        ));
    }
    (context.inject_mode == InjectMode::RiskBased)
        .then(|| "the context is given only with high-risk actions".to_owned())
}

/// Returns the gate that injects a context. `None` if every session gets the context, an advisory checkpoint
/// injects it as well, or one of its gates was passed.
fn gate_of_context<'a>(
    session: &Session,
    atlas: &'a Atlas,
    context: &ContextBlockDef,
) -> Option<&'a Checkpoint> {
    let giving = |mode| {
        let all = atlas.checkpoints.iter();
        all.filter(move |checkpoint| {
            checkpoint.mode == mode && checkpoint.inject_contexts.contains(&context.context_id)
        })
    };
    let free = giving(CheckpointMode::Advisory).next().is_some();
    if context.inject_mode == InjectMode::Always || free {
        return None;
    }
    let gates = giving(CheckpointMode::Blocking);
    let passed = |gate: &Checkpoint| {
        let key = (atlas.id.clone(), gate.id.clone());
        session.passed.contains(&key)
    };
    let gates: Vec<_> = gates.collect();
    let any_passed = gates.iter().any(|gate| passed(gate));
    gates.first().copied().filter(|_| !any_passed)
}

/// Returns the locked capability that a context belongs to.
///
/// A context belongs to a capability if a checkpoint at the capability injects it, or if all actions that
/// select it are actions of the capability.
fn lock_on_context<'a>(
    session: &Session,
    atlas: &'a Atlas,
    context: &ContextBlockDef,
) -> Option<&'a str> {
    if context.inject_mode == InjectMode::Always {
        return None;
    }
    let mut locked = atlas
        .capabilities
        .iter()
        .filter(|capability| session.lacks(atlas, capability));
    let at_access = |capability: &str| {
        atlas.checkpoints.iter().any(|checkpoint| {
            let access = match &checkpoint.trigger {
                Trigger::CapabilityAccess(gated) => gated.contains(capability),
                _ => false,
            };
            access && checkpoint.inject_contexts.contains(&context.context_id)
        })
    };
    let injections = atlas.injections.iter();
    let calling: Vec<_> = injections
        .filter(|injection| injection.context_id == context.context_id)
        .flat_map(|injection| {
            let declared = atlas.actions.keys();
            let declared = declared.filter(|action| injection.actions.matches(action));
            let written = injection.actions.iter().map(ToString::to_string);
            declared.cloned().chain(written)
        })
        .collect();
    locked
        .find(|capability| {
            let own = |action: &String| capability.actions.matches(action);
            at_access(&capability.id) || (!calling.is_empty() && calling.iter().all(own))
        })
        .map(|capability| capability.id.as_str())
}

/// A query, prepared for comparison.
struct ContextQuery<'q> {
    text: &'q str,
    folded: String,
    words: BTreeSet<String>,
}

/// Weights of matches. Each is greater than the maximum sum of the ones after it.
const SAME_ID: u32 = 8_000;
const SAME_NAME: u32 = 4_000;
const KEYWORD: u32 = 2_000;
const IN_NAME: u32 = 20;
const IN_CONTENT: u32 = 1;

impl<'q> ContextQuery<'q> {
    fn new(text: &'q str) -> Self {
        Self {
            text,
            folded: text.trim().to_lowercase(),
            words: significant_words(text).take(MAX_QUERY_WORDS).collect(),
        }
    }

    /// Returns how well a context fits; zero if it does not.
    fn score(&self, atlas: &Atlas, context: &ContextBlockDef) -> u32 {
        if self.folded.is_empty() {
            return 0;
        }
        let mut score = 0;
        let (id, name) = (
            context.context_id.to_lowercase(),
            context.name.to_lowercase(),
        );
        if self.folded == id || self.contains_identifier(&id) {
            score += SAME_ID;
        }
        if !name.is_empty() && (self.folded == name || self.folded.contains(&name)) {
            score += SAME_NAME;
        }
        let mut injections = atlas.injections.iter();
        if injections.any(|injection| {
            let keywords = injection.keywords.as_ref();
            injection.context_id == context.context_id
                && keywords.is_some_and(|keywords| !keywords.find(self.text).is_empty())
        }) {
            score += KEYWORD;
        }
        let titles: BTreeSet<_> = significant_words(&id)
            .chain(significant_words(&name))
            .collect();
        let in_titles = self.words.intersection(&titles).count();
        let text: BTreeSet<_> = significant_words(&context.content).collect();
        let in_content = self.words.intersection(&text).count();
        // A text with less than half of the words is about another subject.
        if (in_titles + in_content) * 2 >= self.words.len() {
            score += count(in_titles) * IN_NAME + count(in_content) * IN_CONTENT;
        }
        score
    }

    /// Returns whether the query contains an identifier as a whole word.
    fn contains_identifier(&self, id: &str) -> bool {
        let part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
        self.folded
            .split(|letter| !part(letter))
            .any(|word| word.trim_matches('.') == id)
    }
}

fn count(found: usize) -> u32 {
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// Returns the significant words of a text, in lower case.
fn significant_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(['_', '-']).flat_map(str::unicode_words);
    words.map(str::to_lowercase).filter(|word| {
        word.chars().count() >= MIN_WORD_CHARS && !COMMON_WORDS.contains(&word.as_str())
    })
}
