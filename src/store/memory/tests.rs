use super::disk::{Corruption, SimulatedDisk};
use super::journal::Journal;
use super::*;
use crate::base::clock::Timestamp;
use crate::trace::chain::Chain;
use crate::trace::event::{Draft, Durability, Payload};

/// Runs on each of two threads.
const RUNS: u64 = 16_000;

/// Variants of each power cut that are tried per run: a quarter of a million cuts in total.
const CUTS: usize = 8;

/// Most batches in a run.
const BATCHES: usize = 4;

/// Small pseudo-random generator (`SplitMix64`), so that a seed always gives the same run.
struct SplitMix64(u64);

impl SplitMix64 {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).unwrap()
    }
}

/// Batches to write: state only, or records as well.
fn test_batches(with_records: bool) -> Vec<Batch> {
    let session: SessionId = "s-1".parse().unwrap();
    let mut chain = Chain::new(session.clone());
    let fields =
        serde_json::json!({"original_error_id": "x", "recovery_method": "r", "success": true});
    let payload = Payload::read("error_recovered", fields.as_object().unwrap().clone()).unwrap();
    let mut record = |n: usize| {
        chain.seal(&Draft {
            session_id: session.clone(),
            event_id: format!("e-{n}").parse().unwrap(),
            trace_id: "t".parse().unwrap(),
            span_id: "p".parse().unwrap(),
            parent_span_id: None,
            timestamp: Timestamp::from_micros(i64::try_from(n).unwrap()),
            payload: payload.clone(),
            durability: Durability::Sync,
        })
    };
    let row = |kind: &str, n: usize| StateRow {
        kind: kind.to_owned(),
        key: format!("{n:03}"),
        body: Some("{}".to_owned()),
    };
    let batch = |n: usize| Batch {
        records: (0..usize::from(with_records)).map(|_| record(n)).collect(),
        // Two rows in each batch, so that half a batch is detected.
        state: vec![row("a", n), row("b", n)],
        ..Batch::default()
    };
    (0..2 * BATCHES).map(batch).collect()
}

/// Number of batches present. Any other content is a fault.
fn count_present(tables: &MemoryTables, material: &[Batch]) -> Result<usize, String> {
    let state = tables.state();
    let count = state.len() / 2;
    let handed = &material[..count.min(material.len())];
    let expected = handed.iter().map(|batch| &batch.state[0]);
    let expected = expected.chain(handed.iter().map(|batch| &batch.state[1]));
    if !state.iter().eq(expected) {
        return Err(format!("a batch is there in part: {state:?}"));
    }
    let records = handed.iter().flat_map(|batch| &batch.records);
    if !tables.records.iter().eq(records) {
        return Err("the records are not those of the batches".to_owned());
    }
    Ok(count)
}

/// Honesty of a disk about durability.
#[derive(Clone, Copy, PartialEq)]
enum DiskHonesty {
    Honest,
    Lying,
}

/// Writes batches in groups until the power cut, and checks every content that may remain. Returns lost
/// or unexpected data as an error.
fn run(dice: &mut SplitMix64, material: &[Batch], honesty: DiskHonesty) -> Result<(), String> {
    let mut disk = SimulatedDisk::default();
    disk.cut_after(dice.roll(2 * BATCHES + 1) as u64);
    if honesty == DiskHonesty::Lying {
        disk.lie_about_syncs();
    }
    let mut writer = BatchWriter::new(open_journal(disk)?.0);
    let (mut acknowledged, mut handed) = (0, 0);
    while handed < BATCHES {
        let end = BATCHES.min(handed + 1 + dice.roll(3));
        let group: Vec<_> = material[handed..end].iter().collect();
        handed = end;
        match writer.write(&group) {
            Ok(()) => acknowledged = end,
            Err(_) => break,
        }
    }
    let disk = &writer.medium().disk;
    for cut in 0..CUTS {
        let kept = dice.roll(disk.unsynced_bytes() + 1);
        let garbled = match dice.roll(3) {
            0 => Corruption::LastByte(1 << dice.roll(8)),
            _ => Corruption::No,
        };
        let left = disk.after_power_cut(kept, garbled);
        let (journal, found) = check_after_cut(left, material, acknowledged..=handed)?;
        if cut == 0 {
            write_after_cut(journal, material, found)?;
        }
    }
    Ok(())
}

fn open_journal(disk: SimulatedDisk) -> Result<(Journal, Option<String>), String> {
    Journal::open(disk).map_err(|error| error.to_string())
}

/// Opens the disk after a power cut and checks its content.
fn check_after_cut(
    left: SimulatedDisk,
    material: &[Batch],
    may: std::ops::RangeInclusive<usize>,
) -> Result<(Journal, usize), String> {
    let length = left.bytes().len();
    let (journal, mended) = open_journal(left)?;
    let found = count_present(&journal.tables, material)?;
    if !may.contains(&found) {
        let (acknowledged, handed) = may.into_inner();
        return Err(format!(
            "{found} of {handed} are there, {acknowledged} were acknowledged"
        ));
    }
    let torn = journal.disk.bytes().len() < length;
    if mended.is_some() != torn {
        return Err(format!("{mended:?}, and torn was {torn}"));
    }
    let recorded = !journal.tables.records.is_empty();
    if recorded && !journal.tables.verify(TrustAnchors::nothing()).is_sound() {
        return Err("the chain does not hold".to_owned());
    }
    Ok((journal, found))
}

/// Writes one more batch after the cut and opens the disk again.
fn write_after_cut(journal: Journal, material: &[Batch], found: usize) -> Result<(), String> {
    let mut writer = BatchWriter::new(journal);
    writer
        .write(&[&material[found]])
        .map_err(|error| error.to_string())?;
    let disk = writer.medium().disk.after_power_cut(0, Corruption::No);
    let (journal, mended) = open_journal(disk)?;
    let after = count_present(&journal.tables, material)?;
    if (after, &mended) == (found + 1, &None) {
        return Ok(());
    }
    Err(format!(
        "{after} are there after {found} and one more: {mended:?}"
    ))
}

fn run_many(seed: u64, runs: u64, honesty: DiskHonesty) -> Vec<(u64, String)> {
    let (plain, recorded) = (test_batches(false), test_batches(true));
    let mut wrong = Vec::new();
    for n in 0..runs {
        let seed = seed + n;
        // Reading records back takes most of the time, so only some runs have records.
        let material = if n % 8 == 0 { &recorded } else { &plain };
        if let Err(what) = run(&mut SplitMix64(seed), material, honesty) {
            wrong.push((seed, what));
        }
    }
    wrong
}

#[test]
fn power_cuts_lose_no_acknowledged_batch_and_leave_no_partial_batch() {
    let halves = std::thread::scope(|scope| {
        let halves =
            [0, RUNS].map(|seed| scope.spawn(move || run_many(seed, RUNS, DiskHonesty::Honest)));
        halves.map(|half| half.join().unwrap())
    });
    assert_eq!(halves.concat(), []);
}

/// Checks that the power-cut test detects a store that acknowledges before the data is on disk.
#[test]
fn an_acknowledgement_before_the_sync_is_detected() {
    let wrong = run_many(0, 2000, DiskHonesty::Lying);
    assert!(wrong.len() > 1000, "{} of 2000", wrong.len());
    assert!(wrong[0].1.contains("were acknowledged"), "{wrong:?}");
}

/// A fault of a disk.
type DiskFault = fn(&mut SimulatedDisk);

#[test]
fn a_full_disk_or_failed_sync_poisons_the_writer_permanently() {
    let material = test_batches(true);
    let faults: [(&str, DiskFault); 2] = [
        ("no space left on device", |disk| disk.full_after(2)),
        ("input/output error", |disk| disk.fail_sync_after(2)),
    ];
    for (what, fault) in faults {
        let mut disk = SimulatedDisk::default();
        fault(&mut disk);
        let mut writer = BatchWriter::new(Journal::open(disk).unwrap().0);
        writer.write(&[&material[0]]).unwrap();
        writer.write(&[&material[1]]).unwrap();
        let failed = writer.write(&[&material[2]]);
        let Err(StoreError::Poisoned(cause)) = &failed else {
            panic!("{failed:?}")
        };
        assert_eq!(cause.to_string(), what);
        let source = std::error::Error::source(failed.as_ref().unwrap_err());
        assert!(source.is_some(), "the error keeps its source");
        // The writer stays poisoned even if the disk works again: the content of the disk is unknown.
        writer.medium().disk.repair();
        assert_eq!(writer.write(&[&material[2]]), failed);
        assert_eq!(writer.write(&[&Batch::default()]), failed);
        let left = writer.medium().disk.after_power_cut(0, Corruption::No);
        let count = count_present(&Journal::open(left).unwrap().0.tables, &material).unwrap();
        assert!((2..=3).contains(&count), "{count}");
    }
}

/// A journal of some commits, and the end position of each.
fn journal_of(material: &[Batch], commits: usize) -> (Vec<u8>, Vec<usize>) {
    let mut writer = BatchWriter::new(Journal::default());
    let mut ends = Vec::new();
    for batch in &material[..commits] {
        writer.write(&[batch]).unwrap();
        ends.push(writer.medium().disk.bytes().len());
    }
    (writer.medium().disk.bytes(), ends)
}

#[test]
fn damage_before_whole_commits_is_rejected_and_not_repaired() {
    let material = test_batches(true);
    let (bytes, ends) = journal_of(&material, 5);
    let last = ends[3];
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        match Journal::open(SimulatedDisk::with(damaged)) {
            Err(StoreError::Damaged { what }) => {
                assert!(place < last, "byte {place}: {what}");
                assert!(what.contains("damaged at byte"), "{what}");
            }
            Err(other) => panic!("byte {place}: {other}"),
            Ok((journal, mended)) => {
                assert!(place >= last, "byte {place} was repaired away");
                assert!(mended.is_some());
                assert_eq!(count_present(&journal.tables, &material), Ok(4));
            }
        }
    }
}

#[test]
fn arbitrary_bytes_never_panic_or_add_a_batch() {
    let material = test_batches(true);
    let (bytes, ends) = journal_of(&material, 3);
    let first = &bytes[..ends[0]];
    let mut dice = SplitMix64(7);
    for round in 0..20_000 {
        let bytes = match round % 3 {
            0 => (0..dice.roll(200)).map(|_| dice.byte()).collect(),
            // A commit whose digest fits its modified content.
            1 => {
                let mut body = first[40..].to_vec();
                for _ in 0..=dice.roll(4) {
                    let place = dice.roll(body.len());
                    body[place] = dice.byte();
                }
                let digest = Digest::of(&body);
                [&first[..8], digest.as_bytes().as_slice(), &body].concat()
            }
            _ => {
                let mut bytes = bytes.clone();
                let place = dice.roll(bytes.len());
                bytes[place] ^= 1 << dice.roll(8);
                bytes
            }
        };
        let Ok((journal, _)) = Journal::open(SimulatedDisk::with(bytes)) else {
            continue;
        };
        let tables = &journal.tables;
        // Any content can be read; and only a forged digest adds a batch.
        let (heads, _, sound) = (
            tables.heads(),
            tables.sessions(),
            tables.verify(TrustAnchors::nothing()),
        );
        if round % 3 != 1 {
            assert!(
                count_present(tables, &material).is_ok() && sound.is_sound(),
                "{heads:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_hanging_disk_acknowledges_nothing_until_it_responds_then_all_in_order() {
    use futures_util::FutureExt;
    let material = test_batches(true);
    let store = MemoryStore::default();
    store.hang(std::time::Instant::now());
    assert_eq!(store.writing_since(), None, "nothing is being written");
    let mut acks = Vec::new();
    for batch in &material[..3] {
        let mut ack = store.append(batch.clone()).await.unwrap();
        assert!(ack.as_mut().now_or_never().is_none(), "acknowledged");
        acks.push(ack);
    }
    assert!(store.writing_since().is_some());
    assert!(store.state().now_or_never().is_none(), "read from it");
    store.end_hang();
    for ack in acks {
        ack.await.unwrap();
    }
    assert_eq!(store.writing_since(), None);
    let count = count_present(&store.shared().writer.medium().tables, &material);
    assert_eq!(count, Ok(3));
}

#[tokio::test]
async fn batches_waiting_for_a_hanging_disk_are_lost_when_the_process_dies() {
    let material = test_batches(true);
    let store = MemoryStore::default();
    store.hang(std::time::Instant::now());
    let ack = store.append(material[0].clone()).await.unwrap();
    let next = store.reopen();
    ack.await.unwrap_err();
    assert_eq!(next.state().await.unwrap(), []);
    store.end_hang();
    assert_eq!(
        next.state().await.unwrap(),
        [],
        "it writes nothing any more"
    );
}

#[test]
fn a_removed_file_poisons_the_writer_permanently() {
    let material = test_batches(true);
    let mut writer = BatchWriter::new(Journal::default());
    writer.write(&[&material[0]]).unwrap();
    writer.medium().disk.remove_file();
    let failed = writer.write(&[&material[1]]);
    assert!(
        matches!(&failed, Err(StoreError::Poisoned(cause)) if cause.to_string().contains("gone"))
    );
    writer.medium().disk.put_back();
    assert_eq!(writer.write(&[&material[1]]), failed);
}
