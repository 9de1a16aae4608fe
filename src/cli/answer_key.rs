//! Key that proves the console's answers, for commands that verify answers or print the key.

use super::console::signer;
use super::error::Failure;
use super::settings::Settings;
use super::trace::in_runtime;
use crate::gateway::protocol::proof::{AnswerSigner, AnswerVerifier};
use crate::store;
use crate::store::key;

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
    let url = settings.store_url()?;
    let store = store::open(&url, None)?;
    let signer = in_runtime(signer(url.folder(), &*store))?;
    Ok(AnswerSigner::derive(&signer).verifier())
}
