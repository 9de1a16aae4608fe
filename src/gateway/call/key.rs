//! The secret by which a caller shows that a session is its own.

use serde_json::Value;
use uuid::Uuid;

use crate::base::digest::Digest;

/// Shortest and longest secret of a session.
const KEY_LEN: std::ops::RangeInclusive<usize> = 16..=256;

/// The secret of a session: who knows it speaks for the session.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Uuid::from_bytes(bytes).simple().to_string()))
    }

    /// What is kept of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(format!("session key\n{}", self.0))
    }

    /// The secret itself, for whoever it belongs to.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl TryFrom<Value> for Key {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || {
            let (least, most) = (KEY_LEN.start(), KEY_LEN.end());
            format!("a key is a text of {least} to {most} bytes")
        };
        let Value::String(text) = value else {
            return Err(wrong());
        };
        if KEY_LEN.contains(&text.len()) {
            Ok(Self(text))
        } else {
            Err(wrong())
        }
    }
}
