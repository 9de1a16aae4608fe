//! What is known about the record, and what that means for deciding.

use super::App;
use crate::console::dialog::gate::{Around, Trouble};
use crate::console::theme::Meaning;
use crate::runtime::snapshot::{ChainVerdict, Elsewhere, Snapshot, StoreState};
use crate::trace::verify::Report;

impl App {
    /// Tells open dialogs what stands around them.
    pub(super) fn tell_around(&mut self) {
        if self.broken_record().is_none() {
            // What breaks next is another trouble, even if it reads the same.
            self.known.trouble = None;
        }
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
        trouble_of(&self.snapshot, self.found.as_deref())
    }

    /// What is wrong with the chains, if anything is.
    pub(super) fn broken_record(&self) -> Option<String> {
        match self.trouble()? {
            Trouble::Chain(text) => Some(text),
            Trouble::Store(_) => None,
        }
    }

    /// Whether the operator said they know of exactly this. That nothing is recorded is never enough known
    /// to decide.
    pub(in crate::console) fn is_known(&self, trouble: &Trouble) -> bool {
        match trouble {
            Trouble::Chain(text) => self.known.trouble.as_ref() == Some(text),
            Trouble::Store(_) => false,
        }
    }

    /// What every screen says over its whole width, the worst first.
    pub(in crate::console) fn banners(&self) -> Vec<(String, Meaning)> {
        let mut banners = Vec::new();
        if let Some(trouble) = self.trouble() {
            let text = match &trouble {
                Trouble::Store(text) => text.clone(),
                Trouble::Chain(text) if self.is_known(&trouble) => {
                    format!("{text} (acknowledged: deciding is possible)")
                }
                Trouble::Chain(text) => {
                    format!("{text}. Deciding is disabled: :ack-broken-chain")
                }
            };
            banners.push((text, Meaning::Banner));
        }
        if let [gates @ .., last] = self.known.overruled.as_slice() {
            let more = match gates.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            let text = format!("OVERRIDE {last}{more}: a denial was overruled. :ack-override");
            banners.push((text, Meaning::Banner));
        }
        // The record goes on and is sealed. Only the copy that proves it to others is missing; what is worse
        // is said alone.
        if let (true, Elsewhere::Failed { what }) =
            (banners.is_empty(), &self.snapshot.chain.head.elsewhere)
        {
            let text = format!("HEAD NOT KEPT ELSEWHERE: {what}");
            banners.push((text, Meaning::Warning));
        }
        banners
    }
}

/// What is wrong with the record, as the runtime knows it or an operator's own check `found`.
pub(in crate::console) fn trouble_of(snapshot: &Snapshot, found: Option<&str>) -> Option<Trouble> {
    if let StoreState::Poisoned { what } = &snapshot.store {
        return Some(Trouble::Store(format!(
            "NOTHING IS RECORDED ANY MORE: {what}"
        )));
    }
    let chain = match &snapshot.chain.verdict {
        ChainVerdict::Unchecked | ChainVerdict::Verified { .. } => found.map(str::to_owned),
        ChainVerdict::Broken { session, what } => {
            Some(format!("CHAIN BROKEN in {session}: {what}"))
        }
        ChainVerdict::Unreadable { what } => Some(format!("RECORD UNREADABLE: {what}")),
    };
    chain.map(Trouble::Chain)
}

/// What a check found wrong, if anything.
pub(in crate::console) fn unsound(checked: &Result<Report, String>) -> Option<String> {
    match checked {
        Ok(report) => {
            let fault = report.first_fault();
            fault.map(|(session, verdict)| format!("CHAIN BROKEN in {session}: {verdict}"))
        }
        Err(what) => Some(format!("RECORD UNREADABLE: {what}")),
    }
}
