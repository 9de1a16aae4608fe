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

use super::super::keymap::{Action, Motion, Scope, SnapshotKey, lookup};
use super::super::layer::{Change, Handled};
use super::super::line::LineEdit;
use super::super::request::{Request, Ticket};
use super::super::theme::Look;
use super::confirm::ConfirmDialog;
use super::sheet::Sheet;
use crate::base::id::SessionId;
use crate::base::limits::MAX_COPY_BYTES;
use crate::memento::Name;
use crate::reconstruct::{Artifact, Reconstruction};
use crate::runtime::file::There;

mod ask;
mod view;

pub(crate) use self::ask::{SnapshotAsk, SnapshotTold, Unusable, Unwritten, Writing};

/// Follow-up of a response.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing to do.
    Nothing,
    /// The file was written; open it next.
    Open(Request),
    /// The file exists; ask whether to overwrite it.
    Ask(Box<ConfirmDialog>),
}

/// Dialog of a snapshot file.
#[derive(Debug)]
pub(crate) struct SnapshotDialog {
    number: u64,
    asked: u64,
    /// The selected thread and its session, of which a snapshot can be written.
    of: Option<(Name, SessionId)>,
    typing: Option<Typing>,
    shown: Shown,
    sheet: Sheet,
}

/// A path that is being typed.
#[derive(Debug)]
struct Typing {
    what_for: WhatFor,
    line: LineEdit,
    problem: Option<String>,
}

/// Purpose of the typed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhatFor {
    Open,
    Write,
}

/// Content of the dialog.
#[derive(Debug)]
enum Shown {
    Nothing,
    /// A file is being read or written.
    Waits(String),
    Broken(Unusable),
    Opened(Box<Opened>),
}

/// A file that was read.
#[derive(Debug)]
struct Opened {
    path: PathBuf,
    whole: Arc<Reconstruction>,
    page: Page,
    /// Index of the chosen artifact.
    chosen: usize,
    loaded: Option<Loaded>,
    /// The last notice.
    said: Option<String>,
}

/// Result of a key for an open file.
enum Acted {
    Stays,
    Leaves,
    Copies(String),
    Loads(SnapshotAsk),
}

/// An artifact that the operator asked for.
#[derive(Debug)]
struct Loaded {
    artifact: Artifact,
    content: Option<Result<Option<String>, Unusable>>,
}

/// A page: one of the four phases, or the list of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Retrieve,
    Infer,
    Validate,
    Engage,
    Artifacts,
}

impl Page {
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
    fn step(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|page| *page == self).unwrap_or(0);
        let mut around = Self::ALL.into_iter().cycle().skip(at + steps);
        around.next().unwrap_or(self)
    }
}

impl SnapshotDialog {
    /// Creates a dialog that asks for a file's path. `of` is the selected thread with its session.
    pub(crate) fn new(number: u64, of: Option<(Name, SessionId)>) -> Self {
        Self {
            number,
            asked: 0,
            of,
            typing: Some(Typing::new(WhatFor::Open, "")),
            shown: Shown::Nothing,
            sheet: Sheet::default(),
        }
    }

    /// Creates a dialog that asks for the path to write to.
    pub(crate) fn to_write(number: u64, of: (Name, SessionId)) -> Self {
        let mut dialog = Self::new(number, Some(of));
        dialog.type_to_write();
        dialog
    }

    /// Ticket of the request that the dialog waits for.
    fn ticket(&self) -> Ticket {
        Ticket(self.number, self.asked)
    }

    /// Returns true if a response with this ticket is the one that the dialog waits for.
    pub(crate) fn waits_for(&self, ticket: Ticket) -> bool {
        self.ticket() == ticket
    }

    /// Requests that a file be read.
    pub(crate) fn open(&mut self, path: PathBuf) -> Request {
        self.typing = None;
        let name = path.display().to_string();
        self.show(Shown::Waits(format!("reading `{name}` ...")));
        self.ask(SnapshotAsk::Open(path))
    }

    fn ask(&mut self, ask: SnapshotAsk) -> Request {
        self.asked += 1;
        Request::Snapshot(self.ticket(), ask)
    }

    fn show(&mut self, shown: Shown) {
        self.shown = shown;
        self.sheet = Sheet::default();
    }

    fn type_to_write(&mut self) {
        let name = self.of.as_ref().map(|(_, session)| session.to_string());
        let name = format!("{}.snapshot.json", name.unwrap_or_default());
        self.typing = Some(Typing::new(WhatFor::Write, &name));
        self.sheet.outdate();
    }

    /// Scope in the key table for the keys of this dialog.
    pub(crate) fn scope(&self) -> Scope {
        match self.typing {
            Some(_) => Scope::Line,
            None => Scope::Snapshot,
        }
    }

    /// Returns true if an action has an effect now.
    pub(crate) fn can(&self, action: Action) -> bool {
        if self.typing.is_some() {
            return !matches!(action, Action::Up | Action::Down);
        }
        if action == Action::Snapshot(SnapshotKey::Write) {
            return self.of.is_some();
        }
        let opened = match &self.shown {
            Shown::Opened(opened) => Some(opened),
            Shown::Nothing | Shown::Waits(_) | Shown::Broken(_) => None,
        };
        if action == Action::Open {
            return opened.is_some_and(|opened| opened.can_load());
        }
        let copies = action == Action::Snapshot(SnapshotKey::Copy);
        opened.is_some() || !(copies || action == Action::Next)
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        if let Some(mut typing) = self.typing.take() {
            self.sheet.outdate();
            return match lookup(Scope::Line, key) {
                Some(Action::Press) => self.typed(typing),
                Some(Action::Back) => self.stop_typing(),
                Some(_) => {
                    self.typing = Some(typing);
                    Handled::quietly()
                }
                None => {
                    typing.line.on_key(key);
                    typing.problem = None;
                    self.typing = Some(typing);
                    Handled::quietly()
                }
            };
        }
        match lookup(Scope::Snapshot, key) {
            Some(action) => self.act(action),
            None => Handled::quietly(),
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
    fn typed(&mut self, mut typing: Typing) -> Handled {
        let text = typing.line.text().trim();
        if text.is_empty() {
            typing.problem = Some("which file? Its path is missing".to_owned());
            self.typing = Some(typing);
            return Handled::quietly();
        }
        let path = PathBuf::from(text);
        let request = match (typing.what_for, self.of.clone()) {
            (WhatFor::Open, _) | (WhatFor::Write, None) => self.open(path),
            (WhatFor::Write, Some((thread, session))) => self.write(Writing {
                thread,
                session,
                path,
                there: There::Stays,
            }),
        };
        Handled::with(Change::Ask(request))
    }

    fn write(&mut self, writing: Writing) -> Request {
        let name = writing.path.display().to_string();
        self.show(Shown::Waits(format!("writing `{name}` ...")));
        self.ask(SnapshotAsk::Write(writing))
    }

    /// Handles Esc while a path is typed: back to the content, or close the dialog.
    fn stop_typing(&mut self) -> Handled {
        match self.shown {
            Shown::Nothing => Handled::with(Change::Close),
            Shown::Waits(_) | Shown::Broken(_) | Shown::Opened(_) => Handled::quietly(),
        }
    }

    fn act(&mut self, action: Action) -> Handled {
        if action == Action::Help {
            return Handled::with(Change::Help(Scope::Snapshot));
        }
        if action == Action::Snapshot(SnapshotKey::Other) {
            self.typing = Some(Typing::new(WhatFor::Open, ""));
            self.sheet.outdate();
        } else if action == Action::Snapshot(SnapshotKey::Write) {
            if self.of.is_some() {
                self.type_to_write();
            }
        } else if let Shown::Opened(opened) = &mut self.shown {
            return match opened.act(action, &mut self.sheet) {
                Acted::Stays => Handled::quietly(),
                Acted::Leaves => Handled::with(Change::Close),
                Acted::Copies(text) => Handled::with(Change::Ask(Request::Copy(text))),
                Acted::Loads(ask) => Handled::with(Change::Ask(self.ask(ask))),
            };
        } else if action == Action::Back {
            return Handled::with(Change::Close);
        }
        Handled::quietly()
    }

    /// Handles the response to the request that the dialog waits for.
    pub(crate) fn on_told(&mut self, told: SnapshotTold) -> Next {
        match told {
            SnapshotTold::Opened(path, Ok(whole)) => {
                self.show(Shown::Opened(Box::new(Opened::new(path, whole))));
            }
            SnapshotTold::Opened(_, Err(why)) => self.show(Shown::Broken(why)),
            SnapshotTold::Loaded(artifact, content) => {
                if let Shown::Opened(opened) = &mut self.shown {
                    opened.on_loaded(&artifact, content);
                    self.sheet.outdate();
                }
            }
            SnapshotTold::Written(writing, Ok(())) => return Next::Open(self.open(writing.path)),
            SnapshotTold::Written(writing, Err(why)) => return self.on_unwritten(writing, why),
        }
        Next::Nothing
    }

    /// Goes back to the path and shows the problem. If the file exists, asks whether to overwrite it.
    fn on_unwritten(&mut self, writing: Writing, why: Unwritten) -> Next {
        self.show(Shown::Nothing);
        let path = writing.path.display().to_string();
        let mut typing = Typing::new(WhatFor::Write, &path);
        let (problem, next) = match why {
            Unwritten::Failed(what) => (what, Next::Nothing),
            Unwritten::There => {
                let writing = Writing {
                    there: There::Goes,
                    ..writing
                };
                let request = self.ask(SnapshotAsk::Write(writing));
                let dialog = ConfirmDialog::over(&path, request);
                let problem = format!("`{path}` is there already");
                (problem, Next::Ask(Box::new(dialog)))
            }
        };
        typing.problem = Some(problem);
        self.typing = Some(typing);
        next
    }

    /// Lays out the lines for the area they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, look: Look) {
        let (typing, shown) = (self.typing.as_ref(), &self.shown);
        self.sheet.lay_out_below(area, |cells| {
            let head = view::head(typing, shown, cells, look);
            (head, view::body(typing, shown, cells, look))
        });
        if let Shown::Opened(opened) = &self.shown
            && let Some(row) = opened.chosen_row()
        {
            self.sheet.keep_in_sight(row);
        }
    }

    /// Paints the dialog over the whole area.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        let title = view::title(self.typing.as_ref(), &self.shown);
        self.sheet.draw(&title, frame, area, look);
    }
}

impl Typing {
    fn new(what_for: WhatFor, text: &str) -> Self {
        Self {
            what_for,
            line: LineEdit::of(text),
            problem: None,
        }
    }
}

impl Opened {
    fn new(path: PathBuf, whole: Arc<Reconstruction>) -> Self {
        Self {
            path,
            whole,
            page: Page::Retrieve,
            chosen: 0,
            loaded: None,
            said: None,
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn act(&mut self, action: Action, sheet: &mut Sheet) -> Acted {
        if let Some(motion) = action.motion() {
            self.go(motion, sheet);
        } else if action == Action::Next {
            self.turn_to(self.page.step(1), sheet);
        } else if action == Action::Previous {
            self.turn_to(self.page.step(Page::ALL.len() - 1), sheet);
        } else if action == Action::Snapshot(SnapshotKey::Copy) {
            sheet.outdate();
            return Acted::Copies(self.copy());
        } else if let Action::Snapshot(key) = action {
            if let Some(page) = Page::of(key) {
                self.turn_to(page, sheet);
            }
        } else if action == Action::Open && self.can_load() {
            if let Some(ask) = self.load(sheet) {
                return Acted::Loads(ask);
            }
        } else if action == Action::Back {
            if self.loaded.is_none() {
                return Acted::Leaves;
            }
            self.turn_to(Page::Artifacts, sheet);
        }
        Acted::Stays
    }

    fn turn_to(&mut self, page: Page, sheet: &mut Sheet) {
        self.page = page;
        self.loaded = None;
        self.said = None;
        *sheet = Sheet::default();
    }

    fn go(&mut self, motion: Motion, sheet: &mut Sheet) {
        if self.page == Page::Artifacts && self.loaded.is_none() {
            self.chosen = motion.from(self.chosen, self.whole.artifacts.len());
            sheet.outdate();
        } else {
            sheet.go(motion);
        }
    }

    /// Row of the chosen artifact, if the list is shown.
    fn chosen_row(&self) -> Option<usize> {
        let listed = self.page == Page::Artifacts && self.loaded.is_none();
        listed.then_some(self.chosen)
    }

    fn can_load(&self) -> bool {
        self.chosen_row().is_some() && !self.whole.artifacts.is_empty()
    }

    fn load(&mut self, sheet: &mut Sheet) -> Option<SnapshotAsk> {
        let artifact = self.whole.artifacts.get(self.chosen)?.clone();
        self.loaded = Some(Loaded {
            artifact: artifact.clone(),
            content: None,
        });
        *sheet = Sheet::default();
        Some(SnapshotAsk::Load(self.path.clone(), Box::new(artifact)))
    }

    fn on_loaded(&mut self, artifact: &Artifact, content: Result<Option<String>, Unusable>) {
        if let Some(loaded) = &mut self.loaded
            && loaded.artifact == *artifact
        {
            loaded.content = Some(content);
        }
    }

    fn copy(&mut self) -> String {
        let mut text = self.whole.confirmation.clone();
        let whole = text.len();
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        self.said = Some(if text.len() < whole {
            format!("copied, CUT: {} of {whole} bytes", text.len())
        } else {
            format!("copied the text to go on with: {whole} bytes")
        });
        text
    }
}
