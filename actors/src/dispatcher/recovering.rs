//! How a Dispatcher that comes to lead takes over the jobs of those before it.

use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use regrow_protocol::{JobId, RunId};
use regrow_runtime::{JobSubmission, Options, with_causes};
use regrow_store::{EventStore, StoreError};
use tracing::{error, info, warn};

use super::{
    ClientUpdate, Dispatcher, SubmitError, SubmitJob,
    store_work::{self, Inherited},
};
use crate::store_runner::ask;

/// How long a store that could not be read is left alone.
const PAUSE: Duration = Duration::from_secs(1);

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
    /// Leads a run that an earlier process accepted.
    fn recover(&mut self, submission: JobSubmission, ctx: &mut Context<Self>) {
        let settings = submission.settings.iter().map(|(key, value)| (&**key, &**value));
        let options = Options::from_settings(settings).unwrap_or_else(|error| {
            // Of a later version, perhaps: its defaults lose nothing.
            error!(job = %submission.job, error = %with_causes(&error), "settings are ignored");
            Options::default()
        });
        self.recovering.insert(submission.job.clone());
        let client = Nobody.start().recipient();
        self.admit(SubmitJob::new(submission, options, client), ctx);
    }

    /// The store could not say what becomes of a run that an earlier process accepted: it is asked
    /// again, or the job waits for a person. No other job waits for it.
    pub(super) fn not_recovered(
        &mut self,
        submit: SubmitJob,
        error: &SubmitError,
        ctx: &mut Context<Self>,
    ) {
        let (job, cause) = (submit.submission.job.clone(), with_causes(error));
        if is_sick(error) {
            warn!(%job, %cause, "a job cannot be recovered yet; trying again");
            // Who asks about it waits, as for any that is being submitted.
            self.submitting.insert(job.clone(), submit);
            ctx.run_later(PAUSE, move |dispatcher, ctx| dispatcher.recover_again(&job, ctx));
            return;
        }
        self.recovering.remove(&job);
        self.leave_unrecovered(job, cause);
    }

    fn recover_again(&mut self, job: &JobId, ctx: &mut Context<Self>) {
        if let Some(submit) = self.submitting.remove(job) {
            self.admit(submit, ctx);
        }
    }

    /// Notes a job that cannot be led, so that who asks about it hears why.
    pub(super) fn leave_unrecovered(&mut self, job: JobId, cause: String) {
        error!(%job, %cause, "a job cannot be recovered");
        self.unrecovered.insert(job, cause);
    }
}

/// Whether the store may do tomorrow what it refused today.
fn is_sick(error: &SubmitError) -> bool {
    match error {
        SubmitError::Store(StoreError::Io { .. } | StoreError::Poisoned { .. }) => true,
        SubmitError::Store(
            StoreError::InUse { .. }
            | StoreError::Fenced { .. }
            | StoreError::Withdrawn { .. }
            | StoreError::Damaged { .. }
            | StoreError::Format { .. }
            | StoreError::Invalid { .. },
        )
        | SubmitError::OtherJob { .. }
        | SubmitError::NoSuchJob { .. }
        | SubmitError::Unrecovered { .. }
        | SubmitError::Busy { .. }
        | SubmitError::AnotherRun { .. }
        | SubmitError::Document { .. }
        | SubmitError::Output(_)
        | SubmitError::Directory(_) => false,
    }
}

impl Handler<RecoverAll> for Dispatcher {
    type Result = ();

    fn handle(&mut self, _: RecoverAll, ctx: &mut Self::Context) {
        self.put_off.get_or_insert_default();
        let (this, archive) = (ctx.address(), self.archive.clone());
        let work = move |store: &mut dyn EventStore| store_work::inherit(store, &archive);
        ask(&*self.config.store, work, move |result| {
            this.do_send(AllFound(
                result.and_then(|found| found.map_err(|error| with_causes(&error))),
            ));
        });
    }
}

impl Handler<AllFound> for Dispatcher {
    type Result = ();

    fn handle(&mut self, AllFound(result): AllFound, ctx: &mut Self::Context) {
        let Inherited { term, jobs, unreadable, ended } = match result {
            Ok(found) => found,
            Err(reason) => {
                error!(%reason, "cannot read which jobs were accepted; trying again");
                ctx.run_later(PAUSE, |_, ctx| ctx.notify(RecoverAll));
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
        for (job, cause) in unreadable {
            self.leave_unrecovered(job, cause);
        }
        for submission in jobs {
            self.recover(submission, ctx);
        }
        for question in self.put_off.take().unwrap_or_default().into_questions() {
            self.answer(question, ctx);
        }
    }
}

#[cfg(test)]
mod tests;
