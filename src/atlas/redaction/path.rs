//! Places of values in parameters and data.

use serde_json::Value;

use super::{built_in, secret_forms};
use crate::base::limits::MAX_REDACT_PATH;

/// Position of a value: as it is compared with patterns, and as it is shown.
pub(super) struct Path {
    pub(super) matched: String,
    pub(super) shown: String,
    pub(super) depth: usize,
    pub(super) too_long: bool,
}

impl Path {
    /// The built-in rule that leaves out a text because of the name of its field, if one does.
    pub(super) fn secret_rule(&self, value: &Value) -> Option<String> {
        let text = value.as_str()?;
        let name = self.matched.rsplit('.').next()?;
        secret_forms::is_secret_field(name, text).then(|| built_in("secret_field_name"))
    }

    pub(super) fn at(field: &str) -> Self {
        Self {
            matched: String::new(),
            shown: field.to_owned(),
            depth: 0,
            too_long: false,
        }
    }

    /// Goes into a part. Gives what is needed to leave it again.
    pub(super) fn enter(&mut self, key: &str, shown: &str) -> (usize, usize, bool) {
        let before = (self.matched.len(), self.shown.len(), self.too_long);
        self.too_long |= before.0 + key.len() > MAX_REDACT_PATH;
        if self.depth > 0 {
            self.matched.push('.');
        }
        if !self.shown.is_empty() {
            self.shown.push('.');
        }
        if !self.too_long {
            self.matched
                .extend(key.chars().flat_map(char::to_lowercase));
        }
        // What is too long to be compared is too long to be shown as well.
        self.shown.extend(shown.chars().take(MAX_REDACT_PATH));
        self.depth += 1;
        before
    }

    pub(super) fn leave(&mut self, (matched, shown, too_long): (usize, usize, bool)) {
        self.matched.truncate(matched);
        self.shown.truncate(shown);
        self.too_long = too_long;
        self.depth -= 1;
    }
}
