//! What a life says of itself, and what is said of it when it is over.

use std::net::SocketAddr;

use actix::{Message, Recipient};
use regrow_protocol::{Epoch, RunId};
use regrow_runtime::{JobOutcome, JobStatus, KillHow, RecoveryReport};

use crate::panic_watch::current_panic;

/// What a life says to its Dispatcher.
#[derive(Debug)]
pub(crate) struct LifeNews {
    /// Of which run.
    pub run: RunId,
    /// Which life.
    pub epoch: Epoch,
    /// What it says.
    pub news: News,
}

impl Message for LifeNews {
    type Result = ();
}

/// What a life has to say.
#[derive(Debug)]
pub(crate) enum News {
    /// The submission is accepted and recorded.
    Accepted,
    /// How the job stands.
    Status(Box<JobStatus>),
    /// A cancel is recorded, or refused.
    CancelAnswered {
        /// Why it is refused, if it is.
        refused: Option<String>,
    },
    /// What its recovery kept.
    Recovered(Box<RecoveryReport>),
    /// Where former workers listen, which may not know who leads.
    FormerWorkers {
        /// Each once.
        addresses: Vec<SocketAddr>,
    },
    /// The log cannot be replayed: the run fails.
    RecoveryFailed {
        /// Why.
        error: String,
    },
    /// It waited for the log too long, and ends.
    SteppedDown {
        /// Why the log cannot be written.
        reason: String,
    },
    /// Another life has the log; it ends.
    Fenced {
        /// What the store said.
        reason: String,
    },
    /// The job is terminal, and the log says so.
    Concluded(Box<JobOutcome>),
}

/// A life is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LifeEnded {
    /// Of which run.
    pub run: RunId,
    /// Which life.
    pub epoch: Epoch,
    /// How it ended.
    pub end: LifeEnd,
}

impl Message for LifeEnded {
    type Result = ();
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LifeEnd {
    /// Its actor stopped.
    Stopped,
    /// Its actor panicked, and nobody had asked for that.
    Panicked {
        /// Text and place of the panic.
        message: String,
    },
    /// The user had planned it.
    Planned {
        /// How it died.
        how: KillHow,
        /// What the plan named.
        by: PlannedBy,
    },
}

/// What a planned kill waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedBy {
    /// A part of the tasks.
    Progress,
    /// A moment.
    Time,
}

/// Sits in a `JobMaster` and tells when it is gone, on every path out.
pub(super) struct LifeWatch {
    run: RunId,
    epoch: Epoch,
    watcher: Recipient<LifeEnded>,
    planned: Option<(KillHow, PlannedBy)>,
}

impl LifeWatch {
    pub(super) fn new(run: RunId, epoch: Epoch, watcher: Recipient<LifeEnded>) -> Self {
        crate::panic_watch::install();
        Self { run, epoch, watcher, planned: None }
    }

    /// The end that comes now is planned.
    pub(super) fn plan(&mut self, how: KillHow, by: PlannedBy) {
        self.planned = Some((how, by));
    }
}

impl Drop for LifeWatch {
    fn drop(&mut self) {
        let end = match (self.planned, current_panic()) {
            (Some((how, by)), _) => LifeEnd::Planned { how, by },
            (None, Some(message)) => LifeEnd::Panicked { message },
            (None, None) => LifeEnd::Stopped,
        };
        self.watcher.do_send(LifeEnded { run: self.run, epoch: self.epoch, end });
    }
}
