//! Actions of the steward's keys.

use super::App;
use crate::base::clock::Timestamp;
use crate::console::cells::asker_text;
use crate::console::dialog::atlas::AtlasDialog;
use crate::console::dialog::atlas::load::{LoadDialog, LoadDirection};
use crate::console::dialog::atlas::page::PageDialog;
use crate::console::keymap::StewardKey;
use crate::console::layer::Layer;
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::screen::atlas::{AtlasScreen, FileCheckResult, FolderListing};
use crate::console::study::{PageLine, StudyResult};
use crate::console::theme::Meaning;
use crate::runtime::LoadRefusal;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot, ShadowSummary};

/// Note on the page that replays the past: the assumptions needed to read it.
const PAST_NOTE: &str = "Recorded actions, newest first. Each is evaluated under the loaded Atlas and under the \
    files, for a session past its start gates, with all limits unused.";

impl App {
    /// Runs the action of a steward key.
    pub(super) fn act_steward(&mut self, key: StewardKey, now: Timestamp) -> Vec<ConsoleRequest> {
        match key {
            StewardKey::Load | StewardKey::Undo => {
                self.open_load_dialog(key, now);
                Vec::new()
            }
            StewardKey::Edit => match self.atlases.editable(&self.snapshot) {
                Ok((file, line)) => vec![ConsoleRequest::EditFile(file, line)],
                Err(why) => self.show_hint(why),
            },
            StewardKey::Differ => self.open_study(key, "Changes in the files", "- loaded, + file"),
            StewardKey::Test => {
                let note = "Results of `cra atlas test` for the scenarios in the folder `tests`.";
                self.open_study(key, "Tests", note)
            }
            StewardKey::Shadow => self.start_or_show_shadow(),
            StewardKey::Unshadow => match &self.snapshot.watched.shadow {
                Some(_) => {
                    drop(self.show_hint("shadow mode ended".to_owned()));
                    vec![ConsoleRequest::Shadow(None)]
                }
                None => self.show_hint("shadow mode is off: S starts it".to_owned()),
            },
            StewardKey::Rehearse => self.open_study(key, "Replay with the new files", PAST_NOTE),
        }
    }

    fn show_hint(&mut self, why: String) -> Vec<ConsoleRequest> {
        self.notice = Some((Meaning::Hint, why));
        Vec::new()
    }

    /// Asks whether to load the files, or to go back to the Atlases before.
    fn open_load_dialog(&mut self, key: StewardKey, now: Timestamp) {
        if self.snapshot.access == ConsoleAccess::ReadOnly {
            self.show_hint("read-only console: cannot load Atlases".to_owned());
            return;
        }
        if let Some(trouble) = self.decision_context().trouble {
            self.show_hint(format!("cannot load: {}", trouble.short()));
            return;
        }
        let (way, proposed) = match key {
            StewardKey::Undo => (
                LoadDirection::Back,
                self.atlases.propose_undo(&self.snapshot),
            ),
            StewardKey::Load
            | StewardKey::Edit
            | StewardKey::Test
            | StewardKey::Rehearse
            | StewardKey::Shadow
            | StewardKey::Unshadow
            | StewardKey::Differ => (
                LoadDirection::Forward,
                self.atlases.propose_load(&self.snapshot),
            ),
        };
        match proposed {
            Ok(proposal) => {
                let shown = (way, proposal.lines);
                let sure = (proposal.strength, proposal.code.as_str());
                let dialog = LoadDialog::new(proposal.load, shown, sure, now);
                let dialog = AtlasDialog::Load(dialog);
                self.layers.push(Layer::new(dialog));
            }
            Err(why) => drop(self.show_hint(why)),
        }
    }

    /// Starts shadow evaluation with the files; if it runs already, shows the differences so far.
    fn start_or_show_shadow(&mut self) -> Vec<ConsoleRequest> {
        let Some(shadow) = self.snapshot.watched.shadow.clone() else {
            return match self.atlases.propose_load(&self.snapshot) {
                Ok(proposal) => {
                    let words = "SHADOW: S list, Z end";
                    drop(self.show_hint(words.to_owned()));
                    vec![ConsoleRequest::Shadow(Some(proposal.load))]
                }
                Err(why) => self.show_hint(why),
            };
        };
        let since = shadow.since.time_of_day();
        let note = format!(
            "Since {since}: {} evaluated, {} with a different result. The files decided nothing. Press Esc, \
             then L to load them or Z to stop.",
            shadow.evaluated, shadow.different
        );
        self.last_dialog_number += 1;
        let mut dialog = PageDialog::new(self.last_dialog_number, "Shadow results", &note);
        let ticket = dialog.ticket();
        dialog.on_studied(ticket, &Ok(shadow_differences(&shadow)));
        let dialog = AtlasDialog::Page(dialog);
        self.layers.push(Layer::new(dialog));
        Vec::new()
    }

    /// Requests a study and opens the page that will show its result.
    fn open_study(&mut self, key: StewardKey, title: &str, note: &str) -> Vec<ConsoleRequest> {
        let study = match self.atlases.build_study(key, &self.snapshot) {
            Ok(study) => study,
            Err(why) => return self.show_hint(why),
        };
        self.last_dialog_number += 1;
        let dialog = PageDialog::new(self.last_dialog_number, title, note);
        let ticket = dialog.ticket();
        let dialog = AtlasDialog::Page(dialog);
        self.layers.push(Layer::new(dialog));
        vec![ConsoleRequest::Study(ticket, study)]
    }

    /// Takes over the state of the Atlas files.
    pub(super) fn on_files_checked(&mut self, looked: Vec<FileCheckResult>) -> Vec<ConsoleRequest> {
        self.update_atlas_files(|atlases, snapshot| atlases.on_files_checked(looked, snapshot))
    }

    /// Takes over the listing of the Atlas folder.
    pub(super) fn on_folder_listed(&mut self, listed: FolderListing) -> Vec<ConsoleRequest> {
        self.update_atlas_files(|atlases, snapshot| atlases.on_folder_listed(listed, snapshot))
    }

    /// Updates the state of the files. A notice about a blocked load is removed when the block is
    /// gone.
    fn update_atlas_files(
        &mut self,
        take: impl FnOnce(&mut AtlasScreen, &RuntimeSnapshot),
    ) -> Vec<ConsoleRequest> {
        let shown = self.notice.as_ref().map(|(_, text)| text.clone());
        let shown =
            shown.filter(|shown| self.atlases.load_blocker(&self.snapshot).as_ref() == Some(shown));
        take(&mut self.atlases, &self.snapshot);
        if shown.is_some() && self.atlases.load_blocker(&self.snapshot) != shown {
            self.notice = None;
        }
        Vec::new()
    }

    /// Passes the result of a study to its page.
    pub(super) fn on_studied(
        &mut self,
        ticket: Ticket,
        result: &Result<StudyResult, String>,
    ) -> Vec<ConsoleRequest> {
        if let Ok(StudyResult {
            summary: Some(sum), ..
        }) = result
        {
            self.atlases.on_sum(*sum);
        }
        for dialog in self.atlas_dialogs() {
            if let AtlasDialog::Page(page) = dialog {
                page.on_studied(ticket, result);
            }
        }
        Vec::new()
    }

    /// Handles the reply to a load: other Atlases are loaded, or the load was refused.
    pub(super) fn on_loaded(&mut self, loaded: Result<(), LoadRefusal>) -> Vec<ConsoleRequest> {
        match loaded {
            Ok(()) => {
                self.layers
                    .retain(|layer| !matches!(layer.get(), Some(AtlasDialog::Load(_))));
                let words = "loaded and recorded; U goes back".to_owned();
                self.notice = Some((Meaning::Passed, words));
            }
            Err(why) => {
                self.notice = Some((Meaning::Error, format!("not loaded: {why}")));
                for dialog in self.atlas_dialogs() {
                    if let AtlasDialog::Load(load) = dialog {
                        load.on_refused(&why);
                    }
                }
            }
        }
        Vec::new()
    }

    /// Handles the end of a file's editor: the file is checked first.
    pub(super) fn on_file_edited(&mut self, edited: Result<(), String>) -> Vec<ConsoleRequest> {
        if let Err(why) = edited {
            self.notice = Some((Meaning::Error, why));
        }
        self.atlases.schedule_check(&self.snapshot);
        Vec::new()
    }

    fn atlas_dialogs(&mut self) -> impl Iterator<Item = &mut AtlasDialog> {
        self.layers.iter_mut().filter_map(Layer::get_mut)
    }
}

/// Lists the differences that shadow Atlases would have made, line by line.
fn shadow_differences(shadow: &ShadowSummary) -> StudyResult {
    let mut lines = Vec::new();
    for difference in &shadow.newest {
        let who = asker_text(&difference.agent, &difference.session);
        let head = format!(
            "{} {} {}",
            difference.at.time_of_day(),
            difference.subject,
            who
        );
        lines.push(PageLine::new(Meaning::Strong, head));
        lines.push(PageLine::new(
            Meaning::Text,
            format!("  loaded    {}", difference.live),
        ));
        lines.push(PageLine::new(
            Meaning::Waiting,
            format!("  files     {}", difference.shadow),
        ));
    }
    let more = shadow.different.saturating_sub(shadow.newest.len() as u64);
    if more > 0 {
        lines.push(PageLine::new(Meaning::Dim, format!("{more} older")));
    }
    if lines.is_empty() {
        lines.push(PageLine::new(Meaning::Passed, "No differences so far."));
    }
    StudyResult {
        lines,
        summary: None,
    }
}
