//! Alarms, on every screen.

use std::sync::Arc;

use super::App;
use super::record::Banner;
use crate::base::text::one_line;
use crate::console::alarm::new_ones;
use crate::console::request::Request;
use crate::console::theme::Meaning;

/// Rows that alarms take at most: there has to be room for what is decided.
const ROWS: usize = 2;

/// The way out, which is never cut.
const WAY: &str = "; see cra doctor";

impl App {
    /// Something else is wrong than before. Nothing opens for that; what is new rings.
    pub(in crate::console) fn on_alarms(&mut self, alarms: Arc<[String]>) -> Vec<Request> {
        let before = std::mem::replace(&mut self.alarms, alarms);
        let told = match new_ones(&before, &self.alarms).first() {
            Some(first) => vec![self.tell_alarm(&one_line(first))],
            None => Vec::new(),
        };
        self.lay_out();
        told
    }

    /// A row for each alarm, as long as there is room; the last row says how many more there are.
    pub(super) fn alarm_banners(&self) -> Vec<Banner> {
        let row = |text: &String| {
            let (text, way) = match text.strip_suffix(WAY) {
                Some(text) => (text, WAY),
                None => (text.as_str(), ""),
            };
            Banner::new(&format!("ALARM {text}"), way, Meaning::Banner)
        };
        if self.alarms.len() <= ROWS {
            return self.alarms.iter().map(row).collect();
        }
        let mut rows: Vec<_> = self.alarms.iter().take(ROWS - 1).map(row).collect();
        let more = self.alarms.len() - rows.len();
        let text = format!("ALARM and {more} more: cra doctor lists them");
        rows.push(Banner::new(&text, "", Meaning::Banner));
        rows
    }
}
