//! Key that proves the console's answers, for commands that verify answers or print the key.

use super::console::signer;
use super::error::Failure;
use super::settings::Settings;
use super::trace::in_runtime;
use crate::gateway::protocol::proof::{AnswerSigner, AnswerVerifier};
use crate::store::key;
use crate::store::sqlite::SqliteStore;

/// Reads the public key of the console on the user's store; `None` if the store has no key yet.
pub(super) fn read(settings: &Settings) -> Result<Option<AnswerVerifier>, Failure> {
    let signer = key::existing(&settings.data_dir()?)?;
    Ok(signer.map(|signer| AnswerSigner::derive(&signer).verifier()))
}

/// Reads the public key. Creates one if the store has none yet, as the first start of the console
/// would.
pub(super) fn read_or_create(settings: &Settings) -> Result<AnswerVerifier, Failure> {
    if let Some(key) = read(settings)? {
        return Ok(key);
    }
    let folder = settings.data_dir()?;
    let store = SqliteStore::open(&folder)?;
    let signer = in_runtime(signer(&folder, &store))?;
    Ok(AnswerSigner::derive(&signer).verifier())
}
