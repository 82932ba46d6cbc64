//! What a `TaskExecutor` hears and what it wants done.

use std::{sync::Arc, time::Duration};

use regrow_protocol::{
    Envelope, Epoch, ExecutionAttemptId, FinishRecord, RunId, Split, TaskDeployment, TaskFailure,
    ToJobMaster, ToTaskExecutor,
};

use crate::Timestamp;

/// Something that happened to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskExecutorInput {
    /// A master, or the Dispatcher for it, says something.
    Command(Envelope<ToTaskExecutor>),
    /// The runner sealed an attempt.
    AttemptFinished(Arc<FinishRecord>),
    /// An attempt ended without a result.
    AttemptFailed {
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Why.
        failure: TaskFailure,
    },
    /// A running attempt wants its next split.
    SplitWanted {
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Number of the request within the attempt, from 0.
        request: u64,
    },
    /// The connection to the master of an epoch closed, or that master is known to be gone. An
    /// older epoch than the one that is followed changes nothing.
    MasterLost {
        /// Of which run.
        run: RunId,
        /// Which master.
        epoch: Epoch,
    },
    /// The connection to the leader closed: the masters of all runs are out of reach.
    LeaderLost,
    /// A connection to a leader is open: who leads a run, if anybody does, is not known yet.
    LeaderConnected,
    /// The process is told to stop: take nothing new, and give back what does not end in time.
    LeaveWanted {
        /// How long running attempts may go on.
        drain: Duration,
    },
    /// A moment asked for by [`TaskExecutorAction::WakeAt`] has come.
    Woken,
}

/// A wish; the shell carries it out.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskExecutorAction {
    /// Have the runner start an attempt; a slot is free for it.
    Start(Box<TaskDeployment>),
    /// Have the runner stop an attempt; it answers with a failure, or with a finish if the attempt
    /// was sealed before it heard.
    Cancel {
        /// Which one.
        attempt: ExecutionAttemptId,
    },
    /// Hand an attempt the split that it waits for.
    DeliverSplit {
        /// Which one.
        attempt: ExecutionAttemptId,
        /// The split, or none when nothing is left to read.
        split: Option<Split>,
    },
    /// Tell the master of the run.
    Post(Envelope<ToJobMaster>),
    /// Tell of a command that was refused: its epoch is an older one, its run has ended, or it names
    /// an attempt of another run or epoch.
    TellRefusal {
        /// For which run it was.
        run: RunId,
        /// The highest term that was seen.
        highest_term: u64,
    },
    /// Tell the `ShuffleService` of this process who leads a run.
    FollowMaster {
        /// Which run.
        run: RunId,
        /// Who leads it.
        epoch: Epoch,
    },
    /// Have the output and finish record of an attempt removed.
    Discard {
        /// Whose.
        attempt: ExecutionAttemptId,
    },
    /// Have all of a run removed: it ended, or no master came back within the time-out.
    ReleaseRun {
        /// Which one.
        run: RunId,
    },
    /// Nothing more is to be waited for: end the process.
    Left,
    /// Say `Woken` at a moment, or as soon as possible after it. A later wish does not replace it.
    WakeAt(Timestamp),
}
