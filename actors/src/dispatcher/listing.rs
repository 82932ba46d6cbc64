//! How jobs stand, for clients.

use actix::{Context, Handler, Message, Recipient};
use regrow_protocol::{JobId, RunId};
use regrow_runtime::JobState;

use super::{Dispatcher, questions::Question, run::Run};
use crate::cluster::{JobSummary, JobsListed};

/// Tell how jobs stand.
pub(crate) struct ListJobs {
    /// Only of this one.
    pub(crate) wanted: Option<JobId>,
    pub(crate) listener: Recipient<JobsListed>,
}

impl Message for ListJobs {
    type Result = ();
}

impl Dispatcher {
    pub(super) fn list(&mut self, list: ListJobs) {
        let Some(list) = self.put_off(list, Question::List) else { return };
        // Their runs are not known yet, and they must not seem to be gone.
        if !self.recovering.is_empty() {
            self.late.add(Question::List(list));
            return;
        }
        let ListJobs { wanted, listener } = list;
        let is_wanted = |job: &JobId| wanted.as_ref().is_none_or(|wanted| wanted == job);
        let led = self.runs.values().map(Run::summary);
        let waiting = self.unrecovered.iter().map(|(job, cause)| unrecovered(job, cause));
        let live: Vec<JobSummary> =
            waiting.chain(led).filter(|summary| is_wanted(&summary.job)).collect();
        let archive = self.archive.clone();
        let work = move || {
            let known = |job: &JobId| live.iter().any(|summary| summary.job == *job);
            let mut ended = match wanted {
                Some(job) => vec![job],
                None => archive.jobs().unwrap_or_default(),
            };
            ended.retain(|job| !known(job));
            // The newest is first in the archive, and last for people.
            let archived = ended.iter().rev().filter_map(|job| {
                let ended = archive.read(job).ok().flatten()?;
                Some(JobSummary::ended(ended, archive.age(job)))
            });
            archived.chain(live.iter().cloned()).collect::<Vec<_>>()
        };
        self.config.effects.run("regrow-list", work, move |jobs| {
            listener.do_send(JobsListed(Ok(jobs.unwrap_or_default())));
        });
    }
}

/// A job that was accepted, and cannot be led here.
fn unrecovered(job: &JobId, cause: &str) -> JobSummary {
    JobSummary {
        job: job.clone(),
        run: RunId::from_bits(0),
        job_name: String::new(),
        state: JobState::Reconciling,
        waiting_for: Some(format!("somebody who mends what is stored of it: {cause}")),
        degraded: None,
        recoveries: 0,
        error: None,
        refused_commands: 0,
        ended_ago_ms: None,
        vertices: Vec::new(),
    }
}

impl Handler<ListJobs> for Dispatcher {
    type Result = ();

    fn handle(&mut self, list: ListJobs, _: &mut Context<Self>) {
        self.list(list);
    }
}
