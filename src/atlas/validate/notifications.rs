//! Validation of the notifications that a steward wants: they must be deliverable.

use super::ManifestValidator;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{Notifications, Steward};
use crate::base::address;

/// Path of the notifications.
const ROOT: &str = "steward.notifications";

impl ManifestValidator<'_, '_> {
    /// Reports undeliverable notifications as errors; otherwise the steward would wait for them in vain.
    pub(super) fn check_notifications(&mut self, wish: &Notifications) {
        let path = format!("{ROOT}.channels.webhook");
        let Some(webhook) = &wish.channels.webhook else {
            if !wish.triggers.is_empty() {
                let message = "there is no channel, so nobody would be told";
                let help = "write the address to call under `channels`, as `webhook`";
                let problem = ManifestProblem::new(Code::MissingKey, message).help(help.to_owned());
                self.report(
                    &self.first_existing_path(ROOT, &["channels", "triggers"]),
                    problem,
                );
            }
            return;
        };
        if let Err(why) = address::check(webhook) {
            let message = format!("{} cannot be called: {why}", quoted(webhook));
            let help =
                "write an address that begins with `https://`; `http://` only on this machine";
            let problem = ManifestProblem::new(Code::BadAddress, message).help(help.to_owned());
            self.report(&path, problem);
        } else if address::has_credentials(webhook) {
            let message = "the address has a name or a password in it";
            let help =
                "take it out: notices are signed, and `cra notices secret` has what checks that";
            let problem = ManifestProblem::new(Code::BadAddress, message).help(help.to_owned());
            self.report(&path, problem);
        }
    }

    /// Advises about notifications without triggers, which are harmless.
    pub(super) fn advise_notifications(&mut self, steward: Option<&Steward>) {
        let wish = steward.and_then(|steward| steward.notifications.as_ref());
        if wish.is_some_and(|wish| wish.triggers.is_empty()) {
            let message = "nothing is worth a notice, so none is sent";
            let help = "name `triggers`, or take `notifications` out";
            let problem = ManifestProblem::new(Code::NoEffect, message).help(help.to_owned());
            self.report(
                &self.first_existing_path(ROOT, &["triggers", "channels"]),
                problem,
            );
        }
    }
}
