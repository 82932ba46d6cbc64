//! From the opening of a log to the end of a life: how a run is led, again and again.

use std::sync::Arc;

use actix::{Addr, AsyncContext, Context, Handler, Message};
use regrow_protocol::{Epoch, RunId};
use regrow_runtime::{LifeStart, Options, with_causes};
use regrow_store::StoreError;
use tracing::{error, info, warn};

use super::{
    ClientUpdate, Dispatcher, SubmitError,
    ending::failed,
    run::{Acceptance, Life},
    store_work::{self, OpenedLog, StoreFailure},
};
use crate::{
    cluster::{DialWorkers, WorkerLeaving},
    event_writer::{LogUpdate, Recording},
    job_master::{
        Beginning, CancelJob, JobMaster, JobMasterConfig, KillMaster, LifeEnd, LifeEnded, LifeNews,
        News, StopMaster,
    },
    launch::RunUpdate,
    operator_coordinator::DiscoveryContext,
    resource_manager::RunLed,
    store_runner::{SharedStore, ask},
};

/// Said of a log that lacks the begin of a commit.
const BY_MANIFEST: &str = "the manifest in the output directory says what is published; \
                           accumulators of tasks whose finish is lost are not counted";

/// The log of a run is open for a life, or not.
struct LogOpened {
    run: RunId,
    epoch: Epoch,
    result: Result<OpenedLog, StoreFailure>,
}

impl Message for LogOpened {
    type Result = ();
}

impl Dispatcher {
    /// Begins to open the log for the next life.
    pub(super) fn open_log(&self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get(&id) else { return };
        let (epoch, this) = (run.epoch, ctx.address());
        let (submission, output) = (run.submission.clone(), run.output.clone());
        ask(
            &*self.config.store,
            move |store| store_work::open_log(store, &submission, epoch, &output),
            move |result| {
                let result = result.unwrap_or_else(|text| Err(StoreFailure::Sick(text)));
                this.do_send(LogOpened { run: id, epoch, result });
            },
        );
    }

    fn lead(&mut self, id: RunId, opened: OpenedLog, ctx: &Context<Self>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let recording = recording(&self.config.store, &run.options, &opened);
        let covered = opened.read.damage.as_ref().is_none_or(|damage| damage.covered);
        let damage = opened.read.damage.map(|damage| damage.text);
        let by_manifest = opened.decided.then(|| BY_MANIFEST.to_owned());
        let log_damage: Vec<String> =
            run.lacks.iter().cloned().chain(damage).chain(by_manifest).collect();
        let life = LifeStart {
            epoch: run.epoch,
            previous: run.previous.clone(),
            sealed: opened.sealed,
            kills: run.kills.clone(),
            read_log_ms: opened.read_log_ms,
            log_damage: (!log_damage.is_empty()).then(|| log_damage.join("; ")),
            options: run.options.clone(),
        };
        let untouched = opened.read.events.is_empty()
            && life.log_damage.is_none()
            && run.acceptance == Acceptance::Unrecorded;
        let beginning = if untouched || !run.options.recovery_enabled {
            Beginning::New
        } else {
            Beginning::Again(opened.read.events)
        };
        let master = JobMaster::launch(JobMasterConfig {
            submission: run.submission.clone(),
            beginning,
            life,
            recording,
            output: run.output.clone(),
            discovery: DiscoveryContext {
                factory: Arc::clone(&self.config.factory),
                job_name: run.submission.job_name.clone(),
                arguments: run.submission.arguments.clone(),
                effects: self.config.effects,
            },
            resource_manager: self.config.resource_manager.clone().recipient(),
            dispatcher: ctx.address().recipient(),
            watcher: ctx.address().recipient(),
        });
        if !covered {
            // What comes now stands behind a damage: only a snapshot makes protection whole again.
            master.do_send(LogUpdate::Outgrown);
        }
        self.introduce(id, master);
    }

    /// Makes a new life and the rest of the cluster known to each other.
    fn introduce(&mut self, id: RunId, master: Addr<JobMaster>) {
        let led = RunLed { run: id, master: master.clone().recipient() };
        self.config.resource_manager.do_send(led);
        for worker in self.workers.values() {
            master.do_send(worker.clone());
        }
        for worker in &self.leaving {
            master.do_send(WorkerLeaving(*worker));
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.cancel {
            master.do_send(CancelJob);
        }
        if let Some(how) = run.kill.take() {
            master.do_send(KillMaster(how));
        }
        run.led_by(master);
    }

    /// Lets a run rest: all of it is kept, and another process may go on with it.
    fn abandon(&mut self, id: RunId, reason: &str) {
        let Some(run) = self.runs.remove(&id) else { return };
        error!(job = %run.submission.job, run = %id, %reason, "the run is abandoned; it can be resumed");
        if let Life::Led(master) = &run.life {
            master.do_send(StopMaster);
        }
        for client in &run.clients {
            client.do_send(ClientUpdate::Abandoned { reason: reason.to_owned() });
        }
    }

    /// Tries `again` later, or abandons the run if its store has refused for too long.
    pub(super) fn retry(
        &mut self,
        id: RunId,
        reason: &str,
        ctx: &mut Context<Self>,
        again: fn(&mut Self, RunId, &mut Context<Self>),
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        warn!(job = %run.submission.job, run = %id, %reason, "the event store refuses");
        match run.store_refused() {
            Some(delay) => {
                ctx.run_later(delay, move |dispatcher, ctx| again(dispatcher, id, ctx));
            }
            None => self.abandon(id, reason),
        }
    }

    fn refuse(&mut self, id: RunId, error: StoreError) {
        let Some(run) = self.runs.remove(&id) else { return };
        let reason = with_causes(&error);
        error!(job = %run.submission.job, run = %id, %reason, "the event store is unusable");
        let mut clients = run.clients.into_iter();
        if let Some(first) = clients.next() {
            first.do_send(ClientUpdate::Refused(SubmitError::Store(error)));
        }
        for client in clients {
            client.do_send(ClientUpdate::Abandoned { reason: reason.clone() });
        }
    }
}

fn recording(store: &SharedStore, options: &Options, opened: &OpenedLog) -> Recording {
    if !options.recovery_enabled {
        return Recording::Off;
    }
    Recording::Stored { store: Arc::clone(store), size: opened.size }
}

impl Handler<LogOpened> for Dispatcher {
    type Result = ();

    fn handle(&mut self, opened: LogOpened, ctx: &mut Self::Context) {
        let LogOpened { run: id, epoch, result } = opened;
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.epoch != epoch || !matches!(run.life, Life::Opening) {
            return;
        }
        match result {
            Ok(opened) => {
                run.store_obeyed();
                self.lead(id, opened, ctx);
            }
            Err(StoreFailure::Sick(reason)) => {
                // It may be claimed all the same, and no epoch is opened twice.
                run.epoch = run.epoch.next_life();
                self.retry(id, &reason, ctx, |dispatcher, id, ctx| dispatcher.open_log(id, ctx));
            }
            Err(StoreFailure::Fenced(reason)) => self.abandon(id, &reason),
            Err(StoreFailure::Unusable(error)) => self.refuse(id, error),
        }
    }
}

impl Handler<LifeNews> for Dispatcher {
    type Result = ();

    fn handle(&mut self, LifeNews { run: id, epoch, news }: LifeNews, ctx: &mut Self::Context) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.epoch != epoch || !matches!(run.life, Life::Led(_)) {
            return;
        }
        match news {
            News::Accepted => run.announce(),
            News::Status(status) => run.show(status),
            News::CancelAnswered { refused } => {
                run.cancel = false;
                run.tell(&RunUpdate::CancelAnswered { refused });
            }
            News::Recovered(report) => {
                run.tell(&RunUpdate::Recovered(report.clone()));
                run.lacks = None;
                let job = run.submission.job.clone();
                self.keep_report(&job, report);
            }
            News::FormerWorkers { addresses } => {
                if let Some(dialer) = &self.dialer {
                    dialer.do_send(DialWorkers(addresses));
                }
            }
            News::RecoveryFailed { error } => {
                let outcome = failed(&run.submission, epoch, error);
                self.conclude(id, Box::new(outcome), ctx);
            }
            News::SteppedDown { reason } | News::Fenced { reason } => self.abandon(id, &reason),
            News::Concluded(outcome) => self.conclude(id, outcome, ctx),
        }
    }
}

impl Handler<LifeEnded> for Dispatcher {
    type Result = ();

    fn handle(&mut self, ended: LifeEnded, ctx: &mut Self::Context) {
        let LifeEnded { run: id, epoch, end } = ended;
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.epoch != epoch || !matches!(run.life, Life::Led(_)) {
            return;
        }
        match &end {
            LifeEnd::Panicked { message } => {
                error!(run = %id, %epoch, panic = %message, "a JobMaster panicked");
            }
            LifeEnd::Stopped | LifeEnd::Planned { .. } => {
                info!(run = %id, %epoch, ?end, "a JobMaster is gone");
            }
        }
        let delay = run.life_ended(&end);
        ctx.run_later(delay, move |dispatcher, ctx| dispatcher.open_log(id, ctx));
    }
}
