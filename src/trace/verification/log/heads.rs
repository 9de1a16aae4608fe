//! Checks of the log against heads that are signed or were kept elsewhere.

use super::super::trust::head_matches;
use super::super::verdict::VerificationVerdict;
use super::LogVerifier;
use crate::trace::head::LogHead;

impl LogVerifier {
    /// Checks the log at its current size against the heads of that size.
    pub(super) fn check_heads(&mut self, place: usize) {
        let size = self.tree.size();
        let signed = self.trust.signed_at(size);
        let known = self.trust.known_at(size);
        if signed.is_none() && known.is_empty() {
            return;
        }
        let root = self.tree.root();
        let Some(log) = self.chains.get(place).map(|log| log.session.clone()) else {
            return;
        };
        let differs = |head: &str| {
            let what = format!("its first {size} entries do not match the {head}");
            VerificationVerdict::diverged(size - 1, what)
        };
        let known =
            (!known.is_empty()).then(|| known.iter().all(|head| head_matches(head, &log, &root)));
        let signed = signed.map(|(head, note, decisive)| {
            let decisive = decisive || !self.offered.is_empty();
            let agreed = head_matches(head, &log, &root);
            let looked_at = decisive || !agreed;
            let key = looked_at.then(|| self.trust.signer(note)).flatten();
            let claimed = !agreed || self.trust.is_claimed(size);
            (agreed, decisive && claimed, key.map(ToString::to_string))
        });
        match known {
            Some(true) => self.mark_witnessed(size),
            Some(false) => self.fail_log(differs("witness")),
            None => {}
        }
        match signed {
            Some((true, true, Some(key))) => self.mark_sealed(size, key),
            Some((false, _, Some(_))) => self.fail_log(differs("signed head")),
            Some((_, true, None) | (false, _, None)) if self.trust.has_keys() => {
                let what = format!("a head with {size} entries is not signed with the key");
                self.fail_log(VerificationVerdict::broken(size - 1, what));
            }
            Some(_) | None => {}
        }
    }

    /// A signed head covers the log so far.
    fn mark_sealed(&mut self, size: u64, key: String) {
        for place in std::mem::take(&mut self.awaiting.0) {
            if let Some(chain) = self.chains.get_mut(place) {
                chain.awaits.seal = false;
                chain.proven.sealed = chain.sealed_count;
            }
        }
        if let Some(log) = self.log_chain() {
            log.proven.sealed = size;
        }
        for key in std::mem::take(&mut self.offered) {
            self.trust.add_key(key);
        }
        self.key = Some(key);
        self.clear_unsealed();
    }

    /// A head from elsewhere covers the log so far.
    fn mark_witnessed(&mut self, size: u64) {
        for place in std::mem::take(&mut self.awaiting.1) {
            if let Some(chain) = self.chains.get_mut(place) {
                chain.awaits.witness = false;
                chain.proven.witnessed = chain.sealed_count;
            }
        }
        if let Some(log) = self.log_chain() {
            log.proven.witnessed = size;
        }
    }

    /// Reports heads with more entries than the log has: the log was longer once.
    pub(super) fn check_larger_heads(&mut self) {
        let found = self.tree.size();
        let known = self.trust.all_known().map(|head| head.size).max();
        let strange = |head: &LogHead| self.trust.log() != Some(&head.log);
        if self.trust.all_known().any(strange) {
            self.fail_log(VerificationVerdict::diverged(
                0,
                "the head belongs to another log",
            ));
        }
        if let Some(expected) = known.filter(|size| *size > found) {
            self.fail_log(VerificationVerdict::Truncated { found, expected });
        }
        let beyond = self.trust.signed_beyond(found);
        let beyond = beyond.filter(|(_, note)| self.trust.is_named_by(note));
        let beyond = beyond.map(|(head, note)| {
            let expected = head.size;
            match self.trust.signer(note) {
                Some(_) => VerificationVerdict::Truncated { found, expected },
                None => VerificationVerdict::broken(
                    found,
                    "a head with more entries is not signed with the key",
                ),
            }
        });
        let beyond: Vec<_> = beyond.collect();
        if self.trust.has_keys() && self.trust.has_signed() {
            for fault in beyond {
                self.fail_log(fault);
            }
        }
    }
}
