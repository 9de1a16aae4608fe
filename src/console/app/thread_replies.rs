//! Replies about threads, and the palette command that hands a thread over.

use super::App;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::request::{ConsoleRequest, ThreadEdit};
use crate::console::screen::ScreenId;
use crate::console::screen::threads::{find, summary_text};
use crate::console::theme::Meaning;
use crate::engine::command::DecisionRefusal;
use crate::memento::ExternalName;
use crate::runtime::ThreadAction;

impl App {
    /// Shows the found record of a turn, unless the operator has moved to another screen meanwhile.
    pub(super) fn on_event_found(
        &mut self,
        session: &SessionId,
        found: Result<Option<u64>, String>,
    ) -> Vec<ConsoleRequest> {
        if self.screen != ScreenId::Threads || !self.layers.is_empty() {
            return Vec::new();
        }
        match found {
            Ok(Some(sequence)) => {
                self.notice = None;
                self.screen = ScreenId::Trace;
                self.screens.trace.show_event(session, sequence)
            }
            Ok(None) => {
                let text = format!("the event is not in the record of {session}");
                self.show_notice(Meaning::Warning, text);
                Vec::new()
            }
            Err(reason) => {
                let text = format!("cannot read the record: {}", one_line(&reason));
                self.show_notice(Meaning::Error, text);
                Vec::new()
            }
        }
    }

    /// Handles the end of the editor: its text is checked, and sent if it differs from the summary.
    pub(super) fn on_thread_edited(
        &mut self,
        edit: ThreadEdit,
        edited: Result<String, String>,
    ) -> Vec<ConsoleRequest> {
        let text = match edited {
            Ok(text) => text,
            Err(reason) => {
                self.show_notice(Meaning::Error, reason);
                return Vec::new();
            }
        };
        let latest = find(&self.snapshot, &edit.thread).and_then(|thread| thread.latest.as_ref());
        let kept = latest.map(|memento| (memento.etag(), memento.shape()));
        let shape = match summary_text::read(&text) {
            Ok(shape) => shape,
            Err(reason) => {
                let reason = one_line(&reason);
                let kept =
                    self.screens
                        .threads
                        .keep_rejected_edit(edit.thread, text, reason.clone());
                self.show_notice(
                    Meaning::Error,
                    format!("not accepted, e reopens your text: {reason}"),
                );
                return vec![kept];
            }
        };
        if kept == Some((edit.etag.clone(), shape.clone())) {
            self.show_notice(Meaning::Text, "no changes".to_owned());
            let dropped = self.screens.threads.discard_rejected_edit(&edit.thread);
            return dropped.into_iter().collect();
        }
        let act = ThreadAction::Edit {
            shape,
            if_match: edit.etag,
        };
        let kept = self.screens.threads.keep_rejected_edit(
            edit.thread.clone(),
            text,
            "cra did not reply".to_owned(),
        );
        vec![kept, ConsoleRequest::ActOnThread(edit.thread, act)]
    }

    /// Hands the selected thread over to a session.
    pub(super) fn hand_over_thread(&mut self, to: SessionId) -> Vec<ConsoleRequest> {
        // Only the threads screen shows which thread is selected.
        if self.screen != ScreenId::Threads {
            self.screen = ScreenId::Threads;
            let text = "choose the thread here, then type `:hand-over` again";
            self.show_notice(Meaning::Hint, text.to_owned());
            return Vec::new();
        }
        let thread = self.screens.threads.selected_thread(&self.snapshot);
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
                kept = self.screens.threads.discard_rejected_edit(thread);
                let text = format!("{name} edited and recorded: next turn must use it");
                (Meaning::Passed, text)
            }
            (Ok(()), ThreadAction::FlagDrift) => (
                Meaning::Passed,
                format!("drift in {name} flagged and recorded"),
            ),
            (Err(refused), ThreadAction::Edit { .. }) => {
                let reason = one_line(&refused.to_string());
                kept = self.screens.threads.on_edit_refused(thread, &reason);
                let text = format!("not recorded, e shows both texts: {reason}");
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
}
