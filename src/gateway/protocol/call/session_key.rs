//! The secret with which a caller proves that a session belongs to it.

use serde_json::Value;
use uuid::Uuid;

use crate::base::digest::Digest;

/// Allowed length of a session secret in bytes.
const KEY_LEN: std::ops::RangeInclusive<usize> = 16..=256;

/// Secret of a session. A caller that knows it may act for the session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey(String);

impl SessionKey {
    /// Creates a random secret.
    ///
    /// # Errors
    /// Fails when the system provides no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Uuid::from_bytes(bytes).simple().to_string()))
    }

    /// Returns the digest that is stored in place of the secret.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(format!("session key\n{}", self.0))
    }

    /// Returns the secret, to be sent to the owner of the session.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl TryFrom<Value> for SessionKey {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || {
            let (least, most) = (KEY_LEN.start(), KEY_LEN.end());
            format!("a key must be text of {least} to {most} bytes")
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
