//! Delivery of one notice. It blocks its own thread: nothing waits for a slow address, not even the end of
//! the program.

use ureq::Agent;

use super::secret::SecretSource;
use super::stored_notice::{SendResult, StoredNotice};
use crate::base::address;
use crate::base::clock::Timestamp;
use crate::base::limits::NOTICE_TIMEOUT;
use crate::runtime::http_client;

/// Sender of signed notices.
#[derive(Clone, Debug)]
pub(super) struct NoticeSender {
    agent: Agent,
    secret: SecretSource,
}

impl NoticeSender {
    pub(super) fn new(secret: SecretSource) -> Self {
        Self {
            agent: http_client::http_agent(NOTICE_TIMEOUT),
            secret,
        }
    }

    /// Sends a notice, and waits for the result.
    pub(super) fn send(&self, notice: &StoredNotice, now: Timestamp) -> SendResult {
        match self.try_send(notice, now) {
            Ok(200..=299) => SendResult::Delivered,
            Ok(410) => SendResult::Unsubscribed,
            Ok(status) => SendResult::Failed(format!("it returned status {status}")),
            Err(what) => SendResult::Failed(what),
        }
    }

    fn try_send(&self, notice: &StoredNotice, now: Timestamp) -> Result<u16, String> {
        // The stored address may have been changed in the store.
        address::check(&notice.address).map_err(|error| error.to_string())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::notices::DeliveryState;

    // covers B16
    #[test]
    fn an_address_that_was_changed_in_the_store_is_not_called() {
        let folder = tempfile::tempdir().unwrap();
        let post = NoticeSender::new(SecretSource::Folder(folder.path().to_owned()));
        let now = Timestamp::from_micros(0);
        let notice = StoredNotice {
            id: "msg_1".to_owned(),
            address: "http://acme.example/".to_owned(),
            atlas_id: "own".to_owned(),
            body: "{}".to_owned(),
            since: now,
            attempts: 0,
            error: None,
            state: DeliveryState::Waiting { next_at: now },
        };
        let fault = "the address is not encrypted: use `https`".to_owned();
        assert_eq!(post.send(&notice, now), SendResult::Failed(fault));
    }
}
