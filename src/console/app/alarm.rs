//! Alarm banners, shown on every screen.

use std::sync::Arc;

use super::App;
use super::record_faults::Banner;
use crate::base::text::one_line;
use crate::console::added_alarms;
use crate::console::request::ConsoleRequest;
use crate::console::text_cells::counted;
use crate::console::theme::Meaning;

/// Maximum rows for alarms. The rest of the screen must have room for the decision.
const MAX_ALARM_ROWS: usize = 2;

/// Remedy at the end of an alarm text. It is never cut.
const REMEDY: &str = "; see cra doctor";

/// Remedy together with the key that acknowledges.
const REMEDY_AND_KEY: &str = "; see cra doctor. F8: ack";

/// Key that acknowledges, for alarms without a remedy.
const ACKNOWLEDGE_KEY: &str = ". F8: ack";

impl App {
    /// Takes over the current alarms. No dialog opens; a new alarm rings the bell.
    pub(in crate::console) fn on_alarms(&mut self, alarms: Arc<[String]>) -> Vec<ConsoleRequest> {
        let before = std::mem::replace(&mut self.alarms, alarms);
        // An alarm that ended and comes again must be acknowledged again.
        self.known_alarms
            .retain(|alarm| self.alarms.contains(alarm));
        let requests = match added_alarms(&before, &self.alarms).first() {
            Some(first) => vec![self.notify_alarm(&one_line(first))],
            None => Vec::new(),
        };
        self.lay_out();
        requests
    }

    /// Acknowledges all current alarms. They stay on screen, in one quiet row.
    pub(super) fn acknowledge_alarms(&mut self) {
        let new = self.alarms.iter();
        let new: Vec<_> = new
            .filter(|alarm| !self.known_alarms.contains(*alarm))
            .collect();
        let message = match new.len() {
            0 => "no new alarms".to_owned(),
            count => format!("{} acknowledged", counted(count, "alarm")),
        };
        self.known_alarms = self.alarms.iter().cloned().collect();
        self.show_notice(Meaning::Text, message);
    }

    /// Builds a row per unacknowledged alarm, as far as there is room, and one row for the
    /// acknowledged ones. Alarms without a row are counted.
    pub(super) fn alarm_banners(&self) -> Vec<Banner> {
        let all = self.alarms.iter();
        let (known, new): (Vec<_>, Vec<_>) =
            all.partition(|alarm| self.known_alarms.contains(*alarm));
        let rows = if known.is_empty() {
            MAX_ALARM_ROWS
        } else {
            MAX_ALARM_ROWS - 1
        };
        let mut banners = new_rows(&new, rows);
        if let [first, others @ ..] = known.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let text = format!("alarm acknowledged{more}: {first}");
            banners.push(Banner::new(&text, "", Meaning::Warning));
        }
        banners
    }
}

/// Builds one row per alarm, up to `most`. If there are more, the last row gives their number.
fn new_rows(alarms: &[&String], most: usize) -> Vec<Banner> {
    let row = |text: &&String| {
        let (text, remedy) = match text.strip_suffix(REMEDY) {
            Some(text) => (text, REMEDY_AND_KEY),
            None => (text.as_str(), ACKNOWLEDGE_KEY),
        };
        Banner::new(&format!("ALARM {text}"), remedy, Meaning::Banner)
    };
    if alarms.len() <= most {
        return alarms.iter().map(row).collect();
    }
    let mut rows: Vec<_> = alarms.iter().take(most - 1).map(row).collect();
    let more = alarms.len() - rows.len();
    let and = if rows.is_empty() { "" } else { "and " };
    let text = format!("ALARM {and}{more} more: run cra doctor");
    rows.push(Banner::new(&text, ACKNOWLEDGE_KEY, Meaning::Banner));
    rows
}
