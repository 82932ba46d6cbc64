//! What a `JobMaster` hears: each message becomes one input.

use actix::{ActorContext, Handler};
use regrow_protocol::{ToJobMaster, WorkerId};
use regrow_runtime::Input;

use super::{
    CancelJob, EffectEnded, HandOverLife, JobMaster, KillMaster, News, PlannedBy, StopMaster,
};
use crate::{
    cluster::{WorkerDisconnected, WorkerLeaving},
    event_writer::LogUpdate,
    gateway::{Post, WorkerConnected, WorkerReplaced},
    operator_coordinator::SplitsDiscovered,
    resource_manager::SlotsGranted,
    watch::Terminated,
};

impl Handler<Post<ToJobMaster>> for JobMaster {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToJobMaster>, ctx: &mut Self::Context) {
        if let Some(input) = Input::reported(envelope, self.epoch) {
            self.feed(input, ctx);
        }
    }
}

impl Handler<WorkerConnected> for JobMaster {
    type Result = ();

    fn handle(&mut self, connected: WorkerConnected, ctx: &mut Self::Context) {
        let worker = connected.worker.worker;
        self.workers.insert(worker, connected);
        self.feed(Input::WorkerConnected { worker }, ctx);
    }
}

impl Handler<WorkerLeaving> for JobMaster {
    type Result = ();

    fn handle(&mut self, WorkerLeaving(worker): WorkerLeaving, ctx: &mut Self::Context) {
        self.feed(Input::WorkerLeaving { worker }, ctx);
    }
}

impl Handler<WorkerDisconnected> for JobMaster {
    type Result = ();

    fn handle(&mut self, WorkerDisconnected(worker): WorkerDisconnected, ctx: &mut Self::Context) {
        self.feed(Input::WorkerDisconnected { worker }, ctx);
    }
}

impl Handler<WorkerReplaced> for JobMaster {
    type Result = ();

    fn handle(&mut self, replaced: WorkerReplaced, ctx: &mut Self::Context) {
        let WorkerReplaced { worker, data_directory, by } = replaced;
        self.workers.remove(&worker);
        self.feed(Input::WorkerReplaced { worker, data_directory, by }, ctx);
    }
}

impl Handler<Terminated<WorkerId>> for JobMaster {
    type Result = ();

    fn handle(&mut self, Terminated(worker): Terminated<WorkerId>, ctx: &mut Self::Context) {
        self.workers.remove(&worker);
        self.feed(Input::WorkerLost { worker }, ctx);
    }
}

impl Handler<SlotsGranted> for JobMaster {
    type Result = ();

    fn handle(&mut self, granted: SlotsGranted, ctx: &mut Self::Context) {
        let SlotsGranted { worker, count } = granted;
        self.feed(Input::SlotsGranted { worker, count }, ctx);
    }
}

impl Handler<SplitsDiscovered> for JobMaster {
    type Result = ();

    fn handle(&mut self, discovered: SplitsDiscovered, ctx: &mut Self::Context) {
        let SplitsDiscovered { vertex, result } = discovered;
        self.feed(Input::SplitsDiscovered { vertex, result }, ctx);
    }
}

impl Handler<EffectEnded> for JobMaster {
    type Result = ();

    fn handle(&mut self, EffectEnded(input): EffectEnded, ctx: &mut Self::Context) {
        self.files_under_way = self.files_under_way.saturating_sub(1);
        if self.files_under_way == 0 {
            self.handing_over = None;
        }
        self.feed(input, ctx);
    }
}

impl Handler<LogUpdate> for JobMaster {
    type Result = ();

    fn handle(&mut self, update: LogUpdate, ctx: &mut Self::Context) {
        let input = match update {
            LogUpdate::Persisted { upto } => Input::Persisted { upto },
            LogUpdate::Degraded { reason } => Input::LogDegraded { reason },
            LogUpdate::Reopened => Input::LogReopened,
            LogUpdate::Outgrown => Input::SnapshotWanted,
            LogUpdate::Fenced { reason } => {
                self.tell(News::Fenced { reason });
                ctx.terminate();
                return;
            }
        };
        self.feed(input, ctx);
    }
}

impl Handler<CancelJob> for JobMaster {
    type Result = ();

    fn handle(&mut self, _: CancelJob, ctx: &mut Self::Context) {
        self.feed(Input::CancelRequested, ctx);
    }
}

impl Handler<KillMaster> for JobMaster {
    type Result = ();

    fn handle(&mut self, KillMaster(how): KillMaster, ctx: &mut Self::Context) {
        self.die(how, PlannedBy::Time, ctx);
    }
}

impl Handler<HandOverLife> for JobMaster {
    type Result = ();

    fn handle(&mut self, HandOverLife(part): HandOverLife, _: &mut Self::Context) {
        // Without it nothing is decided: what comes now is heard by the next life.
        self.job = None;
        self.writer.drain(part.clone());
        self.handing_over = Some(part).filter(|_| self.files_under_way > 0);
    }
}

impl Handler<StopMaster> for JobMaster {
    type Result = ();

    fn handle(&mut self, _: StopMaster, ctx: &mut Self::Context) {
        ctx.terminate();
    }
}
