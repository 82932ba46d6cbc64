//! What connections between processes carry, one enum per direction.

use serde::{Deserialize, Serialize};

use crate::{Envelope, ToJobMaster, ToShuffleService, ToTaskExecutor};

/// What a `JobManager` sends to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// For its `TaskExecutor`.
    TaskExecutor(Envelope<ToTaskExecutor>),
    /// For its `ShuffleService`.
    ShuffleService(Envelope<ToShuffleService>),
}

/// What a worker sends to a `JobManager`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// For the `JobMaster` of the envelope's run.
    JobMaster(Envelope<ToJobMaster>),
    /// The worker is about to stop: it takes no task any more.
    Leaving,
}
