//! What is known about the record, and what that means for deciding.

use super::App;
use crate::console::dialog::gate::{Around, Trouble};
use crate::console::theme::Meaning;
use crate::runtime::snapshot::{ChainVerdict, Elsewhere, Snapshot, StoreState};
use crate::trace::verify::Report;

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
            trouble: self.trouble(),
            passes: self.passes(),
        }
    }

    /// What is wrong with the record, as far as anyone knows.
    pub(in crate::console) fn trouble(&self) -> Option<Trouble> {
        trouble_of(&self.snapshot, self.found.as_deref())
    }

    /// What every screen says over its whole width, the worst first.
    pub(in crate::console) fn banner(&self) -> Option<(String, Meaning)> {
        if let Some(trouble) = self.trouble() {
            return Some((trouble.text().to_owned(), Meaning::Banner));
        }
        match &self.snapshot.chain.head.elsewhere {
            Elsewhere::Nowhere | Elsewhere::Kept => None,
            // The record goes on and is sealed. Only the copy that proves it to others is missing.
            Elsewhere::Failed { what } => {
                let text = format!("HEAD NOT KEPT ELSEWHERE: {what}");
                Some((text, Meaning::Warning))
            }
        }
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
