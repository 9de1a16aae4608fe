//! Actions of the conversations screen. The console sends an operator's edit to the runtime, and the screen shows it
//! once it is recorded.

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::{EnterResult, ThreadKey, ThreadsScreen, legend, summary_text, view};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::atlas_study::StudyResult;
use crate::console::dialog::atlas::AtlasDialog;
use crate::console::dialog::atlas::page::PageDialog;
use crate::console::dialog::confirmation::ConfirmDialog;
use crate::console::dialog::snapshot::SnapshotDialog;
use crate::console::keymap::{KeyAction, KeyScope, Motion};
use crate::console::request::{ConsoleRequest, ThreadEdit};
use crate::console::screen::{InputResult, Screen, ScreenChange, ScreenContext};
use crate::console::text_cells::counted;
use crate::console::theme::{Appearance, Meaning};
use crate::console::thread_text::frozen_threads;
use crate::memento::{ExternalName, ProcessedTurn};
use crate::runtime::snapshot::RuntimeSnapshot;

impl Screen for ThreadsScreen {
    fn draw(
        &self,
        snapshot: &RuntimeSnapshot,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    ) {
        view::draw(self, snapshot, frame, area, appearance, now);
    }

    fn handle_action(&mut self, action: KeyAction, _now: Timestamp, context: &mut ScreenContext) {
        match action {
            KeyAction::Back => self.go_back(),
            KeyAction::Next | KeyAction::Previous => self.cycle_pane(action),
            KeyAction::Open => {
                if let Some(EnterResult::Turn(turn)) = self.open(context.snapshot) {
                    show_turn(&turn, context);
                }
            }
            KeyAction::Thread(key) => self.run_command(key, context),
            other => {
                if let Some(motion) = other.motion() {
                    self.move_cursor(motion, context.snapshot);
                }
            }
        }
    }

    fn is_enabled(&self, action: KeyAction, snapshot: &RuntimeSnapshot) -> bool {
        self.can(action, snapshot)
    }

    fn leads_back(&self) -> bool {
        self.is_inside()
    }

    fn tab_note(&self, snapshot: &RuntimeSnapshot) -> Option<String> {
        let frozen = frozen_threads(snapshot);
        (frozen > 0).then(|| format!("!{frozen}"))
    }

    fn tab_row_text(&self, snapshot: &RuntimeSnapshot, cells: usize) -> Option<(String, Meaning)> {
        let text = match frozen_threads(snapshot) {
            0 => return None,
            frozen if cells < 100 => format!(" {frozen} frozen "),
            frozen => format!(" {} frozen ", counted(frozen, "thread")),
        };
        Some((text, Meaning::Frozen))
    }

    fn input_scope(&self) -> Option<KeyScope> {
        self.is_typing().then_some(KeyScope::Prompt)
    }

    fn on_input_key(&mut self, key: KeyEvent, context: &mut ScreenContext) -> InputResult {
        if !self.is_typing() {
            return InputResult::Ignored;
        }
        self.type_key(key, context.snapshot);
        InputResult::Consumed
    }

    fn on_paste(&mut self, text: &str, snapshot: &RuntimeSnapshot) {
        self.paste(text, snapshot);
    }

    fn on_click(&mut self, area: Rect, at: Position, _context: &mut ScreenContext) {
        self.click(area, at);
    }

    fn restore(&mut self, snapshot: &RuntimeSnapshot) {
        self.restore_drafts(&snapshot.thread_drafts);
    }

    fn on_snapshot(&mut self, _before: Option<&RuntimeSnapshot>, context: &mut ScreenContext) {
        self.sync(context.snapshot);
    }

    fn on_enter(&mut self, _now: Timestamp, context: &mut ScreenContext) {
        self.enter(context.snapshot);
    }

    fn on_drawn(&mut self, area: Rect) {
        self.area = area;
    }
}

impl ThreadsScreen {
    fn run_command(&mut self, key: ThreadKey, context: &mut ScreenContext) {
        match key {
            ThreadKey::Next => self.select_neighbour(Motion::Down),
            ThreadKey::Previous => self.select_neighbour(Motion::Up),
            ThreadKey::Differ => self.toggle_difference(context),
            ThreadKey::History => self.toggle_history(),
            ThreadKey::InTrace => {
                if let Some(thread) = self.selected_thread(context.snapshot) {
                    context.apply(ScreenChange::ShowEvent(thread.session.clone(), 0));
                }
            }
            ThreadKey::Copy => self.copy_memento(context),
            ThreadKey::Edit => self.edit_summary(context),
            ThreadKey::Drift => self.ask_drift(context),
            ThreadKey::Legend => show_legend(context),
            ThreadKey::OpenSnapshot => self.open_snapshot("", context),
            ThreadKey::WriteSnapshot => self.write_snapshot(context),
            ThreadKey::Search => self.open_search(),
            ThreadKey::NextMatch => self.find_match(Motion::Down, context),
            ThreadKey::PreviousMatch => self.find_match(Motion::Up, context),
        }
    }

    fn find_match(&mut self, direction: Motion, context: &mut ScreenContext) {
        if !self.select_next_match(direction, context.snapshot) {
            context.show_notice(Meaning::Hint, "no match; / searches threads");
        }
    }

    fn toggle_difference(&mut self, context: &mut ScreenContext) {
        let thread = self.selected_thread(context.snapshot);
        if thread.is_some_and(|thread| thread.held_back.is_empty()) {
            context.show_notice(Meaning::Hint, "no proposal is saved for later");
            return;
        }
        self.toggle_proposals();
    }

    fn copy_memento(&self, context: &mut ScreenContext) {
        let thread = self.selected_thread(context.snapshot);
        let Some(latest) = thread.and_then(|thread| thread.latest.as_ref()) else {
            return;
        };
        let Ok(text) = serde_json::to_string_pretty(latest) else {
            return;
        };
        let id = one_line(latest.memento_id.as_str());
        context.show_notice(Meaning::Text, format!("copied the memento {id}"));
        context.send([ConsoleRequest::Copy(text)]);
    }

    /// Opens the summary in an editor, or the operator's earlier text that was not accepted.
    fn edit_summary(&self, context: &mut ScreenContext) {
        let thread = self.selected_thread(context.snapshot);
        let Some((thread, latest)) =
            thread.and_then(|thread| Some((thread, thread.latest.as_ref()?)))
        else {
            context.show_notice(Meaning::Hint, "no memento to edit");
            return;
        };
        let typed = self.rejected_edit(&thread.id);
        let edit = ThreadEdit {
            thread: thread.id.clone(),
            etag: latest.etag(),
            text: summary_text::text(&thread.id, &latest.shape(), typed),
        };
        if context.warn_if_read_only() {
            return;
        }
        context.send([ConsoleRequest::EditThread(Box::new(edit))]);
    }

    fn ask_drift(&self, context: &mut ScreenContext) {
        let Some(thread) = self.selected_thread(context.snapshot) else {
            return;
        };
        if !context.warn_if_read_only() {
            context.open(ConfirmDialog::drift(&thread.id));
        }
    }

    /// Opens a snapshot file, or asks for its path.
    pub(crate) fn open_snapshot(&self, path: &str, context: &mut ScreenContext) {
        let session = self.chosen_session(context.snapshot);
        let mut dialog = SnapshotDialog::new(context.next_dialog_number(), session);
        let path = path.trim();
        let request = (!path.is_empty()).then(|| dialog.open(PathBuf::from(path)));
        context.open(dialog);
        context.send(request);
    }

    /// Asks for the path to write a snapshot of the selected thread's session to.
    fn write_snapshot(&self, context: &mut ScreenContext) {
        let Some(session) = self.chosen_session(context.snapshot) else {
            context.show_notice(Meaning::Hint, "no thread to write");
            return;
        };
        let number = context.next_dialog_number();
        context.open(SnapshotDialog::to_write(number, session));
    }

    fn chosen_session(&self, snapshot: &RuntimeSnapshot) -> Option<(ExternalName, SessionId)> {
        let thread = self.selected_thread(snapshot)?;
        Some((thread.id.clone(), thread.session.clone()))
    }
}

/// Requests the position of a turn's record. The screen changes once the record is found.
fn show_turn(turn: &ProcessedTurn, context: &mut ScreenContext) {
    let Some(event) = turn.event.clone() else {
        context.show_notice(Meaning::Hint, "this turn has no record yet");
        return;
    };
    context.show_notice(Meaning::Hint, "finding the event ...");
    context.send([ConsoleRequest::FindEvent(turn.session.clone(), event)]);
}

fn show_legend(context: &mut ScreenContext) {
    let mut page = PageDialog::new(
        context.next_dialog_number(),
        "Legend",
        "Explains the words on the threads screen.",
    );
    let result = StudyResult {
        lines: legend(),
        summary: None,
    };
    page.on_studied(page.ticket(), &Ok(result));
    context.open(AtlasDialog::Page(page));
}
