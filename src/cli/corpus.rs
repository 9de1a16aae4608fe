//! Bad input tests: every decoder takes a committed corpus and seeded mutations of it without a panic,
//! and gives a reason for each rejection.
//!
//! A file that once broke a decoder goes into `tests/data/corpus`, under that decoder's name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::atlas::LoadError;
use crate::atlas::diagnostic::{Diagnostic, ReportColour};
use crate::atlas::loader::load_bytes;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::CountedIds;
use crate::engine::Engine;
use crate::engine::command::{
    ActionRequest, DecisionRequest, Effect, EndSession, EngineCommand, FinalStatus, InputReport,
    InputSource, ReplyId, Ruling, StartSession, StateChange, StateKind,
};
use crate::gateway::simulated_agents::AgentScript;
use crate::runtime::extension::{Registry, WasmExtension, WasmLimits};
use crate::trace::hash::Envelope;
use crate::trace::head::KnownHead;
use crate::trace::jsonl;
use crate::trace::note::{SignedNote, Signer, Verifier};
use crate::trace::record::Record;
use crate::trace::verification::{TrustAnchors, VerificationVerdict};

use super::run::scenario::Scenario;

mod event_files;
mod mutation;
mod threads;

use mutation::{MutationRng, mutate_json, mutated};

const ACME: &str = include_str!("../../assets/atlas/acme-support.yaml");

/// Files of a folder of the repository, by name.
fn folder(path: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {path} is missing");
    files
}

/// Runs a decoder over the seeds, then over `rounds` mutations of them. Returns the number of accepted
/// seeds: if none is accepted, the mutations prove nothing.
fn run_decoder(
    seeds: &[(String, Vec<u8>)],
    rounds: usize,
    decode: impl Fn(Vec<u8>) -> bool,
) -> usize {
    let taken = seeds.iter().filter(|(_, seed)| decode(seed.clone()));
    let taken = taken.count();
    let mut dice = MutationRng::new(2026);
    let bytes: Vec<&[u8]> = seeds.iter().map(|(_, seed)| seed.as_slice()).collect();
    for _ in 0..rounds {
        decode(mutated(&bytes, &mut dice));
    }
    taken
}

/// True if the input was accepted; a rejection must give reasons at existing positions.
fn check_rejection<T>(read: Result<T, LoadError>) -> bool {
    let Err(error) = read else { return true };
    assert!(!error.to_string().is_empty());
    assert!(!error.report(ReportColour::None).trim().is_empty());
    if let LoadError::Invalid {
        diagnostics,
        source_text,
    } = &error
    {
        assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            check_position(diagnostic, source_text);
        }
    }
    false
}

fn check_position(diagnostic: &Diagnostic, source: &str) {
    assert!(!diagnostic.message.is_empty());
    if let Some(place) = diagnostic.span {
        assert!(
            source.get(place.start..place.end).is_some(),
            "{diagnostic:?}"
        );
    }
}

#[test]
fn atlas_decoder_never_panics() {
    let mut seeds = folder("tests/data/corpus/atlas");
    seeds.extend(folder("assets/atlas"));
    seeds.extend(folder("assets/scenarios/atlas"));
    let small = |(_, seed): &(String, Vec<u8>)| seed.len() < 4_000;
    seeds.retain(small);
    let taken = run_decoder(&seeds, 600, |bytes| {
        check_rejection(load_bytes("corpus", bytes))
    });
    assert!(taken >= 4, "{taken} of {} were taken", seeds.len());
}

#[test]
fn scenario_decoder_never_panics() {
    let mut seeds = folder("tests/data/corpus/scenario");
    seeds.extend(folder("assets/scenarios"));
    let taken = run_decoder(&seeds, 600, |bytes| {
        check_rejection(Scenario::decode(bytes))
    });
    assert!(taken >= 9, "{taken} of {} were taken", seeds.len());
}

#[test]
fn extension_list_decoder_never_panics() {
    let seeds = folder("tests/data/corpus/extensions");
    let taken = run_decoder(&seeds, 1_000, |bytes| {
        check_rejection(Registry::decode(bytes))
    });
    assert_eq!(taken, 2);
}

#[test]
fn module_loader_never_panics() {
    let seeds = folder("tests/data/corpus/modules");
    let limits = WasmLimits {
        fuel: 1_000,
        memory_bytes: 1 << 20,
    };
    let taken = run_decoder(&seeds, 2_000, |bytes| {
        match WasmExtension::new(&bytes, limits) {
            Ok(module) => {
                // The answer does not matter; the call must return.
                let _ = module.ask("{}");
                true
            }
            Err(fault) => {
                assert!(!fault.is_empty());
                false
            }
        }
    });
    assert_eq!(taken, 1);
}

#[test]
fn demo_script_decoder_never_panics() {
    let mut seeds = folder("tests/data/corpus/agents");
    seeds.extend(folder("assets/demo"));
    let taken = run_decoder(&seeds, 2_000, |bytes| {
        let text = String::from_utf8_lossy(&bytes);
        match AgentScript::read(&text) {
            Ok(_) => true,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    });
    assert!(taken >= 2, "{taken} of {} were taken", seeds.len());
}

#[test]
fn head_note_and_key_decoders_never_panic() {
    let seeds = folder("tests/data/corpus/heads");
    let taken = run_decoder(&seeds, 3_000, |bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let head = KnownHead::read(&text);
        if let Ok(known) = &head {
            // A parsed value is written back as the same text.
            assert!(
                text.replace("\r\n", "\n")
                    .trim()
                    .starts_with(known.head.to_string().trim())
            );
        }
        let key = text.parse::<Verifier>();
        if let (Ok(key), Ok(note)) = (&key, text.parse::<SignedNote>()) {
            assert!(!key.has_signed(&note), "a key is not a note");
        }
        let secret = Signer::from_secret(&text);
        head.is_ok() || key.is_ok() || secret.is_ok()
    });
    assert!(taken >= 3, "{taken} of {} were taken", seeds.len());
}

#[test]
fn record_decoder_never_panics_and_is_unambiguous() {
    let seeds = folder("tests/data/corpus/records");
    let taken = run_decoder(&seeds, 5_000, |bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match Envelope::split(&text) {
            Ok(envelope) => {
                let mut again = String::new();
                envelope.write(&mut again);
                assert_eq!(again, text);
                let record = Record::read(text, Digest::ZERO).unwrap();
                record.event_of().unwrap();
                true
            }
            Err(what) => {
                assert!(!what.is_empty());
                false
            }
        }
    });
    assert_eq!(taken, seeds.len());
}

#[test]
fn export_verifier_never_panics_and_detects_every_change() {
    let seeds = folder("tests/data/corpus/trace");
    let decode = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            if let Err(what) = jsonl::read_line(line) {
                assert!(!what.is_empty());
            }
        }
        let report = jsonl::verify(&bytes, TrustAnchors::nothing());
        for checked in &report.chains {
            match &checked.verdict {
                VerificationVerdict::Broken { what, .. }
                | VerificationVerdict::Diverged { what, .. } => {
                    assert!(!what.is_empty());
                }
                VerificationVerdict::Truncated { .. } => {}
                VerificationVerdict::Holds(proven) => {
                    assert_eq!(proven.unproven_count(), proven.count);
                }
            }
        }
        // A line without content counts as pruned and is reported as such.
        let is_whole = report.chains.iter().all(|checked| checked.pruned == 0);
        !report.chains.is_empty() && report.is_sound() && is_whole
    };
    let taken = run_decoder(&seeds, 1_000, decode);
    assert!(taken >= 1, "{taken} of {} were taken", seeds.len());
    // A changed line that is not a truncated end is detected.
    let (_, chain) = seeds
        .iter()
        .find(|(name, _)| name == "chain.jsonl")
        .unwrap();
    let chain = String::from_utf8(chain.clone()).unwrap();
    let mut dice = MutationRng::new(7);
    for _ in 0..300 {
        let mut lines: Vec<_> = chain.lines().map(str::to_owned).collect();
        let place = dice.below(lines.len());
        let line: Value = serde_json::from_str(&lines[place]).unwrap();
        let changed = mutate_json(&line, &mut dice);
        if changed == line {
            continue;
        }
        lines[place] = changed.to_string();
        assert!(!decode(lines.join("\n").into_bytes()), "{changed}");
    }
}

/// A line of stored state: `{"kind": ..., "key": ..., "body": ...}`.
fn parse_state_change(line: &Value) -> Option<StateChange> {
    let kind = StateKind::ALL
        .into_iter()
        .find(|kind| line["kind"] == kind.as_str())?;
    Some(StateChange {
        kind,
        key: line["key"].as_str()?.to_owned(),
        body: Some(line["body"].to_string()),
    })
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00.000000Z".parse().unwrap()
}

/// State stored by an engine that has an item of every kind.
fn engine_state() -> Vec<Value> {
    let atlas = load_bytes("acme", ACME.as_bytes().to_vec()).unwrap().atlas;
    let mut engine = Engine::new(vec![atlas], Box::new(CountedIds::default()));
    let mut state: BTreeMap<(StateKind, String), Value> = BTreeMap::new();
    let commands = [
        EngineCommand::StartSession(ReplyId(1), start("s-1")),
        EngineCommand::StartSession(ReplyId(2), start("s-2")),
        EngineCommand::RequestAction(ReplyId(3), request("s-1", "ticket.delete")),
    ];
    for command in commands {
        apply_command(&mut engine, command, &mut state);
    }
    let onboarding = engine
        .held()
        .into_iter()
        .find(|held| held.session.as_str() == "s-1");
    decide(&mut engine, &onboarding.unwrap(), &mut state);
    apply_command(
        &mut engine,
        EngineCommand::RequestAction(ReplyId(4), request("s-1", "ticket.get")),
        &mut state,
    );
    let lines = state
        .into_iter()
        .map(|((kind, key), body)| json!({ "kind": kind.as_str(), "key": key, "body": body }));
    lines.collect()
}

fn start(session: &str) -> StartSession {
    StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: session.parse().unwrap(),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    }
}

fn request(session: &str, action: &str) -> ActionRequest {
    ActionRequest {
        delivery: crate::engine::command::DeliveryTime::Now,
        on_disconnect: crate::engine::command::OnDisconnect::Kept,
        session: session.parse().unwrap(),
        action: action.to_owned(),
        params: json!({ "ticket_id": "T-1" }),
        deadline: None,
        resolution: None,
        call: None,
    }
}

fn apply_command(
    engine: &mut Engine,
    command: EngineCommand,
    state: &mut BTreeMap<(StateKind, String), Value>,
) {
    for effect in engine.handle(command, now()) {
        if let Effect::Persist(change) = effect {
            let key = (change.kind, change.key);
            match change.body {
                Some(body) => drop(state.insert(key, serde_json::from_str(&body).unwrap())),
                None => drop(state.remove(&key)),
            }
        }
    }
}

fn decide(
    engine: &mut Engine,
    held: &crate::engine::held::Held,
    state: &mut BTreeMap<(StateKind, String), Value>,
) {
    let answers = held.gates.iter().map(|gate| {
        let questions = gate.questions.iter();
        questions
            .map(|question| (question.id().to_owned(), json!(true)))
            .collect()
    });
    let decide = DecisionRequest {
        gate: held.id.clone(),
        operator: "operator".to_owned(),
        method: "test".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling: Ruling::Pass {
            answers: answers.collect(),
        },
    };
    apply_command(engine, EngineCommand::Decide(ReplyId(90), decide), state);
}

/// Restores an engine and uses it. Returns true if the state was accepted.
fn restore_and_use(lines: &[Value]) -> bool {
    let atlas = load_bytes("acme", ACME.as_bytes().to_vec()).unwrap().atlas;
    let kept = lines.iter().filter_map(parse_state_change);
    let ids = Box::new(CountedIds::starting_at(1_000));
    let (mut engine, _) = match Engine::restore(vec![atlas], ids, kept, BTreeSet::new(), now()) {
        Ok(restored) => restored,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let mut state = BTreeMap::new();
    let input = InputReport {
        session: "s-1".parse().unwrap(),
        text: "hello".to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    apply_command(
        &mut engine,
        EngineCommand::Input(ReplyId(5), input),
        &mut state,
    );
    apply_command(
        &mut engine,
        EngineCommand::RequestAction(ReplyId(6), request("s-1", "ticket.get")),
        &mut state,
    );
    for held in engine.held() {
        decide(&mut engine, &held, &mut state);
        apply_command(
            &mut engine,
            EngineCommand::DeadlineReached(held.id.clone()),
            &mut state,
        );
    }
    let end = EndSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        status: FinalStatus::Completed,
        summary: None,
    };
    apply_command(
        &mut engine,
        EngineCommand::EndSession(ReplyId(7), end),
        &mut state,
    );
    true
}

#[test]
fn stored_state_never_panics_the_engine() {
    let alive = engine_state();
    assert!(restore_and_use(&alive));
    let kinds: BTreeSet<_> = alive.iter().map(|line| line["kind"].to_string()).collect();
    assert!(kinds.len() >= 3, "{kinds:?}");
    let mut seeds = vec![alive];
    for (name, bytes) in folder("tests/data/corpus/state") {
        let text = String::from_utf8(bytes).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect(&name));
        let lines: Vec<Value> = lines.collect();
        let taken = restore_and_use(&lines);
        let refused = [
            "broken-pattern.jsonl",
            "counter-at-its-end.jsonl",
            "not-objects.jsonl",
        ];
        assert!(!(taken && refused.contains(&name.as_str())), "{name}");
        seeds.push(lines);
    }
    let mut dice = MutationRng::new(99);
    for _ in 0..150 {
        let mut lines = seeds[dice.below(seeds.len())].clone();
        for _ in 0..=dice.below(2) {
            let place = dice.below(lines.len());
            lines[place]["body"] = mutate_json(&lines[place]["body"], &mut dice);
        }
        restore_and_use(&lines);
    }
}
