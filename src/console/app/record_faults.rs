//! Faults of the record, and their effect on deciding.

use ratatui::text::Line;

use super::App;
use crate::base::text::one_line;
use crate::console::dialog::gate::{DecisionContext, RecordTrouble};
use crate::console::text_cells::{clip, fit, width};
use crate::console::theme::{Appearance, Meaning};
use crate::engine::command::RecordFault;
use crate::runtime::snapshot::{ChainVerdict, HeadCopyState, RuntimeSnapshot, StoreState};
use crate::trace::verification::VerificationReport;

/// Message that every screen shows across its full width.
#[derive(Debug)]
pub(in crate::console) struct Banner {
    /// The problem. It is cut if there is little room.
    text: String,
    /// The consequence and the remedy. It is never cut.
    remedy: &'static str,
    /// Shorter remedy, for narrow terminals.
    short_remedy: &'static str,
    pub(in crate::console) meaning: Meaning,
}

impl Banner {
    pub(super) fn new(text: &str, remedy: &'static str, meaning: Meaning) -> Self {
        Self {
            text: text.to_owned(),
            remedy,
            short_remedy: remedy,
            meaning,
        }
    }

    /// Sets a shorter remedy for narrow terminals.
    fn with_short_remedy(self, brief: &'static str) -> Self {
        Self {
            short_remedy: brief,
            ..self
        }
    }

    /// Renders the banner in exactly `cells` cells. It cuts the problem, never the remedy.
    pub(in crate::console) fn line(&self, cells: usize, appearance: Appearance) -> Line<'static> {
        let text = format!(" ! {}", one_line(&self.text));
        let fits = width(&text) + width(self.remedy) <= cells;
        let remedy = if fits { self.remedy } else { self.short_remedy };
        let text = clip(&text, cells.saturating_sub(width(remedy)), appearance);
        let text = fit(&format!("{text}{remedy}"), cells, appearance);
        Line::styled(text, appearance.style(self.meaning))
    }
}

impl App {
    /// Updates the open dialogs with the current operator, access and faults.
    pub(super) fn update_decision_contexts(&mut self) {
        let context = self.decision_context();
        for dialog in self.dialogs() {
            dialog.set_decision_context(context.clone());
        }
    }

    /// Collects the console state that a dialog depends on.
    pub(super) fn decision_context(&self) -> DecisionContext {
        DecisionContext {
            operator: self.snapshot.operator.clone(),
            access: self.snapshot.access,
            trouble: self.unacknowledged_trouble(),
            passes: self.recent_passes(),
        }
    }

    /// Returns the fault that disables deciding, if there is one.
    pub(super) fn unacknowledged_trouble(&self) -> Option<RecordTrouble> {
        self.record_trouble()
            .filter(|trouble| !self.is_acknowledged(trouble))
    }

    /// Returns the known fault of the record or the store.
    pub(in crate::console) fn record_trouble(&self) -> Option<RecordTrouble> {
        find_record_trouble(&self.snapshot, self.found_fault.as_ref())
    }

    /// Returns the fault of the chains, if there is one.
    pub(super) fn chain_fault(&self) -> Option<RecordFault> {
        match self.record_trouble()? {
            RecordTrouble::Chain(fault) => Some(fault),
            RecordTrouble::Store(_) => None,
        }
    }

    /// Returns true if an operator acknowledged exactly this fault.
    pub(in crate::console) fn is_acknowledged(&self, trouble: &RecordTrouble) -> bool {
        is_acknowledged(&self.snapshot, trouble)
    }

    /// Lists the banners that every screen shows, the worst first.
    pub(in crate::console) fn banners(&self) -> Vec<Banner> {
        let mut banners = Vec::new();
        if let Some(trouble) = self.record_trouble() {
            let (text, remedy, brief) = match &trouble {
                RecordTrouble::Store(text) if self.snapshot.store.stall().is_some() => (
                    text,
                    ". Deciding is disabled until recording resumes",
                    "; wait for the disk",
                ),
                RecordTrouble::Store(text) => (
                    text,
                    ". Deciding is disabled: check the disk, restart cra",
                    "; restart cra",
                ),
                RecordTrouble::Chain(fault) if self.is_acknowledged(&trouble) => (
                    &fault.what,
                    " (acknowledged: deciding is possible)",
                    " (acknowledged)",
                ),
                RecordTrouble::Chain(fault) => (
                    &fault.what,
                    ". Deciding is disabled: :ack-broken-chain",
                    "; :ack-broken-chain to decide",
                ),
            };
            banners.push(Banner::new(text, remedy, Meaning::Banner).with_short_remedy(brief));
        }
        if let [others @ .., last] = self.snapshot.operator_acts.overruled.as_slice() {
            let (last, by) = (&last.gate, one_line(&last.by));
            let more = match others.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let text = format!("OVERRIDE {last}{more}: {by} overruled a denial");
            banners.push(Banner::new(&text, ". :ack-override", Meaning::Banner));
        }
        banners.extend(self.alarm_banners());
        // Recording continues and is sealed. Only the external copy of the head, which proves the
        // record to others, is missing. The banner is shown only if no worse one is.
        if let (true, HeadCopyState::Failed { what }) =
            (banners.is_empty(), &self.snapshot.chain.head.copy)
        {
            let text = format!("HEAD COPY FAILED: {what}");
            banners.push(Banner::new(&text, "", Meaning::Warning));
        }
        banners
    }
}

/// Returns the fault of the record that the runtime knows of, or that an operator's own check `found`.
pub(in crate::console) fn find_record_trouble(
    snapshot: &RuntimeSnapshot,
    found: Option<&RecordFault>,
) -> Option<RecordTrouble> {
    match &snapshot.store {
        StoreState::Poisoned { what } => {
            let text = format!("RECORDING STOPPED: {what}");
            return Some(RecordTrouble::Store(text));
        }
        StoreState::Stalled { what } => {
            let text = format!("RECORDING PAUSED: {what}");
            return Some(RecordTrouble::Store(text));
        }
        StoreState::Ready => {}
    }
    let fault = snapshot.chain.verdict.fault();
    fault.or_else(|| found.cloned()).map(RecordTrouble::Chain)
}

/// Returns true if an operator acknowledged exactly this fault. A store that records nothing cannot be
/// acknowledged: deciding stays disabled.
pub(in crate::console) fn is_acknowledged(
    snapshot: &RuntimeSnapshot,
    trouble: &RecordTrouble,
) -> bool {
    let known = snapshot.operator_acts.acknowledged_fault.as_ref();
    match trouble {
        RecordTrouble::Chain(fault) => known.is_some_and(|known| known.mark == fault.mark),
        RecordTrouble::Store(_) => false,
    }
}

/// Returns the fault that a check found, if there is one.
pub(in crate::console) fn fault_in_report(
    checked: &Result<VerificationReport, String>,
) -> Option<RecordFault> {
    ChainVerdict::from(checked).fault()
}
