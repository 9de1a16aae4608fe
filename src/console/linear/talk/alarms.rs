//! Alarms, told once, when nothing else is being asked.

use std::sync::Arc;

use super::{Deed, Doing, Talk};
use crate::base::text::one_line;
use crate::console::alarm::new_ones;

impl Talk {
    /// Something else is wrong than before.
    pub(in crate::console) fn on_alarms(&mut self, alarms: &Arc<[String]>) -> Vec<Deed> {
        let new = new_ones(&self.alarms, alarms).into_iter().cloned();
        self.untold.extend(new);
        self.alarms = Arc::clone(alarms);
        if matches!(self.doing, Doing::Nothing) && !self.untold.is_empty() {
            // A bell, and a line of its own behind the prompt.
            self.out.push_str("\u{7}\n");
            self.tell_alarms();
            self.out.push_str("> ");
        }
        Vec::new()
    }

    /// Tells what has not been told, as far as it is still so.
    pub(super) fn tell_alarms(&mut self) {
        for alarm in std::mem::take(&mut self.untold) {
            if self.alarms.contains(&alarm) {
                self.say(&format!("ALARM {}", one_line(&alarm)));
            }
        }
    }
}
