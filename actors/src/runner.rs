//! Runs attempts: where the thread, the time and the waiting of user code come from.

mod attempt_run;
mod lock_step;
mod slot_threads;

use std::sync::Arc;

use actix::{Message, Recipient};
use regrow_protocol::{ExecutionAttemptId, FinishRecord, Split, TaskDeployment, TaskFailure};
use regrow_shuffle::{DataDirectory, RemoteReads};

use crate::{ledger::Ledgers, task::TaskFactory, worker::WorkerPlace};

pub use lock_step::LockStep;
pub use slot_threads::{SlotThreads, ThreadsEnded};

/// Runs the attempts of one `TaskExecutor`. Each started attempt ends with exactly one
/// [`RunnerEvent::Finished`] or [`RunnerEvent::Failed`]; nothing of it is left by then but what it
/// sealed. Dropping a runner cancels all; it does not wait for them.
pub trait Runner {
    /// Starts an attempt. The caller keeps the number of running attempts within the slots.
    fn start(&mut self, deployment: Box<TaskDeployment>);

    /// Tells an attempt to stop; one that is being sealed finishes all the same.
    fn cancel(&mut self, attempt: &ExecutionAttemptId);

    /// Answers the one open split request of an attempt.
    fn deliver_split(&mut self, attempt: &ExecutionAttemptId, split: Option<Split>);
}

/// What a runner tells its `TaskExecutor`.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerEvent {
    /// An attempt is sealed.
    Finished(Arc<FinishRecord>),
    /// An attempt ended without a result.
    Failed {
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Why.
        failure: TaskFailure,
    },
    /// An attempt waits for a split.
    WantsSplit {
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Number of the request within the attempt, from 0.
        request: u64,
    },
}

impl Message for RunnerEvent {
    type Result = ();
}

/// Which runner a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerKind {
    /// One thread per slot, for life.
    SlotThreads,
    /// On the thread of the actor, in virtual time: for simulation.
    LockStep,
}

/// What all attempts of a worker share.
pub struct Equipment {
    /// Makes tasks.
    pub factory: Arc<dyn TaskFactory>,
    /// Where outputs go.
    pub directory: Arc<DataDirectory>,
    /// How inputs of other hosts are read; none where all are on this one.
    pub remote: Option<Arc<RemoteReads>>,
    /// Where the worker is; none where there is but one place.
    pub place: Option<WorkerPlace>,
    pub(crate) ledgers: Ledgers,
}

impl Equipment {
    /// Tasks of `factory` that write to `directory`.
    pub fn new(
        factory: Arc<dyn TaskFactory>,
        directory: Arc<DataDirectory>,
        remote: Option<RemoteReads>,
        place: Option<WorkerPlace>,
    ) -> Self {
        let remote = remote.map(Arc::new);
        Self { factory, directory, remote, place, ledgers: Ledgers::default() }
    }

    /// A failure with its place, where there are several.
    fn placed(&self, failure: TaskFailure) -> TaskFailure {
        match &self.place {
            Some(place) => place.of(failure),
            None => failure,
        }
    }
}

/// Tells the actor how an attempt ended.
fn tell_end(
    events: &Recipient<RunnerEvent>,
    attempt: ExecutionAttemptId,
    ended: Result<Arc<FinishRecord>, TaskFailure>,
) {
    events.do_send(match ended {
        Ok(record) => RunnerEvent::Finished(record),
        Err(failure) => RunnerEvent::Failed { attempt, failure },
    });
}

/// What wakes a waiting attempt. At most one of each kind is on its way: a request is answered
/// once, and an attempt is cancelled once.
#[derive(Debug)]
enum Signal {
    Cancel,
    Split(Option<Split>),
}
