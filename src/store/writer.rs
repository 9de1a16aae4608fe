//! Writer that commits waiting batches together and acknowledges them after the commit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::{Ack, Batch, CommitError, StoreError};
use crate::base::limits::WRITE_QUEUE;

/// Storage medium for batches.
pub(super) trait Medium: Send {
    /// Writes all batches or none. When this returns, they are durable.
    fn commit(&mut self, batches: &[&Batch]) -> Result<(), CommitError>;
}

/// Writer to a medium until a write fails. After that the content of the medium is unknown, and the
/// writer accepts nothing more.
#[derive(Debug)]
pub(super) struct BatchWriter<M> {
    medium: M,
    poison: Option<StoreError>,
    activity: WriteActivity,
}

/// Start time of the current write, visible to other threads.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteActivity(Arc<Mutex<Option<Instant>>>);

impl WriteActivity {
    /// Start of the current write, if one is running.
    pub(super) fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl<M: Medium> BatchWriter<M> {
    pub(super) fn new(medium: M) -> Self {
        Self {
            medium,
            poison: None,
            activity: WriteActivity::default(),
        }
    }

    /// Start time of the current write, for other threads.
    pub(super) fn activity(&self) -> WriteActivity {
        self.activity.clone()
    }

    /// Writes batches together.
    pub(super) fn write(&mut self, batches: &[&Batch]) -> Result<(), StoreError> {
        if let Some(error) = &self.poison {
            return Err(error.clone());
        }
        self.activity.set(Some(Instant::now()));
        let committed = self.medium.commit(batches);
        self.activity.set(None);
        committed.map_err(|error| {
            let error = StoreError::Poisoned(error);
            self.poison = Some(error.clone());
            error
        })
    }

    pub(super) fn medium(&mut self) -> &mut M {
        &mut self.medium
    }

    /// Writes queued batches until all senders are gone.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<WriteJob>) {
        let mut jobs = Vec::new();
        while queue.blocking_recv_many(&mut jobs, WRITE_QUEUE) > 0 {
            let batches: Vec<_> = jobs.iter().map(|job| &job.batch).collect();
            let outcome = self.write(&batches);
            for job in jobs.drain(..) {
                // A caller that no longer listens needs no result.
                let _ = job.done.send(outcome.clone());
            }
        }
    }
}

/// A batch and the channel to its waiting caller.
#[derive(Debug)]
pub(super) struct WriteJob {
    batch: Batch,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// Bounded queue to a writer on its own thread. When it is full, callers wait: nothing is ever dropped.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue(mpsc::Sender<WriteJob>);

impl WriteQueue {
    pub(super) fn new() -> (Self, mpsc::Receiver<WriteJob>) {
        let (jobs, queue) = mpsc::channel(WRITE_QUEUE);
        (Self(jobs), queue)
    }

    pub(super) async fn append(&self, batch: Batch) -> Result<Ack, StoreError> {
        let (done, ack) = oneshot::channel();
        self.0
            .send(WriteJob { batch, done })
            .await
            .map_err(|_| closed_error())?;
        Ok(Box::pin(async move {
            ack.await.unwrap_or_else(|_| Err(closed_error()))
        }))
    }
}

pub(super) fn closed_error() -> StoreError {
    StoreError::Poisoned(CommitError::Stopped)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;

    use super::super::StateRow;
    use super::*;

    /// Medium that notes the content of each commit.
    #[derive(Clone, Default)]
    struct RecordingMedium(Arc<Mutex<Vec<Vec<String>>>>);

    impl Medium for RecordingMedium {
        fn commit(&mut self, batches: &[&Batch]) -> Result<(), CommitError> {
            let keys = batches.iter().map(|batch| batch.state[0].key.clone());
            self.0.lock().unwrap().push(keys.collect());
            Ok(())
        }
    }

    fn batch(n: usize) -> Batch {
        let row = StateRow {
            kind: "usage".to_owned(),
            key: n.to_string(),
            body: None,
        };
        Batch {
            state: vec![row],
            ..Batch::default()
        }
    }

    // covers T25
    #[tokio::test]
    async fn a_full_queue_makes_callers_wait_and_drops_nothing() {
        let (queue, jobs) = WriteQueue::new();
        let mut acks = Vec::new();
        for n in 0..WRITE_QUEUE {
            // No writer runs yet: queueing does not wait for the disk.
            acks.push(queue.append(batch(n)).await.unwrap());
        }
        let mut full = Box::pin(queue.append(batch(WRITE_QUEUE)));
        assert!(full.as_mut().now_or_never().is_none(), "there was room");
        let noted = RecordingMedium::default();
        let medium = noted.clone();
        let writer = std::thread::spawn(move || BatchWriter::new(medium).run(jobs));
        acks.push(full.await.unwrap());
        for ack in acks {
            ack.await.unwrap();
        }
        drop(queue);
        writer.join().unwrap();
        let commits = noted.0.lock().unwrap();
        let all: Vec<_> = (0..=WRITE_QUEUE).map(|n| n.to_string()).collect();
        assert_eq!(commits.concat(), all, "in the order they were handed over");
        assert!(commits.len() < 10, "what waits is written together");
    }
}
