//! Secret that signs notices, so that a receiver can verify their sender.
//!
//! The format is that of Standard Webhooks: `whsec_` and the bytes in base64.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::runtime::private_file::read_or_create;

/// File name, in the folder of the store.
pub const SECRET_FILE: &str = "webhook.secret";

/// Prefix of a secret's text.
const PREFIX: &str = "whsec_";

/// Allowed length of a secret in bytes, by the convention.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that notices are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Reason why a text is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret must be `whsec_` and 24 to 64 bytes in base64")]
pub struct SecretError;

impl Secret {
    fn new() -> io::Result<Self> {
        let mut bytes = vec![0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// Returns its text, for a receiver that verifies signatures.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    /// Returns the signature of a notice, as its header has it.
    ///
    /// # Errors
    /// A message; this does not happen with secrets created here.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &str) -> Result<String, String> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.map_err(|error| format!("the notice cannot be signed: {error}"))?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body.as_bytes());
        Ok(format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let text = text.trim().strip_prefix(PREFIX).ok_or(SecretError)?;
        let bytes = BASE64.decode(text).map_err(|_| SecretError)?;
        if SECRET_BYTES.contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(SecretError)
        }
    }
}

/// Source of the secret.
#[derive(Clone, Debug)]
pub enum SecretSource {
    /// A fixed secret.
    Fixed(Secret),
    /// A file in the folder of the store, created when it is first needed.
    Folder(PathBuf),
}

impl SecretSource {
    /// Returns the secret.
    ///
    /// # Errors
    /// Fails with a message when its file cannot be used.
    pub fn secret(&self) -> Result<Secret, String> {
        match self {
            Self::Fixed(secret) => Ok(secret.clone()),
            Self::Folder(folder) => read_or_create_secret(folder),
        }
    }
}

fn read_or_create_secret(folder: &Path) -> Result<Secret, String> {
    let path = folder.join(SECRET_FILE);
    let failed = |what: String| format!("the secret `{}` {what}", path.display());
    let make = || Secret::new().map(|secret| secret.text());
    let text = read_or_create(folder, SECRET_FILE, make);
    let text = text.map_err(|error| failed(format!("cannot be used: {error}")))?;
    let found = path.metadata();
    let found = found.map_err(|error| failed(format!("cannot be used: {error}")))?;
    if found.permissions().mode() & 0o077 != 0 {
        return Err(failed(
            "can be read by other users: run chmod 600 on it".to_owned(),
        ));
    }
    text.parse()
        .map_err(|error: SecretError| failed(format!("is not valid: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // covers B16
    #[test]
    fn the_signature_of_a_known_notice_equals_the_conventions_example() {
        // This example comes from the convention's own libraries.
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signed = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(
            signed.unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_secret_is_created_once_for_its_owner_alone_and_debug_output_hides_it() {
        let folder = tempfile::tempdir().unwrap();
        let source = SecretSource::Folder(folder.path().join("store"));
        let made = source.secret().unwrap();
        assert_eq!(source.secret().unwrap(), made);
        let path = folder.path().join("store").join(SECRET_FILE);
        assert_eq!(fs::read_to_string(&path).unwrap(), made.text());
        let found = fs::metadata(&path).unwrap().permissions();
        assert_eq!(found.mode() & 0o777, 0o600);
        assert_eq!(format!("{made:?}"), "Secret { .. }");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let problem = source.secret().unwrap_err();
        assert!(problem.contains("can be read by other users"), "{problem}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "whsec_short").unwrap();
        let problem = source.secret().unwrap_err();
        assert!(problem.contains("24 to 64 bytes"), "{problem}");
        assert!(!problem.contains("whsec_short"), "{problem}");
    }

    #[test]
    fn only_a_text_in_the_form_of_a_secret_parses() {
        let of = |bytes: usize| format!("whsec_{}", BASE64.encode(vec![1; bytes]));
        for good in [24, 32, 64] {
            assert!(of(good).parse::<Secret>().is_ok(), "{good}");
        }
        for bad in [
            of(23),
            of(65),
            String::new(),
            "whsec_".to_owned(),
            of(32).replace("whsec_", ""),
        ] {
            assert!(bad.parse::<Secret>().is_err(), "{bad}");
        }
    }
}
