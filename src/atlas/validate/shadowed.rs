//! Rules that another rule keeps from ever applying.
//!
//! Advice only: another Atlas may bring the actions that such a rule waits for.

use super::ManifestValidator;
use super::dead_rules::DeclaredActions;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    AccessKind, AtlasManifest, CheckpointMode, CheckpointTrigger, PolicyDef, PolicyKind,
    StewardCheckpointDef,
};
use crate::base::pattern::Pattern;

impl ManifestValidator<'_, '_> {
    /// Advises about policies and gates whose actions are denied before they are looked at.
    pub(super) fn advise_denied(&mut self, manifest: &AtlasManifest) {
        let is_final = |policy: &&PolicyDef| {
            policy.kind == PolicyKind::Deny && policy.when.is_none() && !policy.overridable
        };
        let denials: Vec<_> = manifest.policies.iter().filter(is_final).collect();
        for (index, policy) in manifest.policies.iter().enumerate() {
            if policy.kind != PolicyKind::Deny {
                let path = format!("policies[{index}].actions");
                self.advise_behind(&path, &policy.policy_id, &policy.actions, &denials);
            }
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            if let CheckpointTrigger::ActionPre { patterns } = &checkpoint.trigger {
                let path = format!("checkpoints[{index}].trigger");
                let path = self.detail_path(&path, &["patterns", "actions"]);
                self.advise_behind(&path, &checkpoint.checkpoint_id, patterns, &denials);
            }
        }
    }

    fn advise_behind(&mut self, path: &str, id: &str, patterns: &[String], denials: &[&PolicyDef]) {
        let denial = |pattern: &String| {
            let mut denials = denials.iter();
            denials.find(|denial| denial.actions.iter().any(|wide| covers(wide, pattern)))
        };
        let found: Option<Vec<_>> = patterns.iter().map(denial).collect();
        let Some(first) = found.as_ref().and_then(|found| found.first()) else {
            return;
        };
        let by = quoted(&first.policy_id);
        let message = format!(
            "{} never applies: {by} denies these actions first",
            quoted(id)
        );
        let help = format!("narrow {by}, write `override: true` there, or remove this rule");
        self.report(
            path,
            ManifestProblem::new(Code::DeadRule, message).help(help),
        );
    }

    /// Advises about a tier that no declared action reaches.
    pub(super) fn advise_tier(
        &mut self,
        index: usize,
        checkpoint: &StewardCheckpointDef,
        manifest: &AtlasManifest,
    ) {
        let CheckpointTrigger::RiskThreshold { min_tier } = &checkpoint.trigger else {
            return;
        };
        if DeclaredActions::of(manifest).is_none_or(|declared| declared.lists_others()) {
            return;
        }
        let tiers: Option<Vec<_>> = manifest
            .actions
            .iter()
            .map(|action| action.risk_tier)
            .collect();
        let Some(highest) = tiers.and_then(|tiers| tiers.into_iter().max()) else {
            return;
        };
        if highest < *min_tier {
            let message = format!(
                "no declared action is `{min_tier}`, so this never fires: the highest is `{highest}`"
            );
            let help = format!("write `min_tier: {highest}`, or give an action a higher tier");
            let path = format!("checkpoints[{index}].trigger");
            let path = self.detail_path(&path, &["min_tier", "minTier"]);
            self.report(
                &path,
                ManifestProblem::new(Code::DeadRule, message).help(help),
            );
        }
    }

    /// Advises about the time of a gate on a checkpoint that is none.
    pub(super) fn advise_timeout(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        let is_gate = checkpoint.mode == CheckpointMode::Blocking || checkpoint.handler.is_some();
        if checkpoint.timeout_seconds.is_some() && !is_gate {
            let message = "`timeout_seconds` has no effect: this checkpoint does not block";
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `mode: blocking`, or remove `timeout_seconds`".to_owned());
            self.report(&format!("checkpoints[{index}].timeout_seconds"), problem);
        }
    }

    /// Advises about keys that an Atlas names and does not ask for.
    pub(super) fn advise_access(&mut self, manifest: &AtlasManifest) {
        let access = manifest
            .steward
            .as_ref()
            .and_then(|steward| steward.access.as_ref());
        let is_open = access
            .is_some_and(|access| access.kind == AccessKind::Public && !access.api_keys.is_empty());
        if is_open {
            let message = "access is `public`, so agents do not need these keys";
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `type: authenticated`, or remove `api_keys`".to_owned());
            self.report("steward.access.api_keys", problem);
        }
    }
}

/// Tells whether a pattern matches everything that another one does.
fn covers(wide: &str, narrow: &str) -> bool {
    if wide == narrow {
        return true;
    }
    let pattern = Pattern::new(narrow);
    if pattern.is_literal() {
        return Pattern::new(wide).matches(narrow);
    }
    let Some(beginning) = wide.strip_suffix('*') else {
        return false;
    };
    let own = narrow.split('*').next().unwrap_or_default();
    !beginning.contains('*') && own.starts_with(beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_it_surely_matches() {
        for (wide, narrow, expected) in [
            ("*", "ticket.*", true),
            ("ticket.*", "ticket.delete", true),
            ("ticket.*", "ticket.d*", true),
            ("ticket.d*", "ticket.*", false),
            ("*.delete", "ticket.*", false),
            ("ticket.*", "*.delete", false),
            ("a*b", "a*b", true),
        ] {
            assert_eq!(covers(wide, narrow), expected, "{wide} {narrow}");
        }
    }
}
