//! Actions of the queue's keys, and notifications about arriving requests.

use std::sync::Arc;

use ratatui::crossterm::event::KeyEvent;

use super::{App, Tab};
use crate::base::text::one_line;
use crate::console::cells::clip;
use crate::console::dialog::gate::GateDialog;
use crate::console::keymap::{KeyAction, QueueKey};
use crate::console::layer::Layer;
use crate::console::names::action_words;
use crate::console::request::{Bell, ConsoleRequest, TerminalNotice};
use crate::console::screen::queue::{ListDirection, QueuePromptPurpose, risk_text};
use crate::console::theme::Meaning;
use crate::engine::held::Held;

/// Maximum length of a desktop notification.
const MAX_TOAST_CHARS: usize = 120;

impl App {
    /// Returns the requests to send before the first key press.
    pub(crate) fn initial_requests(&mut self) -> Vec<ConsoleRequest> {
        self.atlases.schedule_check(&self.snapshot);
        let mut requests = vec![self.notify(Bell::Silent, None)];
        requests.extend(self.request_last_event());
        requests
    }

    /// Returns true if a key goes to a text input of the screen. Keys with one meaning everywhere
    /// never do.
    pub(super) fn is_typing(&self, global: Option<KeyAction>) -> bool {
        let everywhere = matches!(
            global,
            Some(KeyAction::Cancel | KeyAction::Redraw | KeyAction::Suspend)
        );
        let typing = match self.tab {
            Tab::Queue => self.queue.is_typing(),
            Tab::Threads => self.threads.is_typing(),
            // The TRACE screen has its own text input; the Atlas screen has none.
            Tab::Trace | Tab::Atlas => false,
        };
        typing && !everywhere
    }

    /// Types a key into a text input of the screen.
    pub(super) fn type_key(&mut self, key: KeyEvent) -> Vec<ConsoleRequest> {
        if self.tab == Tab::Threads {
            self.threads.type_key(key, &self.snapshot);
            return Vec::new();
        }
        self.queue.type_key(key);
        self.request_last_event()
    }

    /// Runs the action of a queue key.
    pub(super) fn act_queue(&mut self, key: QueueKey) -> Vec<ConsoleRequest> {
        match key {
            QueueKey::Mark => {
                if let Err(why) = self.queue.mark() {
                    self.notice = Some((Meaning::Warning, why));
                }
            }
            QueueKey::Claim => return self.claim(),
            QueueKey::Batch => return self.open_batch(),
            QueueKey::InTrace => {
                if let Some(session) = self.queue.selected().map(|held| held.session.clone()) {
                    self.tab = Tab::Trace;
                    return self.trace.show_session(&session);
                }
            }
            QueueKey::Sort => self.queue.cycle_sort(),
            QueueKey::NextDue => self.queue.next_due(),
            QueueKey::Filter => self.queue.ask(QueuePromptPurpose::Filter),
            QueueKey::Search => self.queue.ask(QueuePromptPurpose::Search),
            QueueKey::NextMatch => self.queue.find(ListDirection::Next),
            QueueKey::PreviousMatch => self.queue.find(ListDirection::Previous),
            QueueKey::Copy => return self.copy(|held| held.id.to_string()),
            QueueKey::CopyHash => return self.copy(|held| held.request_hash.to_string()),
        }
        self.request_last_event()
    }

    /// Opens the marked requests together as a batch.
    fn open_batch(&mut self) -> Vec<ConsoleRequest> {
        match self.queue.marked() {
            Ok(members) => {
                let requests = self.dismiss().into_iter().collect();
                let dialog = GateDialog::batch(members, self.decision_context());
                self.layers.extend(dialog.map(Layer::new));
                requests
            }
            Err(why) => {
                self.notice = Some((Meaning::Warning, why));
                Vec::new()
            }
        }
    }

    fn copy(&mut self, part: impl Fn(&Held) -> String) -> Vec<ConsoleRequest> {
        let Some(text) = self.queue.selected().map(|held| part(held)) else {
            return Vec::new();
        };
        self.notice = Some((Meaning::Text, format!("copied {text}")));
        vec![ConsoleRequest::Copy(text)]
    }

    /// Requests the last event of the selected request's session, for the detail pane.
    pub(super) fn request_last_event(&mut self) -> Vec<ConsoleRequest> {
        if self.tab != Tab::Queue {
            return Vec::new();
        }
        let asked = self.queue.ask_last(&self.snapshot.sessions);
        asked.into_iter().collect()
    }

    /// Builds the notification that requests arrived or left.
    pub(super) fn notify_arrivals(&self, arrivals: &[Arc<Held>]) -> ConsoleRequest {
        let Some(riskiest) = arrivals.iter().max_by_key(|held| held.tier()) else {
            return self.notify(Bell::Silent, None);
        };
        let more = match arrivals.len() {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        let text = format!(
            "cra: {} {} {} by {}{more}",
            riskiest.id,
            risk_text(riskiest),
            action_words(riskiest),
            one_line(&riskiest.agent)
        );
        self.notify(Bell::Ring, Some(clip(&text, MAX_TOAST_CHARS, self.look)))
    }

    /// Builds the notification for an alarm.
    pub(super) fn notify_alarm(&self, what: &str) -> ConsoleRequest {
        let text = format!("cra: ALARM {what}");
        self.notify(Bell::Ring, Some(clip(&text, MAX_TOAST_CHARS, self.look)))
    }

    /// Builds the window title for the number of held requests, with the bell and the toast.
    fn notify(&self, bell: Bell, toast: Option<String>) -> ConsoleRequest {
        let title = format!("cra: {} held", self.snapshot.held.len());
        ConsoleRequest::Notify(TerminalNotice { bell, title, toast })
    }
}
