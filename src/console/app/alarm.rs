//! Alarms, on every screen.

use std::sync::Arc;

use super::App;
use super::record::Banner;
use crate::base::text::one_line;
use crate::console::alarm::new_ones;
use crate::console::cells::counted;
use crate::console::request::Request;
use crate::console::theme::Meaning;

/// Rows that alarms take at most: there has to be room for what is decided.
const ROWS: usize = 2;

/// The way out, which is never cut.
const WAY: &str = "; see cra doctor";

/// The same, with the key.
const WAY_AND_KEY: &str = "; see cra doctor. F8: ack";

/// The key alone.
const KEY: &str = ". F8: ack";

impl App {
    /// Something else is wrong than before. Nothing opens for that; what is new rings.
    pub(in crate::console) fn on_alarms(&mut self, alarms: Arc<[String]>) -> Vec<Request> {
        let before = std::mem::replace(&mut self.alarms, alarms);
        // What was over and comes again is not known any more.
        self.known_alarms.retain(|it| self.alarms.contains(it));
        let told = match new_ones(&before, &self.alarms).first() {
            Some(first) => vec![self.tell_alarm(&one_line(first))],
            None => Vec::new(),
        };
        self.lay_out();
        told
    }

    /// The operator knows of the alarms. They stay, in one quiet row.
    pub(super) fn know_alarms(&mut self) {
        let new = self.alarms.iter();
        let new: Vec<_> = new.filter(|it| !self.known_alarms.contains(*it)).collect();
        let said = match new.len() {
            0 => "no alarm is new".to_owned(),
            count => format!("{} acknowledged", counted(count, "alarm")),
        };
        self.known_alarms = self.alarms.iter().cloned().collect();
        self.say(Meaning::Text, said);
    }

    /// A row for each alarm that nobody knows of, as long as there is room, and one for the others; what has no
    /// row is counted.
    pub(super) fn alarm_banners(&self) -> Vec<Banner> {
        let all = self.alarms.iter();
        let (known, new): (Vec<_>, Vec<_>) = all.partition(|it| self.known_alarms.contains(*it));
        let rows = if known.is_empty() { ROWS } else { ROWS - 1 };
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

/// A row for each, as long as there is room; the last row says how many more there are.
fn new_rows(alarms: &[&String], most: usize) -> Vec<Banner> {
    let row = |text: &&String| {
        let (text, way) = match text.strip_suffix(WAY) {
            Some(text) => (text, WAY_AND_KEY),
            None => (text.as_str(), KEY),
        };
        Banner::new(&format!("ALARM {text}"), way, Meaning::Banner)
    };
    if alarms.len() <= most {
        return alarms.iter().map(row).collect();
    }
    let mut rows: Vec<_> = alarms.iter().take(most - 1).map(row).collect();
    let more = alarms.len() - rows.len();
    let and = if rows.is_empty() { "" } else { "and " };
    let text = format!("ALARM {and}{more} more: cra doctor lists them");
    rows.push(Banner::new(&text, KEY, Meaning::Banner));
    rows
}
