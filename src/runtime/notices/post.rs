//! Sending one notice. It takes a thread of its own: nobody waits for an address that is slow, not even the
//! end of the program.

use ureq::Agent;

use super::kept::{KeptNotice, Sent};
use super::secret::SecretSource;
use crate::base::clock::Timestamp;
use crate::base::limits::NOTICE_TIME;
use crate::runtime::outgoing;

/// Sends notices, signed.
#[derive(Clone, Debug)]
pub(super) struct Post {
    agent: Agent,
    secret: SecretSource,
}

impl Post {
    pub(super) fn new(secret: SecretSource) -> Self {
        Self {
            agent: outgoing::agent(NOTICE_TIME),
            secret,
        }
    }

    /// Sends a notice, and waits for what comes of it.
    pub(super) fn send(&self, notice: &KeptNotice, now: Timestamp) -> Sent {
        match self.try_send(notice, now) {
            Ok(200..=299) => Sent::Delivered,
            Ok(410) => Sent::Gone,
            Ok(status) => Sent::Failed(format!("it answered with status {status}")),
            Err(what) => Sent::Failed(what),
        }
    }

    fn try_send(&self, notice: &KeptNotice, now: Timestamp) -> Result<u16, String> {
        let seconds = now.micros() / 1_000_000;
        let secret = self.secret.secret()?;
        let signature = secret.sign(&notice.id, seconds, &notice.body)?;
        let request = self.agent.post(&notice.address);
        let request = request
            .header("Content-Type", "application/json")
            .header("User-Agent", concat!("cra/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &notice.id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signature);
        match request.send(&notice.body) {
            Ok(response) => Ok(response.status().as_u16()),
            Err(ureq::Error::StatusCode(status)) => Ok(status),
            Err(error) => Err(error.to_string()),
        }
    }
}
