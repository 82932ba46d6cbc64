//! Stands, in a `JobManager`'s process, for a worker in another one.

use actix::{Actor, Context, Handler, Message};
use regrow_protocol::{ToShuffleService, ToTaskExecutor, ToWorker, WorkerId, encode};
use regrow_runtime::with_causes;
use tracing::{debug, error};

use crate::{gateway::Post, net::Link};

/// Sends on what is posted to a worker, on one connection to it: what is posted before somebody knows
/// of the next connection never goes out on that. Once it is closed, nothing is kept: what a worker
/// missed is said again when it registers.
pub(crate) struct RemoteWorker {
    worker: WorkerId,
    link: Option<Link>,
}

/// The connection is closed, or is to be.
pub(crate) struct LinkClosed;

impl Message for LinkClosed {
    type Result = ();
}

impl RemoteWorker {
    /// Stands for `worker`, connected by `link`.
    pub(crate) fn new(worker: WorkerId, link: Link) -> Self {
        Self { worker, link: Some(link) }
    }

    fn send(&self, message: &ToWorker) {
        let Some(link) = &self.link else {
            debug!(worker = %self.worker, "a message for a worker that is not connected");
            return;
        };
        match encode(message) {
            Ok(frame) => link.send(frame),
            Err(error) => error!(error = %with_causes(&error), "a message cannot be sent"),
        }
    }
}

impl Actor for RemoteWorker {
    type Context = Context<Self>;
}

impl Handler<LinkClosed> for RemoteWorker {
    type Result = ();

    fn handle(&mut self, _: LinkClosed, _: &mut Self::Context) {
        self.link = None;
    }
}

impl Handler<Post<ToTaskExecutor>> for RemoteWorker {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToTaskExecutor>, _: &mut Self::Context) {
        self.send(&ToWorker::TaskExecutor(envelope));
    }
}

impl Handler<Post<ToShuffleService>> for RemoteWorker {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToShuffleService>, _: &mut Self::Context) {
        self.send(&ToWorker::ShuffleService(envelope));
    }
}
