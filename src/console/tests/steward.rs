//! Atlas files: checked, compared, tested, loaded, and undone.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};

use super::fixture::{busy, idle, now};
use super::sample_atlases::{WORDS, on_disk, studied};
use super::test_console::TestConsole;
use crate::atlas::{Atlas, ManifestTransform, load_str};
use crate::base::digest::Digest;
use crate::base::limits::{ATLAS_FILE_CHECK_INTERVAL, DIALOG_ARMING_TIME};
use crate::console::driver::atlas::check_file;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::atlas::{
    ChangedFile, FileCheck, FileCheckResult, FileStamp, FileState,
};
use crate::engine::reload::hash_of_atlases;
use crate::runtime::snapshot::{
    AtlasLoadInfo, ChainVerdict, ConsoleAccess, RuntimeSnapshot, ShadowDifference, ShadowSummary,
};
use crate::runtime::{AtlasLoad, LoadRefusal};

pub(super) const SIZES: [(&str, (u16, u16)); 3] =
    [("120", (120, 36)), ("80", (80, 24)), ("60", (60, 18))];

/// A snapshot whose Atlases have files and are loaded.
pub(super) fn in_force(base: RuntimeSnapshot) -> RuntimeSnapshot {
    let mut snapshot = on_disk(studied(base));
    let hash = hash_of_atlases(&snapshot.loaded);
    for held in &mut snapshot.held {
        Arc::make_mut(held).atlas_hash = hash;
    }
    snapshot.load_info = AtlasLoadInfo {
        hash: Some(hash_of_atlases(&snapshot.loaded)),
        since: Some(now().plus(Duration::from_secs(0))),
        before: None,
    };
    snapshot
}

pub(super) fn stage(base: RuntimeSnapshot, size: (u16, u16)) -> TestConsole {
    let mut stage = TestConsole::new(in_force(base), size);
    stage.press(KeyCode::Char('4'));
    stage
}

fn stamp() -> FileStamp {
    FileStamp {
        inode: 1,
        bytes: 2,
        modified: i128::from(now().micros()) * 1000,
        changed: 4,
    }
}

/// State of the payments Atlas file with this text.
pub(super) fn newer(text: &str) -> FileState {
    let (atlas, problems) = match load_str("payments.yaml", text) {
        Ok(loaded) => (Some(Arc::new(loaded.atlas)), loaded.warnings),
        Err(error) => (None, error.diagnostics().to_vec()),
    };
    FileState::Newer(ChangedFile {
        text: text.into(),
        problems,
        atlas,
    })
}

pub(super) fn found(stage: &mut TestConsole, file: FileState) {
    let against = Arc::clone(&stage.app.snapshot.loaded[1].text);
    let looked = FileCheckResult {
        atlas: 1,
        stamp: Some(stamp()),
        against,
        state: file,
    };
    stage.message(ConsoleMessage::FilesChecked(vec![looked]));
}

/// A change that only adds restrictions. `weaker` removes one.
pub(super) fn tighter() -> String {
    WORDS.replace(
        "  - checkpoint_id: refunds",
        "  - checkpoint_id: all\n    trigger: { type: action_pre, patterns: [\"payment.send\"] }\n    mode: blocking\n  - checkpoint_id: refunds",
    ).replace("version: \"1\"", "version: \"2\"")
}

pub(super) fn weaker() -> String {
    tighter().replace("gt: 1000", "gt: 100000")
}

pub(super) fn faulty() -> String {
    WORDS.replace("type: rate_limit", "type: rate_limits")
}

/// Returns the part of a hash that the operator types.
fn begins(hash: &str) -> String {
    hash.chars().take(4).collect()
}

fn glances(requests: &[ConsoleRequest]) -> Vec<FileCheck> {
    let of = |request: &ConsoleRequest| match request {
        ConsoleRequest::CheckFiles(glances) => glances.clone(),
        _ => Vec::new(),
    };
    requests.iter().flat_map(of).collect()
}

fn loads(requests: Vec<ConsoleRequest>) -> Vec<AtlasLoad> {
    let load = |request| match request {
        ConsoleRequest::Load(load) => Some(load),
        _ => None,
    };
    requests.into_iter().filter_map(load).collect()
}

#[test]
fn a_changed_file_is_shown_as_newer_and_a_file_with_errors_is_not_loaded() {
    for (name, size) in SIZES {
        let mut stage = stage(busy(), size);
        found(&mut stage, newer(&faulty()));
        stage.shows(if size.0 < 80 {
            "newer file"
        } else {
            "payments.yaml newer than live 1"
        });
        assert_snapshot!(format!("kept_old_{name}"), stage.text());
        stage.press(KeyCode::Char(']'));
        stage.shows("E013 NEWER payments.yaml:16:11");
        assert_snapshot!(format!("kept_old_problem_{name}"), stage.text());
        assert_eq!(stage.press(KeyCode::Char('L')), []);
        stage.shows("fix the errors first");
        assert_eq!(
            stage.app.layers.len(),
            0,
            "an Atlas with errors is never offered"
        );
        found(&mut stage, newer(&tighter()));
        stage.hides("KEPT OLD");
        stage.hides("fix the errors first");
        assert_snapshot!(format!("file_newer_{name}"), stage.text());
        found(
            &mut stage,
            FileState::Unreadable("cannot read it\u{1b}".to_owned()),
        );
        stage.shows("the file cannot be read");
        found(&mut stage, FileState::Same);
        stage.hides("!=");
        stage.hides("newer than live");
    }
}

#[test]
fn files_are_checked_on_every_screen_with_one_check_at_a_time() {
    let mut stage = TestConsole::new(in_force(idle()), (120, 36));
    assert_eq!(stage.app.next_change(now()), now());
    assert_eq!(glances(&stage.app.on_tick(now())).len(), 2);
    assert_eq!(stage.app.on_tick(now()), [], "one look at a time");
    found(&mut stage, newer(&faulty()));
    stage.shows("4 Atlas !");
    assert_eq!(stage.app.on_tick(now()), []);
    let later = glances(&stage.app.on_tick(now().plus(ATLAS_FILE_CHECK_INTERVAL)));
    assert_eq!(
        later[1].stamp,
        Some(stamp()),
        "read again only when it is another"
    );
}

#[test]
fn a_check_result_for_another_atlas_is_dropped() {
    let mut stage = stage(idle(), (120, 36));
    let looked = FileCheckResult {
        atlas: 1,
        stamp: Some(stamp()),
        against: WORDS.into(),
        state: newer(&weaker()),
    };
    stage.message(ConsoleMessage::FilesChecked(vec![looked]));
    stage.hides("newer than live");
    // After other Atlases are loaded, the old results are dropped and the files are checked again.
    found(&mut stage, newer(&tighter()));
    stage.shows("newer than live");
    let mut next = in_force(idle());
    next.load_info.hash = Some(hash_of_atlases(&next.loaded[..1]));
    stage.snapshot(next);
    stage.hides("newer than live");
    assert_eq!(glances(&stage.app.on_tick(now())).len(), 2);
}

#[test]
fn a_file_is_read_only_if_it_was_replaced_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    let glance = |stamp| FileCheck {
        atlas: 0,
        file: file.clone(),
        text: WORDS.into(),
        stamp,
    };
    assert!(matches!(
        check_file(&glance(None), &ManifestTransform::default()).state,
        FileState::Unreadable(_)
    ));
    std::fs::write(&file, WORDS).unwrap();
    let same = check_file(&glance(None), &ManifestTransform::default());
    assert_eq!(same.state, FileState::Same);
    assert_eq!(
        check_file(&glance(same.stamp), &ManifestTransform::default()).state,
        FileState::AsBefore
    );
    let other = folder.path().join("b.yaml");
    std::fs::write(&other, WORDS.replace("Payments", "Money")).unwrap();
    std::fs::rename(&other, &file).unwrap();
    let loads = |state: &FileState| matches!(state, FileState::Newer(newer) if newer.is_loadable());
    assert!(
        loads(&check_file(&glance(same.stamp), &ManifestTransform::default()).state),
        "editors rename"
    );
    std::fs::write(&file, "atlas_version: 7").unwrap();
    let faulty = check_file(&glance(same.stamp), &ManifestTransform::default()).state;
    assert!(matches!(faulty, FileState::Newer(newer) if !newer.is_loadable()));
}

#[test]
fn loading_asks_for_confirmation_with_the_focus_on_the_harmless_button() {
    for (name, size) in SIZES {
        let mut stage = stage(busy(), size);
        found(&mut stage, newer(&tighter()));
        assert_eq!(stage.press(KeyCode::Char('L')), []);
        stage.wait(DIALOG_ARMING_TIME);
        stage.shows("[ Keep current ]");
        assert_snapshot!(format!("load_{name}"), stage.picture());
        assert_eq!(stage.press(KeyCode::Enter), [], "Enter keeps");
        assert_eq!(stage.app.layers.len(), 0);
    }
}

#[test]
fn a_load_sends_the_shown_atlases_and_the_operator() {
    let mut stage = stage(idle(), (120, 36));
    found(&mut stage, newer(&tighter()));
    stage.press(KeyCode::Char('L'));
    stage.wait(DIALOG_ARMING_TIME);
    stage.press(KeyCode::Tab);
    let sent = loads(stage.press(KeyCode::Enter));
    let [load] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(
        load.expected_hash,
        hash_of_atlases(&stage.app.snapshot.loaded)
    );
    assert_eq!(&*load.atlases[1].text, tighter());
    assert_eq!(load.operator, stage.app.snapshot.operator);
    assert_eq!(stage.press(KeyCode::Enter), [], "sent once");
    stage.shows("being recorded");
    stage.message(ConsoleMessage::Loaded(Ok(())));
    assert_eq!(stage.app.layers.len(), 0);
    stage.shows("loaded and recorded");
}

#[test]
fn a_weaker_gate_shows_a_warning_and_needs_the_typed_hash() {
    let mut stage = stage(busy(), (120, 36));
    found(&mut stage, newer(&weaker()));
    stage.press(KeyCode::Char('L'));
    stage.wait(DIALOG_ARMING_TIME);
    stage.shows("WEAKER RULES FOR AGENTS");
    stage.shows("! checkpoint `large` has another trigger");
    assert_snapshot!("load_weaker", stage.picture());
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), [], "nothing was typed");
    stage.press(KeyCode::BackTab);
    let hash = load_str("payments.yaml", &weaker())
        .unwrap()
        .atlas
        .hash
        .to_string();
    stage.type_text(&begins(&hash));
    assert_eq!(stage.press(KeyCode::Enter), [], "typing is not pressing");
    stage.press(KeyCode::Tab);
    assert_eq!(loads(stage.press(KeyCode::Enter)).len(), 1);
    stage.message(ConsoleMessage::Loaded(Err(LoadRefusal::Changed)));
    stage.shows("other Atlases were loaded meanwhile");
    assert_eq!(stage.press(KeyCode::Enter), []);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn a_load_drops_early_keys_and_needs_all_changes_to_be_seen() {
    let mut stage = stage(busy(), (60, 18));
    found(&mut stage, newer(&tighter()));
    stage.press(KeyCode::Char('L'));
    stage.press(KeyCode::Tab);
    stage.wait(DIALOG_ARMING_TIME);
    assert_eq!(
        stage.press(KeyCode::Enter),
        [],
        "the Tab before did not count"
    );
    assert_eq!(stage.app.layers.len(), 0);

    stage.press(KeyCode::Char('L'));
    stage.wait(DIALOG_ARMING_TIME);
    stage.press(KeyCode::Tab);
    stage.shows("]  more below");
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.presses(KeyCode::PageDown, 3);
    assert_eq!(loads(stage.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn printable_keys_and_pastes_never_load_the_files() {
    let mut stage = stage(idle(), (120, 36));
    found(&mut stage, newer(&tighter()));
    stage.press(KeyCode::Char('L'));
    stage.wait(DIALOG_ARMING_TIME);
    stage.press(KeyCode::Tab);
    for c in ' '..='~' {
        assert_eq!(stage.press(KeyCode::Char(c)), [], "{c}");
    }
    assert_eq!(stage.event(&Event::Paste("\n\ny\n".to_owned())), []);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn undo_loads_the_previous_atlases() {
    let mut snapshot = in_force(idle());
    let before = Arc::clone(&snapshot.loaded);
    let mut newer: Vec<Atlas> = before.to_vec();
    newer[1] = load_str("payments.yaml", &tighter()).unwrap().atlas;
    snapshot.loaded = newer.into();
    snapshot.load_info = AtlasLoadInfo {
        hash: Some(hash_of_atlases(&snapshot.loaded)),
        since: Some(now()),
        before: Some(Arc::clone(&before)),
    };
    let mut stage = TestConsole::new(snapshot, (120, 36));
    stage.press(KeyCode::Char('4'));
    stage.press(KeyCode::Char('U'));
    stage.wait(DIALOG_ARMING_TIME);
    stage.shows("Restore the previous Atlases?");
    stage.shows("! checkpoint `all` is removed");
    stage.shows("a restart loads them again");
    stage.shows("before  sha ");
    stage.shows("(previous hash)");
    stage.shows("[ Restore ]");
    stage.hides("new ");
    assert_snapshot!("undo", stage.text());
    stage.press(KeyCode::Tab);
    stage.type_text(&begins(&before[1].hash.to_string()));
    stage.press(KeyCode::Tab);
    let sent = loads(stage.press(KeyCode::Enter));
    assert_eq!(hash_of_atlases(&sent[0].atlases), hash_of_atlases(&before));
}

#[test]
fn a_console_that_is_read_only_or_has_a_broken_record_offers_no_load() {
    let mut read_only = in_force(idle());
    read_only.access = ConsoleAccess::ReadOnly;
    let mut broken = in_force(idle());
    broken.chain.verdict = ChainVerdict::Unreadable {
        what: "gone".to_owned(),
    };
    for (snapshot, words) in [(read_only, "read-only"), (broken, "cannot load")] {
        let mut stage = TestConsole::new(snapshot, (120, 36));
        stage.press(KeyCode::Char('4'));
        found(&mut stage, newer(&tighter()));
        for key in ['L', 'U'] {
            assert_eq!(stage.press(KeyCode::Char(key)), []);
            assert_eq!(stage.app.layers.len(), 0);
            stage.shows(words);
        }
        // Even if a dialog sent a load, the console would not pass it on.
        let load = AtlasLoad {
            atlases: Arc::clone(&stage.app.snapshot.loaded),
            expected_hash: hash_of_atlases(&stage.app.snapshot.loaded),
            operator: String::new(),
        };
        assert!(!stage.app.may_send(&ConsoleRequest::Load(load)));
    }
}

#[test]
fn a_request_evaluated_before_the_last_load_can_only_be_denied() {
    let mut snapshot = in_force(idle());
    snapshot.held = busy().held;
    let mut stage = TestConsole::new(snapshot, (120, 36));
    stage.press(KeyCode::Char('4'));
    stage.shows("under an old Atlas: deny only");
    stage.press(KeyCode::Char('1'));
    stage.open_gate("c-121");
    stage.shows("Atlas changed");
    let mut back = busy();
    back.load_info.hash = Some(back.held[0].atlas_hash);
    stage.snapshot(back);
    stage.hides("Atlas changed");
}

#[test]
fn the_editor_opens_the_file_at_the_line_of_the_problem_or_part() {
    let mut stage = stage(idle(), (120, 36));
    let file = PathBuf::from("/etc/cra/payments.yaml");
    found(&mut stage, newer(&faulty()));
    stage.press(KeyCode::Char(']'));
    let asked = stage.press(KeyCode::Char('e'));
    assert_eq!(asked, [ConsoleRequest::EditFile(file.clone(), 16)]);
    stage.message(ConsoleMessage::FileEdited(Err("no editor".to_owned())));
    stage.shows("no editor");
    assert_eq!(
        glances(&stage.app.on_tick(now())).len(),
        2,
        "looked at at once"
    );
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Char('G'));
    let asked = stage.press(KeyCode::Char('e'));
    assert_eq!(asked, [ConsoleRequest::EditFile(file, 23)]);
    // An Atlas that is built into the program has no file.
    let mut stage = TestConsole::new(studied(idle()), (120, 36));
    stage.press(KeyCode::Char('4'));
    assert_eq!(stage.press(KeyCode::Char('e')), []);
    stage.shows("has no file");
}

#[test]
fn shadow_evaluation_lists_the_differing_results() {
    for (name, size) in SIZES {
        let mut stage = stage(busy(), size);
        assert!(stage.press(KeyCode::Char('Z')).is_empty());
        stage.shows("shadow mode is off");
        found(&mut stage, newer(&tighter()));
        let asked = stage.press(KeyCode::Char('S'));
        assert!(
            matches!(asked.as_slice(), [ConsoleRequest::Shadow(Some(_))]),
            "{asked:?}"
        );
        let mut snapshot = RuntimeSnapshot::clone(&stage.app.snapshot);
        snapshot.watched.shadow = Some(Arc::new(shadowed()));
        stage.snapshot(snapshot);
        assert_snapshot!(format!("shadow_{name}"), stage.text());
        assert!(stage.press(KeyCode::Char('S')).is_empty());
        assert_snapshot!(format!("shadow_listed_{name}"), stage.text());
        stage.press(KeyCode::Esc);
        let left = stage.press(KeyCode::Char('Z'));
        assert_eq!(left, [ConsoleRequest::Shadow(None)]);
    }
}

fn shadowed() -> ShadowSummary {
    let difference = |session: &str, subject: &str, live: &str, shadow: &str| {
        Arc::new(ShadowDifference {
            at: now(),
            session: session.parse().unwrap(),
            agent: "refund-bot".to_owned(),
            subject: subject.to_owned(),
            live: live.to_owned(),
            shadow: shadow.to_owned(),
        })
    };
    ShadowSummary {
        hash: Digest::of("files"),
        since: now(),
        evaluated: 1_204,
        different: 203,
        newest: vec![
            difference("s-07", "refund.pay", "passes", "held at second-look"),
            difference(
                "s-09",
                "\u{1b}[31mred",
                "held at large-refund",
                "denied: more than 100 \u{202e}in a day",
            ),
        ],
    }
}
