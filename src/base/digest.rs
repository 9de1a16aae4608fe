//! SHA-256 digests, written as 64 lower-case hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Why a text is not a [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The predecessor of a chain's first record: 64 zeros.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// The digest of several parts. Each is preceded by its length, so that no byte can move from
    /// one part to the next without changing the result.
    #[must_use]
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The digest whose bytes these are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its 64 digits.
    #[must_use]
    pub fn hex(&self) -> Hex {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        Hex(digits)
    }

    /// The first `digits` hexadecimal digits, for people.
    #[must_use]
    pub fn short(&self, digits: usize) -> String {
        self.to_string().chars().take(digits).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.hex().as_str())
    }
}

/// The digits of a digest, without a place of their own in memory.
#[derive(Clone, Copy, Debug)]
pub struct Hex([u8; 64]);

impl Hex {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // INVARIANT: every byte is a hexadecimal digit.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' + (value - 10),
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| DigestError)?;
        // All at once, and what is no digit is looked for at the end: chains are long.
        let (mut values, mut wrong) = ([0; 64], 0);
        for (value, &digit) in values.iter_mut().zip(digits) {
            let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
            *value = if number < 10 {
                number
            } else {
                letter.wrapping_add(10)
            };
            wrong |= u8::from(number > 9) & u8::from(letter > 5);
        }
        let (pairs, _) = values.as_chunks::<2>();
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = high << 4 | low;
        }
        if wrong != 0 {
            return Err(DigestError);
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_input_has_the_known_digest() {
        let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), known);
        assert_eq!(known.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn only_the_canonical_text_reads() {
        assert_eq!("0".repeat(64).parse(), Ok(Digest::ZERO));
        for text in [
            "0".repeat(63),
            "0".repeat(65),
            "A".repeat(64),
            "é".repeat(32),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(DigestError), "{text}");
        }
    }

    #[test]
    fn a_byte_cannot_move_between_parts() {
        let one = Digest::of_parts([b"ab".as_slice(), b"c".as_slice()]);
        let other = Digest::of_parts([b"a".as_slice(), b"bc".as_slice()]);
        assert_ne!(one, other);
    }
}
