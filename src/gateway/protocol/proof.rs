//! Proofs that an answer was given by the console.
//!
//! A Unix socket says nothing about the process behind it: another process of the same user can remove the
//! file and listen there. So a caller that relies on an answer sends a fresh random challenge with its
//! request, and the console signs its answer. Callers know the public key beforehand.
//!
//! Contract:
//! - A proof covers the challenge, the exact bytes of the request and the exact bytes of the answer. One that
//!   was made for another challenge, request or answer does not verify.
//! - The key is derived from the key that signs the log's heads, and differs from it. Signed data begins
//!   with a context and a zero byte, which no signed note has. So neither kind of signature is ever
//!   accepted as the other, and replacing the log's key replaces this one.
//! - An answer is signed only for a caller that sends a challenge.
//!
//! A proof does not show which other processes read the request or the answer: a process in between can
//! read both.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::trace::note::Signer;

/// Purpose that the key is derived for.
const PURPOSE: &str = "console answers v1";

/// First bytes of everything that is signed here. The zero byte keeps it apart from signed notes, whose texts
/// have no control characters but line feeds.
const CONTEXT: &[u8] = b"cra console answer v1\0";

/// First part of a public key's text.
const SCHEME: &str = "ed25519:";

/// Bytes of a challenge. 256 random bits never repeat.
const CHALLENGE_BYTES: usize = 32;

/// Text between an answer and its proof: the last member of the answer's object.
const MEMBER: &str = ",\"proof\":\"";

/// End of an answer that has a proof.
const END: &str = "\"}";

/// Characters of a signature in base64.
const PROOF_CHARS: usize = 88;

/// Random bytes that a caller sends with a request, so that no earlier answer fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge([u8; CHALLENGE_BYTES]);

impl Challenge {
    /// Creates a random challenge.
    ///
    /// # Errors
    /// Fails when the system provides no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; CHALLENGE_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

impl FromStr for Challenge {
    type Err = ProofError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = BASE64.decode(text).map_err(|_| ProofError::Challenge)?;
        let bytes = bytes.try_into().map_err(|_| ProofError::Challenge)?;
        Ok(Self(bytes))
    }
}

/// Reason why an answer, a challenge or a key is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The answer has no proof.
    #[error("the answer has no proof")]
    Missing,
    /// The proof does not fit this challenge, request, answer and key.
    #[error("the proof of the answer is not valid")]
    Wrong,
    /// The challenge has the wrong form.
    #[error("`challenge` must be {CHALLENGE_BYTES} random bytes in base64")]
    Challenge,
    /// The key has the wrong form.
    #[error("the key must have the form `{SCHEME}BASE64`, as `cra trace key --answers` prints it")]
    Key,
}

/// A request that was sent with a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChallengedRequest {
    challenge: Challenge,
    request: [u8; 32],
}

impl ChallengedRequest {
    /// Notes the challenge and the request's line, without its line feed.
    #[must_use]
    pub fn new(challenge: Challenge, request: &[u8]) -> Self {
        Self {
            challenge,
            request: Sha256::digest(request).into(),
        }
    }

    /// Builds the bytes that are signed.
    fn signed_bytes(&self, answer: &[u8]) -> Vec<u8> {
        let mut bytes = CONTEXT.to_vec();
        bytes.extend_from_slice(&self.challenge.0);
        bytes.extend_from_slice(&self.request);
        bytes.extend_from_slice(&Sha256::digest(answer));
        bytes
    }
}

/// Secret key that the console signs its answers with.
#[derive(Clone)]
pub struct AnswerSigner(SigningKey);

impl AnswerSigner {
    /// Derives the key from the one that signs the log's heads.
    #[must_use]
    pub fn derive(log: &Signer) -> Self {
        Self(SigningKey::from_bytes(&log.derive_seed(PURPOSE)))
    }

    /// Returns the public half.
    #[must_use]
    pub fn verifier(&self) -> AnswerVerifier {
        AnswerVerifier(self.0.verifying_key())
    }

    /// Adds the proof to an answer, which is a JSON object without its line feed.
    #[must_use]
    pub fn add_proof(&self, challenged: &ChallengedRequest, answer: &str) -> String {
        let signature = self.0.sign(&challenged.signed_bytes(answer.as_bytes()));
        let proof = BASE64.encode(signature.to_bytes());
        let open = answer.strip_suffix('}').unwrap_or(answer);
        format!("{open}{MEMBER}{proof}{END}")
    }
}

impl fmt::Debug for AnswerSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never show the secret.
        f.debug_tuple("AnswerSigner")
            .field(&self.verifier())
            .finish()
    }
}

/// Public key that proves the console's answers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AnswerVerifier(VerifyingKey);

impl AnswerVerifier {
    /// Returns the answer without its proof, if the console gave it to this request. `line` has no line feed.
    ///
    /// # Errors
    /// Fails when the proof is missing, or does not fit this request and this answer.
    pub fn verify(
        &self,
        challenged: &ChallengedRequest,
        line: &[u8],
    ) -> Result<Vec<u8>, ProofError> {
        let (answer, signature) = split(line).ok_or(ProofError::Missing)?;
        let bytes = challenged.signed_bytes(&answer);
        match self.0.verify_strict(&bytes, &signature) {
            Ok(()) => Ok(answer),
            Err(_) => Err(ProofError::Wrong),
        }
    }
}

/// Splits a line into the answer that was signed and the signature.
fn split(line: &[u8]) -> Option<(Vec<u8>, Signature)> {
    let rest = line.strip_suffix(END.as_bytes())?;
    let (rest, proof) = rest.split_at_checked(rest.len().checked_sub(PROOF_CHARS)?)?;
    let answer = rest.strip_suffix(MEMBER.as_bytes())?;
    let signature = BASE64.decode(proof).ok()?;
    let signature = Signature::from_slice(&signature).ok()?;
    let mut answer = answer.to_vec();
    answer.push(b'}');
    Some((answer, signature))
}

impl fmt::Display for AnswerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", BASE64.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for AnswerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for AnswerVerifier {
    type Err = ProofError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = text.strip_prefix(SCHEME).ok_or(ProofError::Key)?;
        let key = BASE64.decode(key).map_err(|_| ProofError::Key)?;
        let key: [u8; 32] = key.try_into().map_err(|_| ProofError::Key)?;
        let key = VerifyingKey::from_bytes(&key).map_err(|_| ProofError::Key)?;
        // With a weak key one signature fits many texts.
        if key.is_weak() {
            return Err(ProofError::Key);
        }
        Ok(Self(key))
    }
}

impl TryFrom<String> for AnswerVerifier {
    type Error = ProofError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AnswerVerifier> for String {
    fn from(key: AnswerVerifier) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::note::SignedNote;

    use super::*;

    const REQUEST: &[u8] =
        br#"{"jsonrpc":"2.0","id":1,"method":"resolve","params":{"session":"s-1"}}"#;
    const ANSWER: &str = r#"{"id":1,"jsonrpc":"2.0","result":{}}"#;

    fn log_signer(number: u8) -> Signer {
        Signer::new("cra/log-1", &[number; 32]).unwrap()
    }

    fn signer() -> AnswerSigner {
        AnswerSigner::derive(&log_signer(7))
    }

    fn challenged(request: &[u8]) -> ChallengedRequest {
        ChallengedRequest::new(Challenge([1; 32]), request)
    }

    #[test]
    fn a_proof_verifies_for_its_challenge_request_and_answer_alone() {
        let (signer, challenged) = (signer(), challenged(REQUEST));
        let line = signer.add_proof(&challenged, ANSWER);
        let key = signer.verifier();
        let verify =
            |challenged: &ChallengedRequest, line: &str| key.verify(challenged, line.as_bytes());
        assert_eq!(verify(&challenged, &line), Ok(ANSWER.as_bytes().to_vec()));
        assert_eq!(verify(&challenged, ANSWER), Err(ProofError::Missing));
        let wrong = Err(ProofError::Wrong);
        let other = ChallengedRequest::new(Challenge([2; 32]), REQUEST);
        assert_eq!(verify(&other, &line), wrong, "another challenge");
        let other = ChallengedRequest::new(Challenge([1; 32]), b"{}");
        assert_eq!(verify(&other, &line), wrong, "another request");
        let changed = line.replace("result", "resulT");
        assert_eq!(verify(&challenged, &changed), wrong, "another answer");
        let other = AnswerSigner::derive(&log_signer(8)).add_proof(&challenged, ANSWER);
        assert_eq!(verify(&challenged, &other), wrong, "another key");
    }

    #[test]
    fn a_line_with_any_changed_byte_does_not_verify() {
        let (signer, challenged) = (signer(), challenged(REQUEST));
        let line = signer.add_proof(&challenged, ANSWER).into_bytes();
        let key = signer.verifier();
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(key.verify(&challenged, &changed).is_err(), "byte {at}");
            assert!(key.verify(&challenged, &line[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_proof_never_verifies_as_a_signed_head_nor_a_signed_head_as_a_proof() {
        let log = log_signer(7);
        let answers = AnswerSigner::derive(&log);
        let undivided = AnswerSigner(SigningKey::from_bytes(&[7; 32]));
        assert_ne!(
            answers.verifier(),
            undivided.verifier(),
            "it is another key"
        );
        let challenged = challenged(REQUEST);
        let signed = challenged.signed_bytes(ANSWER.as_bytes());
        // A note with the answer's signature under the log's name.
        let line = answers.add_proof(&challenged, ANSWER);
        let (_, signature) = split(line.as_bytes()).unwrap();
        let head = "cra/log-1\n3\nabc\n";
        let honest = log.sign(head);
        let id = BASE64
            .decode(honest.trim_end().rsplit(' ').next().unwrap())
            .unwrap();
        let mut forged = id[..4].to_vec();
        forged.extend_from_slice(&signature.to_bytes());
        let note = format!("{head}\n\u{2014} cra/log-1 {}\n", BASE64.encode(forged));
        let note: SignedNote = note.parse().unwrap();
        assert!(!log.verifier().has_signed(&note));
        // The bytes signed here cannot be the text of a note.
        let text = String::from_utf8_lossy(&signed);
        let note = format!("{text}\n\n\u{2014} cra/log-1 {}\n", BASE64.encode(id));
        assert!(note.parse::<SignedNote>().is_err());
        // The signature of a head in the position of a proof.
        let honest = log.signature(head);
        let bytes = BASE64
            .decode(honest.trim_end().rsplit(' ').next().unwrap())
            .unwrap();
        let proof = BASE64.encode(&bytes[4..]);
        let open = ANSWER.strip_suffix('}').unwrap();
        let line = format!("{open}{MEMBER}{proof}{END}");
        let verified = answers.verifier().verify(&challenged, line.as_bytes());
        assert_eq!(verified, Err(ProofError::Wrong));
    }

    #[test]
    fn keys_and_challenges_read_back_and_other_texts_are_refused() {
        let key = signer().verifier();
        assert_eq!(key.to_string().parse(), Ok(key.clone()));
        let text = key.to_string();
        for wrong in [
            "",
            "ed25519:",
            "ed25519:AAAA",
            text.get(8..).unwrap(),
            text.get(..50).unwrap(),
        ] {
            assert_eq!(
                wrong.parse::<AnswerVerifier>(),
                Err(ProofError::Key),
                "{wrong}"
            );
        }
        // The point of order 1.
        let weak = format!("ed25519:AQ{}=", "A".repeat(41));
        assert_eq!(weak.parse::<AnswerVerifier>(), Err(ProofError::Key));
        let challenge = Challenge::random().unwrap();
        assert_eq!(challenge.to_string().parse(), Ok(challenge));
        assert_ne!(challenge, Challenge::random().unwrap());
        for wrong in ["", "AAAA", "no base64 at all"] {
            assert_eq!(wrong.parse::<Challenge>(), Err(ProofError::Challenge));
        }
        assert!(!format!("{:?}", signer()).contains("SigningKey"));
    }
}
