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
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, session);
    (archive, console)
}

/// A running session with this number of events, open.
fn live(events: u64) -> (Archive, TestConsole) {
    let mut archive = Archive::default();
    for at in 0..events {
        grow(&mut archive, at);
    }
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, "s-1");
    (archive, console)
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
fn send_newer_snapshot(archive: &Archive, console: &mut TestConsole) {
    let mut next = busy();
    next.chain.events += archive
        .sessions()
        .iter()
        .map(|recorded| recorded.events)
        .sum::<u64>();
    let requests = console.snapshot(next);
    archive.serve(console, requests);
}

#[test]
fn scrolling_up_pauses_follow_mode_and_the_end_resumes_it() {
    let (mut archive, mut console) = live(40);
    console.shows("FOLLOW off (F)");
    archive.keys(&mut console, "F");
    console.shows("FOLLOW on");
    console.shows(">   39");
    grow(&mut archive, 40);
    send_newer_snapshot(&archive, &mut console);
    console.shows(">   40");
    archive.keys(&mut console, "k");
    for at in 41..50 {
        grow(&mut archive, at);
    }
    send_newer_snapshot(&archive, &mut console);
    console.shows(">   39");
    console.shows("+9 new below");
    archive.keys(&mut console, "G");
    console.shows(">   49");
    console.shows("FOLLOW on");
    console.hides("new below");
}

#[test]
fn an_event_is_marked_with_a_letter_and_jumped_to_from_another_session() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "jjjjjjma");
    console.shows("a marks event 6");
    archive.keys(&mut console, "j");
    console.shows("bookmarks a 6");
    console.shows(" a   6 ");
    archive.press(&mut console, KeyCode::Esc);
    archive.open(&mut console, "s-12");
    archive.keys(&mut console, "'b");
    console.shows("no bookmark b");
    archive.keys(&mut console, "'a");
    console.shows(">a   6 ");
    console.shows("Event 6");
    archive.keys(&mut console, "m1");
    console.shows("press a letter");
}

#[test]
fn a_fold_hides_its_children_and_folding_again_selects_the_parent() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "jjjjh");
    console.shows("▸ action requested ticket");
    console.shows("… +7 ");
    console.hides("policy decided");
    archive.keys(&mut console, "j");
    console.shows(">   12");
    archive.keys(&mut console, "kl");
    console.shows("policy decided");
    archive.keys(&mut console, "jhhhh");
    console.shows("▸ session started");
    console.shows(" +14 ");
    console.shows(">    0");
    archive.keys(&mut console, "zzz");
    console.shows("folded to level 3");
    archive.keys(&mut console, "z");
    console.shows("gate passed");
    console.hides("folded to");
}

#[test]
fn seeking_an_event_shows_it_despite_folds_and_filters() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "z");
    archive.enter(&mut console, ':', "seek 9");
    console.shows(">    9");
    archive.enter(&mut console, 'f', "type:session");
    console.hides("risk verified ticket");
    archive.enter(&mut console, ':', "seek 9");
    console.shows(">    9");
    console.hides("filter type");
    archive.enter(&mut console, ':', "seek 15");
    console.shows("no event 15: events are 0 to 14");
}

// covers T32
#[test]
fn a_replay_steps_jumps_to_checkpoints_and_plays_until_a_stop() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "...");
    console.shows("paused at 3 of 14");
    archive.keys(&mut console, ",");
    console.shows("paused at 2 of 14");
    archive.keys(&mut console, "]");
    console.shows("paused at 6 of 14");
    console.shows("STATE@6  working · held: ticket.delete");
    archive.keys(&mut console, "]");
    console.shows("no checkpoint after this event");
    archive.keys(&mut console, "ggs ");
    console.shows("PLAYING at 0 of 14");
    console.shows("stop on: deny (s)");
    let mut places = BTreeSet::new();
    while let Some((_, place)) = console.text().split_once("PLAYING at ") {
        places.insert(place.chars().take(2).collect::<String>());
        console.now = console.app.next_change(console.now);
        let requests = console.app.on_tick(console.now);
        archive.serve(&mut console, requests);
    }
    assert_eq!(places.len(), 13);
    console.shows("paused at 13 of 14");
    console.shows("unlocked: basic-support");
    archive.keys(&mut console, "[");
    console.shows("paused at 6 of 14");
}

#[test]
fn values_fold_and_their_path_is_shown_and_copied() {
    let (archive, mut console) = opened("s-09");
    archive.enter(&mut console, ':', "seek 9");
    archive.press(&mut console, KeyCode::Tab);
    archive.press(&mut console, KeyCode::End);
    console.shows("verified by  \"o2@ops\"");
    console.hides("path .payload");
    console.hides("risk_verified");
    console.hides("verified_by");
    archive.keys(&mut console, "R");
    console.shows("Event 9 raw");
    console.shows("type      risk_verified");
    console.shows("verified_by  \"o2@ops\"");
    console.shows("path .payload.verified_by");
    assert_eq!(
        archive.press(&mut console, KeyCode::Char('y')),
        [ConsoleRequest::Copy("o2@ops".to_owned())]
    );
    console.shows("copied the value: 6 bytes");
    archive.keys(&mut console, "kkkl");
    console.shows("▾ request  {4 keys}");
    archive.keys(&mut console, "jjl");
    console.shows("▾ b  [2 items]");
    archive.keys(&mut console, "jj");
    console.shows("path .payload.request.b[1]");
    assert_eq!(
        archive.press(&mut console, KeyCode::Char('y')),
        [ConsoleRequest::Copy("2".to_owned())]
    );
    archive.keys(&mut console, "hh");
    console.shows("▸ b  [2 items]");
    console.shows("path .payload.request.b");
    archive.press(&mut console, KeyCode::Home);
    archive.keys(&mut console, "jjjjjjjj");
    console.shows("path .hash");
    let copied = archive.press(&mut console, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(hash)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert_eq!(hash.len(), 64);
}

#[test]
fn an_event_is_copied_in_export_form_and_a_cut_copy_is_reported() {
    let (archive, mut console) = opened("s-12");
    let copied = archive.press(&mut console, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(line)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert!(line.starts_with("{\"event_id\":\"event-0\""), "{line}");
    archive.keys(&mut console, "j");
    let copied = archive.press(&mut console, KeyCode::Char('y'));
    let [ConsoleRequest::Copy(line)] = copied.as_slice() else {
        panic!("{copied:?}");
    };
    assert_eq!(line.len(), MAX_COPY_BYTES);
    console.shows("only 73728 of 1000");
}

#[test]
fn a_hash_that_does_not_match_its_text_is_shown_as_wrong() {
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| {
        chain[4].text = chain[4].text.replace("ticket.delete", "ticket.update");
    });
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, "s-09");
    archive.enter(&mut console, ':', "seek 4");
    archive.press(&mut console, KeyCode::Tab);
    archive.keys(&mut console, "jjjjjjjj");
    console.shows(" WRONG");
    console.shows("hash does not match the content");
}

#[test]
fn an_event_after_a_removed_one_shows_a_wrong_link() {
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| _ = chain.remove(5));
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, "s-09");
    archive.enter(&mut console, ':', "seek 6");
    archive.press(&mut console, KeyCode::Tab);
    archive.keys(&mut console, "jjjjjjj");
    console.shows("event 5 is missing");
    console.shows(" WRONG");
    console.shows("1 missing");
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
fn begin_check(console: &mut TestConsole) -> VerificationProgress {
    let mut requests = console.press(KeyCode::Char('v'));
    match requests.pop() {
        Some(ConsoleRequest::Verify(progress)) => progress,
        other => panic!("no check: {other:?}"),
    }
}

#[test]
fn a_check_shows_its_progress_and_esc_stops_it() {
    let (archive, mut console) = opened("s-09");
    let progress = begin_check(&mut console);
    console.shows("VERIFYING every record");
    progress.begin(200);
    progress.add(84);
    let soon = console.app.next_change(console.now);
    assert!(
        soon < console.now.plus(Duration::from_secs(1)),
        "painted again"
    );
    console.paint();
    console.shows("VERIFYING 42 %, 84 of 200 records");
    console.shows("Esc to stop");
    assert!(!progress.is_cancelled());
    archive.press(&mut console, KeyCode::Esc);
    assert!(progress.is_cancelled());
    console.shows("verification stopped: nothing is proven");
    console.shows("not verified yet");
    console.hides("VERIFYING");
    // A result that arrives after the stop is still valid.
    console.message(archive.checked(1));
    console.shows("SEALED 0..13, UNSEALED tail 1");
    let again = begin_check(&mut console);
    assert!(!again.is_cancelled(), "a new check is another one");
}

#[test]
fn a_verdict_is_shown_in_words_and_at_each_event() {
    let (archive, mut console) = opened("s-09");
    console.shows("not verified yet");
    begin_check(&mut console);
    assert_eq!(console.press(KeyCode::Char('v')), [], "one check at a time");
    console.message(archive.checked(1));
    console.shows("SEALED 0..13, UNSEALED tail 1");
    console.shows("its removal would go unnoticed until the next seal");
    console.shows("    13 S ");
    console.shows("    14 ? ");
    let what = "the hash differs".to_owned();
    console.message(found(VerificationVerdict::Broken { sequence: 3, what }));
    console.shows("BROKEN at 3: the hash differs");
    console.shows("     3 X ");
    console.shows("     4 ? ");
    console.shows("Nothing is proven from there on.");
    console.shows("! CHAIN BROKEN in s-09");
    console.message(found(VerificationVerdict::Truncated {
        found: 15,
        expected: 20,
    }));
    console.shows("TRUNCATED: 15 of 20 events found");
    console.shows("The end of this session was removed");
    let what = "it is another one".to_owned();
    console.message(found(VerificationVerdict::Diverged { sequence: 0, what }));
    console.shows("it was rewritten from event 0 on");
    archive.press(&mut console, KeyCode::Esc);
    console.shows("DIVERGED");
}

#[test]
fn an_export_writes_the_whole_session_and_never_overwrites_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, mut console) = opened("s-09");
    for (name, begins) in [
        ("a.jsonl", "{\"event_id\""),
        ("a.csv", "session"),
        ("a.html", "<!"),
        ("a.otlp", "{\"resourceSpans\""),
    ] {
        let path = folder.path().join(name);
        archive.enter(&mut console, 'E', path.to_str().unwrap());
        console.shows("wrote `");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(begins), "{name}");
    }
    let path = folder.path().join("a.jsonl");
    let before = std::fs::read(&path).unwrap();
    archive.enter(&mut console, 'E', path.to_str().unwrap());
    console.shows("export failed: ");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    archive.enter(&mut console, 'E', "a.doc");
    console.shows(".jsonl .csv .html .otlp or .golden");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        4,
        "no half is left"
    );
}

#[test]
fn two_sessions_are_compared() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "D");
    console.shows("compare s-09 with which session?");
    archive.press(&mut console, KeyCode::Enter);
    console.shows("choose another session");
    archive.press(&mut console, KeyCode::Home);
    let asked = console.press(KeyCode::Enter);
    console.shows("reading both sessions...");
    archive.serve(&mut console, asked.clone());
    console.shows("The sessions differ from step 1:");
    console.shows("B  0 session of docs-bot started");
    archive.press(&mut console, KeyCode::Esc);
    console.shows("Sessions");
    archive.serve(&mut console, asked);
    console.hides("The sessions differ");
}

#[test]
fn a_filter_is_remembered_edited_and_cleared() {
    let (archive, mut console) = opened("s-09");
    archive.enter(&mut console, 'f', "risk>=high");
    console.shows("filter risk>=high  3/15");
    archive.enter(&mut console, 'f', "type:session");
    console.shows("filter type:session  2/15");
    console.shows(">   14");
    archive.keys(&mut console, "k");
    console.shows(">    0");
    archive.keys(&mut console, "f");
    console.press(KeyCode::Up);
    console.press(KeyCode::Up);
    archive.press(&mut console, KeyCode::Enter);
    console.shows("filter risk>=high  3/15");
    archive.press(&mut console, KeyCode::Esc);
    console.shows("no filter");
    console.shows("wrapper checked");
    archive.keys(&mut console, "f");
    console.type_text("risk>=");
    console.event(&ratatui::crossterm::event::Event::Paste(
        "hgih\n".to_owned(),
    ));
    archive.press(&mut console, KeyCode::Enter);
    console.shows("column 7: `hgih` is not a risk tier");
    console.shows("low, medium, high or critical");
    console.press(KeyCode::Backspace);
    console.hides("column 7");
}

#[test]
fn a_prompt_takes_every_key_until_it_is_closed() {
    let (archive, mut console) = opened("s-09");
    archive.keys(&mut console, "/");
    assert_eq!(console.type_text("q?12vED"), []);
    console.shows("search> q?12vED");
    console.press(KeyCode::Left);
    console.press(KeyCode::Backspace);
    console.shows("search> q?12vD");
    console.ctrl('c');
    console.hides("search>");
    console.shows("press Ctrl-C again to quit");
}

#[test]
fn a_search_wraps_around_and_hides_nothing() {
    let (archive, mut console) = opened("s-09");
    archive.enter(&mut console, ':', "seek 7");
    archive.enter(&mut console, '/', "high-risk");
    console.shows("/high-risk  2/4");
    console.shows("session ended");
    for (key, shown) in [
        ("n", "3/4"),
        ("n", "4/4"),
        ("n", "1/4"),
        ("N", "4/4"),
        ("N", "3/4"),
    ] {
        archive.keys(&mut console, key);
        console.shows(shown);
    }
    archive.enter(&mut console, '/', "nowhere at all");
    console.shows("0/0 no match");
    console.shows(">    8");
    archive.press(&mut console, KeyCode::Esc);
    archive.keys(&mut console, "n");
    console.shows("nothing to search");
}

#[test]
fn a_text_of_a_megabyte_is_laid_out_in_part_with_a_note() {
    let (archive, mut console) = opened("s-12");
    archive.keys(&mut console, "j");
    archive.press(&mut console, KeyCode::Tab);
    archive.keys(&mut console, "jjjjjjjjjjljl");
    console.shows("1000000 bytes");
    archive.press(&mut console, KeyCode::End);
    archive.keys(&mut console, "kkk");
    console.shows("934464 more bytes: y copies");
    console.shows("hidden characters written out");
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
        let mut console = TestConsole::new(busy(), (width, height));
        archive.open(&mut console, "s-09");
        for code in keys {
            // Other tests cover quitting and writing files.
            if matches!(code, KeyCode::Char('q' | 'E' | '1')) {
                continue;
            }
            let palette = console.app.layers.last().is_some_and(|layer| layer.get::<PaletteDialog>().is_some());
            for request in archive.press(&mut console, code) {
                let copies = matches!(request, ConsoleRequest::Copy(_));
                let meant = code == KeyCode::Char('y') || palette && code == KeyCode::Enter;
                prop_assert!(!copies || meant);
                prop_assert!(!matches!(request, ConsoleRequest::Decide(_)));
            }
        }
        prop_assert!(!console.text().trim().is_empty());
        prop_assert!(now() <= console.now);
    }
}
