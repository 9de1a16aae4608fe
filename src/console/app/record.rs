//! What is known about the record, and what that means for deciding.

use ratatui::text::Line;

use super::App;
use crate::base::text::one_line;
use crate::console::cells::{clip, fit, width};
use crate::console::dialog::gate::{Around, Trouble};
use crate::console::theme::{Look, Meaning};
use crate::engine::command::RecordFault;
use crate::runtime::snapshot::{ChainVerdict, Elsewhere, Snapshot, StoreState};
use crate::trace::verify::Report;

/// What every screen says over its whole width.
#[derive(Debug)]
pub(in crate::console) struct Banner {
    /// What is the matter. It is cut where there is little room.
    text: String,
    /// What comes of it and the way out. It never is.
    way: &'static str,
    /// The same where there is little room.
    brief: &'static str,
    pub(in crate::console) meaning: Meaning,
}

impl Banner {
    pub(super) fn new(text: &str, way: &'static str, meaning: Meaning) -> Self {
        Self {
            text: text.to_owned(),
            way,
            brief: way,
            meaning,
        }
    }

    /// With fewer words for the way out where there is little room.
    fn briefly(self, brief: &'static str) -> Self {
        Self { brief, ..self }
    }

    /// It in exactly so many cells: what is cut is what is the matter, and never the way out.
    pub(in crate::console) fn line(&self, cells: usize, look: Look) -> Line<'static> {
        let text = format!(" ! {}", one_line(&self.text));
        let fits = width(&text) + width(self.way) <= cells;
        let way = if fits { self.way } else { self.brief };
        let text = clip(&text, cells.saturating_sub(width(way)), look);
        let text = fit(&format!("{text}{way}"), cells, look);
        Line::styled(text, look.style(self.meaning))
    }
}

impl App {
    /// Tells open dialogs what stands around them.
    pub(super) fn tell_around(&mut self) {
        let around = self.around();
        for dialog in self.dialogs() {
            dialog.on_around(around.clone());
        }
    }

    /// What stands around a dialog.
    pub(super) fn around(&self) -> Around {
        Around {
            operator: self.snapshot.operator.clone(),
            access: self.snapshot.access,
            trouble: self.trouble().filter(|trouble| !self.is_known(trouble)),
            passes: self.passes(),
        }
    }

    /// What is wrong with the record, as far as anyone knows.
    pub(in crate::console) fn trouble(&self) -> Option<Trouble> {
        trouble_of(&self.snapshot, self.found.as_ref())
    }

    /// What is wrong with the chains, if anything is.
    pub(super) fn broken_record(&self) -> Option<RecordFault> {
        match self.trouble()? {
            Trouble::Chain(fault) => Some(fault),
            Trouble::Store(_) => None,
        }
    }

    /// Whether an operator said they know of exactly this.
    pub(in crate::console) fn is_known(&self, trouble: &Trouble) -> bool {
        is_known(&self.snapshot, trouble)
    }

    /// What every screen says over its whole width, the worst first.
    pub(in crate::console) fn banners(&self) -> Vec<Banner> {
        let mut banners = Vec::new();
        if let Some(trouble) = self.trouble() {
            let (text, way, brief) = match &trouble {
                Trouble::Store(text) if self.snapshot.store.stall().is_some() => (
                    text,
                    ". Deciding is disabled until recording goes on",
                    "; wait for the disk",
                ),
                Trouble::Store(text) => (
                    text,
                    ". Deciding is disabled: see to the disk, then restart cra",
                    "; restart cra",
                ),
                Trouble::Chain(fault) if self.is_known(&trouble) => (
                    &fault.what,
                    " (acknowledged: deciding is possible)",
                    " (acknowledged)",
                ),
                Trouble::Chain(fault) => (
                    &fault.what,
                    ". Deciding is disabled: :ack-broken-chain",
                    "; :ack-broken-chain to decide",
                ),
            };
            banners.push(Banner::new(text, way, Meaning::Banner).briefly(brief));
        }
        if let [others @ .., last] = self.snapshot.acts.overruled.as_slice() {
            let (last, by) = (&last.gate, one_line(&last.by));
            let more = match others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let text = format!("OVERRIDE {last}{more}: a denial was overruled by {by}");
            banners.push(Banner::new(&text, ". :ack-override", Meaning::Banner));
        }
        banners.extend(self.alarm_banners());
        // The record goes on and is sealed. Only the copy that proves it to others is missing; what is worse
        // is said alone.
        if let (true, Elsewhere::Failed { what }) =
            (banners.is_empty(), &self.snapshot.chain.head.elsewhere)
        {
            let text = format!("HEAD NOT KEPT ELSEWHERE: {what}");
            banners.push(Banner::new(&text, "", Meaning::Warning));
        }
        banners
    }
}

/// What is wrong with the record, as the runtime knows it or an operator's own check `found`.
pub(in crate::console) fn trouble_of(
    snapshot: &Snapshot,
    found: Option<&RecordFault>,
) -> Option<Trouble> {
    match &snapshot.store {
        StoreState::Poisoned { what } => {
            let text = format!("NOTHING IS RECORDED ANY MORE: {what}");
            return Some(Trouble::Store(text));
        }
        StoreState::Stalled { what } => {
            let text = format!("NOTHING IS RECORDED NOW: {what}");
            return Some(Trouble::Store(text));
        }
        StoreState::Ready => {}
    }
    let fault = snapshot.chain.verdict.fault();
    fault.or_else(|| found.cloned()).map(Trouble::Chain)
}

/// Whether an operator said they know of exactly this. That nothing is recorded is never enough known to
/// decide.
pub(in crate::console) fn is_known(snapshot: &Snapshot, trouble: &Trouble) -> bool {
    let known = snapshot.acts.known.as_ref();
    match trouble {
        Trouble::Chain(fault) => known.is_some_and(|known| known.mark == fault.mark),
        Trouble::Store(_) => false,
    }
}

/// What a check found wrong, if anything.
pub(in crate::console) fn unsound(checked: &Result<Report, String>) -> Option<RecordFault> {
    ChainVerdict::from(checked).fault()
}
