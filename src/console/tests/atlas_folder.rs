//! The Atlas folder: a file appears, a file disappears, and the confirmation before either takes effect.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::crossterm::event::KeyCode;
use tempfile::TempDir;

use super::fixture::busy;
use super::sample_atlases::WORDS;
use super::steward::{SIZES, in_force};
use super::test_console::TestConsole;
use crate::atlas::{ManifestTransform, load_file};
use crate::base::digest::Digest;
use crate::base::limits::{ATLAS_FILE_CHECK_INTERVAL, DIALOG_ARMING_TIME};
use crate::console::driver::atlas::{check_file, compare_folder};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::atlas::FolderCheck;
use crate::engine::reload::hash_of_atlases;
use crate::runtime::AtlasLoad;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

const MORE: &str = "atlas_version: '1.0'\natlas_id: com.acme.more\nversion: '1'\nname: More\n\
    actions: [{action_id: report.send, name: Send, risk_tier: low}]\n\
    checkpoints:\n  - checkpoint_id: reports\n    mode: blocking\n    \
    trigger: {type: action_pre, patterns: [report.send]}\n";

/// A console whose two Atlases are in a folder.
struct FolderConsole {
    folder: TempDir,
    console: TestConsole,
}

impl FolderConsole {
    fn new(base: RuntimeSnapshot, size: (u16, u16)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut snapshot = in_force(base);
        let loaded = snapshot.loaded.iter().map(|atlas| {
            let name = Path::new(&atlas.origin.name).file_name().unwrap();
            let file = folder.path().join(name);
            fs::write(&file, &*atlas.text).unwrap();
            load_file(&file).unwrap().atlas
        });
        let mut loaded: Vec<_> = loaded.collect();
        loaded.sort_by_key(|atlas| atlas.origin.file.clone());
        snapshot.loaded = loaded.into();
        snapshot.load_info.hash = Some(hash_of_atlases(&snapshot.loaded));
        for held in &mut snapshot.held {
            Arc::make_mut(held).atlas_hash = hash_of_atlases(&snapshot.loaded);
        }
        Self::opened(folder, snapshot, size)
    }

    /// A console whose folder is empty.
    fn empty(size: (u16, u16)) -> Self {
        let mut snapshot = RuntimeSnapshot::empty();
        snapshot.load_info.hash = Some(hash_of_atlases(&[]));
        snapshot.access = ConsoleAccess::Write;
        Self::opened(tempfile::tempdir().unwrap(), snapshot, size)
    }

    fn opened(folder: TempDir, snapshot: RuntimeSnapshot, size: (u16, u16)) -> Self {
        let mut console = TestConsole::new(snapshot, size);
        let requests = console.press(KeyCode::Char('4'));
        let mut shelved = Self { folder, console };
        shelved.answer(requests);
        shelved
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// Checks the files like the driver.
    fn look(&mut self) {
        self.console.now = self.console.now.plus(ATLAS_FILE_CHECK_INTERVAL);
        let requests = self.console.app.on_tick(self.console.now);
        assert_ne!(requests, [], "it is time to look");
        self.answer(requests);
    }

    fn answer(&mut self, requests: Vec<ConsoleRequest>) {
        for request in requests {
            match request {
                ConsoleRequest::CheckFiles(glances) => {
                    let looked = glances
                        .iter()
                        .map(|glance| check_file(glance, &ManifestTransform::default()))
                        .collect();
                    self.console.message(ConsoleMessage::FilesChecked(looked));
                }
                ConsoleRequest::CheckFolder(listing) => {
                    let listed =
                        compare_folder(&listing, Ok(self.files()), &ManifestTransform::default());
                    self.console.message(ConsoleMessage::FolderChecked(listed));
                }
                _ => {}
            }
        }
    }

    /// Opens the load dialog and scrolls to its end.
    fn ask(&mut self) {
        assert_eq!(self.console.press(KeyCode::Char('L')), []);
        self.console.wait(DIALOG_ARMING_TIME);
        self.console.presses(KeyCode::PageDown, 5);
    }

    /// Types the requested code and presses the button.
    fn load(&mut self, code: &str) -> Vec<AtlasLoad> {
        self.console.press(KeyCode::Tab);
        self.console.type_text(code);
        self.console.press(KeyCode::Tab);
        let load = |request| match request {
            ConsoleRequest::Load(load) => Some(load),
            _ => None,
        };
        let requests = self.console.press(KeyCode::Enter);
        requests.into_iter().filter_map(load).collect()
    }
}

fn ids(load: &AtlasLoad) -> Vec<&str> {
    load.atlases.iter().map(|atlas| atlas.id.as_str()).collect()
}

#[test]
fn a_new_file_is_offered_and_loaded_only_by_its_hash() {
    for (_, size) in SIZES {
        let mut shelved = FolderConsole::new(busy(), size);
        shelved.console.hides("FILE NEWER");
        fs::write(shelved.file("between.yaml"), MORE).unwrap();
        shelved.look();
        shelved.console.shows("FILE NEWER: between.yaml is new");
        shelved.ask();
        shelved.console.shows("`com.acme.more` is added");
        assert_eq!(shelved.load("0000"), [], "another hash was typed");
    }
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    let before = shelved.console.app.snapshot.loaded.clone();
    fs::write(shelved.file("between.yaml"), MORE).unwrap();
    shelved.look();
    shelved.ask();
    shelved.console.shows("WEAKER RULES FOR AGENTS");
    shelved.console.shows("com.acme.more  1 added");
    shelved
        .console
        .shows("checkpoints: 1 added, 0 removed, 0 changed");
    shelved.console.shows("3 Atlases in total");
    let more = load_file(shelved.file("between.yaml")).unwrap().atlas;
    let wanted = [before[0].clone(), more, before[1].clone()];
    let wanted: String = hash_of_atlases(&wanted)
        .to_string()
        .chars()
        .take(4)
        .collect();
    let loads = shelved.load(&wanted);
    // In the order of the files, as after a restart.
    let [load] = loads.as_slice() else {
        panic!("{loads:?}")
    };
    assert_eq!(ids(load), [&before[0].id, "com.acme.more", &before[1].id]);
    assert_eq!(load.expected_hash, hash_of_atlases(&before));
}

#[test]
fn a_removed_file_lists_its_effects_and_held_requests_stay() {
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    fs::remove_file(shelved.file("payments.yaml")).unwrap();
    shelved.look();
    shelved.console.shows("FILE NEWER: 1 file is missing");
    shelved.ask();
    shelved.console.shows("com.example.payments  1 removed");
    shelved
        .console
        .shows("its checkpoints and policies no longer apply");
    shelved.console.shows("5 held requests from the old Atlas");
    let left = shelved.console.app.snapshot.loaded[..1].to_vec();
    let code: String = hash_of_atlases(&left).to_string().chars().take(4).collect();
    let loads = shelved.load(&code);
    assert_eq!(loads.len(), 1);
    assert_eq!(ids(&loads[0]), [left[0].id.as_str()]);
}

#[test]
fn a_file_with_errors_changes_nothing() {
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    fs::write(shelved.file("broken.yaml"), "atlas_version: 7").unwrap();
    shelved.look();
    shelved.console.shows("KEPT OLD: errors in broken.yaml");
    assert_eq!(shelved.console.press(KeyCode::Char('L')), []);
    assert_eq!(shelved.console.app.layers.len(), 0);
    // A second check that does not read the file again gives the same state.
    shelved.look();
    shelved.console.shows("KEPT OLD: errors in broken.yaml");
    // The errors are listed among the problems and can be opened.
    shelved.console.press(KeyCode::Char(']'));
    shelved.console.shows("NEW broken.yaml:1:");
    shelved.console.shows("in a file that is not loaded yet");
    let edited = shelved.console.press(KeyCode::Char('e'));
    assert_eq!(
        edited,
        [ConsoleRequest::EditFile(shelved.file("broken.yaml"), 1)]
    );
    fs::remove_file(shelved.file("broken.yaml")).unwrap();
    shelved.look();
    shelved.console.hides("KEPT OLD");
    shelved.console.hides("FILE NEWER");
}

#[test]
fn the_first_file_of_an_empty_folder_is_offered_without_a_restart() {
    for (_, size) in SIZES {
        let mut shelved = FolderConsole::empty(size);
        shelved.console.shows("No Atlas is loaded");
        fs::write(shelved.file("first.yaml"), "atlas_version: 7").unwrap();
        shelved.look();
        shelved.console.shows("NOT LOADED: errors in first.yaml");
        shelved.console.press(KeyCode::Char(']'));
        shelved.console.shows("NEW first.yaml:1:");
        fs::write(shelved.file("first.yaml"), MORE).unwrap();
        shelved.look();
        shelved.console.press(KeyCode::Esc);
        shelved
            .console
            .shows("FILE NEWER: first.yaml is new: L to load");
        shelved.ask();
        shelved.console.shows("com.acme.more");
        let first = load_file(shelved.file("first.yaml")).unwrap().atlas;
        let code: String = hash_of_atlases(&[first])
            .to_string()
            .chars()
            .take(4)
            .collect();
        let loads = shelved.load(&code);
        assert_eq!(loads.len(), 1);
        assert_eq!(ids(&loads[0]), ["com.acme.more"]);
        assert_eq!(loads[0].expected_hash, hash_of_atlases(&[]));
    }
}

#[test]
fn an_emptied_folder_unloads_nothing() {
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    for file in shelved.files() {
        fs::remove_file(file).unwrap();
    }
    shelved.look();
    assert_eq!(shelved.console.press(KeyCode::Char('L')), []);
    shelved.console.shows("at least one Atlas must stay loaded");
    assert_eq!(shelved.console.app.layers.len(), 0);
}

#[test]
fn a_changed_and_an_added_file_are_loaded_together() {
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    let stricter = WORDS.replace("gt: 1000", "gt: 10");
    fs::write(shelved.file("payments.yaml"), stricter).unwrap();
    fs::write(shelved.file("zz.yaml"), MORE).unwrap();
    shelved.look();
    shelved.console.press(KeyCode::Char('L'));
    shelved.console.wait(DIALOG_ARMING_TIME);
    shelved.console.presses(KeyCode::PageDown, 5);
    let changed = load_file(shelved.file("payments.yaml")).unwrap().atlas.hash;
    let changed: String = changed.to_string().chars().take(4).collect();
    let loads = shelved.load(&changed);
    assert_eq!(loads.len(), 1);
    assert_eq!(ids(&loads[0]).len(), 3);
    let mut texts = loads[0].atlases.iter().map(|atlas| &atlas.text);
    assert!(texts.any(|text| text.contains("gt: 10") && !text.contains("gt: 1000")));
}

#[test]
fn a_listing_for_other_atlases_is_dropped() {
    let mut shelved = FolderConsole::new(busy(), (120, 36));
    fs::write(shelved.file("zz.yaml"), MORE).unwrap();
    let listing = FolderCheck {
        known: Vec::new(),
        added: Vec::new(),
        against: Some(Digest::of("others")),
    };
    let listed = compare_folder(&listing, Ok(shelved.files()), &ManifestTransform::default());
    shelved
        .console
        .message(ConsoleMessage::FolderChecked(listed));
    shelved.console.hides("FILE NEWER");
}
