//! Alarms. Each is announced once, when no question is open.

use std::sync::Arc;

use super::{LineConsole, LineEffect, LineState};
use crate::base::text::one_line;
use crate::console::added_alarms;
use crate::console::text_cells::counted;

impl LineConsole {
    /// Handles a new list of alarms.
    pub(in crate::console) fn on_alarms(&mut self, alarms: &Arc<[String]>) -> Vec<LineEffect> {
        let new = added_alarms(&self.alarms, alarms).into_iter().cloned();
        self.unannounced.extend(new);
        self.alarms = Arc::clone(alarms);
        if matches!(self.doing, LineState::Nothing) && !self.unannounced.is_empty() {
            // A bell, and a new line after the prompt.
            self.out.push_str("\u{7}\n");
            self.print_alarms();
            self.out.push_str(self.prompt_text());
        }
        Vec::new()
    }

    /// Prints alarms that were not announced yet and are still active.
    pub(super) fn print_alarms(&mut self) {
        for alarm in std::mem::take(&mut self.unannounced) {
            if self.alarms.contains(&alarm) {
                self.print_line(&format!("ALARM {}", one_line(&alarm)));
            }
        }
        self.print_undelivered_notices();
    }

    /// Announces undelivered notices if there are more than announced before.
    pub(super) fn on_notices(&mut self) {
        if self.snapshot.notices.undelivered_count() > self.announced_undelivered {
            self.out.push_str("\u{7}\n");
            self.print_undelivered_notices();
            self.out.push_str(self.prompt_text());
        }
    }

    fn print_undelivered_notices(&mut self) {
        let notices = &self.snapshot.notices;
        let before =
            std::mem::replace(&mut self.announced_undelivered, notices.undelivered_count());
        if self.announced_undelivered > before {
            let count = counted(self.announced_undelivered, "notice");
            let error = notices
                .error
                .as_deref()
                .unwrap_or("too many notices are waiting");
            let error = one_line(error);
            self.print_line(&format!(
                "{count} to stewards not delivered: {error}. Run cra notices to list them."
            ));
        }
    }
}
