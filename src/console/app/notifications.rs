//! Notifications through the terminal: window title, bell and desktop notifications.

use std::sync::Arc;

use super::App;
use crate::base::text::one_line;
use crate::console::names::action_words;
use crate::console::request::{Bell, ConsoleRequest, TerminalNotice};
use crate::console::screen::queue::risk_text;
use crate::console::text_cells::clip;
use crate::engine::held::Held;

/// Maximum length of a desktop notification.
const MAX_TOAST_CHARS: usize = 120;

impl App {
    /// Returns the requests to send before the first key press.
    pub(crate) fn initial_requests(&mut self) -> Vec<ConsoleRequest> {
        let mut requests = vec![self.notify(Bell::Silent, None)];
        let changes = self.call_screens(|screen, context| screen.on_start(context));
        requests.extend(self.apply_screen_changes(changes));
        requests
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
        self.notify(
            Bell::Ring,
            Some(clip(&text, MAX_TOAST_CHARS, self.appearance)),
        )
    }

    /// Builds the notification for an alarm.
    pub(super) fn notify_alarm(&self, what: &str) -> ConsoleRequest {
        let text = format!("cra: ALARM {what}");
        self.notify(
            Bell::Ring,
            Some(clip(&text, MAX_TOAST_CHARS, self.appearance)),
        )
    }

    /// Builds the window title for the number of held requests, with the bell and the toast.
    fn notify(&self, bell: Bell, toast: Option<String>) -> ConsoleRequest {
        let title = format!("cra: {} held", self.snapshot.held.len());
        ConsoleRequest::Notify(TerminalNotice { bell, title, toast })
    }
}
