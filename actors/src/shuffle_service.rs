//! The `ShuffleService` actor: a shell around what [`regrow_runtime::ShuffleService`] decides.

mod file_worker;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use actix::prelude::*;
use regrow_protocol::{
    Envelope, Epoch, ExecutionAttemptId, RunId, ToJobMaster, ToShuffleService, WorkerId,
};
use regrow_runtime::{
    ShuffleService as Decisions, ShuffleServiceAction, ShuffleServiceInput, Timestamp,
    WorkerTimeouts,
};
use regrow_shuffle::{DataDirectory, PartitionServer};
use tokio::time::Instant;
use tracing::{debug, info};

use crate::{
    gateway::{MasterGateway, Post},
    refusals::tell_refusal,
    task_executor::wait_until,
    watch::{DeathWatch, Terminated},
    worker::WorkerError,
};
use file_worker::{FileJob, FileWorker};

pub(crate) use file_worker::FileThread;

/// Keeps and reports the partitions of one worker.
pub(crate) struct ShuffleService {
    decisions: Decisions,
    standing: Standing,
    worker: WorkerId,
    master: MasterGateway,
    files: FileWorker,
    server: Option<Arc<PartitionServer>>,
    found: Vec<RunId>,
    origin: Instant,
    watch: Option<DeathWatch<WorkerId>>,
}

/// Has someone told when the `ShuffleService` is gone; a later one replaces an earlier one.
pub(crate) struct WatchedBy(pub Recipient<Terminated<WorkerId>>);

impl Message for WatchedBy {
    type Result = ();
}

/// What a `ShuffleService` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A part of a worker that runs tasks.
    OfWorker,
    /// Stand-alone: it keeps what workers of other processes write.
    StandAlone {
        /// The highest term that its former lives kept.
        term: u64,
    },
}

impl Standing {
    /// The highest term that former lives kept; 0 if none was kept.
    pub(crate) fn term(self) -> u64 {
        match self {
            Self::OfWorker => 0,
            Self::StandAlone { term } => term,
        }
    }
}

/// How often a stand-alone service looks for writers that died and runs that it does not know: one
/// look takes some microseconds, and what waits for it does so on the disk alone.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Data directories hold something of these runs.
pub(super) struct RunsSeen(pub(super) Vec<RunId>);

impl Message for RunsSeen {
    type Result = ();
}

/// What is here of this run could not be reported.
pub(super) struct ReportFailed(pub(super) RunId);

impl Message for ReportFailed {
    type Result = ();
}

/// What a `ShuffleService` is told at its start.
pub(crate) struct ShuffleServiceConfig {
    /// The worker that it belongs to.
    pub worker: WorkerId,
    /// How long it waits for a master.
    pub timeouts: WorkerTimeouts,
    /// The data directories that it serves.
    pub directories: Vec<Arc<DataDirectory>>,
    /// What serves them to other hosts.
    pub server: Option<Arc<PartitionServer>>,
    /// What it is.
    pub standing: Standing,
    /// Where its reports go.
    pub master: MasterGateway,
    /// Where it reads and removes files.
    pub file_thread: FileThread,
}

/// What a `TaskExecutor` tells the `ShuffleService` of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerNews {
    /// A master leads a run.
    MasterRegistered {
        /// Which run.
        run: RunId,
        /// Which master.
        epoch: Epoch,
    },
    /// A master is gone, or the connection to it.
    MasterLost {
        /// Of which run.
        run: RunId,
        /// Which master.
        epoch: Epoch,
    },
    /// The connection to the leader closed.
    LeaderLost,
    /// A connection to a leader is open.
    LeaderConnected,
    /// The output of an attempt is superseded.
    Discard {
        /// Whose.
        attempt: ExecutionAttemptId,
    },
    /// A run ended, or was given up.
    RunEnded {
        /// Which one.
        run: RunId,
    },
}

impl Message for WorkerNews {
    type Result = ();
}

impl ShuffleService {
    /// Starts the actor on the current thread.
    ///
    /// # Errors
    /// When a directory cannot be listed or the thread for its files cannot be started.
    pub(crate) fn start(config: ShuffleServiceConfig) -> Result<Addr<Self>, WorkerError> {
        let ShuffleServiceConfig {
            worker,
            timeouts,
            directories,
            server,
            standing,
            master,
            file_thread,
        } = config;
        let mut found = Vec::new();
        for directory in &directories {
            found.extend(directory.runs()?);
        }
        let files = FileWorker::start(worker, directories, master.clone(), file_thread)?;
        let decisions = match standing {
            Standing::OfWorker => Decisions::new(timeouts),
            Standing::StandAlone { term } => Decisions::stand_alone(timeouts, term),
        };
        Ok(Actor::start(Self {
            decisions,
            standing,
            worker,
            master,
            files,
            server,
            found,
            origin: Instant::now(),
            watch: None,
        }))
    }

    fn feed(&mut self, input: ShuffleServiceInput, ctx: &mut Context<Self>) {
        debug!(worker = %self.worker, ?input, "input");
        let now = Timestamp::default().after(self.origin.elapsed());
        let leads = led_run(&input);
        let actions = self.decisions.handle(now, input);
        if let (Some(run), Some(server)) = (leads, &self.server)
            && let Some(epoch) = self.decisions.epoch(run)
        {
            server.raise(run, epoch);
        }
        for action in actions {
            self.perform(action, now, ctx);
        }
    }

    /// Looks at the directories; the next look follows the answer.
    fn look(&mut self, ctx: &Context<Self>) {
        self.files.give(FileJob::Look { seen: ctx.address().recipient() });
    }

    fn perform(&mut self, action: ShuffleServiceAction, now: Timestamp, ctx: &mut Context<Self>) {
        match action {
            ShuffleServiceAction::KeepTerm { term } => self.files.give(FileJob::KeepTerm { term }),
            ShuffleServiceAction::ReportHeldRun { run, epoch } => {
                let message = ToJobMaster::RunHeld { worker: self.worker };
                self.master.do_send(Post(Envelope { run, epoch, message }));
            }
            ShuffleServiceAction::TellRefusal { run, highest_term } => {
                tell_refusal(self.worker, run, highest_term, &self.master);
            }
            ShuffleServiceAction::ReportPartitions { run, epoch } => {
                let failed = ctx.address().recipient();
                self.files.give(FileJob::Report { run, epoch, failed });
            }
            ShuffleServiceAction::ReleasePartitions { attempts } => {
                self.files.give(FileJob::Release { attempts });
            }
            ShuffleServiceAction::ReleaseRun { run } => {
                info!(worker = %self.worker, %run, "releasing a run");
                if let Some(server) = &self.server {
                    server.forget(run);
                }
                self.files.give(FileJob::ReleaseRun { run });
            }
            ShuffleServiceAction::WakeAt(moment) => {
                ctx.run_later(wait_until(moment, now), |me, ctx| {
                    me.feed(ShuffleServiceInput::Woken, ctx);
                });
            }
        }
    }
}

/// The run whose master spoke, or is there.
fn led_run(input: &ShuffleServiceInput) -> Option<RunId> {
    match input {
        ShuffleServiceInput::Command(envelope) => Some(envelope.run),
        ShuffleServiceInput::MasterRegistered { run, .. } => Some(*run),
        ShuffleServiceInput::RunsFound(_)
        | ShuffleServiceInput::MasterLost { .. }
        | ShuffleServiceInput::LeaderLost
        | ShuffleServiceInput::LeaderConnected
        | ShuffleServiceInput::ReportFailed { .. }
        | ShuffleServiceInput::Discard { .. }
        | ShuffleServiceInput::RunEnded { .. }
        | ShuffleServiceInput::Woken => None,
    }
}

impl Actor for ShuffleService {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let found = std::mem::take(&mut self.found);
        self.feed(ShuffleServiceInput::RunsFound(found), ctx);
        match self.standing {
            Standing::OfWorker => {}
            Standing::StandAlone { .. } => self.look(ctx),
        }
    }
}

impl Handler<RunsSeen> for ShuffleService {
    type Result = ();

    fn handle(&mut self, RunsSeen(runs): RunsSeen, ctx: &mut Self::Context) {
        self.feed(ShuffleServiceInput::RunsFound(runs), ctx);
        ctx.run_later(LOOK_INTERVAL, |me, ctx| me.look(ctx));
    }
}

impl Handler<ReportFailed> for ShuffleService {
    type Result = ();

    fn handle(&mut self, ReportFailed(run): ReportFailed, ctx: &mut Self::Context) {
        self.feed(ShuffleServiceInput::ReportFailed { run }, ctx);
    }
}

impl Handler<Post<ToShuffleService>> for ShuffleService {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToShuffleService>, ctx: &mut Self::Context) {
        self.feed(ShuffleServiceInput::Command(envelope), ctx);
    }
}

impl Handler<WorkerNews> for ShuffleService {
    type Result = ();

    fn handle(&mut self, news: WorkerNews, ctx: &mut Self::Context) {
        let input = match news {
            WorkerNews::MasterRegistered { run, epoch } => {
                ShuffleServiceInput::MasterRegistered { run, epoch }
            }
            WorkerNews::MasterLost { run, epoch } => ShuffleServiceInput::MasterLost { run, epoch },
            WorkerNews::LeaderLost => ShuffleServiceInput::LeaderLost,
            WorkerNews::LeaderConnected => ShuffleServiceInput::LeaderConnected,
            WorkerNews::Discard { attempt } => ShuffleServiceInput::Discard { attempt },
            WorkerNews::RunEnded { run } => ShuffleServiceInput::RunEnded { run },
        };
        self.feed(input, ctx);
    }
}

impl Handler<WatchedBy> for ShuffleService {
    type Result = ();

    fn handle(&mut self, WatchedBy(watcher): WatchedBy, _: &mut Self::Context) {
        self.watch = Some(DeathWatch::new(self.worker, watcher));
    }
}

impl Handler<Terminated<WorkerId>> for ShuffleService {
    type Result = ();

    /// The `TaskExecutor` is gone, and the worker with it: a successor takes the directories over.
    fn handle(&mut self, _: Terminated<WorkerId>, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
