//! What is recorded of a job, for clients that look into it.

use std::path::Path;

use actix::{AsyncContext as _, Context, Handler, Message, Recipient};
use regrow_protocol::{JobId, RunId};
use regrow_runtime::with_causes;
use regrow_store::{EventStore, LogPart};

use super::{Dispatcher, SubmitError, questions::Question};
use crate::{
    archive::{Archive, ArchiveError},
    cluster::{EventPage, EventQuestion, PAGE_BYTES_MAX, Reading, ReportPage, ReportPlace},
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
    /// Its events.
    Events(EventQuestion),
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
    pub(super) fn look_at(&mut self, look: LookAt, ctx: &Context<Self>) {
        let Some(look) = self.put_off(look, Question::Look) else { return };
        if self.submitting.contains_key(&look.job) {
            self.late.add(Question::Look(look));
            return;
        }
        let run = self.run_of(&look.job).map(|run| run.submission.run);
        match (run, look.what) {
            (Some(run), Looking::Events(question)) if question.may_be_in_log(run) => {
                self.look_into_log(run, question, look, ctx);
            }
            (Some(run), what @ Looking::Reports(from)) => {
                let (archive, job) = (self.archive.clone(), look.job.clone());
                let reports = self.places(&job).reports;
                let work = move || {
                    let live = live_reports(&reports, &job, from);
                    ended(&archive, &job, run, what).map_or(live, Ok)
                };
                self.look_aside(work, look, ctx);
            }
            (Some(_) | None, what) => {
                let (archive, job) = (self.archive.clone(), look.job.clone());
                self.look_aside(move || archived(&archive, &job, what), look, ctx);
            }
        }
    }

    /// Has a part of a log read: the store's thread reads that much, and no more, before it goes on
    /// with what others write.
    fn look_into_log(
        &self,
        run: RunId,
        question: EventQuestion,
        look: LookAt,
        ctx: &Context<Self>,
    ) {
        let from = question.in_log();
        let work = move |store: &mut dyn EventStore| store.read_part(run, from, PAGE_BYTES_MAX);
        let this = ctx.address();
        ask(&*self.config.store, work, move |result| {
            let part = result
                .map_err(|reason| SubmitError::Document { job: look.job.clone(), reason })
                .and_then(|part| part.map_err(SubmitError::from));
            this.do_send(PartRead { run, question, look, part });
        });
    }

    /// Looks on a thread beside, then answers or looks further.
    fn look_aside(
        &self,
        work: impl FnOnce() -> Result<Found, SubmitError> + Send + 'static,
        look: LookAt,
        ctx: &Context<Self>,
    ) {
        let this = ctx.address();
        self.config.effects.run("regrow-look", work, move |result| {
            let LookAt { job, listener, .. } = look;
            let failed = |reason| Err(SubmitError::Document { job: job.clone(), reason });
            match result.unwrap_or_else(failed) {
                Ok(Found::Page(page)) => listener.do_send(Looked(Ok(page))),
                Ok(Found::Further(question)) => {
                    this.do_send(LookAt { job, what: Looking::Events(question), listener });
                }
                Err(error) => listener.do_send(Looked(Err(error))),
            }
        });
    }
}

/// A part of a log was read, or not.
struct PartRead {
    run: RunId,
    question: EventQuestion,
    look: LookAt,
    part: Result<LogPart, SubmitError>,
}

impl Message for PartRead {
    type Result = ();
}

/// What a look came to.
enum Found {
    Page(Page),
    /// The events lie further on.
    Further(EventQuestion),
}

impl From<Reading> for Found {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Page(page) => Self::Page(Page::Events(page)),
            Reading::Further(question) => Self::Further(question),
        }
    }
}

/// What is archived of `run`, if it is. The run may end, and what is live of it be removed, while that
/// is read; it is archived before.
fn ended(archive: &Archive, job: &JobId, run: RunId, what: Looking) -> Option<Found> {
    let is_there = archive.read(job).ok()?.is_some_and(|ended| ended.outcome.run == run);
    if is_there { archived(archive, job, what).ok() } else { None }
}

fn live_reports(reports: &Path, job: &JobId, from: ReportPlace) -> Result<Found, SubmitError> {
    let reports = recovery_reports::read_all(reports).map_err(|error| SubmitError::Document {
        job: job.clone(),
        reason: format!("cannot read the reports in {}: {error}", reports.display()),
    })?;
    Ok(Found::Page(Page::Reports(ReportPage::of(reports, from))))
}

fn archived(archive: &Archive, job: &JobId, what: Looking) -> Result<Found, SubmitError> {
    let unread = |error: ArchiveError| SubmitError::Document {
        job: job.clone(),
        reason: with_causes(&error),
    };
    let found = match what {
        Looking::Events(question) => {
            let part = archive.read_part(job, question.in_archive(), PAGE_BYTES_MAX);
            match (part.map_err(unread)?, question.run()) {
                (Some(part), Some(run)) if part.run != run => {
                    return Err(SubmitError::AnotherRun { job: job.clone(), run });
                }
                (part, _) => part.map(|part| Reading::of_archive(part, question).into()),
            }
        }
        Looking::Reports(from) => archive
            .read(job)
            .map_err(unread)?
            .map(|ended| Found::Page(Page::Reports(ReportPage::of(ended.reports, from)))),
    };
    found.ok_or_else(|| SubmitError::NoSuchJob { job: job.clone() })
}

impl Handler<LookAt> for Dispatcher {
    type Result = ();

    fn handle(&mut self, look: LookAt, ctx: &mut Context<Self>) {
        self.look_at(look, ctx);
    }
}

impl Handler<PartRead> for Dispatcher {
    type Result = ();

    fn handle(&mut self, read: PartRead, ctx: &mut Context<Self>) {
        let PartRead { run, question, look, part } = read;
        let (archive, job, what) = (self.archive.clone(), look.job.clone(), look.what);
        let work = move || {
            Ok(match Reading::of_log(run, part?, question) {
                // Perhaps it has ended.
                Reading::Page(page) if page.is_empty() => {
                    ended(&archive, &job, run, what).unwrap_or(Found::Page(Page::Events(page)))
                }
                reading @ (Reading::Page(_) | Reading::Further(_)) => reading.into(),
            })
        };
        self.look_aside(work, look, ctx);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use actix::Actor;
    use regrow_protocol::{Accumulators, Epoch};
    use regrow_runtime::{
        JobEvent, JobOutcome, JobState, Lsn, RecoveryPhases, RecoveryReport, decode_batch,
        encode_batch,
    };
    use regrow_store::MemoryStore;

    use super::*;
    use crate::{
        archive::ArchivedJob,
        dispatcher::tests::Cluster,
        simulated::{pass, simulate},
    };

    /// Keeps what it is shown.
    struct Listener(Arc<Mutex<Option<Looked>>>);

    impl Actor for Listener {
        type Context = Context<Self>;
    }

    impl Handler<Looked> for Listener {
        type Result = ();

        fn handle(&mut self, looked: Looked, _: &mut Self::Context) {
            *self.0.lock().unwrap() = Some(looked);
        }
    }

    impl Cluster {
        async fn look(
            &self,
            job: &JobId,
            question: EventQuestion,
        ) -> Result<EventPage, SubmitError> {
            let shown = Arc::<Mutex<_>>::default();
            let listener = Listener(Arc::clone(&shown)).start().recipient();
            let what = Looking::Events(question);
            self.dispatcher.do_send(LookAt { job: job.clone(), what, listener });
            let mut answer = None;
            while answer.is_none() {
                pass(Duration::from_millis(1)).await;
                answer = shown.lock().unwrap().take();
            }
            let Looked(shown) = answer.unwrap();
            shown.map(|page| match page {
                Page::Events(page) => page,
                Page::Reports(_) => panic!("nobody asked for reports"),
            })
        }
    }

    fn events(page: &EventPage) -> Vec<JobEvent> {
        page.batches.iter().flat_map(|batch| decode_batch(batch).unwrap().events).collect()
    }

    /// A place in the log of a run, as a page of it names it.
    fn second_page(run: RunId) -> EventQuestion {
        let (mut store, epoch) = (MemoryStore::new(), Epoch::new(1, 0));
        store.open_log(run, epoch).unwrap();
        for first in 0..2 {
            let batch = encode_batch(epoch, Lsn(first), &[JobEvent::CommitFinished]).unwrap();
            store.append(run, epoch, &batch).unwrap();
        }
        let question = EventQuestion::new(0, None);
        let part = store.read_part(run, question.in_log(), 1).unwrap();
        let Reading::Page(page) = Reading::of_log(run, part, question) else { panic!("a page") };
        EventQuestion::new(page.next.unwrap(), page.place)
    }

    #[test]
    fn events_are_shown_of_a_run_that_goes_on_then_of_its_archive_and_of_no_other_run() {
        simulate(async {
            let (cluster, all) = (Cluster::new(), EventQuestion::new(0, None));
            let watched = cluster.submit("shown", "");
            let mut live = cluster.look(&watched.job, all).await.unwrap();
            while live.batches.is_empty() {
                live = cluster.look(&watched.job, all).await.unwrap();
            }
            assert!(watched.outcome().is_none() && live.next.is_none());
            assert!(matches!(events(&live).first(), Some(JobEvent::JobSubmitted(_))));
            watched.end().await;
            let ended = events(&cluster.look(&watched.job, all).await.unwrap());
            assert_eq!(ended[..events(&live).len()], events(&live));
            assert!(matches!(ended.last(), Some(JobEvent::JobTerminated { .. })));
            let other = cluster.look(&watched.job, second_page(RunId::from_bits(77))).await;
            assert!(matches!(other, Err(SubmitError::AnotherRun { .. })), "{other:?}");
            let unknown = cluster.look(&JobId::from_bits(9), all).await;
            assert!(matches!(unknown, Err(SubmitError::NoSuchJob { .. })), "{unknown:?}");
        });
    }

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
        let Some(Found::Page(Page::Reports(page))) = ended(&archive, &job, run, what) else {
            panic!("it is archived")
        };
        assert_eq!(page.reports, [report]);
        assert!(ended(&archive, &job, RunId::from_bits(3), what).is_none(), "of an older run");
    }
}
