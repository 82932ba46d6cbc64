//! What a cluster asks of a Dispatcher: to let clients submit, follow and cancel jobs, and to hand
//! over.

use actix::{AsyncContext, Context, Handler, Message, Recipient, ResponseFuture};
use regrow_protocol::{JobId, RunId, ToJobMaster, WorkerId};
use regrow_runtime::JobOutcome;
use regrow_store::EventStore;
use tracing::{info, warn};

use super::{
    CancelRun, ClientUpdate, Dispatcher, SubmitError, SubmitJob,
    admission::{self, Which, check_same},
    questions::Question,
    run::{Life, Run},
};
use crate::{
    cluster::{WorkerDisconnected, WorkerLeaving},
    gateway::{Post, WorkerReplaced},
    hand_over::hand_over,
    job_master::{CancelJob, HandOverLife},
    store_runner::ask,
    watch::Terminated,
};

/// Tell a client how the run of a job goes on, until it ends.
pub(crate) struct FollowRun {
    pub(crate) job: JobId,
    /// Only this run of it.
    pub(crate) run: Option<RunId>,
    pub(crate) client: Recipient<ClientUpdate>,
}

impl Message for FollowRun {
    type Result = ();
}

/// It is known whether the run that a submission began has ended.
struct ResultSought {
    submit: SubmitJob,
    ended: Option<Box<JobOutcome>>,
}

impl Message for ResultSought {
    type Result = ();
}

/// Let go of all runs: another process is to lead them. Answered when what is under way is over, or
/// has taken too long.
pub(crate) struct HandOver;

impl Message for HandOver {
    type Result = ();
}

impl Dispatcher {
    /// Puts a question off until all jobs are known, if they are not; gives it back if they are.
    pub(super) fn put_off<Q>(
        &mut self,
        question: Q,
        wrap: impl FnOnce(Q) -> Question,
    ) -> Option<Q> {
        match &mut self.put_off {
            Some(questions) => {
                questions.add(wrap(question));
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
            self.late.add(Question::Submit(Box::new(submit)));
            return;
        }
        let id = submit.submission.submission;
        match self.run_of(&job) {
            None => self.admit(submit, ctx),
            Some(run) if run.submission.submission == id => self.join(submit),
            // Its own run may have ended before this one began (rule 1.1).
            Some(_) => self.look_for_result(submit, ctx),
        }
    }

    /// Joins the run of a job that is there.
    fn join(&mut self, submit: SubmitJob) {
        let SubmitJob { submission, client, .. } = submit;
        let Some(run) = self.run_of(&submission.job) else { return };
        let there = &run.submission;
        match check_same(&submission, &there.job_name, &there.arguments) {
            Ok(()) => run.join(client),
            Err(error) => client.do_send(ClientUpdate::Refused(error)),
        }
    }

    fn look_for_result(&self, submit: SubmitJob, ctx: &Context<Self>) {
        let (archive, this) = (self.archive.clone(), ctx.address());
        let (job, id) = (submit.submission.job.clone(), submit.submission.submission);
        let work = move |store: &mut dyn EventStore| {
            admission::ended(store, &archive, &job, Which::Of(id))
        };
        ask(&*self.config.store, work, move |result| {
            // A store that cannot tell knows of no such end.
            let ended = result.ok().and_then(Result::ok).flatten().map(Box::new);
            this.do_send(ResultSought { submit, ended });
        });
    }

    /// Passes a report on to whoever leads its run, or says how that stands.
    pub(super) fn take_report(&mut self, post: Post<ToJobMaster>) {
        if let Some(Run { life: Life::Led(master), .. }) = self.runs.get(&post.0.run) {
            master.do_send(post);
            return;
        }
        // Nobody leads the run once all jobs are known, either: whoever will asks for the rest itself.
        let Some(worker) = holder(&post.0.message) else { return };
        let wrap = |post| Question::Inventory(worker, Box::new(post));
        let Some(Post(envelope)) = self.put_off(post, wrap) else { return };
        self.answer_inventory(worker, &envelope);
    }

    /// Cancels the run of a job, if it has one.
    pub(super) fn cancel(&mut self, cancel: CancelRun) {
        let Some(CancelRun { job, client }) = self.put_off(cancel, Question::Cancel) else {
            return;
        };
        if let Some(submit) = self.submitting.get_mut(&job) {
            submit.cancel = true;
        }
        if let Some(run) = self.run_of(&job) {
            run.cancel = true;
            if let Life::Led(master) = &run.life {
                master.do_send(CancelJob);
            }
        }
        if let Some(client) = client {
            self.follow(FollowRun { job, run: None, client });
        }
    }

    fn follow(&mut self, follow: FollowRun) {
        let Some(follow) = self.put_off(follow, Question::Follow) else { return };
        if self.submitting.contains_key(&follow.job) {
            self.late.add(Question::Follow(follow));
            return;
        }
        let FollowRun { job, run: wanted, client } = follow;
        let is_wanted = |run: &&mut Run| wanted.is_none_or(|wanted| wanted == run.submission.run);
        if let Some(run) = self.run_of(&job).filter(is_wanted) {
            run.join(client);
            return;
        }
        if let Some(cause) = self.unrecovered.get(&job) {
            let cause = cause.clone();
            client.do_send(ClientUpdate::Refused(SubmitError::Unrecovered { job, cause }));
            return;
        }
        let (archive, name) = (self.archive.clone(), job.clone());
        let which = wanted.map_or(Which::Newest, Which::Run);
        let work =
            move |store: &mut dyn EventStore| admission::ended(store, &archive, &name, which);
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

    /// Answers what waited for a submission to be decided.
    pub(super) fn answer_late(&mut self, ctx: &mut Context<Self>) {
        for question in std::mem::take(&mut self.late).into_questions() {
            self.answer(question, ctx);
        }
    }

    pub(super) fn answer(&mut self, question: Question, ctx: &mut Context<Self>) {
        match question {
            Question::Submit(submit) => self.submit(*submit, ctx),
            Question::Follow(follow) => self.follow(follow),
            Question::Cancel(cancel) => self.cancel(cancel),
            Question::List(list) => self.list(list),
            Question::Look(look) => self.look_at(look, ctx),
            Question::Inventory(_, post) => self.take_report(*post),
        }
    }
}

/// The worker that says that it holds something of a run, if the message says so.
fn holder(message: &ToJobMaster) -> Option<WorkerId> {
    match message {
        ToJobMaster::Registered { worker, .. } => Some(worker.worker),
        ToJobMaster::RunHeld { worker } => Some(*worker),
        ToJobMaster::AllPartitionsWithMetrics { .. }
        | ToJobMaster::TaskFinished { .. }
        | ToJobMaster::TaskFailed { .. }
        | ToJobMaster::CommandRefused { .. }
        | ToJobMaster::SplitRequested { .. } => None,
    }
}

fn unread(job: &JobId, reason: String) -> SubmitError {
    SubmitError::Document { job: job.clone(), reason }
}

impl Handler<ResultSought> for Dispatcher {
    type Result = ();

    fn handle(&mut self, sought: ResultSought, ctx: &mut Self::Context) {
        let ResultSought { submit, ended } = sought;
        if let Some(outcome) = ended {
            submit.client.do_send(ClientUpdate::Ended { outcome, joined: true });
            submit.client.do_send(ClientUpdate::Closed);
        } else if self.run_of(&submit.submission.job).is_some() {
            self.join(submit);
        } else {
            // It ended meanwhile.
            self.submit(submit, ctx);
        }
    }
}

impl Handler<FollowRun> for Dispatcher {
    type Result = ();

    fn handle(&mut self, follow: FollowRun, _: &mut Self::Context) {
        self.follow(follow);
    }
}

impl Handler<HandOver> for Dispatcher {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: HandOver, _: &mut Self::Context) -> Self::Result {
        info!(jobs = self.runs.len(), "this process hands over");
        // Who asks from now on asks the next leader again.
        self.put_off.get_or_insert_default();
        let (part, end) = hand_over();
        self.masters().for_each(|master| master.do_send(HandOverLife(part.clone())));
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
        self.leaving.remove(&replaced.worker);
        self.config.resource_manager.do_send(Terminated(replaced.worker));
        self.masters().for_each(|master| master.do_send(replaced));
    }
}

impl Handler<WorkerLeaving> for Dispatcher {
    type Result = ();

    fn handle(&mut self, leaving: WorkerLeaving, _: &mut Self::Context) {
        let WorkerLeaving(worker) = leaving;
        info!(%worker, "a worker is about to stop");
        self.leaving.insert(worker);
        // Its slots are nobody's any more.
        self.config.resource_manager.do_send(Terminated(worker));
        self.masters().for_each(|master| master.do_send(leaving));
    }
}

impl Handler<WorkerDisconnected> for Dispatcher {
    type Result = ();

    fn handle(&mut self, disconnected: WorkerDisconnected, _: &mut Self::Context) {
        self.masters().for_each(|master| master.do_send(disconnected));
    }
}
