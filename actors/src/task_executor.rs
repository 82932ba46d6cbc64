//! The `TaskExecutor` actor: a shell around what [`regrow_runtime::TaskExecutor`] decides.

#[cfg(test)]
mod tests;

use std::time::Duration;

use actix::prelude::*;
use regrow_protocol::{Epoch, RunId, ToTaskExecutor, WorkerDescription, WorkerId};
use regrow_runtime::{
    TaskExecutor as Decisions, TaskExecutorAction, TaskExecutorInput, Timestamp, WorkerTimeouts,
};
use tokio::{sync::oneshot, time::Instant};
use tracing::debug;

use crate::{
    gateway::{MasterGateway, Post},
    refusals::tell_refusal,
    runner::{Runner, RunnerEvent},
    shuffle_service::WorkerNews,
    watch::{DeathWatch, Terminated},
};

/// Runs the attempts of one worker.
pub struct TaskExecutor {
    decisions: Decisions,
    worker: WorkerId,
    runner: Box<dyn Runner>,
    master: MasterGateway,
    shuffle_service: Recipient<WorkerNews>,
    origin: Instant,
    /// Dropped when the worker that leaves is done.
    leaving: Option<oneshot::Sender<()>>,
    _watches: [DeathWatch<WorkerId>; 2],
}

/// What a `TaskExecutor` is told at its start.
pub struct TaskExecutorConfig {
    /// What it is: its worker id, the data directory of its outputs, its slots.
    pub identity: WorkerDescription,
    /// The highest term that its former lives saw, as far as that was kept.
    pub term: u64,
    /// How long it waits for a master.
    pub timeouts: WorkerTimeouts,
    /// Where its reports go.
    pub master: MasterGateway,
    /// The `ShuffleService` of the same process.
    pub shuffle_service: Recipient<WorkerNews>,
    /// Who is told when it is gone: its process, and its `ShuffleService`.
    pub watchers: [Recipient<Terminated<WorkerId>>; 2],
}

/// The master of an epoch is gone, or the connection to it is. Told to the `TaskExecutor` alone,
/// which tells the `ShuffleService` of its process.
#[derive(Clone, Copy, Debug)]
pub struct MasterLost {
    /// Of which run.
    pub run: RunId,
    /// Which master; an older one than the one that is followed changes nothing.
    pub epoch: Epoch,
}

impl Message for MasterLost {
    type Result = ();
}

/// What a worker hears of its connection to the leader. Told to the `TaskExecutor` alone, which
/// tells the `ShuffleService` of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderNews {
    /// It is open: say what is held, and be told how it stands.
    Connected,
    /// It is closed.
    Lost,
}

impl Message for LeaderNews {
    type Result = ();
}

/// Has a worker leave: it takes nothing new, lets its tasks go on for `drain`, gives back what does
/// not end, and waits for the answers to its reports. `left` is dropped when all that is done.
#[derive(Debug)]
pub struct LeaveWorker {
    /// How long tasks may go on.
    pub drain: Duration,
    /// Who waits.
    pub left: oneshot::Sender<()>,
}

impl Message for LeaveWorker {
    type Result = ();
}

/// Ends a worker as a kill of its process would: its tasks are cancelled, nothing is reported, and
/// what is sealed stays on the disk.
#[derive(Clone, Copy, Debug)]
pub struct StopWorker;

impl Message for StopWorker {
    type Result = ();
}

impl TaskExecutor {
    /// Starts the actor on the current thread. `runner` makes its runner, which tells the
    /// recipient that it is given.
    pub fn start(
        config: TaskExecutorConfig,
        runner: impl FnOnce(Recipient<RunnerEvent>) -> Box<dyn Runner>,
    ) -> Addr<Self> {
        let TaskExecutorConfig { identity, term, timeouts, master, shuffle_service, watchers } =
            config;
        Self::create(move |ctx| Self {
            decisions: Decisions::new(identity, timeouts).above(term),
            worker: identity.worker,
            runner: runner(ctx.address().recipient()),
            master,
            shuffle_service,
            origin: Instant::now(),
            leaving: None,
            _watches: watchers.map(|watcher| DeathWatch::new(identity.worker, watcher)),
        })
    }

    fn feed(&mut self, input: TaskExecutorInput, ctx: &mut Context<Self>) {
        debug!(worker = %self.worker, ?input, "input");
        for action in self.decisions.handle(self.now(), input) {
            self.perform(action, ctx);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::default().after(self.origin.elapsed())
    }

    fn perform(&mut self, action: TaskExecutorAction, ctx: &mut Context<Self>) {
        match action {
            TaskExecutorAction::Start(deployment) => self.runner.start(deployment),
            TaskExecutorAction::Cancel { attempt } => self.runner.cancel(&attempt),
            TaskExecutorAction::DeliverSplit { attempt, split } => {
                self.runner.deliver_split(&attempt, split);
            }
            TaskExecutorAction::Post(envelope) => self.master.do_send(Post(envelope)),
            TaskExecutorAction::TellRefusal { run, highest_term } => {
                tell_refusal(self.worker, run, highest_term, &self.master);
            }
            TaskExecutorAction::FollowMaster { run, epoch } => {
                self.shuffle_service.do_send(WorkerNews::MasterRegistered { run, epoch });
            }
            TaskExecutorAction::Discard { attempt } => {
                self.shuffle_service.do_send(WorkerNews::Discard { attempt });
            }
            TaskExecutorAction::ReleaseRun { run } => {
                self.shuffle_service.do_send(WorkerNews::RunEnded { run });
            }
            TaskExecutorAction::Left => self.leaving = None,
            TaskExecutorAction::WakeAt(moment) => {
                ctx.run_later(wait_until(moment, self.now()), |me, ctx| {
                    me.feed(TaskExecutorInput::Woken, ctx);
                });
            }
        }
    }
}

/// How long to wait for a moment: a millisecond more, because moments are whole milliseconds.
pub(crate) fn wait_until(moment: Timestamp, now: Timestamp) -> Duration {
    moment.since(now).saturating_add(Duration::from_millis(1))
}

impl Actor for TaskExecutor {
    type Context = Context<Self>;
}

impl Handler<Post<ToTaskExecutor>> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToTaskExecutor>, ctx: &mut Self::Context) {
        self.feed(TaskExecutorInput::Command(envelope), ctx);
    }
}

impl Handler<RunnerEvent> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, event: RunnerEvent, ctx: &mut Self::Context) {
        let input = match event {
            RunnerEvent::Finished(record) => TaskExecutorInput::AttemptFinished(record),
            RunnerEvent::Failed { attempt, failure } => {
                TaskExecutorInput::AttemptFailed { attempt, failure }
            }
            RunnerEvent::WantsSplit { attempt, request } => {
                TaskExecutorInput::SplitWanted { attempt, request }
            }
        };
        self.feed(input, ctx);
    }
}

impl Handler<MasterLost> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, lost: MasterLost, ctx: &mut Self::Context) {
        let MasterLost { run, epoch } = lost;
        self.shuffle_service.do_send(WorkerNews::MasterLost { run, epoch });
        self.feed(TaskExecutorInput::MasterLost { run, epoch }, ctx);
    }
}

impl Handler<LeaderNews> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, news: LeaderNews, ctx: &mut Self::Context) {
        let (input, told) = match news {
            LeaderNews::Connected => {
                (TaskExecutorInput::LeaderConnected, WorkerNews::LeaderConnected)
            }
            LeaderNews::Lost => (TaskExecutorInput::LeaderLost, WorkerNews::LeaderLost),
        };
        self.shuffle_service.do_send(told);
        self.feed(input, ctx);
    }
}

impl Handler<LeaveWorker> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, LeaveWorker { drain, left }: LeaveWorker, ctx: &mut Self::Context) {
        self.leaving = Some(left);
        self.feed(TaskExecutorInput::LeaveWanted { drain }, ctx);
    }
}

impl Handler<StopWorker> for TaskExecutor {
    type Result = ();

    fn handle(&mut self, _: StopWorker, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Terminated<WorkerId>> for TaskExecutor {
    type Result = ();

    /// The `ShuffleService` is gone: a worker without one is none.
    fn handle(&mut self, _: Terminated<WorkerId>, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
