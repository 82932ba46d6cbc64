//! How actors reach each other: one-way posts, whoever stands behind.

use actix::{Message, Recipient};
use regrow_protocol::{
    DataDirectoryId, Envelope, ToJobMaster, ToShuffleService, ToTaskExecutor, WorkerDescription,
    WorkerId,
};

/// An enveloped message on its way to an actor; `protocol` cannot implement actix' `Message`.
#[derive(Clone, Debug)]
pub struct Post<M>(pub Envelope<M>);

impl<M: 'static> Message for Post<M> {
    type Result = ();
}

/// Where to post messages of one direction: an actor of this process, a connection, or a simulated
/// link. The sender cannot tell, gets no answer, and never waits.
pub type Gateway<M> = Recipient<Post<M>>;

/// Where workers post: whoever stands behind routes by the run of the envelope, and drops what is
/// for a run that nobody leads at the moment.
pub type MasterGateway = Gateway<ToJobMaster>;

/// A worker is reachable. Its end is told by a [`Terminated`](crate::watch::Terminated) with its
/// [`WorkerId`].
#[derive(Clone)]
pub struct WorkerConnected {
    /// What it is.
    pub worker: WorkerDescription,
    /// Its `TaskExecutor`.
    pub task_executor: Gateway<ToTaskExecutor>,
    /// Its `ShuffleService`.
    pub shuffle_service: Gateway<ToShuffleService>,
}

impl Message for WorkerConnected {
    type Result = ();
}

/// A new process keeps the data directory of a worker, whose own process is gone. Told before the
/// new one is told of, instead of the end of the old one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerReplaced {
    /// Who is gone.
    pub(crate) worker: WorkerId,
    /// The directory.
    pub(crate) data_directory: DataDirectoryId,
    /// The worker that the new process is.
    pub(crate) by: WorkerId,
}

impl Message for WorkerReplaced {
    type Result = ();
}
