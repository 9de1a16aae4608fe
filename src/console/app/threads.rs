//! Actions of the keys on the threads screen. The console sends an operator's edit to the runtime, and
//! the screen shows it once it is recorded.

use super::{App, Tab};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::dialog::atlas::AtlasDialog;
use crate::console::dialog::atlas::page::PageDialog;
use crate::console::dialog::confirmation::ConfirmDialog;
use crate::console::keymap::{KeyAction, Motion, ThreadKey};
use crate::console::layer::Layer;
use crate::console::request::{ConsoleRequest, ThreadEdit};
use crate::console::screen::threads::{EnterResult, find, legend, summary_text};
use crate::console::study::StudyResult;
use crate::console::theme::Meaning;
use crate::engine::command::DecisionRefusal;
use crate::memento::{ExternalName, ProcessedTurn};
use crate::runtime::ThreadAction;

impl App {
    /// Runs the action of a threads key.
    pub(super) fn act_thread(&mut self, key: ThreadKey) -> Vec<ConsoleRequest> {
        match key {
            ThreadKey::Next => self.threads.step(Motion::Down),
            ThreadKey::Previous => self.threads.step(Motion::Up),
            ThreadKey::Differ => self.turn_difference(),
            ThreadKey::History => self.threads.toggle_history(),
            ThreadKey::InTrace => {
                let thread = self.threads.chosen(&self.snapshot);
                if let Some(session) = thread.map(|thread| thread.session.clone()) {
                    self.tab = Tab::Trace;
                    return self.trace.show_session(&session);
                }
            }
            ThreadKey::Copy => return self.copy_memento(),
            ThreadKey::Edit => return self.edit_thread(),
            ThreadKey::Drift => self.ask_drift(),
            ThreadKey::Legend => self.show_legend(),
            ThreadKey::OpenSnapshot => return self.open_snapshot(""),
            ThreadKey::WriteSnapshot => self.write_snapshot(),
            ThreadKey::Search => self.threads.open_search(),
            ThreadKey::NextMatch => self.find_thread(Motion::Down),
            ThreadKey::PreviousMatch => self.find_thread(Motion::Up),
        }
        Vec::new()
    }

    fn find_thread(&mut self, way: Motion) {
        if !self.threads.select_next_match(way, &self.snapshot) {
            self.show_notice(Meaning::Hint, "no match; / searches threads".to_owned());
        }
    }

    /// Runs the list keys: move, open, back.
    pub(super) fn move_in_threads(&mut self, action: KeyAction) -> Vec<ConsoleRequest> {
        if let Some(motion) = action.motion() {
            self.threads.go(motion, &self.snapshot);
            return Vec::new();
        }
        if action == KeyAction::Back {
            self.threads.back();
        } else if matches!(action, KeyAction::Next | KeyAction::Previous) {
            self.threads.cycle_pane(action);
        } else if action == KeyAction::Open
            && let Some(EnterResult::Turn(turned)) = self.threads.open(&self.snapshot)
        {
            return self.show_turn(&turned);
        }
        Vec::new()
    }

    fn turn_difference(&mut self) {
        let thread = self.threads.chosen(&self.snapshot);
        if thread.is_some_and(|thread| thread.held_back.is_empty()) {
            self.show_notice(Meaning::Hint, "no proposal is saved for later".to_owned());
            return;
        }
        self.threads.turn_difference();
    }

    /// Requests the position of a turn's record. The screen changes once the record is found.
    fn show_turn(&mut self, turned: &ProcessedTurn) -> Vec<ConsoleRequest> {
        let Some(event) = turned.event.clone() else {
            self.show_notice(Meaning::Hint, "this turn has no record yet".to_owned());
            return Vec::new();
        };
        self.show_notice(Meaning::Hint, "finding the event ...".to_owned());
        vec![ConsoleRequest::FindEvent(turned.session.clone(), event)]
    }

    /// Shows the found record of a turn, unless the operator has moved to another screen meanwhile.
    pub(super) fn on_event_found(
        &mut self,
        session: &SessionId,
        found: Result<Option<u64>, String>,
    ) -> Vec<ConsoleRequest> {
        if self.tab != Tab::Threads || !self.layers.is_empty() {
            return Vec::new();
        }
        match found {
            Ok(Some(sequence)) => {
                self.notice = None;
                self.tab = Tab::Trace;
                self.trace.show_event(session, sequence)
            }
            Ok(None) => {
                let text = format!("the event is not in the record of {session}");
                self.show_notice(Meaning::Warning, text);
                Vec::new()
            }
            Err(why) => {
                let text = format!("cannot read the record: {}", one_line(&why));
                self.show_notice(Meaning::Error, text);
                Vec::new()
            }
        }
    }

    fn copy_memento(&mut self) -> Vec<ConsoleRequest> {
        let thread = self.threads.chosen(&self.snapshot);
        let Some(latest) = thread.and_then(|thread| thread.latest.as_ref()) else {
            return Vec::new();
        };
        let Ok(text) = serde_json::to_string_pretty(latest) else {
            return Vec::new();
        };
        let words = format!(
            "copied the memento {}",
            one_line(latest.memento_id.as_str())
        );
        self.show_notice(Meaning::Text, words);
        vec![ConsoleRequest::Copy(text)]
    }

    /// Opens the summary in an editor, or the operator's earlier text that was not accepted.
    fn edit_thread(&mut self) -> Vec<ConsoleRequest> {
        let thread = self.threads.chosen(&self.snapshot);
        let Some((thread, latest)) =
            thread.and_then(|thread| Some((thread, thread.latest.as_ref()?)))
        else {
            self.show_notice(Meaning::Hint, "no memento to edit".to_owned());
            return Vec::new();
        };
        let typed = self.threads.typed(&thread.id);
        let edit = ThreadEdit {
            thread: thread.id.clone(),
            etag: latest.etag(),
            text: summary_text::text(&thread.id, &latest.shape(), typed),
        };
        if self.warn_if_read_only() {
            return Vec::new();
        }
        vec![ConsoleRequest::EditThread(Box::new(edit))]
    }

    /// Handles the end of the editor: its text is checked, and sent if it differs from the summary.
    pub(super) fn on_thread_edited(
        &mut self,
        edit: ThreadEdit,
        edited: Result<String, String>,
    ) -> Vec<ConsoleRequest> {
        let text = match edited {
            Ok(text) => text,
            Err(why) => {
                self.show_notice(Meaning::Error, why);
                return Vec::new();
            }
        };
        let latest = find(&self.snapshot, &edit.thread).and_then(|thread| thread.latest.as_ref());
        let kept = latest.map(|memento| (memento.etag(), memento.shape()));
        let shape = match summary_text::read(&text) {
            Ok(shape) => shape,
            Err(why) => {
                let why = one_line(&why);
                let kept = self.threads.keep_typed(edit.thread, text, why.clone());
                self.show_notice(
                    Meaning::Error,
                    format!("not accepted, e reopens your text: {why}"),
                );
                return vec![kept];
            }
        };
        if kept == Some((edit.etag.clone(), shape.clone())) {
            self.show_notice(Meaning::Text, "no changes".to_owned());
            let dropped = self.threads.drop_edit(&edit.thread);
            return dropped.into_iter().collect();
        }
        let act = ThreadAction::Edit {
            shape,
            if_match: edit.etag,
        };
        let kept =
            self.threads
                .keep_typed(edit.thread.clone(), text, "cra did not reply".to_owned());
        vec![kept, ConsoleRequest::ActOnThread(edit.thread, act)]
    }

    fn ask_drift(&mut self) {
        let Some(thread) = self.threads.chosen(&self.snapshot) else {
            return;
        };
        let dialog = ConfirmDialog::drift(&thread.id);
        if !self.warn_if_read_only() {
            self.layers.push(Layer::new(dialog));
        }
    }

    /// Hands the selected thread over to a session.
    pub(super) fn hand_over_thread(&mut self, to: SessionId) -> Vec<ConsoleRequest> {
        // Only the threads screen shows which thread is selected.
        if self.tab != Tab::Threads {
            self.tab = Tab::Threads;
            let text = "choose the thread here, then type `:hand-over` again";
            self.show_notice(Meaning::Hint, text.to_owned());
            return Vec::new();
        }
        let thread = self.threads.chosen(&self.snapshot);
        let Some(thread) = thread.map(|thread| thread.id.clone()) else {
            self.show_notice(Meaning::Hint, "no thread to hand over".to_owned());
            return Vec::new();
        };
        if self.warn_if_read_only() {
            return Vec::new();
        }
        vec![ConsoleRequest::ActOnThread(
            thread,
            ThreadAction::HandOver { to },
        )]
    }

    /// Shows the result of an operator's action on a thread.
    pub(super) fn on_thread_acted(
        &mut self,
        thread: &ExternalName,
        act: &ThreadAction,
        acted: &Result<(), DecisionRefusal>,
    ) -> Vec<ConsoleRequest> {
        let name = one_line(thread.as_str());
        let mut kept = None;
        let (meaning, text) = match (acted, act) {
            (Ok(()), ThreadAction::Edit { .. }) => {
                kept = self.threads.drop_edit(thread);
                let text = format!("{name} edited and recorded: next turn must use it");
                (Meaning::Passed, text)
            }
            (Ok(()), ThreadAction::FlagDrift) => (
                Meaning::Passed,
                format!("drift in {name} flagged and recorded"),
            ),
            (Err(refused), ThreadAction::Edit { .. }) => {
                let why = one_line(&refused.to_string());
                kept = self.threads.refused(thread, &why);
                let text = format!("not recorded, e shows both texts: {why}");
                (Meaning::Error, text)
            }
            (Ok(()), ThreadAction::HandOver { to }) => (
                Meaning::Passed,
                format!("{name} handed over to {to} and recorded"),
            ),
            (Err(refused), ThreadAction::FlagDrift | ThreadAction::HandOver { .. }) => {
                (Meaning::Error, format!("not recorded: {refused}"))
            }
        };
        self.show_notice(meaning, text);
        kept.into_iter().collect()
    }

    fn show_legend(&mut self) {
        self.last_dialog_number += 1;
        let mut page = PageDialog::new(
            self.last_dialog_number,
            "Legend",
            "Explains the words on the threads screen.",
        );
        let studied = StudyResult {
            lines: legend(),
            summary: None,
        };
        page.on_studied(page.ticket(), &Ok(studied));
        let dialog = AtlasDialog::Page(page);
        self.layers.push(Layer::new(dialog));
    }
}
