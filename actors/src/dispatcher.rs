//! Accepts jobs, gives each a `JobMaster`, a new one when that dies, and sees their runs to the end.
//!
//! Invariants:
//! - A run is in the job-graph store before its client is told that it is accepted, and leaves it
//!   last.
//! - At most one life of a run is led here, and each has an epoch above all before it.
//! - The death of one `JobMaster`, however it comes, touches no other run.

mod admission;
mod client;
mod ending;
mod run;
mod standings;
pub(crate) mod store_work;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use regrow_protocol::{
    Envelope, Epoch, JobId, RunId, RunStanding, ToJobMaster, ToTaskExecutor, WorkerId,
};
use regrow_runtime::{LifeStart, Options, PreviousLife, RecoveryReport, with_causes};
use regrow_store::{EventStore, StoreError};
use tracing::{error, info, warn};

use self::{
    admission::Admission,
    ending::{failed, tell_ended},
    run::{Acceptance, Life, Run},
    standings::EndedRuns,
    store_work::{OpenedLog, Places, StoreFailure},
};
pub use self::{
    admission::SubmitError,
    client::{CancelRun, ClientUpdate, KillRun, SubmitJob},
};
use crate::{
    archive::Archive,
    effects::EffectRunner,
    event_writer::{LogUpdate, Recording},
    gateway::{Post, WorkerConnected},
    job_master::{
        Beginning, CancelJob, JobMaster, JobMasterConfig, KillMaster, LifeEnd, LifeEnded, LifeNews,
        News, StopMaster,
    },
    launch::RunUpdate,
    operator_coordinator::DiscoveryContext,
    panic_watch::current_panic,
    recovery_reports::reports_directory,
    resource_manager::{ResourceManager, RunLed},
    store_runner::{SharedStore, ask},
    task::TaskFactory,
    watch::Terminated,
};

/// What a Dispatcher is told at its start.
pub struct DispatcherConfig {
    /// Where runs keep their reports, and ended ones their archive.
    pub data_directory: PathBuf,
    /// The event store.
    pub store: SharedStore,
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
    /// Where blocking work runs.
    pub effects: EffectRunner,
    /// Who gives out slots.
    pub resource_manager: Addr<ResourceManager>,
}

/// Accepts jobs and sees them to their end.
pub struct Dispatcher {
    config: DispatcherConfig,
    archive: Archive,
    /// Claimed with the first submission.
    term: Option<u64>,
    submitting: BTreeMap<JobId, SubmitJob>,
    runs: BTreeMap<RunId, Run>,
    ended: EndedRuns,
    workers: BTreeMap<WorkerId, WorkerConnected>,
}

/// The store decided about a submission.
struct Admitted {
    job: JobId,
    result: Result<(u64, Admission), SubmitError>,
}

/// The log of a run is open for a life, or not.
struct LogOpened {
    run: RunId,
    epoch: Epoch,
    result: Result<OpenedLog, StoreFailure>,
}

impl Message for Admitted {
    type Result = ();
}

impl Message for LogOpened {
    type Result = ();
}

impl Dispatcher {
    /// A Dispatcher without runs.
    pub fn new(config: DispatcherConfig) -> Self {
        Self {
            archive: Archive::new(&config.data_directory),
            config,
            term: None,
            submitting: BTreeMap::new(),
            runs: BTreeMap::new(),
            ended: EndedRuns::default(),
            workers: BTreeMap::new(),
        }
    }

    fn places(&self, job: &JobId) -> Places {
        let reports = reports_directory(&self.config.data_directory, job);
        Places { archive: self.archive.clone(), reports }
    }

    fn run_of(&mut self, job: &JobId) -> Option<&mut Run> {
        self.runs.values_mut().find(|run| run.submission.job == *job)
    }

    fn admit(&mut self, submit: SubmitJob, ctx: &Context<Self>) {
        let (term, archive, submission) =
            (self.term, self.archive.clone(), submit.submission.clone());
        let (job, this) = (submission.job.clone(), ctx.address());
        self.submitting.insert(job.clone(), submit);
        let work = move |store: &mut dyn EventStore| {
            let term = match term {
                Some(term) => term,
                None => store_work::claim_term(store)?,
            };
            Ok((term, admission::admit(store, &archive, &submission)?))
        };
        ask(&*self.config.store, work, move |result| {
            let result = result
                .unwrap_or_else(|reason| Err(SubmitError::Document { job: job.clone(), reason }));
            this.do_send(Admitted { job, result });
        });
    }

    fn begin(
        &mut self,
        submit: SubmitJob,
        term: u64,
        admission: Admission,
        ctx: &mut Context<Self>,
    ) {
        let SubmitJob { submission, options, kills, client, cancel, kill } = submit;
        let (submission, outcome, resumed) = match admission {
            Admission::New => (submission, None, false),
            Admission::Again(accepted) => (*accepted, None, true),
            Admission::Concluding(accepted, outcome) => (*accepted, Some(outcome), true),
            Admission::Ended(outcome) => {
                client.do_send(ClientUpdate::Ended { outcome, joined: true });
                client.do_send(ClientUpdate::Closed);
                return;
            }
        };
        let id = submission.run;
        info!(job = %submission.job, run = %id, resumed, "accepted");
        let mut run = Run::new(submission, options, kills, client, Epoch::new(term, 0));
        run.resumed = resumed;
        run.cancel = cancel;
        run.kill = kill;
        if resumed {
            run.previous = PreviousLife::Unknown;
            run.acceptance = Acceptance::Recorded;
        }
        self.runs.insert(id, run);
        match outcome {
            Some(outcome) => self.conclude(id, outcome, ctx),
            None => self.open_log(id, ctx),
        }
    }

    /// Begins to open the log for the next life.
    fn open_log(&self, id: RunId, ctx: &Context<Self>) {
        let Some(run) = self.runs.get(&id) else { return };
        let (epoch, this) = (run.epoch, ctx.address());
        ask(
            &*self.config.store,
            move |store| store_work::open_log(store, id, epoch),
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
        let life = LifeStart {
            epoch: run.epoch,
            previous: run.previous.clone(),
            sealed: opened.sealed,
            kills: run.kills.clone(),
            read_log_ms: opened.read_log_ms,
            log_damage: opened.read.damage.map(|damage| damage.text),
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
    fn retry(
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

    fn keep_report(&self, job: &JobId, report: Box<RecoveryReport>) {
        let directory = self.places(job).reports;
        self.config.store.run(Box::new(move |_| store_work::keep_report(&directory, &report)));
    }

    fn standing(&self, run: RunId) -> RunStanding {
        if self.runs.contains_key(&run) {
            RunStanding::Running
        } else if self.ended.contains(run) {
            RunStanding::Ended
        } else {
            RunStanding::Unknown
        }
    }

    /// Answers a worker that holds something of a run which nobody leads here (rule 4.6).
    fn answer_inventory(&self, worker: WorkerId, envelope: &Envelope<ToJobMaster>) {
        let Some(peer) = self.workers.get(&worker) else { return };
        let Envelope { run, epoch, .. } = *envelope;
        match self.standing(run) {
            RunStanding::Ended => tell_ended(peer, run, epoch),
            standing @ (RunStanding::Running | RunStanding::Unknown) => {
                let message = ToTaskExecutor::RunEnded { standing };
                peer.task_executor.do_send(Post(Envelope { run, epoch, message }));
            }
        }
    }
}

fn recording(store: &SharedStore, options: &Options, opened: &OpenedLog) -> Recording {
    if !options.recovery_enabled {
        return Recording::Off;
    }
    Recording::Stored { store: Arc::clone(store), size: opened.size }
}

/// Whoever waits for a run is told when its Dispatcher dies.
impl Drop for Dispatcher {
    fn drop(&mut self) {
        let reason = current_panic().unwrap_or_else(|| "the Dispatcher stopped".to_owned());
        let submitting = self.submitting.values().map(|submit| &submit.client);
        for client in self.runs.values().flat_map(|run| &run.clients).chain(submitting) {
            client.do_send(ClientUpdate::Abandoned { reason: reason.clone() });
        }
    }
}

impl Actor for Dispatcher {
    type Context = Context<Self>;
}

impl Handler<SubmitJob> for Dispatcher {
    type Result = ();

    fn handle(&mut self, submit: SubmitJob, ctx: &mut Self::Context) {
        self.admit(submit, ctx);
    }
}

impl Handler<Admitted> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Admitted { job, result }: Admitted, ctx: &mut Self::Context) {
        let Some(submit) = self.submitting.remove(&job) else { return };
        match result {
            Ok((claimed, admission)) => {
                let term = *self.term.get_or_insert(claimed);
                self.begin(submit, term, admission, ctx);
            }
            Err(error) => {
                info!(%job, error = %with_causes(&error), "a submission is refused");
                submit.client.do_send(ClientUpdate::Refused(error));
            }
        }
    }
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
                self.retry(id, &reason, ctx, |dispatcher, id, ctx| dispatcher.open_log(id, ctx));
            }
            Err(StoreFailure::Fenced(reason)) => self.abandon(id, &reason),
            Err(StoreFailure::Unusable(error)) => self.refuse(id, error),
        }
    }
}

impl Dispatcher {
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
                let job = run.submission.job.clone();
                self.keep_report(&job, report);
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

impl Handler<CancelRun> for Dispatcher {
    type Result = ();

    fn handle(&mut self, CancelRun(job): CancelRun, _: &mut Self::Context) {
        if let Some(submit) = self.submitting.get_mut(&job) {
            submit.cancel = true;
        }
        let Some(run) = self.run_of(&job) else { return };
        run.cancel = true;
        if let Life::Led(master) = &run.life {
            master.do_send(CancelJob);
        }
    }
}

impl Handler<KillRun> for Dispatcher {
    type Result = ();

    fn handle(&mut self, KillRun { job, how }: KillRun, _: &mut Self::Context) {
        if let Some(submit) = self.submitting.get_mut(&job) {
            submit.kill = Some(how);
        }
        let Some(run) = self.run_of(&job) else { return };
        match &run.life {
            Life::Led(master) => master.do_send(KillMaster(how)),
            Life::Opening => run.kill = Some(how),
            Life::Concluding(_) | Life::Forgetting => {}
        }
    }
}

impl Handler<WorkerConnected> for Dispatcher {
    type Result = ();

    fn handle(&mut self, connected: WorkerConnected, _: &mut Self::Context) {
        self.config.resource_manager.do_send(connected.clone());
        for run in self.runs.values() {
            if let Life::Led(master) = &run.life {
                master.do_send(connected.clone());
            }
        }
        self.workers.insert(connected.worker.worker, connected);
    }
}

impl Handler<Terminated<WorkerId>> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Terminated(worker): Terminated<WorkerId>, _: &mut Self::Context) {
        self.workers.remove(&worker);
        self.config.resource_manager.do_send(Terminated(worker));
        for run in self.runs.values() {
            if let Life::Led(master) = &run.life {
                master.do_send(Terminated(worker));
            }
        }
    }
}

impl Handler<Post<ToJobMaster>> for Dispatcher {
    type Result = ();

    fn handle(&mut self, post: Post<ToJobMaster>, _: &mut Self::Context) {
        let Post(envelope) = &post;
        if let Some(Run { life: Life::Led(master), .. }) = self.runs.get(&envelope.run) {
            master.do_send(post);
        } else if let ToJobMaster::Registered { worker, .. } = &envelope.message {
            self.answer_inventory(worker.worker, envelope);
        }
    }
}
