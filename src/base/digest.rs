//! SHA-256 digests, written as 64 lower-case hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The error for a text that is not a [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The predecessor of a chain's first record: 64 zeros.
    pub const ZERO: Self = Self([0; 32]);

    /// Computes the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// Computes the digest of several parts. The length precedes each part, so that no byte can move from one part
    /// to the next without changing the result.
    #[must_use]
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Creates a digest from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> HexDigest {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        HexDigest(digits)
    }

    /// Returns the first `digits` hexadecimal digits, for display.
    #[must_use]
    pub fn short(&self, digits: usize) -> String {
        self.to_string().chars().take(digits).collect()
    }
}

/// The initial state of SHA-256.
const SHA256_INITIAL_STATE: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The block size of SHA-256 in bytes.
const BLOCK_BYTES: usize = 64;

/// A hash computation in steps of one block, interleaved with other work.
///
/// Every step of a hash depends on the one before, and processors execute independent work meanwhile. So work done
/// between two blocks costs little more than the hash alone.
#[derive(Debug)]
pub struct InterleavedDigest<'t> {
    state: [u32; 8],
    blocks: &'t [[u8; BLOCK_BYTES]],
    /// The padding after the whole blocks: the rest of the text, a bit, and the length. One block or two.
    end: [[u8; BLOCK_BYTES]; 2],
    all: usize,
    done: usize,
}

impl<'t> InterleavedDigest<'t> {
    /// Starts the hash of a text.
    #[must_use]
    #[inline]
    pub fn of(text: &'t [u8]) -> Self {
        let (blocks, rest) = text.as_chunks();
        let mut end = [[0; BLOCK_BYTES]; 2];
        // The bit and the length need nine bytes.
        let ends = if rest.len() + 9 <= BLOCK_BYTES { 1 } else { 2 };
        let bits = (text.len() as u64).wrapping_mul(8).to_be_bytes();
        let flat = end.as_flattened_mut();
        let (ahead, behind) = flat.split_at_mut_checked(rest.len()).unwrap_or_default();
        ahead.copy_from_slice(rest);
        if let Some(bit) = behind.first_mut() {
            *bit = 0x80;
        }
        if let Some(length) = flat.get_mut(ends * BLOCK_BYTES - bits.len()..ends * BLOCK_BYTES) {
            length.copy_from_slice(&bits);
        }
        Self {
            state: SHA256_INITIAL_STATE,
            blocks,
            end,
            all: blocks.len() + ends,
            done: 0,
        }
    }

    /// Hashes the next block, if any remains.
    #[inline]
    pub fn step(&mut self) {
        let behind = self.done.wrapping_sub(self.blocks.len());
        let block = match self.blocks.get(self.done) {
            None if self.done < self.all => self.end.get(behind),
            block => block,
        };
        if let Some(block) = block {
            compress256(&mut self.state, std::slice::from_ref(block));
            self.done += 1;
        }
    }

    /// Hashes the remaining blocks and returns the digest.
    #[must_use]
    pub fn finish(&mut self) -> Digest {
        while self.done < self.all {
            self.step();
        }
        let mut bytes = [0; 32];
        let (words, _) = bytes.as_chunks_mut();
        for (place, word) in words.iter_mut().zip(self.state) {
            *place = word.to_be_bytes();
        }
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.hex().as_str())
    }
}

/// The hexadecimal digits of a digest, without heap allocation.
#[derive(Clone, Copy, Debug)]
pub struct HexDigest([u8; 64]);

impl HexDigest {
    /// Returns the digits.
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
        // Converts all digits at once and checks for invalid ones at the end, because chains are long.
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
    fn only_canonical_digest_text_parses() {
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
    fn block_by_block_digest_equals_the_direct_digest_for_every_length() {
        let text: Vec<u8> = (0..=255).cycle().take(300).collect();
        for length in 0..=text.len() {
            let text = &text[..length];
            for steps in [0, 1, 3, 9] {
                let mut hashing = InterleavedDigest::of(text);
                (0..steps).for_each(|_| hashing.step());
                assert_eq!(hashing.finish(), Digest::of(text), "{length} {steps}");
            }
        }
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_digest() {
        let one = Digest::of_parts([b"ab".as_slice(), b"c".as_slice()]);
        let other = Digest::of_parts([b"a".as_slice(), b"bc".as_slice()]);
        assert_ne!(one, other);
    }
}
