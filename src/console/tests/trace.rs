//! Keys on the record screen: the reads they request and the output they show.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::archive::Archive;
use super::fixture::{busy, now};
use super::test_console::TestConsole;
use crate::base::limits::MAX_COPY_BYTES;
use crate::console::dialog::palette::PaletteDialog;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::trace::verification::{
    ChainVerification, VerificationProgress, VerificationReport, VerificationVerdict,
};

/// The record with a session open, at 120x36.
fn opened(session: &str) -> (Archive, TestConsole) {
    let archive = Archive::sample();
    let mut stage = TestConsole::new(busy(), (120, 36));
    archive.open(&mut stage, session);
    (archive, stage)
}

/// A running session with this number of events, open.
fn live(events: u64) -> (Archive, TestConsole) {
    let mut archive = Archive::default();
    for at in 0..events {
        grow(&mut archive, at);
    }
    let mut stage = TestConsole::new(busy(), (120, 36));
    archive.open(&mut stage, "s-1");
    (archive, stage)
}

pub(super) fn grow(archive: &mut Archive, at: u64) {
    let parent = (at > 0).then_some(0);
    let event = (
        at * 1000,
        "input_received",
        parent,
        json!({ "source": "user" }),
    );
    archive.add("s-1", "bot", &[event]);
}

/// Sends a snapshot of the grown record to the console.
fn tell(archive: &Archive, stage: &mut TestConsole) {
    let mut next = busy();
    next.chain.events += archive
        .sessions()
        .iter()
        .map(|recorded| recorded.events)
        .sum::<u64>();
    let requests = stage.snapshot(next);
    archive.serve(stage, requests);
}

#[test]
fn scrolling_up_pauses_follow_mode_and_the_end_resumes_it() {
    let (mut archive, mut stage) = live(40);
    stage.shows("FOLLOW off (F)");
    archive.keys(&mut stage, "F");
    stage.shows("FOLLOW on");
    stage.shows(">   39");
    grow(&mut archive, 40);
    tell(&archive, &mut stage);
    stage.shows(">   40");
    archive.keys(&mut stage, "k");
    for at in 41..50 {
        grow(&mut archive, at);
    }
    tell(&archive, &mut stage);
    stage.shows(">   39");
    stage.shows("+9 new below");
    archive.keys(&mut stage, "G");
    stage.shows(">   49");
    stage.shows("FOLLOW on");
    stage.hides("new below");
}

#[test]
fn an_event_is_marked_with_a_letter_and_jumped_to_from_another_session() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "jjjjjjma");
    stage.shows("a marks event 6");
    archive.keys(&mut stage, "j");
    stage.shows("bookmarks a 6");
    stage.shows(" a   6 ");
    archive.press(&mut stage, KeyCode::Esc);
    archive.open(&mut stage, "s-12");
    archive.keys(&mut stage, "'b");
    stage.shows("no bookmark b");
    archive.keys(&mut stage, "'a");
    stage.shows(">a   6 ");
    stage.shows("Event 6");
    archive.keys(&mut stage, "m1");
    stage.shows("press a letter");
}

#[test]
fn a_fold_hides_its_children_and_folding_again_selects_the_parent() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "jjjjh");
    stage.shows("▸ action requested ticket");
    stage.shows("… +7 ");
    stage.hides("policy decided");
    archive.keys(&mut stage, "j");
    stage.shows(">   12");
    archive.keys(&mut stage, "kl");
    stage.shows("policy decided");
    archive.keys(&mut stage, "jhhhh");
    stage.shows("▸ session started");
    stage.shows(" +14 ");
    stage.shows(">    0");
    archive.keys(&mut stage, "zzz");
    stage.shows("folded to level 3");
    archive.keys(&mut stage, "z");
    stage.shows("gate passed");
    stage.hides("folded to");
}

#[test]
fn seeking_an_event_shows_it_despite_folds_and_filters() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "z");
    archive.enter(&mut stage, ':', "seek 9");
    stage.shows(">    9");
    archive.enter(&mut stage, 'f', "type:session");
    stage.hides("risk verified ticket");
    archive.enter(&mut stage, ':', "seek 9");
    stage.shows(">    9");
    stage.hides("filter type");
    archive.enter(&mut stage, ':', "seek 15");
    stage.shows("no event 15: events are 0 to 14");
}

// covers T32
#[test]
fn a_replay_steps_jumps_to_checkpoints_and_plays_until_a_stop() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "...");
    stage.shows("paused at 3 of 14");
    archive.keys(&mut stage, ",");
    stage.shows("paused at 2 of 14");
    archive.keys(&mut stage, "]");
    stage.shows("paused at 6 of 14");
    stage.shows("STATE@6  working · held: ticket.delete");
    archive.keys(&mut stage, "]");
    stage.shows("no checkpoint after this event");
    archive.keys(&mut stage, "ggs ");
    stage.shows("PLAYING at 0 of 14");
    stage.shows("stop on: deny (s)");
    let mut places = BTreeSet::new();
    while let Some((_, place)) = stage.text().split_once("PLAYING at ") {
        places.insert(place.chars().take(2).collect::<String>());
        stage.now = stage.app.next_change(stage.now);
        let requests = stage.app.on_tick(stage.now);
        archive.serve(&mut stage, requests);
    }
    assert_eq!(places.len(), 13);
    stage.shows("paused at 13 of 14");
    stage.shows("unlocked: basic-support");
    archive.keys(&mut stage, "[");
    stage.shows("paused at 6 of 14");
}

#[test]
fn values_fold_and_their_path_is_shown_and_copied() {
    let (archive, mut stage) = opened("s-09");
    archive.enter(&mut stage, ':', "seek 9");
    archive.press(&mut stage, KeyCode::Tab);
    archive.press(&mut stage, KeyCode::End);
    stage.shows("verified by  \"o2@ops\"");
    stage.hides("path .payload");
    stage.hides("risk_verified");
    stage.hides("verified_by");
    archive.keys(&mut stage, "R");
    stage.shows("Event 9 raw");
    stage.shows("type      risk_verified");
    stage.shows("verified_by  \"o2@ops\"");
    stage.shows("path .payload.verified_by");
    assert_eq!(
        archive.press(&mut stage, KeyCode::Char('y')),
        [ConsoleRequest::Copy("o2@ops".to_owned())]
    );
    stage.shows("copied the value: 6 bytes");
    archive.keys(&mut stage, "kkkl");
    stage.shows("▾ request  {4 keys}");
    archive.keys(&mut stage, "jjl");
    stage.shows("▾ b  [2 items]");
    archive.keys(&mut stage, "jj");
    stage.shows("path .payload.request.b[1]");
    assert_eq!(
        archive.press(&mut stage, KeyCode::Char('y')),
        [ConsoleRequest::Copy("2".to_owned())]
    );
    archive.keys(&mut stage, "hh");
    stage.shows("▸ b  [2 items]");
    stage.shows("path .payload.request.b");
    archive.press(&mut stage, KeyCode::Home);
    archive.keys(&mut stage, "jjjjjjjj");
    stage.shows("path .hash");
    let copied = archive.press(&mut stage, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(hash)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert_eq!(hash.len(), 64);
}

#[test]
fn an_event_is_copied_in_export_form_and_a_cut_copy_is_reported() {
    let (archive, mut stage) = opened("s-12");
    let copied = archive.press(&mut stage, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(line)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert!(line.starts_with("{\"event_id\":\"event-0\""), "{line}");
    archive.keys(&mut stage, "j");
    let copied = archive.press(&mut stage, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(line)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert_eq!(line.len(), MAX_COPY_BYTES);
    stage.shows("only 73728 of 1000");
}

#[test]
fn a_hash_that_does_not_match_its_text_is_shown_as_wrong() {
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| {
        chain[4].text = chain[4].text.replace("ticket.delete", "ticket.update");
    });
    let mut stage = TestConsole::new(busy(), (120, 36));
    archive.open(&mut stage, "s-09");
    archive.enter(&mut stage, ':', "seek 4");
    archive.press(&mut stage, KeyCode::Tab);
    archive.keys(&mut stage, "jjjjjjjj");
    stage.shows(" WRONG");
    stage.shows("hash does not match the content");
}

#[test]
fn an_event_after_a_removed_one_shows_a_wrong_link() {
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| _ = chain.remove(5));
    let mut stage = TestConsole::new(busy(), (120, 36));
    archive.open(&mut stage, "s-09");
    archive.enter(&mut stage, ':', "seek 6");
    archive.press(&mut stage, KeyCode::Tab);
    archive.keys(&mut stage, "jjjjjjj");
    stage.shows("event 5 is missing");
    stage.shows(" WRONG");
    stage.shows("1 missing");
}

/// Result of a check of one session.
fn found(verdict: VerificationVerdict) -> ConsoleMessage {
    let session = "s-09".parse().unwrap();
    let chains = vec![ChainVerification {
        session,
        events: 15,
        pruned: 0,
        not_canonical: 0,
        imports: Vec::new(),
        verdict,
    }];
    ConsoleMessage::Verified(Ok(VerificationReport { log: None, chains }))
}

/// Starts a check of the record and returns its progress.
fn begin_check(stage: &mut TestConsole) -> VerificationProgress {
    let mut requests = stage.press(KeyCode::Char('v'));
    match requests.pop() {
        Some(ConsoleRequest::Verify(progress)) => progress,
        other => panic!("no check: {other:?}"),
    }
}

#[test]
fn a_check_shows_its_progress_and_esc_stops_it() {
    let (archive, mut stage) = opened("s-09");
    let progress = begin_check(&mut stage);
    stage.shows("VERIFYING every record");
    progress.begin(200);
    progress.add(84);
    let soon = stage.app.next_change(stage.now);
    assert!(
        soon < stage.now.plus(Duration::from_secs(1)),
        "painted again"
    );
    stage.paint();
    stage.shows("VERIFYING 42 %, 84 of 200 records");
    stage.shows("Esc to stop");
    assert!(!progress.is_cancelled());
    archive.press(&mut stage, KeyCode::Esc);
    assert!(progress.is_cancelled());
    stage.shows("verification stopped: nothing is proven");
    stage.shows("not verified yet");
    stage.hides("VERIFYING");
    // A result that arrives after the stop is still valid.
    stage.message(archive.checked(1));
    stage.shows("SEALED 0..13, UNSEALED tail 1");
    let again = begin_check(&mut stage);
    assert!(!again.is_cancelled(), "a new check is another one");
}

#[test]
fn a_verdict_is_shown_in_words_and_at_each_event() {
    let (archive, mut stage) = opened("s-09");
    stage.shows("not verified yet");
    begin_check(&mut stage);
    assert_eq!(stage.press(KeyCode::Char('v')), [], "one check at a time");
    stage.message(archive.checked(1));
    stage.shows("SEALED 0..13, UNSEALED tail 1");
    stage.shows("its removal would go unnoticed until the next seal");
    stage.shows("    13 S ");
    stage.shows("    14 ? ");
    let what = "the hash differs".to_owned();
    stage.message(found(VerificationVerdict::Broken { sequence: 3, what }));
    stage.shows("BROKEN at 3: the hash differs");
    stage.shows("     3 X ");
    stage.shows("     4 ? ");
    stage.shows("Nothing is proven from there on.");
    stage.shows("! CHAIN BROKEN in s-09");
    stage.message(found(VerificationVerdict::Truncated {
        found: 15,
        expected: 20,
    }));
    stage.shows("TRUNCATED: 15 of 20 events found");
    stage.shows("The end of this session was removed");
    let what = "it is another one".to_owned();
    stage.message(found(VerificationVerdict::Diverged { sequence: 0, what }));
    stage.shows("it was rewritten from event 0 on");
    archive.press(&mut stage, KeyCode::Esc);
    stage.shows("DIVERGED");
}

#[test]
fn an_export_writes_the_whole_session_and_never_overwrites_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, mut stage) = opened("s-09");
    for (name, begins) in [
        ("a.jsonl", "{\"event_id\""),
        ("a.csv", "session"),
        ("a.html", "<!"),
        ("a.otlp", "{\"resourceSpans\""),
    ] {
        let path = folder.path().join(name);
        archive.enter(&mut stage, 'E', path.to_str().unwrap());
        stage.shows("wrote `");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(begins), "{name}");
    }
    let path = folder.path().join("a.jsonl");
    let before = std::fs::read(&path).unwrap();
    archive.enter(&mut stage, 'E', path.to_str().unwrap());
    stage.shows("export failed: ");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    archive.enter(&mut stage, 'E', "a.doc");
    stage.shows(".jsonl .csv .html .otlp or .golden");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        4,
        "no half is left"
    );
}

#[test]
fn two_sessions_are_compared() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "D");
    stage.shows("compare s-09 with which session?");
    archive.press(&mut stage, KeyCode::Enter);
    stage.shows("choose another session");
    archive.press(&mut stage, KeyCode::Home);
    let asked = stage.press(KeyCode::Enter);
    stage.shows("reading both sessions...");
    archive.serve(&mut stage, asked.clone());
    stage.shows("The sessions differ from step 1:");
    stage.shows("B  0 session of docs-bot started");
    archive.press(&mut stage, KeyCode::Esc);
    stage.shows("Sessions");
    archive.serve(&mut stage, asked);
    stage.hides("The sessions differ");
}

#[test]
fn a_filter_is_remembered_edited_and_cleared() {
    let (archive, mut stage) = opened("s-09");
    archive.enter(&mut stage, 'f', "risk>=high");
    stage.shows("filter risk>=high  3/15");
    archive.enter(&mut stage, 'f', "type:session");
    stage.shows("filter type:session  2/15");
    stage.shows(">   14");
    archive.keys(&mut stage, "k");
    stage.shows(">    0");
    archive.keys(&mut stage, "f");
    stage.press(KeyCode::Up);
    stage.press(KeyCode::Up);
    archive.press(&mut stage, KeyCode::Enter);
    stage.shows("filter risk>=high  3/15");
    archive.press(&mut stage, KeyCode::Esc);
    stage.shows("no filter");
    stage.shows("wrapper checked");
    archive.keys(&mut stage, "f");
    stage.type_text("risk>=");
    stage.event(&ratatui::crossterm::event::Event::Paste(
        "hgih\n".to_owned(),
    ));
    archive.press(&mut stage, KeyCode::Enter);
    stage.shows("column 7: `hgih` is not a risk tier");
    stage.shows("low, medium, high or critical");
    stage.press(KeyCode::Backspace);
    stage.hides("column 7");
}

#[test]
fn a_prompt_takes_every_key_until_it_is_closed() {
    let (archive, mut stage) = opened("s-09");
    archive.keys(&mut stage, "/");
    assert_eq!(stage.type_text("q?12vED"), []);
    stage.shows("search> q?12vED");
    stage.press(KeyCode::Left);
    stage.press(KeyCode::Backspace);
    stage.shows("search> q?12vD");
    stage.ctrl('c');
    stage.hides("search>");
    stage.shows("press Ctrl-C again to quit");
}

#[test]
fn a_search_wraps_around_and_hides_nothing() {
    let (archive, mut stage) = opened("s-09");
    archive.enter(&mut stage, ':', "seek 7");
    archive.enter(&mut stage, '/', "high-risk");
    stage.shows("/high-risk  2/4");
    stage.shows("session ended");
    for (key, shown) in [
        ("n", "3/4"),
        ("n", "4/4"),
        ("n", "1/4"),
        ("N", "4/4"),
        ("N", "3/4"),
    ] {
        archive.keys(&mut stage, key);
        stage.shows(shown);
    }
    archive.enter(&mut stage, '/', "nowhere at all");
    stage.shows("0/0 no match");
    stage.shows(">    8");
    archive.press(&mut stage, KeyCode::Esc);
    archive.keys(&mut stage, "n");
    stage.shows("nothing to search");
}

#[test]
fn a_text_of_a_megabyte_is_laid_out_in_part_with_a_note() {
    let (archive, mut stage) = opened("s-12");
    archive.keys(&mut stage, "j");
    archive.press(&mut stage, KeyCode::Tab);
    archive.keys(&mut stage, "jjjjjjjjjjljl");
    stage.shows("1000000 bytes");
    archive.press(&mut stage, KeyCode::End);
    archive.keys(&mut stage, "kkk");
    stage.shows("934464 more bytes: y copies");
    stage.shows("hidden characters written out");
}

fn key() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        4 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        1 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Left, KeyCode::Right, KeyCode::Up,
            KeyCode::Down, KeyCode::Home, KeyCode::End, KeyCode::PageDown, KeyCode::Backspace,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any keys and any size, painting works, nothing is decided, and only `y` copies, or the palette
    /// command of that name.
    #[test]
    fn any_keys_leave_a_painted_screen_and_an_unchanged_clipboard(
        keys in prop::collection::vec(key(), 0..40),
        width in 60_u16..140,
        height in 18_u16..50,
    ) {
        let archive = Archive::sample();
        let mut stage = TestConsole::new(busy(), (width, height));
        archive.open(&mut stage, "s-09");
        for code in keys {
            // Other tests cover quitting and writing files.
            if matches!(code, KeyCode::Char('q' | 'E' | '1')) {
                continue;
            }
            let palette = stage.app.layers.last().is_some_and(|layer| layer.get::<PaletteDialog>().is_some());
            for request in archive.press(&mut stage, code) {
                let copies = matches!(request, ConsoleRequest::Copy(_));
                let meant = code == KeyCode::Char('y') || palette && code == KeyCode::Enter;
                prop_assert!(!copies || meant);
                prop_assert!(!matches!(request, ConsoleRequest::Decide(_)));
            }
        }
        prop_assert!(!stage.text().trim().is_empty());
        prop_assert!(now() <= stage.now);
    }
}
