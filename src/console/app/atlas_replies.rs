//! Replies about the Atlas files: checks, studies, loads and the end of an editor.

use super::App;
use crate::console::atlas_study::StudyResult;
use crate::console::dialog::Layer;
use crate::console::dialog::atlas::AtlasDialog;
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::screen::atlas::{AtlasScreen, FileCheckResult, FolderListing};
use crate::console::theme::Meaning;
use crate::runtime::LoadRefusal;
use crate::runtime::snapshot::RuntimeSnapshot;

impl App {
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
        let shown = shown.filter(|shown| {
            self.screens.atlas.load_blocker(&self.snapshot).as_ref() == Some(shown)
        });
        take(&mut self.screens.atlas, &self.snapshot);
        if shown.is_some() && self.screens.atlas.load_blocker(&self.snapshot) != shown {
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
            self.screens.atlas.on_sum(*sum);
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
            Err(reason) => {
                self.notice = Some((Meaning::Error, format!("not loaded: {reason}")));
                for dialog in self.atlas_dialogs() {
                    if let AtlasDialog::Load(load) = dialog {
                        load.on_refused(&reason);
                    }
                }
            }
        }
        Vec::new()
    }

    /// Handles the end of a file's editor: the file is checked first.
    pub(super) fn on_file_edited(&mut self, edited: Result<(), String>) -> Vec<ConsoleRequest> {
        if let Err(reason) = edited {
            self.notice = Some((Meaning::Error, reason));
        }
        self.screens.atlas.schedule_check(&self.snapshot);
        Vec::new()
    }

    fn atlas_dialogs(&mut self) -> impl Iterator<Item = &mut AtlasDialog> {
        self.layers.iter_mut().filter_map(Layer::get_mut)
    }
}
