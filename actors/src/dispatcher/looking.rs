//! What is recorded of a job, for clients that look into it.

use std::path::Path;

use actix::{Context, Handler, Message, Recipient};
use regrow_protocol::{JobId, RunId};
use regrow_runtime::with_causes;
use regrow_store::EventStore;

use super::{Dispatcher, SubmitError, questions::Question};
use crate::{
    archive::{Archive, ArchiveError},
    cluster::{EventPage, ReportPage, ReportPlace},
    recovery_reports,
    store_runner::ask,
};

/// Show a page of what is recorded of a job.
pub(crate) struct LookAt {
    pub(crate) job: JobId,
    pub(crate) what: Looking,
    pub(crate) listener: Recipient<Looked>,
}

impl Message for LookAt {
    type Result = ();
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looking {
    /// Its events from this number on.
    Events(u64),
    /// The reports of its recoveries from here on.
    Reports(ReportPlace),
}

/// A page, or why there is none.
pub(crate) struct Looked(pub(crate) Result<Page, SubmitError>);

impl Message for Looked {
    type Result = ();
}

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    Events(EventPage),
    Reports(ReportPage),
}

impl Dispatcher {
    pub(super) fn look_at(&mut self, look: LookAt) {
        let Some(look) = self.put_off(look, Question::Look) else { return };
        if self.submitting.contains_key(&look.job) {
            self.late.add(Question::Look(look));
            return;
        }
        let LookAt { job, what, listener } = look;
        let run = self.run_of(&job).map(|run| run.submission.run);
        let (archive, reports, name) =
            (self.archive.clone(), self.places(&job).reports, job.clone());
        let answer = move |result: Result<Result<Page, SubmitError>, String>| {
            let failed = |reason| Err(SubmitError::Document { job, reason });
            listener.do_send(Looked(result.unwrap_or_else(failed)));
        };
        match (run, what) {
            (Some(run), Looking::Events(from)) => {
                let work = move |store: &mut dyn EventStore| match live_events(store, run, from)? {
                    page if page.batches.is_empty() => {
                        Ok(ended(&archive, &name, run, what).unwrap_or(Page::Events(page)))
                    }
                    page => Ok(Page::Events(page)),
                };
                ask(&*self.config.store, work, answer);
            }
            (Some(run), Looking::Reports(from)) => {
                let work = move || {
                    let live = live_reports(&reports, &name, from);
                    ended(&archive, &name, run, what).map_or(live, Ok)
                };
                self.config.effects.run("regrow-look", work, answer);
            }
            (None, _) => {
                let work = move || archived(&archive, &name, what);
                self.config.effects.run("regrow-look", work, answer);
            }
        }
    }
}

/// A page of `run`, if it is archived. The run may end, and what is live of it be removed, while that
/// is read; it is archived before.
fn ended(archive: &Archive, job: &JobId, run: RunId, what: Looking) -> Option<Page> {
    let is_there = archive.read(job).ok()?.is_some_and(|ended| ended.outcome.run == run);
    if is_there { archived(archive, job, what).ok() } else { None }
}

fn live_events(
    store: &mut dyn EventStore,
    run: RunId,
    from: u64,
) -> Result<EventPage, SubmitError> {
    let log = store.read_log(run)?;
    let damage = log.damage.map(|damage| damage.to_string());
    let batches = log.batches.into_iter().map(|batch| batch.bytes).collect();
    Ok(EventPage::of(batches, damage, from))
}

fn live_reports(reports: &Path, job: &JobId, from: ReportPlace) -> Result<Page, SubmitError> {
    let reports = recovery_reports::read_all(reports).map_err(|error| SubmitError::Document {
        job: job.clone(),
        reason: format!("cannot read the reports in {}: {error}", reports.display()),
    })?;
    Ok(Page::Reports(ReportPage::of(reports, from)))
}

fn archived(archive: &Archive, job: &JobId, what: Looking) -> Result<Page, SubmitError> {
    let unread = |error: ArchiveError| SubmitError::Document {
        job: job.clone(),
        reason: with_causes(&error),
    };
    let page = match what {
        Looking::Events(from) => archive
            .read_batches(job)
            .map_err(unread)?
            .map(|batches| Page::Events(EventPage::of(batches, None, from))),
        Looking::Reports(from) => archive
            .read(job)
            .map_err(unread)?
            .map(|ended| Page::Reports(ReportPage::of(ended.reports, from))),
    };
    page.ok_or_else(|| SubmitError::NoSuchJob { job: job.clone() })
}

impl Handler<LookAt> for Dispatcher {
    type Result = ();

    fn handle(&mut self, look: LookAt, _: &mut Context<Self>) {
        self.look_at(look);
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Accumulators, Epoch};
    use regrow_runtime::{JobOutcome, JobState, RecoveryPhases, RecoveryReport};

    use super::*;
    use crate::archive::ArchivedJob;

    #[test]
    fn a_run_that_ends_while_it_is_looked_at_is_shown_from_the_archive() {
        let root = tempfile::tempdir().unwrap();
        let (archive, job, run) =
            (Archive::new(root.path()), JobId::from_bits(1), RunId::from_bits(2));
        let what = Looking::Reports(ReportPlace::default());
        assert!(ended(&archive, &job, run, what).is_none(), "it runs");
        let report = RecoveryReport {
            epoch: Epoch::new(2, 0),
            previous_end: "its process ended".to_owned(),
            lines: Vec::new(),
            log_damage: None,
            phases: RecoveryPhases::default(),
        };
        let outcome = JobOutcome {
            job: job.clone(),
            run,
            state: JobState::Finished,
            recoveries: 1,
            error: None,
            accumulators: Accumulators::default(),
        };
        let archived = ArchivedJob {
            outcome,
            job_name: "sort".to_owned(),
            arguments: Vec::new(),
            submission: None,
            reports: vec![report.clone()],
        };
        archive.write(&archived, &[]).unwrap();
        let Some(Page::Reports(page)) = ended(&archive, &job, run, what) else {
            panic!("it is archived")
        };
        assert_eq!(page.reports, [report]);
        assert!(ended(&archive, &job, RunId::from_bits(3), what).is_none(), "of an older run");
    }
}
