//! Tests that play every shipped scenario and fold its record: after each step engine and replay must
//! agree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ScenarioEngine;
use crate::atlas::{Atlas, ManifestTransform};
use crate::base::id::SessionId;
use crate::cli::atlases::load_all;
use crate::cli::run::scenario::Scenario;
use crate::engine::session::{Session, StartState};
use crate::runtime::extension::Registry;
use crate::trace::chain::Chain;
use crate::trace::replay::ReplayState;
use crate::trace::replay::state::{ReleaseKind, ReplayPhase};

/// Record of a stage, and the replay state folded from it.
#[derive(Default)]
struct FoldedRecord {
    chains: BTreeMap<SessionId, (Chain, ReplayState)>,
}

impl FoldedRecord {
    fn fold_new_drafts(&mut self, scenario: &mut ScenarioEngine) {
        for draft in std::mem::take(&mut scenario.drafts) {
            let session = draft.session_id.clone();
            let (chain, state) = self
                .chains
                .entry(session.clone())
                .or_insert_with(|| (Chain::new(session), ReplayState::default()));
            let event = chain.seal(&draft).event_of().unwrap();
            state.apply(&event);
        }
    }
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/scenarios");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    assert!(files.len() >= 15, "{files:?}");
    files
}

/// Capabilities that a session gained: those that it lacks at first and has now.
fn gained_capabilities(session: &Session, atlases: &[Atlas]) -> BTreeSet<String> {
    let all = atlases
        .iter()
        .flat_map(|atlas| atlas.capabilities.iter().map(move |one| (atlas, one)));
    all.filter(|(atlas, one)| one.starts_locked && !session.lacks(atlas, one))
        .map(|(_, one)| one.id.clone())
        .collect()
}

/// Held requests by span, each with the spans of its gates.
fn held(stage: &ScenarioEngine, session: &SessionId) -> BTreeMap<String, BTreeSet<String>> {
    let held = stage.engine.held();
    let of_session = held.iter().filter(|held| held.session == *session);
    of_session
        .map(|held| {
            let gates = held.gates.iter().map(|gate| gate.span_id.to_string());
            (held.span_id.to_string(), gates.collect())
        })
        .collect()
}

fn held_in_state(state: &ReplayState) -> BTreeMap<String, BTreeSet<String>> {
    let held = state.held.iter().map(|held| {
        let gates = held.gates.iter().map(|gate| gate.span_id.to_string());
        (held.span_id.as_ref().unwrap().to_string(), gates.collect())
    });
    held.collect()
}

fn is_at(phase: ReplayPhase, entry: &StartState) -> bool {
    match entry {
        StartState::Open => matches!(phase, ReplayPhase::Working | ReplayPhase::Held),
        StartState::Held(_) => phase == ReplayPhase::AtStart,
        StartState::Lapsed { .. } => phase == ReplayPhase::StartLapsed,
        StartState::Refused { .. } => phase == ReplayPhase::StartRefused,
    }
}

/// Plays a scenario and compares the replay state with the engine after every step. Returns the number
/// of compared sessions, and the contexts in the replay state after each step.
fn play_and_compare(path: &Path) -> (usize, Vec<BTreeSet<String>>) {
    let scenario = Scenario::read(path).unwrap();
    let mut stage = ScenarioEngine::new(
        load_all(&scenario.atlases, &ManifestTransform::default()).unwrap(),
        scenario.extensions,
        Registry::default(),
    );
    let mut record = FoldedRecord::default();
    let (mut compared, mut contexts_seen) = (0, Vec::new());
    for (index, step) in scenario.steps.iter().enumerate() {
        stage.play(&step.action);
        record.fold_new_drafts(&mut stage);
        let at = format!("{} step {}", path.display(), index + 1);
        let live = stage.engine.sessions();
        for (session, (_, state)) in &record.chains {
            let Some(known) = live.iter().find(|known| known.id == *session) else {
                assert_eq!(
                    (state.phase, state.held.len()),
                    (ReplayPhase::Ended, 0),
                    "{at}"
                );
                continue;
            };
            compared += 1;
            assert!(is_at(state.phase, &known.entry), "{at}: {:?}", state.phase);
            assert_eq!(held_in_state(state), held(&stage, session), "{at}");
            let unlocked = gained_capabilities(known, stage.engine.atlases());
            assert_eq!(state.unlocked, unlocked, "{at}");
            assert_eq!(state.locked, known.locked, "{at}");
            let contexts: BTreeSet<_> = state.contexts.keys().cloned().collect();
            assert_eq!(contexts, known.context_ids(), "{at}");
            contexts_seen.push(contexts);
            assert_eq!(state.events, known.events, "{at}");
            assert_eq!(state.agent.name, known.agent, "{at}");
            let going = &state.actions.going;
            let free = going
                .iter()
                .filter(|action| action.way == ReleaseKind::Open)
                .count();
            let (runs, all) = (known.running.len(), going.len());
            // A request released while its requester was away does not run: the events do not show this.
            let left = path.ends_with("leaving.yaml");
            let agrees = runs == all || (left && free <= runs && runs <= all);
            assert!(agrees, "{at}: {runs} runs of {all}");
        }
    }
    (compared, contexts_seen)
}

#[test]
fn replay_state_matches_the_engine_after_every_scenario_step() {
    let compared: usize = scenarios()
        .iter()
        .map(|path| play_and_compare(path).0)
        .sum();
    assert!(compared > 150, "{compared}");
}

/// Contexts injected by advisory checkpoints next to gates, and without a checkpoint.
const ADVISED: &str = r#"
atlas_version: "1.0"
atlas_id: "org.cra.tests.advised"
version: "1.0.0"
name: "AdvisoryEffects beside gates"
default_decision: allow
actions:
  - { action_id: "mail.send", risk_tier: low }
context_blocks:
  - { context_id: "before", content: "a", inject_mode: on_demand }
  - { context_id: "after", content: "b", inject_mode: on_demand }
  - { context_id: "on-input", content: "c", inject_mode: on_demand }
  - { context_id: "by-itself", content: "d", keywords: ["refund"] }
checkpoints:
  - checkpoint_id: "advice-before"
    name: "a"
    trigger: { type: action_pre, patterns: ["mail.send"] }
    inject_contexts: ["before"]
  - checkpoint_id: "gate-before"
    name: "b"
    trigger: { type: action_pre, patterns: ["mail.send"] }
    mode: blocking
  - checkpoint_id: "advice-after"
    name: "c"
    trigger: { type: action_post, patterns: ["mail.send"] }
    inject_contexts: ["after"]
  - checkpoint_id: "gate-after"
    name: "d"
    trigger: { type: action_post, patterns: ["mail.send"] }
    mode: blocking
  - checkpoint_id: "advice-input"
    name: "e"
    trigger: { type: keyword, patterns: ["refund"] }
    inject_contexts: ["on-input"]
  - checkpoint_id: "gate-input"
    name: "f"
    trigger: { type: keyword, patterns: ["refund"] }
    mode: blocking
"#;

const REFUSED: &str = r#"
atlas: atlas.yaml
steps:
  - start: { session: s-1, agent: bot }
  - request: { session: s-1, action: mail.send }
  - deny: { gate: gate-before, reason: "no" }
  - input: { session: s-1, text: "a refund" }
  - deny: { gate: gate-input, reason: "no" }
  - request: { session: s-1, action: mail.send }
  - pass: { gate: gate-before, answers: good }
  - complete: { session: s-1, action: mail.send, result: "sent" }
  - deny: { gate: gate-after, reason: "no" }
"#;

#[test]
fn contexts_of_a_denied_request_are_not_in_force() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("atlas.yaml"), ADVISED).unwrap();
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, REFUSED).unwrap();
    let (_, contexts) = play_and_compare(&scenario);
    let contexts: Vec<_> = contexts
        .iter()
        .map(|contexts| contexts.iter().map(String::as_str).collect::<Vec<_>>())
        .collect();
    // Nothing is injected before the other gate is passed, and nothing at all if it is denied.
    let wanted: [&[&str]; 9] = [
        &[],
        &[],
        &[],
        &[],
        &[],
        &[],
        &["before"],
        &["before"],
        &["before"],
    ];
    assert_eq!(contexts, wanted);
}
