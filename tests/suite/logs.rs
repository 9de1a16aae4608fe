//! The log over all sessions: what its entries and its heads prove, and what is said when they do not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, Timestamp};
use cra_core::base::digest::Digest;
use cra_core::base::id::SessionId;
use cra_core::engine::command::{EndSession, FinalStatus};
use cra_core::runtime::extension::Registry;
use cra_core::runtime::maintenance::{Maintenance, MaintenanceMode, PruneRequest};
use cra_core::store::memory::MemoryStore;
use cra_core::store::{Batch, PruneRanges, Store};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{
    Draft, Durability, KeyRotated, LogSealed, LogStarted, Payload, SealedHead, TraceImported,
};
use cra_core::trace::head::{KnownHead, LogHead};
use cra_core::trace::jsonl;
use cra_core::trace::merkle_tree::MerkleTree;
use cra_core::trace::note::{SignedNote, Verifier};
use cra_core::trace::record::Record;
use cra_core::trace::verification::{LogVerifier, TrustAnchors, VerificationReport, check_record};
use serde_json::json;

use super::cli::TestHome;
use super::support::{ACME, Bench, acme, clock, settle, signer, signer_with_seed};

const LOG: &str = "log-1";

/// A record made by hand.
struct Hand {
    log: Chain,
    session: Chain,
    tree: MerkleTree,
    records: Vec<Record>,
}

impl Hand {
    fn new() -> Self {
        let key = signer_with_seed(&id(LOG), 7).verifier();
        let mut hand = Self {
            log: Chain::new(id(LOG)),
            session: Chain::new(id("s-1")),
            tree: MerkleTree::default(),
            records: Vec::new(),
        };
        hand.entry(LogStarted::now(&key));
        hand
    }

    fn entry(&mut self, payload: impl Into<Payload>) {
        let record = self.log.seal(&draft(LOG, payload.into()));
        self.tree.push(record.hash.as_bytes());
        self.records.push(record);
    }

    fn event(&mut self) -> &mut Self {
        let record = self.session.seal(&draft("s-1", recovered()));
        self.records.push(record);
        self
    }

    fn sealed(&mut self, sessions: Vec<SealedHead>) -> &mut Self {
        self.entry(LogSealed {
            sessions,
            state_sealed: None,
            by: None,
        });
        self
    }

    /// Head of the session as a seal names it.
    fn stands(&self) -> SealedHead {
        SealedHead {
            session: id("s-1"),
            count: self.session.count(),
            hash: self.session.last_hash(),
        }
    }

    fn head(&self) -> LogHead {
        LogHead {
            log: id(LOG),
            size: self.tree.size(),
            root: self.tree.root(),
        }
    }

    fn signed_by(&self, number: u8) -> (LogHead, SignedNote) {
        let note = signer_with_seed(&id(LOG), number).sign(&self.head().to_string());
        (self.head(), note.parse().unwrap())
    }

    fn verify(&self, trust: TrustAnchors) -> VerificationReport {
        let mut verifier = LogVerifier::new(trust.with_log(id(LOG)));
        for record in &self.records {
            let (envelope, link) = check_record(&record.text, &record.hash).unwrap();
            verifier.push(&envelope, &link, &record.text);
        }
        verifier.finish()
    }

    /// Verdict on the session.
    fn verdict(&self) -> String {
        let report = self.verify(TrustAnchors::nothing());
        report.chains[0].verdict.to_string()
    }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn recovered() -> Payload {
    let fields = json!({"original_error_id": "x", "recovery_method": "r", "success": true});
    Payload::read("error_recovered", fields.as_object().unwrap().clone()).unwrap()
}

fn draft(session: &str, payload: Payload) -> Draft {
    Draft {
        session_id: id(session),
        event_id: "e".parse().unwrap(),
        trace_id: "t".parse().unwrap(),
        span_id: "p".parse().unwrap(),
        parent_span_id: None,
        timestamp: Timestamp::from_micros(0),
        payload,
        durability: Durability::Sync,
    }
}

fn key() -> Verifier {
    signer_with_seed(&id(LOG), 7).verifier()
}

/// The verdict about the log itself.
fn of_log(report: &VerificationReport) -> String {
    report.log.as_ref().unwrap().verdict.to_string()
}

#[test]
fn log_entries_are_checked_against_every_chain() {
    let mut honest = Hand::new();
    honest.event().event();
    let stands = honest.stands();
    honest.sealed(vec![stands.clone()]);
    assert_eq!(honest.verdict(), "UNSEALED tail 2");
    let trust = TrustAnchors::nothing()
        .with_key(key())
        .with_signed_heads([honest.signed_by(7)]);
    assert_eq!(
        honest.verify(trust).chains[0].verdict.to_string(),
        "SEALED 0..1"
    );

    let verdict_after = |change: fn(&mut SealedHead)| {
        let mut hand = Hand::new();
        hand.event().event();
        let mut stands = hand.stands();
        change(&mut stands);
        hand.sealed(vec![stands]);
        hand.verdict()
    };
    assert_eq!(
        verdict_after(|sealed| sealed.count = 3),
        "TRUNCATED: 2 of 3 events found"
    );
    let other = "DIVERGED at 0: its events differ from those in the log";
    assert_eq!(verdict_after(|sealed| sealed.count = 1), other);
    assert_eq!(verdict_after(|sealed| sealed.hash = Digest::ZERO), other);

    // A session that the log names and that is nowhere.
    let mut missing = Hand::new();
    let session = id("s-9");
    let (count, hash) = (4, Digest::ZERO);
    missing.sealed(vec![SealedHead {
        session,
        count,
        hash,
    }]);
    let report = missing.verify(TrustAnchors::nothing());
    assert_eq!(report.chains[0].session, id("s-9"));
    assert_eq!(
        report.chains[0].verdict.to_string(),
        "TRUNCATED: 0 of 4 events found"
    );

    // A session that grew, and that the entry passes over.
    let mut unlisted = Hand::new();
    unlisted.event();
    let stands = unlisted.stands();
    unlisted.sealed(vec![stands]).event().sealed(Vec::new());
    let reply = "DIVERGED at 1: has events that are missing in the log";
    assert_eq!(unlisted.verdict(), reply);
}

#[test]
fn head_is_accepted_only_for_its_own_log_and_key() {
    let mut hand = Hand::new();
    hand.event();
    let stands = hand.stands();
    hand.sealed(vec![stands]);
    let with = |trust: TrustAnchors| of_log(&hand.verify(trust));
    let known = |head: LogHead| KnownHead { head, note: None };

    // A stranger's head proves nothing, and one that claims to be of the key and is not is a fault.
    let stranger = TrustAnchors::nothing()
        .with_key(key())
        .with_signed_heads([hand.signed_by(9)]);
    assert_eq!(with(stranger), "UNSEALED tail 2");
    let (head, note) = hand.signed_by(9);
    let handed = TrustAnchors::nothing()
        .with_key(key())
        .with_supplied_head(head, note);
    let reply = "BROKEN at 1: a head with 2 entries is not signed with the key";
    assert_eq!(with(handed), reply);
    let head = hand.head();
    let line = signer_with_seed(&id(LOG), 7).signature("something else\n");
    let forged = format!("{head}\n{line}").parse().unwrap();
    let forged = TrustAnchors::nothing()
        .with_key(key())
        .with_signed_heads([(head, forged)]);
    assert_eq!(
        with(forged),
        "BROKEN at 1: a head with 2 entries is not signed with the key"
    );
    let other = LogHead {
        log: id("log-2"),
        ..hand.head()
    };
    let reply = with(TrustAnchors::nothing().with_known_head(known(other.clone())));
    assert_eq!(
        reply,
        "DIVERGED at 1: its first 2 entries do not match the witness"
    );
    let far = LogHead {
        size: 9,
        ..other.clone()
    };
    let reply = with(TrustAnchors::nothing().with_known_head(known(far)));
    assert_eq!(reply, "DIVERGED at 0: the head belongs to another log");
    let larger = LogHead {
        size: 5,
        ..hand.head()
    };
    assert_eq!(
        with(TrustAnchors::nothing().with_known_head(known(larger.clone()))),
        "TRUNCATED: 2 of 5 events found"
    );
    let note = signer_with_seed(&id(LOG), 7)
        .sign(&larger.to_string())
        .parse()
        .unwrap();
    let signed = TrustAnchors::nothing()
        .with_key(key())
        .with_signed_heads([(larger, note)]);
    assert_eq!(with(signed), "TRUNCATED: 2 of 5 events found");

    let root = Digest::ZERO;
    let wrong = LogHead {
        root,
        ..hand.head()
    };
    let note = signer_with_seed(&id(LOG), 7)
        .sign(&wrong.to_string())
        .parse()
        .unwrap();
    let reply = with(
        TrustAnchors::nothing()
            .with_key(key())
            .with_signed_heads([(wrong, note)]),
    );
    assert_eq!(
        reply,
        "DIVERGED at 1: its first 2 entries do not match the signed head"
    );

    // Two that differ: the one that agrees does not hide the other, whichever was named first.
    let split = LogHead {
        root: Digest::ZERO,
        ..hand.head()
    };
    for pair in [[hand.head(), split.clone()], [split, hand.head()]] {
        let [one, two] = pair.map(known);
        let reply = with(
            TrustAnchors::nothing()
                .with_known_head(one)
                .with_known_head(two),
        );
        assert!(reply.starts_with("DIVERGED at 1"), "{reply}");
    }
    let both = TrustAnchors::nothing()
        .with_known_head(known(hand.head()))
        .with_key(key());
    assert_eq!(
        with(both.with_signed_heads([hand.signed_by(7)])),
        "WITNESSED 0..1"
    );
}

#[test]
fn lines_without_their_log_do_not_verify_against_a_given_head() {
    let mut hand = Hand::new();
    hand.event();
    let stands = hand.stands();
    hand.sealed(vec![stands]);
    let signed = TrustAnchors::nothing()
        .with_key(key())
        .with_signed_heads([hand.signed_by(7)]);
    assert!(jsonl::verify(lines(&hand.records).as_bytes(), signed.clone()).is_sound());
    let bare: Vec<_> = hand
        .records
        .iter()
        .filter(|record| record.session == id("s-1"))
        .cloned()
        .collect();
    let report = jsonl::verify(lines(&bare).as_bytes(), signed);
    assert_eq!(of_log(&report), "TRUNCATED: 0 of 2 events found");
}

fn lines(records: &[Record]) -> String {
    let line = |record: &Record| {
        let mut line = String::new();
        jsonl::write_line(&record.envelope().unwrap(), &record.hash, &mut line);
        line + "\n"
    };
    records.iter().map(line).collect()
}

/// A store with one session, and its upkeep.
async fn kept() -> (MemoryStore, Maintenance) {
    let store = MemoryStore::default();
    let clock = clock();
    let bench = Bench::start(Arc::new(store.clone()), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    bench.runtime.stop().await;
    (store.clone(), upkeep(&store, 7).await)
}

/// The log of a store, to be gone on with.
async fn log_of(store: &MemoryStore) -> (SessionId, Chain) {
    let log = store.log().await.unwrap().log;
    let heads = store.heads().await.unwrap();
    let end = heads.iter().find(|head| head.session == log).unwrap();
    let chain = Chain::resume(log.clone(), end.count, end.hash, end.last_at);
    (log, chain)
}

async fn upkeep(store: &MemoryStore, number: u8) -> Maintenance {
    let log = store.log().await.unwrap().log;
    let clock = clock() as Arc<dyn Clock>;
    let opened = Maintenance::open(
        Arc::new(store.clone()),
        signer_with_seed(&log, number),
        clock,
        &[],
    );
    opened.await.unwrap()
}

/// Verification of the record with one public key.
async fn verified(store: &MemoryStore, number: u8) -> VerificationReport {
    let log = store.log().await.unwrap().log;
    let trust = TrustAnchors::nothing().with_key(signer_with_seed(&log, number).verifier());
    store.verify(trust).await.unwrap()
}

#[tokio::test]
async fn rotated_key_is_trusted_with_the_public_key_of_the_old_one() {
    let (store, mut upkeep) = kept().await;
    let log = store.log().await.unwrap().log;
    upkeep
        .rotate_key(signer_with_seed(&log, 8), "op-1")
        .await
        .unwrap();
    drop(upkeep);
    let (kept, signer) = (Arc::new(store.clone()), signer_with_seed(&log, 8));
    let bench = Bench::with_signer(signer, acme(), Registry::default(), kept, clock()).await;
    bench.runtime.stop().await;
    for number in [7, 8] {
        let report = verified(&store, number).await;
        assert!(report.is_sound(), "{number}: {report:?}");
        assert_eq!(report.log.unwrap().verdict.label(), "SEALED", "{number}");
        assert_eq!(report.chains[0].verdict.label(), "SEALED", "{number}");
    }
    assert!(!verified(&store, 9).await.is_sound());
    // A second rotation: the first key still verifies the whole chain of keys.
    let mut upkeep = self::upkeep(&store, 8).await;
    upkeep
        .rotate_key(signer_with_seed(&log, 9), "op-1")
        .await
        .unwrap();
    for number in [7, 8, 9] {
        let report = verified(&store, number).await;
        assert!(report.is_sound(), "{number}: {report:?}");
    }
}

#[tokio::test]
async fn unsigned_entry_does_not_rotate_the_key() {
    let (store, upkeep) = kept().await;
    drop(upkeep);
    // Written by a person without a key, who waits for the console to sign it.
    let (log, mut chain) = log_of(&store).await;
    let key = signer_with_seed(&log, 9).verifier().to_string();
    let by = "op-1".to_owned();
    let entry = chain.seal(&draft(log.as_str(), KeyRotated { key, by }.into()));
    store
        .append(Batch::of(vec![entry]))
        .await
        .unwrap()
        .await
        .unwrap();
    let opened = Maintenance::open(Arc::new(store.clone()), signer(&store).await, clock(), &[]);
    let reply = opened.await.unwrap_err().to_string();
    assert!(
        reply.contains("an unsigned entry names another key"),
        "{reply}"
    );
}

/// The power goes at every step of a change of keys: then it was made, or it was not.
#[tokio::test]
async fn interrupted_key_rotation_leaves_either_the_old_or_the_new_key() {
    let mut done = [0, 0];
    for steps in 0..8 {
        let (store, mut upkeep) = kept().await;
        let log = store.log().await.unwrap().log;
        store.disk(|disk| disk.cut_after(steps));
        let rotated = upkeep.rotate_key(signer_with_seed(&log, 8), "op-1").await;
        let left = store
            .disk(|disk| disk.after_power_cut(0, cra_core::store::memory::disk::Corruption::No));
        let store = MemoryStore::open(left).unwrap();
        let number = if rotated.is_ok() { 8 } else { 7 };
        done[usize::from(rotated.is_ok())] += 1;
        let mut upkeep = self::upkeep(&store, number).await;
        upkeep.seal().await.unwrap();
        let report = verified(&store, 7).await;
        assert!(report.is_sound(), "{steps}: {report:?}");
    }
    assert!(done[0] > 0 && done[1] > 0, "{done:?}");
}

/// Events that are a hundred days old.
async fn old() -> (MemoryStore, Maintenance) {
    let store = MemoryStore::default();
    let retention = "{ default_days: 90, by_event_type: { session_started: 365 } }";
    let text = format!("{ACME}\ntrace_config: {{ retention: {retention} }}\n");
    let atlas = load_str("kept.yaml", &text).unwrap().atlas;
    let bench = Bench::with_atlases(vec![atlas], Arc::new(store.clone()), clock()).await;
    bench.begin("s-1").await;
    bench.runtime.stop().await;
    let later = clock();
    later.advance(Duration::from_hours(24 * 100));
    let signer = signer(&store).await;
    let opened = Maintenance::open(Arc::new(store.clone()), signer, later, &[]).await;
    (store, opened.unwrap())
}

#[tokio::test]
async fn pruned_events_are_linked_and_explained_and_other_gaps_are_reported() {
    let (store, mut upkeep) = old().await;
    let order = |mode| PruneRequest {
        by: "op-1",
        at_least: None,
        mode,
    };
    let reply = upkeep
        .prune(order(MaintenanceMode::Report))
        .await
        .unwrap()
        .sessions;
    assert_eq!(verified(&store, 7).await.chains[0].pruned, 0, "only told");
    let pruned = upkeep
        .prune(order(MaintenanceMode::Execute))
        .await
        .unwrap()
        .sessions;
    assert_eq!(pruned, reply);
    assert!(pruned[0].1 > 0);
    upkeep.seal().await.unwrap();
    let report = verified(&store, 7).await;
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.chains[0].pruned, pruned[0].1);
    let reply = report.chains[0].to_string();
    assert!(
        reply.starts_with("SEALED") && reply.contains("linked, content pruned"),
        "{reply}"
    );

    // What is left is held against what was left then.
    let records = store.records(0, 1000).await.unwrap();
    let text = lines(&records);
    assert!(jsonl::verify(text.as_bytes(), TrustAnchors::nothing()).is_sound());
    let bare = records
        .iter()
        .find(|record| record.envelope().unwrap().is_pruned())
        .unwrap();
    let (before, after) = (
        bare.envelope().unwrap().span_id,
        "00000000-0000-0000-0000-000000000000",
    );
    let line = lines(std::slice::from_ref(bare));
    let changed = text.replace(&line, &line.replace(before, after));
    assert_ne!(changed, text);
    let report = jsonl::verify(changed.as_bytes(), TrustAnchors::nothing());
    let reply = report.chains[0].verdict.to_string();
    assert!(
        reply.contains("pruned events changed after they were pruned"),
        "{reply}"
    );
    assert_eq!(report.chains[0].verdict.label(), "DIVERGED");
}

#[tokio::test]
async fn missing_content_without_a_log_entry_is_a_fault() {
    let (store, _) = kept().await;
    let (session, ranges) = (id("s-1"), vec![(1, 1)]);
    let prune = vec![PruneRanges { session, ranges }];
    let batch = Batch {
        prune,
        ..Batch::default()
    };
    store.append(batch).await.unwrap().await.unwrap();
    let report = verified(&store, 7).await;
    let reply = report.chains[0].verdict.to_string();
    assert_eq!(
        reply,
        "BROKEN at 1: its content was removed, but the log has no retention entry for it"
    );
}

#[tokio::test]
async fn imported_session_is_sealed_at_any_event_times() {
    let (store, mut upkeep) = kept().await;
    let mut chain = Chain::new(id("far-1"));
    let records: Vec<_> = (0..300)
        .map(|n| {
            let timestamp = Timestamp::from_micros(n * 1_000_000_000);
            chain.seal(&Draft {
                timestamp,
                ..draft("far-1", recovered())
            })
        })
        .collect();
    let imported = TraceImported {
        imported_session: "far-1".to_owned(),
        events: 300,
        head_hash: chain.last_hash().to_string(),
        source: "export.jsonl".to_owned(),
        file_hash: None,
        by: None,
    };
    upkeep.announce(imported);
    upkeep.take_in(records.clone()).await.unwrap();
    let report = verified(&store, 7).await;
    assert!(
        report.is_sound(),
        "not yet signed, and not late: {report:?}"
    );
    upkeep.seal().await.unwrap();
    let report = verified(&store, 7).await;
    assert!(report.is_sound(), "{report:?}");
    let far = report
        .chains
        .iter()
        .find(|chain| chain.session == id("far-1"))
        .unwrap();
    assert_eq!(far.verdict.to_string(), "IMPORTED 0..299");
    let back = store.session_records(id("far-1"), 0, 1000).await.unwrap();
    assert_eq!(back, records);
    settle().await;
}

/// An Atlas under which events are kept for a day.
fn short_lived() -> Atlas {
    let text = format!("{ACME}\ntrace_config: {{ retention: {{ default_days: 1 }} }}\n");
    load_str("short.yaml", &text).unwrap().atlas
}

/// A session whose every event was pruned, its last one among them, is listed as ended all the same.
#[test]
fn ended_session_with_a_pruned_end_still_verifies() {
    let home = TestHome::of(|store| async move {
        let bench = Bench::with_atlases(vec![short_lived()], store, clock()).await;
        bench.begin("s-1").await;
        let end = EndSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: id("s-1"),
            status: FinalStatus::Completed,
            summary: None,
        };
        bench.runtime.agent_handle().end_session(end).await.unwrap();
        bench.runtime.stop().await;
    });
    home.run(&["trace", "prune"]).succeeds();
    let output = home.run(&["trace", "verify"]);
    output.succeeds();
    assert!(output.out.contains("content pruned"), "{}", output.out);
}

#[test]
fn session_moved_after_its_seal_is_reported_as_truncated() {
    let mut hand = Hand::new();
    hand.event().event();
    let stands = hand.stands();
    hand.sealed(vec![stands]);
    let known = KnownHead {
        head: hand.head(),
        note: None,
    };
    let (log, session): (Vec<_>, Vec<_>) = hand
        .records
        .iter()
        .cloned()
        .partition(|record| record.session == id(LOG));
    hand.records = [log, session].concat();
    let report = hand.verify(TrustAnchors::nothing().with_known_head(known));
    assert!(!report.is_sound(), "{report:?}");
    assert_eq!(report.chains[0].verdict.label(), "TRUNCATED");
}

/// A person who removes heads, rewrites the past and starts a console must not get it signed.
#[tokio::test]
async fn more_unsigned_events_than_a_crash_can_leave_are_not_signed_at_the_next_start() {
    for (entries, events) in [(129, 0), (0, 64 * 256 + 1)] {
        let (store, upkeep) = kept().await;
        drop(upkeep);
        let (log, mut chain) = log_of(&store).await;
        let sessions = Vec::new();
        let empty = Payload::from(LogSealed {
            sessions,
            state_sealed: None,
            by: None,
        });
        let entries = (0..entries).map(|_| chain.seal(&draft(log.as_str(), empty.clone())));
        let mut other = Chain::new(id("s-2"));
        let events = (0..events).map(|_| other.seal(&draft("s-2", recovered())));
        let records: Vec<_> = entries.chain(events).collect();
        let written = store.append(Batch::of(records)).await.unwrap().await;
        written.unwrap();
        let signer = signer(&store).await;
        let opened = Maintenance::open(Arc::new(store.clone()), signer, clock(), &[]).await;
        let refused = opened.unwrap_err().to_string();
        assert!(refused.contains("more than a crash can leave"), "{refused}");
    }
}

#[tokio::test]
async fn clock_set_back_does_not_delay_the_next_seal() {
    let store = MemoryStore::default();
    let late = clock();
    late.advance(Duration::from_hours(1));
    let bench = Bench::start(Arc::new(store.clone()), Arc::clone(&late)).await;
    bench.begin("s-1").await;
    bench.wait_until(|s| s.held.len() == 1).await;
    late.set_back(Duration::from_hours(1));
    bench.begin("s-2").await;
    bench.wait_until(|s| s.held.len() == 2).await;
    let before = bench.snapshot().chain.head.signed;
    late.advance(Duration::from_secs(2));
    let sealed = async {
        while store.log().await.unwrap().seal.unwrap().size <= before {
            tokio::task::yield_now().await;
        }
    };
    let sealed = tokio::time::timeout(Duration::from_secs(20), sealed).await;
    sealed.expect("it was put off");
    assert!(verified(&store, 7).await.is_sound());
}

/// An operator sees on the screen how much was signed, without running a verification.
#[tokio::test]
async fn snapshot_reports_how_much_the_newest_head_covers() {
    let clock = clock();
    let bench = Bench::start(Arc::new(MemoryStore::default()), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let open = bench.wait_until(|s| s.held.len() == 1).await;
    assert!(open.chain.events > open.chain.head.covered);
    clock.advance(Duration::from_secs(2));
    let signed = bench.wait_until(|s| s.chain.head.covered > 0).await;
    assert_eq!(signed.chain.head.covered, signed.chain.events);
    bench.runtime.stop().await;
}

/// A kill between an entry and its signature: the next start goes on behind the entry, and says nothing twice.
#[tokio::test]
async fn sessions_named_by_an_unsigned_entry_are_not_named_again() {
    let (store, upkeep) = kept().await;
    drop(upkeep);
    let (log, mut chain) = log_of(&store).await;
    let mut other = Chain::new(id("s-2"));
    let record = other.seal(&draft("s-2", recovered()));
    let sessions = vec![SealedHead {
        session: id("s-2"),
        count: 1,
        hash: record.hash,
    }];
    let entry = chain.seal(&draft(
        log.as_str(),
        LogSealed {
            sessions,
            state_sealed: None,
            by: None,
        }
        .into(),
    ));
    let written = store.append(Batch::of(vec![record, entry])).await.unwrap();
    written.await.unwrap();
    let bench = Bench::start(Arc::new(store.clone()), clock()).await;
    bench.begin("s-3").await;
    bench.runtime.stop().await;
    // Each entry names exactly the sessions that have grown since the one before.
    let mut grown = BTreeSet::new();
    let mut entries = 0;
    for record in store.records(0, 1000).await.unwrap() {
        let event = record.event_of().unwrap();
        if event.event_type == "log_sealed" {
            let sessions = event.payload["sessions"].as_array().unwrap().iter();
            let output = sessions.map(|value| value["session"].as_str().unwrap().to_owned());
            assert_eq!(output.collect::<BTreeSet<_>>(), std::mem::take(&mut grown));
            entries += 1;
        } else if record.session != log {
            grown.insert(record.session.to_string());
        }
    }
    assert!(entries > 2, "{entries}");
    assert!(verified(&store, 7).await.is_sound());
}
