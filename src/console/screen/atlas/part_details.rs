//! Details of one part of an Atlas: its effect in words, and its source lines.

use ratatui::text::{Line, Span};

use super::session::push_labelled;
use super::tree::{self, PARTS, TreeRow, plural_name};
use super::{AtlasScreen, FileState, notices};
use crate::atlas::Atlas;
use crate::atlas::document::{
    CheckpointMode, ContextBlockDef, DefaultDecision, InjectMode, LimitScope, Respondent,
    UnknownActions,
};
use crate::atlas::model::{Capability, Checkpoint, DeclaredAction, Limit, Policy, Trigger};
use crate::atlas::origin::PartKind;
use crate::base::pattern::Patterns;
use crate::base::text::one_line;
use crate::console::explanation_lines::policy_word;
use crate::console::names::trigger_words;
use crate::console::text_cells::{clip, counted};
use crate::console::theme::{Appearance, Meaning, of_tier};
use crate::runtime::notices::NoticeSummary;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Maximum number of source lines shown for one part.
const MAX_SOURCE_LINES: usize = 400;

/// Lines of the details while they are built.
struct PartDetails {
    lines: Vec<Line<'static>>,
    cells: usize,
    appearance: Appearance,
}

impl PartDetails {
    fn add(&mut self, label: &str, text: &str, meaning: Meaning) {
        let (cells, appearance) = (self.cells, self.appearance);
        push_labelled(
            &mut self.lines,
            (label, &one_line(text)),
            meaning,
            cells,
            appearance,
        );
    }

    fn add_some<'t>(&mut self, label: &str, items: impl IntoIterator<Item = &'t String>) {
        let items: Vec<&str> = items.into_iter().map(String::as_str).collect();
        if !items.is_empty() {
            self.add(label, &items.join(", "), Meaning::Text);
        }
    }

    fn add_patterns(&mut self, label: &str, patterns: &Patterns) {
        if !patterns.is_empty() {
            self.add(label, &patterns_text(patterns), Meaning::Text);
        }
    }

    fn add_heading(&mut self, name: &str, words: &str) {
        if !name.is_empty() {
            let name = clip(&one_line(name), self.cells, self.appearance);
            self.lines
                .push(Line::styled(name, self.appearance.style(Meaning::Strong)));
        }
        let words = clip(words, self.cells, self.appearance);
        self.lines
            .push(Line::styled(words, self.appearance.style(Meaning::Dim)));
    }

    /// Adds the source lines of a part.
    fn add_source(&mut self, atlas: &Atlas, part: PartKind, id: &str) {
        let name = atlas.origin.name.rsplit('/').next().unwrap_or_default();
        let Some((first, last)) = atlas.origin.lines_of(part, id) else {
            self.add(
                "SOURCE",
                "generated from checkpoint_config: no source lines",
                Meaning::Dim,
            );
            return;
        };
        self.add("SOURCE", &format!("{name}:{first}-{last}"), Meaning::Key);
        let digits = last.to_string().len();
        let rows = atlas.text.lines().enumerate().skip(first - 1);
        for (at, row) in rows.take((last + 1 - first).min(MAX_SOURCE_LINES)) {
            let text = clip(
                &one_line(row),
                self.cells.saturating_sub(digits + 3),
                self.appearance,
            );
            self.lines.push(Line::from(vec![
                Span::styled(
                    format!("{:>digits$}  ", at + 1),
                    self.appearance.style(Meaning::Dim),
                ),
                Span::styled(text, self.appearance.style(Meaning::Text)),
            ]));
        }
    }
}

/// Returns the title and the details of the row at the cursor of the tree.
pub(super) fn selected_part_lines(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    cells: usize,
    appearance: Appearance,
) -> Option<(String, Vec<Line<'static>>)> {
    let TreeRow {
        atlas: at,
        part,
        item,
    } = atlases.row;
    let atlas = snapshot.loaded.get(at)?;
    let mut page = PartDetails {
        lines: Vec::new(),
        cells,
        appearance,
    };
    let title = if let (Some(part), Some(item)) = (part, item) {
        let id = tree::part_id(atlas, part, item)?;
        one_part(&mut page, atlases, atlas, (part, item))?;
        page.add_source(atlas, part, id);
        one_line(id)
    } else {
        let file = atlases.files.states.get(&at);
        add_atlas(&mut page, atlas, file, &snapshot.notices);
        one_line(&atlas.id)
    };
    Some((title, page.lines))
}

fn one_part(
    page: &mut PartDetails,
    atlases: &AtlasScreen,
    atlas: &Atlas,
    (part, at): (PartKind, usize),
) -> Option<()> {
    match part {
        PartKind::Checkpoint => {
            let definition = atlas.checkpoints.get(at)?;
            add_checkpoint(page, definition);
            let key = (atlas.id.clone(), definition.id.clone());
            let times = atlases.fired.get(&key).copied().unwrap_or(0);
            let words = format!("fired {} while watched", counted(times, "time"));
            page.add(
                "SEEN",
                &words,
                if times == 0 {
                    Meaning::Dim
                } else {
                    Meaning::Waiting
                },
            );
        }
        PartKind::Policy => add_policy(page, atlas.policies.get(at)?),
        PartKind::Capability => add_capability(page, atlas.capabilities.get(at)?),
        PartKind::Context => add_context(page, atlas.contexts.values().nth(at)?),
        PartKind::Action => {
            let (id, definition) = atlas.actions.iter().nth(at)?;
            add_action(page, atlas, id, definition);
        }
    }
    Some(())
}

fn add_atlas(
    page: &mut PartDetails,
    atlas: &Atlas,
    file: Option<&FileState>,
    notice_summary: &NoticeSummary,
) {
    let words = format!(
        "Atlas {} version {}",
        one_line(&atlas.id),
        one_line(&atlas.version)
    );
    page.add_heading(&atlas.name, &words);
    if !atlas.description.is_empty() {
        page.add("ABOUT", &atlas.description, Meaning::Text);
    }
    let counts =
        PARTS.map(|part| format!("{} {}", plural_name(part), tree::part_count(atlas, part)));
    page.add("CONTAINS", &counts.join(", "), Meaning::Text);
    if let Some((webhook, (delivery, meaning))) = notices::notice_texts(atlas, notice_summary) {
        page.add("WEBHOOK", &webhook, Meaning::Text);
        page.add("NOTICES", &delivery, meaning);
    }
    let default = match atlas.default_decision {
        DefaultDecision::Allow => "allowed",
        DefaultDecision::Deny => "denied",
    };
    let unknown = match atlas.unknown_actions {
        UnknownActions::Deny => "denied",
        UnknownActions::Allow => "allowed",
        UnknownActions::Approve => "held for approval",
    };
    let rules = format!("without a policy: known actions {default}, unknown actions {unknown}");
    page.add("DEFAULT", &rules, Meaning::Text);
    match &atlas.origin.file {
        Some(file) => page.add("FILE", &file.to_string_lossy(), Meaning::Text),
        None => page.add("FILE", "none: built into cra", Meaning::Dim),
    }
    let (words, meaning) = file_state_text(file);
    if atlas.origin.file.is_some() {
        page.add("STATE", words, meaning);
    }
    page.add("HASH", &atlas.hash.to_string(), Meaning::Dim);
}

/// Describes the state of a file in a few words.
pub(super) fn file_state_text(file: Option<&FileState>) -> (&'static str, Meaning) {
    match file {
        None => ("file not checked yet", Meaning::Dim),
        Some(FileState::Same | FileState::AsBefore) => {
            ("LIVE = FILE: file and loaded Atlas match", Meaning::Passed)
        }
        Some(FileState::Newer(newer)) if newer.is_loadable() => (
            "FILE NEWER: the file differs from the loaded Atlas; L to load",
            Meaning::Warning,
        ),
        Some(FileState::Newer(_)) => (
            "KEPT OLD: the file has errors; the loaded Atlas stays active",
            Meaning::Error,
        ),
        Some(FileState::Unreadable(_)) => (
            "FILE UNREADABLE: the loaded Atlas stays active",
            Meaning::Error,
        ),
    }
}

fn add_checkpoint(page: &mut PartDetails, checkpoint: &Checkpoint) {
    let mode = checkpoint.mode.as_str();
    page.add_heading(
        &checkpoint.name,
        &format!(
            "checkpoint, {}, {mode}, priority {}",
            trigger_words(checkpoint.kind),
            checkpoint.priority
        ),
    );
    page.add("FIRES", &trigger_text(&checkpoint.trigger), Meaning::Text);
    if let Trigger::Custom(custom) = &checkpoint.trigger
        && let Some(when) = &custom.when
    {
        page.add("IF", &when.to_string(), Meaning::Text);
    }
    if let Some(when) = &checkpoint.when {
        page.add("WHEN", &when.to_string(), Meaning::Text);
    }
    if !checkpoint.unless.is_empty() {
        page.add(
            "UNLESS",
            &format!(
                "a narrower rule matches: {}",
                patterns_text(&checkpoint.unless)
            ),
            Meaning::Text,
        );
    }
    let stops = match checkpoint.mode {
        CheckpointMode::Blocking => {
            let respondent = match checkpoint.respondent {
                Respondent::Operator if !checkpoint.approvers.is_one() => "each of two operators",
                Respondent::Operator => "the operator",
                Respondent::Agent => "the agent",
                Respondent::Either => "operator or agent",
            };
            let seconds = checkpoint.timeout_seconds;
            format!("stops the agent until {respondent} answers; denied after {seconds} s")
        }
        CheckpointMode::Advisory => "takes effect; the agent continues".to_owned(),
        CheckpointMode::Observational => "is only recorded".to_owned(),
    };
    page.add("THEN", &stops, Meaning::Text);
    for question in &checkpoint.questions {
        let kind = question.response_type().as_str();
        let text = format!("{} ({kind}): {}", question.id(), question.text());
        page.add("ASKS", &text, Meaning::Text);
    }
    page.add_some("UNLOCKS", &checkpoint.unlock_capabilities);
    page.add_some("LOCKS", &checkpoint.lock_capabilities);
    page.add_some("INJECTS", &checkpoint.inject_contexts);
    page.add_patterns("ALLOWS", &checkpoint.allow_actions);
    page.add_patterns("DENIES", &checkpoint.deny_actions);
    if let Some(guidance) = &checkpoint.guidance {
        page.add("GUIDANCE", &guidance.content, Meaning::Text);
    }
    if let Some(handler) = &checkpoint.handler {
        page.add("HANDLER", handler, Meaning::Text);
    }
}

/// Describes when a checkpoint fires.
fn trigger_text(trigger: &Trigger) -> String {
    match trigger {
        Trigger::SessionStart => "when a session begins".to_owned(),
        Trigger::SessionEnd => "when a session ends".to_owned(),
        Trigger::ActionPre(patterns) => {
            format!("before an action like {}", patterns_text(patterns))
        }
        Trigger::ActionPost(patterns) => {
            format!("after an action like {}", patterns_text(patterns))
        }
        Trigger::RiskThreshold(tier) => format!("before an action of tier {tier} or higher"),
        Trigger::CapabilityAccess(gated) => {
            let gated: Vec<_> = gated.iter().map(String::as_str).collect();
            format!(
                "before an action of a locked capability: [{}]",
                gated.join(", ")
            )
        }
        Trigger::Keyword(keywords) => {
            let texts: Vec<_> = keywords.texts().collect();
            let mode = format!("{:?}", keywords.mode()).to_lowercase();
            format!("on input with {mode} of [{}]", texts.join(", "))
        }
        Trigger::TimeInterval(span) => {
            format!("before an action, if {} s have passed", span.as_secs())
        }
        Trigger::CountInterval(count) => {
            format!("before an action, if {count} have run")
        }
        Trigger::ExplicitRequest => "when the agent asks for context".to_owned(),
        Trigger::ErrorOccurred => "when the agent reports an error".to_owned(),
        Trigger::Interactive => "when the agent requests it by name".to_owned(),
        Trigger::Custom(custom) => {
            let moments = match (custom.on_input, custom.on_action) {
                (true, true) => "input and actions",
                (true, false) => "input",
                (false, _) => "actions",
            };
            format!(
                "on {moments}, if custom trigger `{}` fires",
                custom.trigger_id
            )
        }
    }
}

fn add_policy(page: &mut PartDetails, policy: &Policy) {
    page.add_heading("", &format!("policy, {}", policy_word(policy.kind)));
    page.add(
        "ABOUT",
        &format!("actions like {}", patterns_text(&policy.actions)),
        Meaning::Text,
    );
    if let Some(when) = &policy.when {
        page.add("WHEN", &when.to_string(), Meaning::Text);
    }
    if let Some(limit) = &policy.limit {
        let scope = match limit.scope() {
            LimitScope::Session => "each session",
            LimitScope::Agent => "all sessions of an agent",
            LimitScope::All => "all sessions together",
        };
        let words = match limit {
            Limit::Rate {
                max_calls, window, ..
            } => {
                format!("{max_calls} runs in {} s for {scope}", window.as_secs())
            }
            Limit::Budget { limit, cost, .. } => {
                let cost = cost
                    .as_deref()
                    .map_or("1 per run".to_owned(), |field| format!("`{field}`"));
                format!("{limit} in total for {scope}, cost {cost}")
            }
        };
        page.add("LIMIT", &words, Meaning::Text);
    }
    page.add("REASON", &policy.reason, Meaning::Text);
    if policy.overridable {
        page.add("OVERRIDE", "an operator may overrule it", Meaning::Warning);
    }
}

fn add_capability(page: &mut PartDetails, capability: &Capability) {
    page.add_heading(&capability.name, "capability");
    page.add(
        "ACTIONS",
        &patterns_text(&capability.actions),
        Meaning::Text,
    );
    let starts = if capability.starts_locked {
        "locked, until a checkpoint unlocks it"
    } else {
        "unlocked"
    };
    page.add("STARTS", starts, Meaning::Text);
}

fn add_context(page: &mut PartDetails, context: &ContextBlockDef) {
    page.add_heading(
        &context.name,
        &format!("context, priority {}", context.priority),
    );
    let mode = match context.inject_mode {
        InjectMode::Always => "in every session",
        InjectMode::OnMatch => "when its keywords or actions match",
        InjectMode::OnDemand => "on request, or when a checkpoint names it",
        InjectMode::RiskBased => "when an action is risky",
    };
    page.add("INJECTED", mode, Meaning::Text);
    page.add_some("KEYWORDS", &context.keywords);
    page.add_some("ACTIONS", &context.actions);
    page.add(
        "SIZE",
        &format!("{} bytes", context.content.len()),
        Meaning::Text,
    );
}

fn add_action(page: &mut PartDetails, atlas: &Atlas, id: &str, action: &DeclaredAction) {
    page.add_heading(&action.name, "action");
    match action.risk_tier {
        Some(tier) => page.add("TIER", &format!("{tier}, declared"), of_tier(tier)),
        None => page.add(
            "TIER",
            "not declared: guessed from the request",
            Meaning::Dim,
        ),
    }
    let schema = if action.parameters.is_some() {
        "checked against a schema"
    } else {
        "not checked"
    };
    page.add("PARAMS", schema, Meaning::Text);
    page.add_some(
        "IN",
        atlas.capabilities_of(id).map(|capability| &capability.id),
    );
    let about = atlas
        .policies
        .iter()
        .filter(|policy| policy.actions.matches(id));
    page.add_some("POLICIES", about.map(|policy| &policy.id));
    let before = atlas
        .checkpoints
        .iter()
        .filter(|checkpoint| matches!(&checkpoint.trigger, Trigger::ActionPre(patterns) if patterns.matches(id)));
    page.add_some("GATES", before.map(|checkpoint| &checkpoint.id));
    page.add("TRY", "press x to test this action", Meaning::Hint);
}

fn patterns_text(patterns: &Patterns) -> String {
    let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
    format!("[{}]", patterns.join(", "))
}
