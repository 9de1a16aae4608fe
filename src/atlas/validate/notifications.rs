//! Validation of the notifications that a steward wants: they must be deliverable.

use super::ManifestValidator;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{Notifications, Steward};
use crate::base::address;

/// Path of the notifications.
const ROOT: &str = "steward.notifications";

impl ManifestValidator<'_, '_> {
    /// Reports undeliverable notifications as errors; otherwise the steward would wait for them in vain.
    pub(super) fn check_notifications(&mut self, notifications: &Notifications) {
        let path = format!("{ROOT}.channels.webhook");
        let Some(webhook) = &notifications.channels.webhook else {
            if !notifications.triggers.is_empty() {
                let message = "`triggers` needs a channel for the notices";
                let help = "write the address under `channels`, as `webhook`";
                let problem = ManifestProblem::new(Code::MissingKey, message).help(help.to_owned());
                self.report(
                    &self.first_existing_path(ROOT, &["channels", "triggers"]),
                    problem,
                );
            }
            return;
        };
        if let Err(why) = address::check(webhook) {
            let message = format!("cra cannot call {}: {why}", quoted(webhook));
            let help = "use an `https://` address; `http://` is allowed only on this machine";
            let problem = ManifestProblem::new(Code::BadAddress, message).help(help.to_owned());
            self.report(&path, problem);
        } else if address::has_credentials(webhook) {
            let message = "the address contains a user name or a password";
            let help = "remove them: cra signs notices; `cra notices secret` shows the secret to verify them";
            let problem = ManifestProblem::new(Code::BadAddress, message).help(help.to_owned());
            self.report(&path, problem);
        }
    }

    /// Advises about notifications without triggers, which are harmless.
    pub(super) fn advise_notifications(&mut self, steward: Option<&Steward>) {
        let notifications = steward.and_then(|steward| steward.notifications.as_ref());
        if notifications.is_some_and(|notifications| notifications.triggers.is_empty()) {
            let message = "`triggers` is empty, so cra sends no notices";
            let help = "add `triggers`, or remove `notifications`";
            let problem = ManifestProblem::new(Code::NoEffect, message).help(help.to_owned());
            self.report(
                &self.first_existing_path(ROOT, &["triggers", "channels"]),
                problem,
            );
        }
    }
}
