//! Attacks of an insider on the record, and the readers that detect them.
//!
//! The insider writes the files: the database, and exports of it. He has no key. Each attack is done to
//! both, as well as it can be done, and the outcome is compared with a table: what a reader detects who
//! knows nothing, who has the public key, who kept a head from before.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::ManualClock;
use cra_core::engine::command::Ruling;
use cra_core::runtime::RequestReply;
use cra_core::runtime::extension::Registry;
use cra_core::store::Store;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use cra_core::trace::head::{KnownHead, LogHead};
use cra_core::trace::jsonl::LinesVerifier;
use cra_core::trace::note::{SignedNote, Verifier};
use cra_core::trace::verification::{TrustAnchors, VerificationReport};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::support::{Bench, acme, clock, close, decide, reopen_store, request, signer_with_seed};
use insider::{Copy, Kept};

mod bit_flips;
mod independent_verifier;
mod insider;
mod state;
mod usage;

/// A record as a console left it, and the same one as it was a while before.
struct Scene {
    folder: TempDir,
    old: TempDir,
    key: Verifier,
    known: KnownHead,
}

impl Scene {
    async fn new() -> Self {
        let (folder, old) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clock = clock();
        morning(folder.path(), &clock).await;
        fs::copy(folder.path().join(FILE_NAME), old.path().join(FILE_NAME)).unwrap();
        afternoon(folder.path(), &clock, 7).await;
        let reader = SqliteReader::open(&folder.path().join(FILE_NAME)).unwrap();
        let log = reader.log().unwrap();
        Self {
            key: signer_with_seed(&log.log, 7).verifier(),
            known: KnownHead::read(&log.seal.unwrap().note).unwrap(),
            folder,
            old,
        }
    }

    fn copy(&self) -> Copy {
        Copy::of(self.folder.path())
    }

    /// Verdict of a reader of the database.
    fn in_database(&self, copy: &Copy, knows: Knows) -> String {
        let folder = tempfile::tempdir().unwrap();
        copy.put(self.folder.path(), folder.path());
        let trust = self.trust(knows);
        let report =
            SqliteReader::open(&folder.path().join(FILE_NAME)).and_then(|item| item.verify(trust));
        report.map_or("REFUSED".to_owned(), |report| word(&report))
    }

    /// Verdict of a reader of an export, given together with its heads.
    fn in_export(&self, copy: &Copy, knows: Knows) -> String {
        let mut trust = self.trust(knows);
        if let Knows::Key = knows {
            let heads = copy.seals.values().filter_map(|note| {
                let note: SignedNote = note.parse().ok()?;
                let head: LogHead = note.text.parse().ok()?;
                Some((head, note))
            });
            trust = trust.with_signed_heads(heads);
        }
        let mut verifier = LinesVerifier::new(trust);
        for line in copy.export().lines() {
            verifier.push(line.as_bytes());
        }
        verifier.demand_seals();
        word(&verifier.finish())
    }

    fn trust(&self, knows: Knows) -> TrustAnchors {
        match knows {
            Knows::Nothing => TrustAnchors::nothing(),
            Knows::Key => TrustAnchors::nothing().with_key(self.key.clone()),
            Knows::Head => TrustAnchors::nothing().with_known_head(self.known.clone()),
        }
    }
}

/// Prior knowledge of a reader of the record.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knows {
    Nothing,
    Key,
    Head,
}

/// The worst that is said about any of it.
fn word(report: &VerificationReport) -> String {
    if let Some((_, fault)) = report.first_fault() {
        return fault.label().to_owned();
    }
    let log = report.log.iter().map(|log| log.verdict.label());
    let words: Vec<_> = report
        .chains
        .iter()
        .map(|one| one.verdict.label())
        .chain(log)
        .collect();
    let weakest = ["UNSEALED", "SEALED", "WITNESSED"];
    let weakest = weakest.into_iter().find(|word| words.contains(word));
    weakest.unwrap_or("EMPTY").to_owned()
}

/// Two sessions, a gate passed and a gate refused, and signed heads in between.
async fn morning(folder: &Path, clock: &Arc<ManualClock>) {
    let store = Arc::new(reopen_store(folder));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(clock)).await;
    for session in ["s-1", "s-2"] {
        pass_start_gate(&bench, session).await;
        sealed(&bench, &store, 2).await;
    }
    ask_at_a_gate(&bench, "s-1", Verdict::Pass).await;
    sealed(&bench, &store, 100).await;
    ask_at_a_gate(&bench, "s-2", Verdict::Deny).await;
    sealed(&bench, &store, 100).await;
    bench.runtime.stop().await;
    close(store, folder).await;
}

/// Continues the record: the second session a little, then a third one alone.
async fn afternoon(folder: &Path, clock: &Arc<ManualClock>, key: u8) {
    clock.advance(Duration::from_secs(30));
    let store = Arc::new(reopen_store(folder));
    let signer = signer_with_seed(&store.log().await.unwrap().log, key);
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let bench =
        Bench::with_signer(signer, acme(), Registry::default(), kept, Arc::clone(clock)).await;
    // Where the record was cut or the key is another, the sessions of the morning are over.
    let mut session = "s-2";
    if bench.snapshot().distrusted.is_some() {
        session = "s-4";
        pass_start_gate(&bench, session).await;
    }
    ask_at_a_gate(&bench, session, Verdict::Pass).await;
    sealed(&bench, &store, 100).await;
    pass_start_gate(&bench, "s-3").await;
    sealed(&bench, &store, 100).await;
    let get = request("s-3", "ticket.get", json!({"ticket_id": "T-3"}));
    bench
        .runtime
        .agent_handle()
        .request_action(get)
        .await
        .unwrap();
    bench.runtime.stop().await;
    close(store, folder).await;
}

async fn pass_start_gate(bench: &Bench, session: &str) {
    bench.begin(session).await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    let get = request(session, "ticket.get", json!({"ticket_id": "T-1"}));
    bench
        .runtime
        .agent_handle()
        .request_action(get)
        .await
        .unwrap();
}

#[derive(Clone, Copy)]
enum Verdict {
    Pass,
    Deny,
}

async fn ask_at_a_gate(bench: &Bench, session: &str, verdict: Verdict) {
    let agents = bench.runtime.agent_handle();
    let params = json!({"ticket_ids": ["T-1"], "cascade": true});
    let delete = request(session, "ticket.delete", params);
    let asking = tokio::spawn(async move { agents.request_action(delete).await });
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    match verdict {
        Verdict::Pass => {
            bench.pass(&held).await;
            let answer = asking.await.unwrap().unwrap();
            assert!(matches!(answer, RequestReply::Allowed(_)), "{answer:?}");
        }
        Verdict::Deny => {
            let reason = "not today".to_owned();
            let ruling = Ruling::Deny { reason };
            bench
                .runtime
                .operator_handle()
                .decide(decide(&held, ruling))
                .await;
            asking.await.unwrap().unwrap_err();
        }
    }
}

/// Lets time pass, and waits for the head that is due then.
async fn sealed(bench: &Bench, store: &SqliteStore, seconds: u64) {
    let size = async || store.log().await.unwrap().seal.unwrap().size;
    let before = size().await;
    bench.clock.advance(Duration::from_secs(seconds));
    while size().await == before {
        tokio::task::yield_now().await;
    }
}

/// A place in the middle of the first session, which is covered by heads that are minutes old.
fn middle(copy: &Copy) -> usize {
    copy.places("s-1")[3]
}

/// Something that is done to a record.
type Attack = fn(&mut Copy);

/// Attacks after which nothing is computed again.
fn crude() -> Vec<(&'static str, Attack)> {
    vec![
        ("flip a bit", |copy| {
            let place = middle(copy);
            let kept = &mut copy.records[place];
            let brace = kept.text.find('{').unwrap();
            let flipped = kept.text.as_bytes()[brace + 3] ^ 2;
            let flipped = char::from(flipped).to_string();
            kept.text.replace_range(brace + 3..brace + 4, &flipped);
        }),
        ("delete", |copy| drop(copy.records.remove(middle(copy)))),
        ("reorder", |copy| {
            let places = copy.places("s-1");
            copy.records.swap(places[3], places[4]);
        }),
        ("duplicate", |copy| {
            let place = middle(copy);
            copy.records.insert(place, copy.records[place].clone());
        }),
        ("insert", |copy| {
            let place = middle(copy);
            let forged = copy.records[place].text.replace("op-1", "op-9");
            copy.records.insert(place, Kept::new(forged));
        }),
        ("drop the first event", |copy| {
            drop(copy.records.remove(copy.places("s-1")[0]));
        }),
        ("shift a field boundary", |copy| {
            let place = middle(copy);
            let kept = &mut copy.records[place];
            let mut fields: Vec<_> = kept.text.split(':').map(str::to_owned).collect();
            let moved = fields[1].pop().unwrap();
            fields[2].insert(0, moved);
            kept.text = fields.join(":");
        }),
        ("add a field that no hash covers", |copy| {
            let place = middle(copy);
            copy.records[place].extra = Some(("verified_by".to_owned(), "auditor".to_owned()));
            copy.sql += "ALTER TABLE events ADD COLUMN verified_by TEXT DEFAULT 'auditor'";
        }),
    ]
}

/// Two copies of a changed record: with all signed heads, and without those that cover the change.
fn with_and_without_seals(mut copy: Copy, place: usize) -> Vec<Copy> {
    let with = copy.clone();
    copy.drop_seals_of(place);
    vec![with, copy]
}

/// Attacks after which everything but the signatures is computed again.
fn thorough(scene: &Scene) -> Vec<(&'static str, Vec<Copy>)> {
    let edited = |from: &str, to: &str| {
        let mut copy = scene.copy();
        let place = copy.places("s-1").into_iter();
        let place = place
            .clone()
            .find(|at| copy.records[*at].text.contains(from));
        let place = place.unwrap();
        let text = copy.records[place].text.replacen(from, to, 1);
        copy.records[place].text = text;
        (copy, place)
    };
    let (mut back, at) = edited("2026-01-01T00:00:04.", "2025-12-31T23:00:00.");
    let earlier = at;
    back.rechain();
    let (mut edit, edited_at) = edited("\"op-1\"", "\"op-9\"");
    edit.rechain();
    let mut dated = scene.copy();
    for kept in &mut dated.records {
        kept.text = kept.text.replacen("2026-01-01T00:0", "2025-01-01T00:0", 1);
    }
    let dated_at = dated.places("s-1")[0];
    dated.rechain();
    vec![
        ("set the clock back", with_and_without_seals(back, earlier)),
        (
            "edit and chain again",
            with_and_without_seals(edit, edited_at),
        ),
        ("back-date", with_and_without_seals(dated, dated_at)),
    ]
}

/// Cuts the record behind the newest head that covers nothing of the third session.
fn without_third(scene: &Scene) -> Copy {
    let mut copy = scene.copy();
    let first = copy.places("s-3")[0];
    copy.cut_behind(copy.seal_before(first));
    copy
}

/// Attacks that a real console takes part in, on copies of the files.
async fn resumed(scene: &Scene) -> Vec<(&'static str, Vec<Copy>)> {
    let later = Arc::new(ManualClock::new(
        "2026-01-01T01:00:00.000000Z".parse().unwrap(),
    ));
    let folder = tempfile::tempdir().unwrap();
    // What the engine goes on with is from before, too: nothing in it knows of the third session.
    without_third(scene).put(scene.old.path(), folder.path());
    afternoon(folder.path(), &later, 7).await;
    let resumed = Copy::of(folder.path());

    // With a key of his own, because he has no other.
    let fork = tempfile::tempdir().unwrap();
    fs::copy(
        scene.old.path().join(FILE_NAME),
        fork.path().join(FILE_NAME),
    )
    .unwrap();
    afternoon(fork.path(), &later, 9).await;
    let fork = Copy::of(fork.path());
    let forked_at = Copy::of(scene.old.path()).records.len();

    let fresh = tempfile::tempdir().unwrap();
    let clock = clock();
    let log = scene.copy().log;
    drop(reopen_store(fresh.path()));
    let rename = format!("UPDATE log SET log_id = '{log}'");
    let connection = Connection::open(fresh.path().join(FILE_NAME)).unwrap();
    connection.execute_batch(&rename).unwrap();
    drop(connection);
    afternoon_of_his_own(fresh.path(), &clock).await;
    let fresh = Copy::of(fresh.path());
    let mut unsigned = fresh.clone();
    unsigned.seals.clear();
    vec![
        ("cut the end and go on", vec![resumed]),
        ("begin anew", vec![fresh, unsigned]),
        ("fork", with_and_without_seals(fork, forked_at)),
    ]
}

/// A record of the same sessions, with another story, signed with a key of his own.
async fn afternoon_of_his_own(folder: &Path, clock: &Arc<ManualClock>) {
    let store = Arc::new(reopen_store(folder));
    let signer = signer_with_seed(&store.log().await.unwrap().log, 9);
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let bench =
        Bench::with_signer(signer, acme(), Registry::default(), kept, Arc::clone(clock)).await;
    for session in ["s-1", "s-2", "s-3"] {
        pass_start_gate(&bench, session).await;
        sealed(&bench, &store, 100).await;
    }
    bench.runtime.stop().await;
    close(store, folder).await;
}

/// An event behind everything that was signed, as a console that died leaves it.
fn forged_end(scene: &Scene) -> Copy {
    let mut copy = scene.copy();
    let last = *copy.places("s-3").last().unwrap();
    let (text, previous) = (copy.records[last].text.clone(), copy.records[last].hash);
    let (body, _) = text.rsplit_once(':').unwrap();
    let sequence = copy.records[last].envelope().sequence;
    let next = body.replacen(&format!(":{sequence}:"), &format!(":{}:", sequence + 1), 1);
    copy.records.push(Kept::new(format!("{next}:{previous}")));
    copy
}

/// Changes that no head covers: a console that starts on them signs them.
async fn beyond_proof(scene: &Scene) -> Vec<(&'static str, Vec<Copy>)> {
    let folder = tempfile::tempdir().unwrap();
    forged_end(scene).put(scene.folder.path(), folder.path());
    let later = Arc::new(ManualClock::new(
        "2026-01-01T01:00:00.000000Z".parse().unwrap(),
    ));
    let store = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, later).await;
    bench.runtime.stop().await;
    close(store, folder.path()).await;
    let signed = Copy::of(folder.path());
    let mut last = scene.copy();
    let mut places = last.places("s-3").into_iter();
    let place = places
        .find(|at| last.records[*at].text.contains("T-3"))
        .unwrap();
    last.records[place].text = last.records[place].text.replace("T-3", "T-9");
    last.rechain();
    vec![
        (
            "edit what was sealed last",
            with_and_without_seals(last, place),
        ),
        ("add to the end", vec![forged_end(scene)]),
        ("add to the end, and start cra", vec![signed]),
    ]
}

/// All attacks by name, each in the ways that the insider can choose from.
async fn attacks(scene: &Scene) -> Vec<(&'static str, Vec<Copy>)> {
    let mut all = vec![("nothing: the honest record", vec![scene.copy()])];
    all.extend(crude().into_iter().map(|(name, attack)| {
        let mut copy = scene.copy();
        attack(&mut copy);
        (name, vec![copy])
    }));
    let [back, edit, dated] = thorough(scene).try_into().ok().unwrap();
    let [resumed, fresh, fork] = resumed(scene).await.try_into().ok().unwrap();
    let mut cut = scene.copy();
    let place = *cut.places("s-2").last().unwrap();
    cut.cut_behind(cut.seal_before(place));
    all.extend([
        back,
        ("cut the end", vec![cut]),
        resumed,
        ("put an old copy back", vec![Copy::of(scene.old.path())]),
        ("remove a session", vec![without_third(scene)]),
        edit,
        fresh,
        fork,
        dated,
    ]);
    all.extend(beyond_proof(scene).await);
    all
}

/// The best that the insider can get out of an attack.
fn best(
    scene: &Scene,
    ways: &[Copy],
    see: fn(&Scene, &Copy, Knows) -> String,
    knows: Knows,
) -> String {
    let rank = |word: &String| {
        let good = ["UNSEALED", "SEALED", "WITNESSED"];
        good.iter()
            .position(|good| good == word)
            .map_or(0, |n| n + 1)
    };
    let seen = ways.iter().map(|copy| see(scene, copy, knows));
    seen.max_by_key(rank).unwrap()
}

/// Each attack, and what is detected in the database / in an export of it. No verdict claims more than
/// holds: four attacks are detected only with a kept head, and changes that no head covered yet are
/// not detected.
const TABLE: &str = "\
attack                           | nothing known          | public key             | known head
nothing: the honest record       | UNSEALED / UNSEALED    | SEALED / SEALED        | WITNESSED / WITNESSED
flip a bit                       | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
delete                           | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
reorder                          | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
duplicate                        | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
insert                           | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
drop the first event             | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
shift a field boundary           | BROKEN / BROKEN        | BROKEN / BROKEN        | BROKEN / BROKEN
add a field that no hash covers  | REFUSED / BROKEN       | REFUSED / BROKEN       | REFUSED / BROKEN
set the clock back               | BROKEN / BROKEN        | DIVERGED / DIVERGED    | DIVERGED / DIVERGED
cut the end                      | UNSEALED / UNSEALED    | SEALED / SEALED        | TRUNCATED / TRUNCATED
cut the end and go on            | UNSEALED / UNSEALED    | SEALED / SEALED        | DIVERGED / DIVERGED
put an old copy back             | UNSEALED / UNSEALED    | SEALED / SEALED        | TRUNCATED / TRUNCATED
remove a session                 | UNSEALED / UNSEALED    | SEALED / SEALED        | TRUNCATED / TRUNCATED
edit and chain again             | UNSEALED / UNSEALED    | DIVERGED / DIVERGED    | DIVERGED / DIVERGED
begin anew                       | UNSEALED / UNSEALED    | DIVERGED / DIVERGED    | TRUNCATED / TRUNCATED
fork                             | UNSEALED / UNSEALED    | DIVERGED / DIVERGED    | DIVERGED / DIVERGED
back-date                        | UNSEALED / UNSEALED    | DIVERGED / DIVERGED    | DIVERGED / DIVERGED
edit what was sealed last        | UNSEALED / UNSEALED    | UNSEALED / UNSEALED    | DIVERGED / DIVERGED
add to the end                   | UNSEALED / UNSEALED    | UNSEALED / UNSEALED    | UNSEALED / UNSEALED
add to the end, and start cra    | UNSEALED / UNSEALED    | SEALED / SEALED        | UNSEALED / UNSEALED
";

// covers T1, T2
#[tokio::test]
async fn each_insider_attack_is_detected_with_the_documented_knowledge() {
    let scene = Scene::new().await;
    let row = |name: &str, [nothing, key, head]: [String; 3]| {
        format!("{name:32} | {nothing:22} | {key:22} | {head}\n")
    };
    let titles = ["nothing known", "public key", "known head"].map(str::to_owned);
    let mut table = vec![row("attack", titles)];
    for (name, ways) in attacks(&scene).await {
        let cell = |knows| {
            let database = best(&scene, &ways, Scene::in_database, knows);
            let export = best(&scene, &ways, Scene::in_export, knows);
            format!("{database} / {export}")
        };
        let cells = [Knows::Nothing, Knows::Key, Knows::Head].map(cell);
        table.push(row(name, cells));
    }
    let table = table.concat();
    assert_eq!(table, TABLE, "\n{table}");
}
