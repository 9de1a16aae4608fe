//! Signed notes as C2SP defines them: a readable text with signatures below it.
//!
//! ```text
//! cra/log-0193c0de-7a11-7000-8000-000000000001
//! 42
//! 9ZbYX1Gk5v1L0n9w0p7Dk1m1bq3m1O0f2xJmS8mB1yE=
//!
//! — cra/log-0193c0de-7a11-7000-8000-000000000001 Zm9vYmFy...
//! ```
//!
//! A key is identified by its name and four bytes of its hash; a verifier ignores signatures of keys
//! that it does not know.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Prefix of a signature line: an em dash and a space.
const SIGNATURE: &str = "\u{2014} ";

/// Algorithm number of Ed25519 in signed notes.
const ED25519: u8 = 1;

/// Prefix of a private key.
const SECRET: &str = "PRIVATE+KEY+";

/// Most signatures that are parsed: a note has one, or a few from witnesses.
const MAX_SIGNATURES: usize = 16;

/// Private key that signs notes.
#[derive(Clone)]
pub struct Signer {
    name: String,
    key: SigningKey,
}

impl Signer {
    /// Creates a key from a seed, under a name.
    ///
    /// # Errors
    /// When the name is empty or contains a space or a plus.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        check_name(name)?;
        let (name, key) = (name.to_owned(), SigningKey::from_bytes(seed));
        Ok(Self { name, key })
    }

    /// Public key that verifies the signatures.
    #[must_use]
    pub fn verifier(&self) -> Verifier {
        Verifier {
            name: self.name.clone(),
            key: self.key.verifying_key(),
        }
    }

    /// Generates a new key under a name.
    ///
    /// # Errors
    /// When the name contains a space or a plus, or the system has no randomness.
    pub fn generate(name: &str) -> Result<Self, NoteError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| NoteError::Randomness)?;
        Self::new(name, &seed)
    }

    /// Stored form of the key: `PRIVATE+KEY+name+hash+key`.
    #[must_use]
    pub fn secret(&self) -> String {
        let mut key = vec![ED25519];
        key.extend_from_slice(self.key.as_bytes());
        let (id, key) = (u32::from_be_bytes(self.verifier().id()), BASE64.encode(key));
        format!("{SECRET}{}+{id:08x}+{key}", self.name)
    }

    /// Parses the stored form of a key.
    ///
    /// # Errors
    /// When the text is not a private key.
    pub fn from_secret(text: &str) -> Result<Self, NoteError> {
        let text = text.trim().strip_prefix(SECRET).ok_or(NoteError::Secret)?;
        let (name, rest) = text.split_once('+').ok_or(NoteError::Secret)?;
        let (_, key) = rest.split_once('+').ok_or(NoteError::Secret)?;
        let bytes = BASE64.decode(key).map_err(|_| NoteError::Secret)?;
        let Some((&ED25519, seed)) = bytes.split_first() else {
            return Err(NoteError::Secret);
        };
        let signer = Self::new(name, seed.try_into().map_err(|_| NoteError::Secret)?)?;
        // The hash catches a key that was mistyped or truncated.
        if signer.secret() == format!("{SECRET}{text}") {
            Ok(signer)
        } else {
            Err(NoteError::Secret)
        }
    }

    /// Derives the seed of another key from this one, as HKDF-Expand does (RFC 5869). Each purpose has its own.
    #[must_use]
    pub fn derive_seed(&self, purpose: &str) -> [u8; 32] {
        // The seed is random, so no extract step is needed. HMAC pads its key with zeros.
        let mut block = [0; 64];
        for (padded, byte) in block.iter_mut().zip(self.key.as_bytes()) {
            *padded = *byte;
        }
        let mac = Hmac::<Sha256>::new((&block).into());
        let mac = mac.chain_update(purpose).chain_update([1]);
        mac.finalize().into_bytes().into()
    }

    /// Signs a text that ends with a line feed, and returns the note: the text and a signature.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        format!("{text}\n{}", self.signature(text))
    }

    /// Signature line for a text.
    #[must_use]
    pub fn signature(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes());
        let mut bytes = self.verifier().id().to_vec();
        bytes.extend_from_slice(&signature.to_bytes());
        format!("{SIGNATURE}{} {}\n", self.name, BASE64.encode(bytes))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never prints the private key.
        f.debug_tuple("Signer").field(&self.verifier()).finish()
    }
}

/// Public key that verifies notes. Its text form is the `name+hash+key` of signed notes.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    key: VerifyingKey,
}

impl Verifier {
    /// Name of the key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if this key signed the note.
    #[must_use]
    pub fn has_signed(&self, note: &SignedNote) -> bool {
        let id = self.id();
        note.signatures.iter().any(|signed| {
            signed.name == self.name
                && signed.id == id
                && self
                    .key
                    .verify_strict(note.text.as_bytes(), &signed.signature)
                    .is_ok()
        })
    }

    /// True if the note claims a signature of this key. Signatures of other keys are ignored.
    #[must_use]
    pub fn is_named_by(&self, note: &SignedNote) -> bool {
        let id = self.id();
        note.key_ids().any(|named| named == id)
    }

    fn id(&self) -> [u8; 4] {
        let mut hasher = Sha256::new();
        hasher.update(self.name.as_bytes());
        hasher.update(b"\n");
        hasher.update([ED25519]);
        hasher.update(self.key.as_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        let [a, b, c, d, ..] = hash;
        [a, b, c, d]
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![ED25519];
        key.extend_from_slice(self.key.as_bytes());
        let id = u32::from_be_bytes(self.id());
        write!(f, "{}+{id:08x}+{}", self.name, BASE64.encode(key))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Verifier {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.trim().splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key);
        };
        check_name(name)?;
        let bytes = BASE64.decode(key).map_err(|_| NoteError::Key)?;
        let Some((&ED25519, key)) = bytes.split_first() else {
            return Err(NoteError::Key);
        };
        let key: &[u8; 32] = key.try_into().map_err(|_| NoteError::Key)?;
        let verifier = Self {
            name: name.to_owned(),
            key: VerifyingKey::from_bytes(key).map_err(|_| NoteError::Key)?,
        };
        let expected = u32::from_be_bytes(verifier.id());
        if format!("{expected:08x}") == id {
            Ok(verifier)
        } else {
            Err(NoteError::Key)
        }
    }
}

/// A parsed note. It is untrusted until a [`Verifier`] confirms the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    /// Signed text, with its last line feed.
    pub text: String,
    signatures: Vec<NoteSignature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NoteSignature {
    name: String,
    id: [u8; 4],
    signature: Signature,
}

impl SignedNote {
    /// Identifiers of the keys that the note claims as signers.
    pub(super) fn key_ids(&self) -> impl Iterator<Item = [u8; 4]> {
        self.signatures.iter().map(|signed| signed.id)
    }
}

impl FromStr for SignedNote {
    type Err = NoteError;

    fn from_str(note: &str) -> Result<Self, Self::Err> {
        let (text, signatures) = note.rsplit_once("\n\n").ok_or(NoteError::Form)?;
        let mut read = Vec::new();
        for line in signatures.lines() {
            let signed = line.strip_prefix(SIGNATURE).ok_or(NoteError::Form)?;
            let (name, signature) = signed.split_once(' ').ok_or(NoteError::Form)?;
            check_name(name)?;
            let bytes = BASE64.decode(signature).map_err(|_| NoteError::Form)?;
            let Some((id, signature)) = bytes.split_first_chunk::<4>() else {
                return Err(NoteError::Form);
            };
            // Signatures of other algorithms are for other verifiers.
            if let Ok(signature) = Signature::from_slice(signature) {
                let (name, id) = (name.to_owned(), *id);
                read.push(NoteSignature {
                    name,
                    id,
                    signature,
                });
            }
            if read.len() > MAX_SIGNATURES {
                return Err(NoteError::Form);
            }
        }
        let text = format!("{text}\n");
        let control = |c: char| c.is_control() && c != '\n';
        if signatures.is_empty() || text.chars().any(control) {
            return Err(NoteError::Form);
        }
        Ok(Self {
            text,
            signatures: read,
        })
    }
}

/// Reason why a text is not a signed note or not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The text is not a note.
    #[error("expected a signed note: a text, an empty line, and lines that begin with `\u{2014}`")]
    Form,
    /// The text is not a key.
    #[error("expected a public key of the form NAME+HASH+KEY")]
    Key,
    /// The text is not a private key.
    #[error("expected a private key of the form PRIVATE+KEY+NAME+HASH+KEY")]
    Secret,
    /// No key can be generated.
    #[error("the system provides no random numbers, so no key can be made")]
    Randomness,
    /// The text is not a valid key name.
    #[error("a key name must not be empty or contain spaces or `+`")]
    Name,
}

fn check_name(name: &str) -> Result<(), NoteError> {
    let wrong = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    if name.is_empty() || name.contains(wrong) {
        return Err(NoteError::Name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and note from the documentation of Go's implementation of signed notes.
    const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
         then you don't know what your problem is.\n\n\
         \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn a_note_from_the_go_implementation_verifies() {
        let key: Verifier = KEY.parse().unwrap();
        assert_eq!(key.to_string(), KEY);
        let note: SignedNote = NOTE.parse().unwrap();
        assert!(key.has_signed(&note));
        let changed: SignedNote = NOTE.replace("answer", "Answer").parse().unwrap();
        assert!(!key.has_signed(&changed));
    }

    #[test]
    fn a_signed_note_verifies_with_the_public_key_alone() {
        let signer = Signer::new("cra/log-1", &[7; 32]).unwrap();
        let key: Verifier = signer.verifier().to_string().parse().unwrap();
        let note: SignedNote = signer.sign("cra/log-1\n3\nabc\n").parse().unwrap();
        assert_eq!(note.text, "cra/log-1\n3\nabc\n");
        assert!(key.has_signed(&note));
        let other = Signer::new("cra/log-1", &[8; 32]).unwrap();
        assert!(!other.verifier().has_signed(&note));
        let renamed = Signer::new("cra/log-2", &[7; 32]).unwrap();
        assert!(!renamed.verifier().has_signed(&note));
        assert!(!format!("{signer:?}").contains("BwcHBw"));
        let kept = Signer::from_secret(&format!("{}\n", signer.secret())).unwrap();
        assert_eq!(kept.verifier(), signer.verifier());
        for cut in [0, 20, signer.secret().len() - 1] {
            let cut: String = signer.secret().chars().take(cut).collect();
            assert!(Signer::from_secret(&cut).is_err());
        }
    }

    /// The expected bytes are `HMAC-SHA256(seed, purpose || 0x01)` by another implementation.
    #[test]
    fn a_derived_seed_is_the_first_block_of_hkdf_expand() {
        let signer = Signer::new("cra/log-1", &[7; 32]).unwrap();
        let hex = |seed: [u8; 32]| seed.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(
            hex(signer.derive_seed("console answers v1")),
            "f34c8f806e3c29fd110f6c15970ed78a27b248e497c0ad4c40b10c9bb16f4947"
        );
        assert_ne!(signer.derive_seed("a"), signer.derive_seed("b"));
    }

    #[test]
    fn invalid_notes_and_keys_are_rejected() {
        for text in [
            "",
            "a",
            "a\n",
            "a\n\n",
            "a\n\nb\n",
            "a\n\n\u{2014} n\n",
            "a\n\n\u{2014} n !\n",
        ] {
            assert_eq!(text.parse::<SignedNote>(), Err(NoteError::Form), "{text:?}");
        }
        let wrong = KEY.replace("c74f20a3", "c74f20a4");
        for text in ["", "a+b", "a+b+c", wrong.as_str(), "a b+c74f20a3+AR"] {
            assert!(text.parse::<Verifier>().is_err(), "{text}");
        }
        assert!(Signer::new("a b", &[0; 32]).is_err());
    }
}
