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
mod following;
mod leading;
mod listing;
mod looking;
mod questions;
mod recovering;
mod run;
mod standings;
pub(crate) mod store_work;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, Recipient};
use regrow_protocol::{
    Envelope, Epoch, JobId, RunId, RunStanding, ToJobMaster, ToTaskExecutor, WorkerId,
};
use regrow_runtime::{JobOutcome, JobSubmission, PreviousLife, RecoveryReport, with_causes};
use regrow_store::EventStore;
use tracing::info;

use self::{
    admission::Admission,
    ending::tell_ended,
    questions::WaitingQuestions,
    run::{Acceptance, Life, Run},
    standings::EndedRuns,
    store_work::Places,
};
pub(crate) use self::{
    admission::{SubmitError, is_held},
    client::{CancelRun, ClientUpdate, KillRun, SubmitJob},
    following::{FollowRun, HandOver},
    listing::ListJobs,
    looking::{LookAt, Looked, Looking, Page},
    recovering::RecoverAll,
};
use crate::{
    archive::Archive,
    cluster::DialWorkers,
    effects::EffectRunner,
    gateway::{Post, WorkerConnected},
    job_master::{JobMaster, KillMaster},
    panic_watch::current_panic,
    recovery_reports::reports_directory,
    resource_manager::ResourceManager,
    run_directory::{NotedRun, held_by_run},
    store_runner::{SharedStore, ask},
    task::TaskFactory,
    watch::Terminated,
};

/// What a Dispatcher is told at its start.
pub(crate) struct DispatcherConfig {
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
    /// What the directory of a local run notes of it.
    pub noted: Option<NotedRun>,
}

/// Accepts jobs and sees them to their end.
pub(crate) struct Dispatcher {
    config: DispatcherConfig,
    archive: Archive,
    /// Claimed with the first submission.
    term: Option<u64>,
    submitting: BTreeMap<JobId, SubmitJob>,
    /// Questions about jobs that are being submitted.
    late: WaitingQuestions,
    /// Questions that wait until all jobs are known; none once they are.
    put_off: Option<WaitingQuestions>,
    /// Jobs of earlier processes about which the store has not said what becomes of them.
    recovering: BTreeSet<JobId>,
    /// Jobs that were accepted and cannot be led, with the cause.
    unrecovered: BTreeMap<JobId, String>,
    runs: BTreeMap<RunId, Run>,
    ended: EndedRuns,
    workers: BTreeMap<WorkerId, WorkerConnected>,
    /// Those of them that are about to stop.
    leaving: BTreeSet<WorkerId>,
    /// Who calls former workers.
    dialer: Option<Recipient<DialWorkers>>,
}

/// Have former workers called by this one.
pub(crate) struct UseDialer(pub(crate) Recipient<DialWorkers>);

impl Message for UseDialer {
    type Result = ();
}

impl Handler<UseDialer> for Dispatcher {
    type Result = ();

    fn handle(&mut self, UseDialer(dialer): UseDialer, _: &mut Self::Context) {
        self.dialer = Some(dialer);
    }
}

/// What is next for a run.
enum Next {
    /// Somebody leads it.
    Lead {
        /// What is lost of it, for people.
        lacks: Option<String>,
    },
    /// It has a result, which is archived first.
    Conclude(Box<JobOutcome>),
    /// It is in the archive.
    CleanUp(Box<JobOutcome>),
}

/// The store decided about a submission.
struct Admitted {
    job: JobId,
    result: Result<(u64, Admission), SubmitError>,
}

impl Message for Admitted {
    type Result = ();
}

impl Dispatcher {
    /// A Dispatcher without runs.
    pub(crate) fn new(config: DispatcherConfig) -> Self {
        Self {
            archive: Archive::new(&config.data_directory),
            config,
            term: None,
            submitting: BTreeMap::new(),
            late: WaitingQuestions::default(),
            put_off: None,
            recovering: BTreeSet::new(),
            unrecovered: BTreeMap::new(),
            runs: BTreeMap::new(),
            ended: EndedRuns::default(),
            workers: BTreeMap::new(),
            leaving: BTreeSet::new(),
            dialer: None,
        }
    }

    fn places(&self, job: &JobId) -> Places {
        let reports = reports_directory(&self.config.data_directory, job);
        Places { archive: self.archive.clone(), reports }
    }

    /// Whoever leads a run here at the moment.
    fn masters(&self) -> impl Iterator<Item = &Addr<JobMaster>> {
        self.runs.values().filter_map(|run| match &run.life {
            Life::Led(master) => Some(master),
            Life::Opening | Life::Concluding(_) | Life::Forgetting => None,
        })
    }

    fn run_of(&mut self, job: &JobId) -> Option<&mut Run> {
        self.runs.values_mut().find(|run| run.submission.job == *job)
    }

    /// Why a new job may not write where it wants to: another one that is not over does.
    fn shared_output(&self, new: &JobSubmission) -> Option<String> {
        // One whose end was told has published all that it ever will.
        let live = self.runs.values().filter(|run| run.outcome.is_none());
        let others = live.map(|run| &run.submission);
        let others = others.chain(self.submitting.values().map(|submit| &submit.submission));
        let used = others.filter(|other| other.job != new.job).find_map(|other| {
            let writes = |directory: &str| {
                other
                    .graph
                    .sinks
                    .iter()
                    .any(|sink| Path::new(&sink.directory) == Path::new(directory))
            };
            let shared = new.graph.sinks.iter().find(|sink| writes(&sink.directory))?;
            Some((&other.job, &shared.directory))
        });
        used.map(|(job, directory)| {
            format!(
                "output directory {directory} is in use by job {job}, which this cluster runs; wait \
                 until it has ended, cancel it, or choose another directory"
            )
        })
    }

    fn admit(&mut self, mut submit: SubmitJob, ctx: &Context<Self>) {
        let obstacle = submit.obstacle.take().or_else(|| self.shared_output(&submit.submission));
        let (term, archive, submission) =
            (self.term, self.archive.clone(), submit.submission.clone());
        let (job, this) = (submission.job.clone(), ctx.address());
        self.submitting.insert(job.clone(), submit);
        let noted = self.config.noted.clone();
        let directory = self.config.data_directory.clone();
        let work = move |store: &mut dyn EventStore| {
            // A run of one process has what it notes; a cluster must not take its job.
            let held = || held_by_run(&directory, &submission.job).filter(|_| noted.is_none());
            let obstacle = held().or(obstacle);
            store_work::admit(store, &archive, &submission, (term, noted), obstacle)
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
        let SubmitJob { submission: _, options, kills, client, cancel, kill, obstacle: _ } = submit;
        let (submission, next, resumed) = match admission {
            Admission::New(accepted) => (*accepted, Next::Lead { lacks: None }, false),
            Admission::Again { accepted, lacks } => (*accepted, Next::Lead { lacks }, true),
            Admission::Concluding(accepted, outcome) => (*accepted, Next::Conclude(outcome), true),
            Admission::Archived(accepted, outcome) => (*accepted, Next::CleanUp(outcome), true),
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
        match next {
            Next::Lead { lacks } => {
                run.lacks = lacks;
                self.runs.insert(id, run);
                self.open_log(id, ctx);
            }
            Next::Conclude(outcome) => {
                run.concluded = true;
                self.runs.insert(id, run);
                self.conclude(id, outcome, ctx);
            }
            Next::CleanUp(outcome) => {
                run.life = Life::Concluding(outcome);
                run.concluded = true;
                self.runs.insert(id, run);
                self.clean_output(id, ctx);
            }
        }
    }

    fn keep_report(&self, job: &JobId, report: Box<RecoveryReport>) {
        let directory = self.places(job).reports;
        self.config.store.run(Box::new(move |_| store_work::keep_report(&directory, &report)));
    }

    fn standing(&self, run: RunId) -> RunStanding {
        // What is left of an ended run is removed while it is still among the runs.
        if self.ended.contains(run) {
            RunStanding::Ended
        } else if self.runs.contains_key(&run) {
            RunStanding::Running
        } else {
            RunStanding::Unknown
        }
    }

    /// Answers a worker that holds something of a run which nobody leads here (rule 4.6).
    fn answer_inventory(&self, worker: WorkerId, envelope: &Envelope<ToJobMaster>) {
        let Some(peer) = self.workers.get(&worker) else { return };
        let Envelope { run, epoch, .. } = *envelope;
        match self.standing(run) {
            RunStanding::Ended => {
                // A worker that has seen this term refuses older ones, and may know no epoch of the run.
                let leads = Epoch::new(self.term.unwrap_or_default(), 0);
                tell_ended(peer, run, epoch.max(leads));
            }
            standing @ (RunStanding::Running | RunStanding::Unknown) => {
                let message = ToTaskExecutor::RunEnded { standing };
                peer.task_executor.do_send(Post(Envelope { run, epoch, message }));
            }
        }
    }
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
        self.submit(submit, ctx);
    }
}

impl Handler<Admitted> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Admitted { job, result }: Admitted, ctx: &mut Self::Context) {
        let Some(submit) = self.submitting.remove(&job) else { return };
        match result {
            Ok((claimed, admission)) => {
                let term = *self.term.get_or_insert(claimed);
                self.recovering.remove(&job);
                self.unrecovered.remove(&job);
                self.begin(submit, term, admission, ctx);
            }
            Err(error) if self.recovering.contains(&job) => {
                self.not_recovered(submit, &error, ctx);
            }
            Err(error) => {
                info!(%job, error = %with_causes(&error), "a submission is refused");
                submit.client.do_send(ClientUpdate::Refused(error));
            }
        }
        self.answer_late(ctx);
    }
}

impl Handler<CancelRun> for Dispatcher {
    type Result = ();

    fn handle(&mut self, cancel: CancelRun, _: &mut Self::Context) {
        self.cancel(cancel);
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
        if !self.leaving.contains(&connected.worker.worker) {
            self.config.resource_manager.do_send(connected.clone());
        }
        self.masters().for_each(|master| master.do_send(connected.clone()));
        self.workers.insert(connected.worker.worker, connected);
    }
}

impl Handler<Terminated<WorkerId>> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Terminated(worker): Terminated<WorkerId>, _: &mut Self::Context) {
        self.workers.remove(&worker);
        self.leaving.remove(&worker);
        self.config.resource_manager.do_send(Terminated(worker));
        self.masters().for_each(|master| master.do_send(Terminated(worker)));
    }
}

impl Handler<Post<ToJobMaster>> for Dispatcher {
    type Result = ();

    fn handle(&mut self, post: Post<ToJobMaster>, _: &mut Self::Context) {
        self.take_report(post);
    }
}
