//! What a cluster asks of a Dispatcher: to recover all jobs, to let clients follow and list them,
//! and to hand over.

use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message, Recipient, ResponseFuture};
use regrow_protocol::{JobId, RunId, ToJobMaster};
use regrow_runtime::{JobSubmission, Options, with_causes};
use regrow_store::EventStore;
use tracing::{error, info, warn};

use super::{
    ClientUpdate, Dispatcher, SubmitError, SubmitJob,
    admission::check_same,
    run::{Life, Run},
    store_work::{self, Inherited},
};
use crate::{
    cluster::{JobSummary, JobsListed, WorkerDisconnected},
    gateway::{Post, WorkerReplaced},
    hand_over::hand_over,
    job_master::HandOverLife,
    store_runner::ask,
    watch::Terminated,
};

/// How long a store that could not be read is left alone.
const RECOVER_ALL_PAUSE: Duration = Duration::from_secs(1);

/// Recover all jobs that were accepted and have not ended.
pub(crate) struct RecoverAll;

impl Message for RecoverAll {
    type Result = ();
}

/// What the store knows of jobs.
struct AllFound(Result<Inherited, String>);

impl Message for AllFound {
    type Result = ();
}

/// Tell a client how the run of a job goes on, until it ends.
pub(crate) struct FollowRun {
    pub(crate) job: JobId,
    pub(crate) client: Recipient<ClientUpdate>,
}

impl Message for FollowRun {
    type Result = ();
}

/// Tell of all jobs.
pub(crate) struct ListJobs {
    pub(crate) listener: Recipient<JobsListed>,
}

impl Message for ListJobs {
    type Result = ();
}

/// Let go of all runs: another process is to lead them. Answered when what is under way is over, or
/// has taken too long.
pub(crate) struct HandOver;

impl Message for HandOver {
    type Result = ();
}

/// What was asked before all jobs were found; answered after.
pub(super) enum Question {
    Submit(Box<SubmitJob>),
    Follow(FollowRun),
    List(ListJobs),
    Inventory(Box<Post<ToJobMaster>>),
}

/// Follows recovered runs for nobody.
struct Nobody;

impl Actor for Nobody {
    type Context = Context<Self>;
}

impl Handler<ClientUpdate> for Nobody {
    type Result = ();

    fn handle(&mut self, _: ClientUpdate, _: &mut Self::Context) {}
}

impl Dispatcher {
    /// Puts a question off until all jobs are known, if they are not; gives it back if they are.
    fn put_off<Q>(&mut self, question: Q, wrap: impl FnOnce(Q) -> Question) -> Option<Q> {
        match &mut self.put_off {
            Some(questions) => {
                questions.push(wrap(question));
                None
            }
            None => Some(question),
        }
    }

    /// Submits a job, or joins its run.
    pub(super) fn submit(&mut self, submit: SubmitJob, ctx: &mut Context<Self>) {
        let wrap = |submit| Question::Submit(Box::new(submit));
        let Some(submit) = self.put_off(submit, wrap) else { return };
        let job = submit.submission.job.clone();
        if self.submitting.contains_key(&job) {
            self.late.push(Question::Submit(Box::new(submit)));
            return;
        }
        let Some(run) = self.run_of(&job) else { return self.admit(submit, ctx) };
        let there = &run.submission;
        match check_same(&submit.submission, &there.job_name, &there.arguments) {
            Ok(()) => run.join(submit.client),
            Err(error) => submit.client.do_send(ClientUpdate::Refused(error)),
        }
    }

    /// Passes a report on to whoever leads its run, or says how that stands.
    pub(super) fn take_report(&mut self, post: Post<ToJobMaster>) {
        if let Some(Run { life: Life::Led(master), .. }) = self.runs.get(&post.0.run) {
            master.do_send(post);
            return;
        }
        let wrap = |post| Question::Inventory(Box::new(post));
        let Some(Post(envelope)) = self.put_off(post, wrap) else { return };
        match &envelope.message {
            ToJobMaster::Registered { worker, .. } => {
                self.answer_inventory(worker.worker, &envelope);
            }
            ToJobMaster::RunHeld { worker } => self.answer_inventory(*worker, &envelope),
            ToJobMaster::AllPartitionsWithMetrics { .. }
            | ToJobMaster::TaskFinished { .. }
            | ToJobMaster::TaskFailed { .. }
            | ToJobMaster::SplitRequested { .. } => {}
        }
    }

    fn follow(&mut self, follow: FollowRun) {
        let Some(follow) = self.put_off(follow, Question::Follow) else { return };
        if self.submitting.contains_key(&follow.job) {
            self.late.push(Question::Follow(follow));
            return;
        }
        let FollowRun { job, client } = follow;
        if let Some(run) = self.run_of(&job) {
            run.join(client);
            return;
        }
        let archive = self.archive.clone();
        let wanted = job.clone();
        let work = move |store: &mut dyn EventStore| store_work::ended(store, &archive, &wanted);
        ask(&*self.config.store, work, move |result| {
            client.do_send(match result.unwrap_or_else(|reason| Err(unread(&job, reason))) {
                Ok(Some(outcome)) => {
                    ClientUpdate::Ended { outcome: Box::new(outcome), joined: true }
                }
                Ok(None) => ClientUpdate::Refused(SubmitError::NoSuchJob { job }),
                Err(error) => ClientUpdate::Refused(error),
            });
            client.do_send(ClientUpdate::Closed);
        });
    }

    fn list(&mut self, list: ListJobs) {
        let Some(ListJobs { listener }) = self.put_off(list, Question::List) else { return };
        let live: Vec<JobSummary> = self.runs.values().map(Run::summary).collect();
        let archive = self.archive.clone();
        let work = move || {
            let known = |job: &JobId| live.iter().any(|summary| summary.job == *job);
            let ended = archive.jobs().unwrap_or_default().into_iter().filter(|job| !known(job));
            let archived = ended.filter_map(|job| archive.read(&job).ok().flatten());
            archived.map(JobSummary::ended).chain(live.iter().cloned()).collect::<Vec<_>>()
        };
        self.config.effects.run("regrow-list", work, move |jobs| {
            listener.do_send(JobsListed(jobs.unwrap_or_default()));
        });
    }

    /// Answers what waited for a submission to be decided.
    pub(super) fn answer_late(&mut self, ctx: &mut Context<Self>) {
        for question in std::mem::take(&mut self.late) {
            self.answer(question, ctx);
        }
    }

    fn answer(&mut self, question: Question, ctx: &mut Context<Self>) {
        match question {
            Question::Submit(submit) => self.submit(*submit, ctx),
            Question::Follow(follow) => self.follow(follow),
            Question::List(list) => self.list(list),
            Question::Inventory(post) => self.take_report(*post),
        }
    }

    /// Leads a run that an earlier process accepted.
    fn recover(&mut self, submission: JobSubmission, ctx: &mut Context<Self>) {
        let settings = submission.settings.iter().map(|(key, value)| (&**key, &**value));
        let options = Options::from_settings(settings).unwrap_or_else(|error| {
            // Of a later version, perhaps: its defaults lose nothing.
            error!(job = %submission.job, error = %with_causes(&error), "settings are ignored");
            Options::default()
        });
        let client = Nobody.start().recipient();
        let (kills, cancel, kill) = (Vec::new(), false, None);
        self.admit(SubmitJob { submission, options, kills, client, cancel, kill }, ctx);
    }
}

fn unread(job: &JobId, reason: String) -> SubmitError {
    SubmitError::Document { job: job.clone(), reason }
}

impl Handler<RecoverAll> for Dispatcher {
    type Result = ();

    fn handle(&mut self, _: RecoverAll, ctx: &mut Self::Context) {
        self.put_off.get_or_insert_with(Vec::new);
        let this = ctx.address();
        ask(&*self.config.store, store_work::inherit, move |result| {
            this.do_send(AllFound(
                result.and_then(|found| found.map_err(|error| with_causes(&error))),
            ));
        });
    }
}

impl Handler<AllFound> for Dispatcher {
    type Result = ();

    fn handle(&mut self, AllFound(result): AllFound, ctx: &mut Self::Context) {
        let Inherited { term, jobs, ended } = match result {
            Ok(found) => found,
            Err(reason) => {
                error!(%reason, "cannot read which jobs were accepted; trying again");
                ctx.run_later(RECOVER_ALL_PAUSE, |_, ctx| ctx.notify(RecoverAll));
                return;
            }
        };
        info!(term, jobs = jobs.len(), "this process leads");
        self.term = Some(term);
        // A job that has a result and is not cleaned up is among the jobs.
        let open = |run: &RunId| jobs.iter().any(|job| job.run == *run);
        for run in ended.into_iter().filter(|run| !open(run)) {
            self.ended.add(run);
        }
        for submission in jobs {
            self.recover(submission, ctx);
        }
        for question in self.put_off.take().unwrap_or_default() {
            self.answer(question, ctx);
        }
    }
}

impl Handler<FollowRun> for Dispatcher {
    type Result = ();

    fn handle(&mut self, follow: FollowRun, _: &mut Self::Context) {
        self.follow(follow);
    }
}

impl Handler<ListJobs> for Dispatcher {
    type Result = ();

    fn handle(&mut self, list: ListJobs, _: &mut Self::Context) {
        self.list(list);
    }
}

impl Handler<HandOver> for Dispatcher {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: HandOver, _: &mut Self::Context) -> Self::Result {
        info!(jobs = self.runs.len(), "this process hands over");
        // Who asks from now on asks the next leader again.
        self.put_off.get_or_insert_with(Vec::new);
        let (part, end) = hand_over();
        for run in self.runs.values() {
            if let Life::Led(master) = &run.life {
                master.do_send(HandOverLife(part.clone()));
            }
        }
        drop(part);
        Box::pin(async move {
            if !end.wait().await {
                warn!("what is under way takes too long; the next leader goes on without it");
            }
        })
    }
}

impl Handler<WorkerReplaced> for Dispatcher {
    type Result = ();

    fn handle(&mut self, replaced: WorkerReplaced, _: &mut Self::Context) {
        self.workers.remove(&replaced.worker);
        self.config.resource_manager.do_send(Terminated(replaced.worker));
        for run in self.runs.values() {
            if let Life::Led(master) = &run.life {
                master.do_send(replaced);
            }
        }
    }
}

impl Handler<WorkerDisconnected> for Dispatcher {
    type Result = ();

    fn handle(&mut self, disconnected: WorkerDisconnected, _: &mut Self::Context) {
        for run in self.runs.values() {
            if let Life::Led(master) = &run.life {
                master.do_send(disconnected);
            }
        }
    }
}
