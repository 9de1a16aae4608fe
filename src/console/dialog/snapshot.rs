//! Dialog for a snapshot file: opens it, shows its four phases step by step, and writes one.
//!
//! Contract: this dialog decides nothing, and reads or writes no file. The operator types a path, the
//! driver does the work, and its response is shown. An artifact is loaded only if the operator asks
//! for exactly that one, and an existing file is overwritten only after a separate confirmation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::super::dialog::{Dialog, KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyScope, Motion, SnapshotKey, find_action};
use super::super::line_edit::LineEdit;
use super::super::request::{ConsoleRequest, Ticket};
use super::super::theme::Appearance;
use super::confirmation::ConfirmDialog;
use super::sheet::TextSheet;
use crate::base::atomic_file::ExistingFile;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::MAX_COPY_BYTES;
use crate::memento::ExternalName;
use crate::reconstruct::{Artifact, Reconstruction};

mod messages;
mod view;

pub(crate) use self::messages::{
    SnapshotReadFailure, SnapshotRequest, SnapshotResponse, SnapshotWrite, SnapshotWriteFailure,
};

/// Follow-up of a response.
#[derive(Debug)]
pub(crate) enum SnapshotFollowUp {
    /// Nothing to do.
    Nothing,
    /// The file was written; open it next.
    Open(ConsoleRequest),
    /// The file exists; ask whether to overwrite it.
    Ask(Box<ConfirmDialog>),
}

/// Dialog of a snapshot file.
#[derive(Debug)]
pub(crate) struct SnapshotDialog {
    number: u64,
    request_count: u64,
    /// The selected thread and its session, of which a snapshot can be written.
    thread: Option<(ExternalName, SessionId)>,
    typing: Option<PathInput>,
    shown: SnapshotContent,
    sheet: TextSheet,
}

/// A path that is being typed.
#[derive(Debug)]
struct PathInput {
    purpose: PathPurpose,
    line: LineEdit,
    problem: Option<String>,
}

/// Purpose of the typed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathPurpose {
    Open,
    Write,
}

/// Content of the dialog.
#[derive(Debug)]
enum SnapshotContent {
    Nothing,
    /// A file is being read or written.
    Busy(String),
    Broken(SnapshotReadFailure),
    Opened(Box<OpenSnapshot>),
}

/// A file that was read.
#[derive(Debug)]
struct OpenSnapshot {
    path: PathBuf,
    reconstruction: Arc<Reconstruction>,
    page: SnapshotPage,
    /// Index of the chosen artifact.
    chosen: usize,
    loaded: Option<LoadedArtifact>,
    /// The last notice.
    notice: Option<String>,
}

/// Result of a key for an open file.
enum SnapshotKeyResult {
    Stays,
    Leaves,
    Copies(String),
    Loads(SnapshotRequest),
}

/// An artifact that the operator asked for.
#[derive(Debug)]
struct LoadedArtifact {
    artifact: Artifact,
    content: Option<Result<Option<String>, SnapshotReadFailure>>,
}

/// A page: one of the four phases, or the list of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotPage {
    Retrieve,
    Infer,
    Validate,
    Engage,
    Artifacts,
}

impl SnapshotPage {
    const ALL: [Self; 5] = [
        Self::Retrieve,
        Self::Infer,
        Self::Validate,
        Self::Engage,
        Self::Artifacts,
    ];

    fn of(key: SnapshotKey) -> Option<Self> {
        match key {
            SnapshotKey::Retrieve => Some(Self::Retrieve),
            SnapshotKey::Infer => Some(Self::Infer),
            SnapshotKey::Validate => Some(Self::Validate),
            SnapshotKey::Engage => Some(Self::Engage),
            SnapshotKey::Artifacts => Some(Self::Artifacts),
            SnapshotKey::Copy | SnapshotKey::Other | SnapshotKey::Write => None,
        }
    }

    /// Returns the page `steps` further, and wraps around.
    fn neighbour(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|page| *page == self).unwrap_or(0);
        let mut around = Self::ALL.into_iter().cycle().skip(at + steps);
        around.next().unwrap_or(self)
    }
}

impl SnapshotDialog {
    /// Creates a dialog that asks for a file's path. `of` is the selected thread with its session.
    pub(crate) fn new(number: u64, thread: Option<(ExternalName, SessionId)>) -> Self {
        Self {
            number,
            request_count: 0,
            thread,
            typing: Some(PathInput::new(PathPurpose::Open, "")),
            shown: SnapshotContent::Nothing,
            sheet: TextSheet::default(),
        }
    }

    /// Creates a dialog that asks for the path to write to.
    pub(crate) fn to_write(number: u64, of: (ExternalName, SessionId)) -> Self {
        let mut dialog = Self::new(number, Some(of));
        dialog.type_to_write();
        dialog
    }

    /// Ticket of the request that the dialog waits for.
    fn ticket(&self) -> Ticket {
        Ticket(self.number, self.request_count)
    }

    /// Returns true if a response with this ticket is the one that the dialog waits for.
    pub(crate) fn waits_for(&self, ticket: Ticket) -> bool {
        self.ticket() == ticket
    }

    /// Requests that a file be read.
    pub(crate) fn open(&mut self, path: PathBuf) -> ConsoleRequest {
        self.typing = None;
        let name = path.display().to_string();
        self.show(SnapshotContent::Busy(format!("reading `{name}` ...")));
        self.send_request(SnapshotRequest::Open(path))
    }

    fn send_request(&mut self, ask: SnapshotRequest) -> ConsoleRequest {
        self.request_count += 1;
        ConsoleRequest::Snapshot(self.ticket(), ask)
    }

    fn show(&mut self, shown: SnapshotContent) {
        self.shown = shown;
        self.sheet = TextSheet::default();
    }

    fn type_to_write(&mut self) {
        let name = self.thread.as_ref().map(|(_, session)| session.to_string());
        let name = format!("{}.snapshot.json", name.unwrap_or_default());
        self.typing = Some(PathInput::new(PathPurpose::Write, &name));
        self.sheet.outdate();
    }

    /// Scope in the key table for the keys of this dialog.
    pub(crate) fn scope(&self) -> KeyScope {
        match self.typing {
            Some(_) => KeyScope::Line,
            None => KeyScope::Snapshot,
        }
    }

    /// Returns true if an action has an effect now.
    pub(crate) fn can(&self, action: KeyAction) -> bool {
        if self.typing.is_some() {
            return !matches!(action, KeyAction::Up | KeyAction::Down);
        }
        if action == KeyAction::Snapshot(SnapshotKey::Write) {
            return self.thread.is_some();
        }
        let opened = match &self.shown {
            SnapshotContent::Opened(opened) => Some(opened),
            SnapshotContent::Nothing | SnapshotContent::Busy(_) | SnapshotContent::Broken(_) => {
                None
            }
        };
        if action == KeyAction::Open {
            return opened.is_some_and(|opened| opened.can_load());
        }
        let copies = action == KeyAction::Snapshot(SnapshotKey::Copy);
        opened.is_some() || !(copies || action == KeyAction::Next)
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        if let Some(mut typing) = self.typing.take() {
            self.sheet.outdate();
            return match find_action(KeyScope::Line, key) {
                Some(KeyAction::Press) => self.submit_path(typing),
                Some(KeyAction::Back) => self.stop_typing(),
                Some(_) => {
                    self.typing = Some(typing);
                    KeyResult::quietly()
                }
                None => {
                    typing.line.on_key(key);
                    typing.problem = None;
                    self.typing = Some(typing);
                    KeyResult::quietly()
                }
            };
        }
        match find_action(KeyScope::Snapshot, key) {
            Some(action) => self.act(action),
            None => KeyResult::quietly(),
        }
    }

    /// Handles a pasted text: it goes into the path, if one is typed.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if let Some(typing) = &mut self.typing {
            typing.line.paste(text);
            typing.problem = None;
            self.sheet.outdate();
        }
    }

    /// Handles Enter after a path.
    fn submit_path(&mut self, mut typing: PathInput) -> KeyResult {
        let text = typing.line.text().trim();
        if text.is_empty() {
            typing.problem = Some("enter the path of a file".to_owned());
            self.typing = Some(typing);
            return KeyResult::quietly();
        }
        let path = PathBuf::from(text);
        let request = match (typing.purpose, self.thread.clone()) {
            (PathPurpose::Open, _) | (PathPurpose::Write, None) => self.open(path),
            (PathPurpose::Write, Some((thread, session))) => self.write(SnapshotWrite {
                thread,
                session,
                path,
                if_exists: ExistingFile::Keep,
            }),
        };
        KeyResult::with(LayerChange::Send(request))
    }

    fn write(&mut self, writing: SnapshotWrite) -> ConsoleRequest {
        let name = writing.path.display().to_string();
        self.show(SnapshotContent::Busy(format!("writing `{name}` ...")));
        self.send_request(SnapshotRequest::Write(writing))
    }

    /// Handles Esc while a path is typed: back to the content, or close the dialog.
    fn stop_typing(&mut self) -> KeyResult {
        match self.shown {
            SnapshotContent::Nothing => KeyResult::with(LayerChange::Close),
            SnapshotContent::Busy(_) | SnapshotContent::Broken(_) | SnapshotContent::Opened(_) => {
                KeyResult::quietly()
            }
        }
    }

    fn act(&mut self, action: KeyAction) -> KeyResult {
        if action == KeyAction::Help {
            return KeyResult::with(LayerChange::Help(KeyScope::Snapshot));
        }
        if action == KeyAction::Snapshot(SnapshotKey::Other) {
            self.typing = Some(PathInput::new(PathPurpose::Open, ""));
            self.sheet.outdate();
        } else if action == KeyAction::Snapshot(SnapshotKey::Write) {
            if self.thread.is_some() {
                self.type_to_write();
            }
        } else if let SnapshotContent::Opened(opened) = &mut self.shown {
            return match opened.act(action, &mut self.sheet) {
                SnapshotKeyResult::Stays => KeyResult::quietly(),
                SnapshotKeyResult::Leaves => KeyResult::with(LayerChange::Close),
                SnapshotKeyResult::Copies(text) => {
                    KeyResult::with(LayerChange::Send(ConsoleRequest::Copy(text)))
                }
                SnapshotKeyResult::Loads(ask) => {
                    KeyResult::with(LayerChange::Send(self.send_request(ask)))
                }
            };
        } else if action == KeyAction::Back {
            return KeyResult::with(LayerChange::Close);
        }
        KeyResult::quietly()
    }

    /// Handles the response to the request that the dialog waits for.
    pub(crate) fn on_response(&mut self, response: SnapshotResponse) -> SnapshotFollowUp {
        match response {
            SnapshotResponse::Opened(path, Ok(reconstruction)) => {
                self.show(SnapshotContent::Opened(Box::new(OpenSnapshot::new(
                    path,
                    reconstruction,
                ))));
            }
            SnapshotResponse::Opened(_, Err(reason)) => self.show(SnapshotContent::Broken(reason)),
            SnapshotResponse::Loaded(artifact, content) => {
                if let SnapshotContent::Opened(opened) = &mut self.shown {
                    opened.on_loaded(&artifact, content);
                    self.sheet.outdate();
                }
            }
            SnapshotResponse::Written(writing, Ok(())) => {
                return SnapshotFollowUp::Open(self.open(writing.path));
            }
            SnapshotResponse::Written(writing, Err(reason)) => {
                return self.on_write_failed(writing, reason);
            }
        }
        SnapshotFollowUp::Nothing
    }

    /// Goes back to the path and shows the problem. If the file exists, asks whether to overwrite it.
    fn on_write_failed(
        &mut self,
        writing: SnapshotWrite,
        reason: SnapshotWriteFailure,
    ) -> SnapshotFollowUp {
        self.show(SnapshotContent::Nothing);
        let path = writing.path.display().to_string();
        let mut typing = PathInput::new(PathPurpose::Write, &path);
        let (problem, next) = match reason {
            SnapshotWriteFailure::Failed(what) => (what, SnapshotFollowUp::Nothing),
            SnapshotWriteFailure::AlreadyExists => {
                let writing = SnapshotWrite {
                    if_exists: ExistingFile::Replace,
                    ..writing
                };
                let request = self.send_request(SnapshotRequest::Write(writing));
                let dialog = ConfirmDialog::overwrite(&path, request);
                let problem = format!("`{path}` already exists");
                (problem, SnapshotFollowUp::Ask(Box::new(dialog)))
            }
        };
        typing.problem = Some(problem);
        self.typing = Some(typing);
        next
    }

    /// Lays out the lines for the area they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        let (typing, shown) = (self.typing.as_ref(), &self.shown);
        self.sheet.lay_out_below(area, |cells| {
            let head = view::head(typing, shown, cells, appearance);
            (head, view::body(typing, shown, cells, appearance))
        });
        if let SnapshotContent::Opened(opened) = &self.shown
            && let Some(row) = opened.chosen_row()
        {
            self.sheet.scroll_to_row(row);
        }
    }

    /// Paints the dialog over the whole area.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let title = view::title(self.typing.as_ref(), &self.shown);
        self.sheet.draw(&title, frame, area, appearance);
    }
}

impl PathInput {
    fn new(purpose: PathPurpose, text: &str) -> Self {
        Self {
            purpose,
            line: LineEdit::of(text),
            problem: None,
        }
    }
}

impl OpenSnapshot {
    fn new(path: PathBuf, reconstruction: Arc<Reconstruction>) -> Self {
        Self {
            path,
            reconstruction,
            page: SnapshotPage::Retrieve,
            chosen: 0,
            loaded: None,
            notice: None,
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn act(&mut self, action: KeyAction, sheet: &mut TextSheet) -> SnapshotKeyResult {
        if let Some(motion) = action.motion() {
            self.go(motion, sheet);
        } else if action == KeyAction::Next {
            self.show_page(self.page.neighbour(1), sheet);
        } else if action == KeyAction::Previous {
            self.show_page(self.page.neighbour(SnapshotPage::ALL.len() - 1), sheet);
        } else if action == KeyAction::Snapshot(SnapshotKey::Copy) {
            sheet.outdate();
            return SnapshotKeyResult::Copies(self.copy());
        } else if let KeyAction::Snapshot(key) = action {
            if let Some(page) = SnapshotPage::of(key) {
                self.show_page(page, sheet);
            }
        } else if action == KeyAction::Open && self.can_load() {
            if let Some(ask) = self.load(sheet) {
                return SnapshotKeyResult::Loads(ask);
            }
        } else if action == KeyAction::Back {
            if self.loaded.is_none() {
                return SnapshotKeyResult::Leaves;
            }
            self.show_page(SnapshotPage::Artifacts, sheet);
        }
        SnapshotKeyResult::Stays
    }

    fn show_page(&mut self, page: SnapshotPage, sheet: &mut TextSheet) {
        self.page = page;
        self.loaded = None;
        self.notice = None;
        *sheet = TextSheet::default();
    }

    fn go(&mut self, motion: Motion, sheet: &mut TextSheet) {
        if self.page == SnapshotPage::Artifacts && self.loaded.is_none() {
            self.chosen = motion.target_row(self.chosen, self.reconstruction.artifacts.len());
            sheet.outdate();
        } else {
            sheet.go(motion);
        }
    }

    /// Row of the chosen artifact, if the list is shown.
    fn chosen_row(&self) -> Option<usize> {
        let listed = self.page == SnapshotPage::Artifacts && self.loaded.is_none();
        listed.then_some(self.chosen)
    }

    fn can_load(&self) -> bool {
        self.chosen_row().is_some() && !self.reconstruction.artifacts.is_empty()
    }

    fn load(&mut self, sheet: &mut TextSheet) -> Option<SnapshotRequest> {
        let artifact = self.reconstruction.artifacts.get(self.chosen)?.clone();
        self.loaded = Some(LoadedArtifact {
            artifact: artifact.clone(),
            content: None,
        });
        *sheet = TextSheet::default();
        Some(SnapshotRequest::Load(self.path.clone(), Box::new(artifact)))
    }

    fn on_loaded(
        &mut self,
        artifact: &Artifact,
        content: Result<Option<String>, SnapshotReadFailure>,
    ) {
        if let Some(loaded) = &mut self.loaded
            && loaded.artifact == *artifact
        {
            loaded.content = Some(content);
        }
    }

    fn copy(&mut self) -> String {
        let mut text = self.reconstruction.confirmation.clone();
        let reconstruction = text.len();
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        self.notice = Some(if text.len() < reconstruction {
            format!("copied only {} of {reconstruction} bytes", text.len())
        } else {
            format!("copied the handover text: {reconstruction} bytes")
        });
        text
    }
}

impl Dialog for SnapshotDialog {
    fn scope(&self) -> KeyScope {
        Self::scope(self)
    }

    fn on_key(&mut self, key: KeyEvent, _now: Timestamp) -> KeyResult {
        Self::on_key(self, key)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, _now: Timestamp) {
        Self::draw(self, frame, area, appearance);
    }

    fn can(&self, action: KeyAction) -> bool {
        Self::can(self, action)
    }

    fn on_paste(&mut self, text: &str, _now: Timestamp) -> Vec<ConsoleRequest> {
        Self::on_paste(self, text);
        Vec::new()
    }

    fn on_wheel(&mut self, motion: Motion, _now: Timestamp) {
        Self::on_key(self, motion.arrow_key());
    }

    fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        Self::lay_out(self, area, appearance);
    }
}
