//! The file system work of a `ShuffleService`, one job after the other.

use std::{collections::VecDeque, io, sync::Arc, thread};

use actix::Recipient;
use crossbeam_channel::{Sender, unbounded};
use regrow_protocol::{Envelope, Epoch, ExecutionAttemptId, RunId, ToJobMaster, WorkerId};
use regrow_runtime::with_causes;
use regrow_shuffle::{DataDirectory, DiskError};
use tracing::{debug, warn};

use super::{ReportFailed, RunsSeen};
use crate::gateway::{MasterGateway, Post};

/// Releases that are kept to be tried again; what is beyond waits for the retention time-out of the
/// next life of the directory.
const POSTPONED_MAX: usize = 1_024;

/// Where a `ShuffleService` reads and removes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileThread {
    /// On a thread of its own, for life: removing a thousand files takes longer than an actor may.
    Own,
    /// On the actor's thread: for simulation.
    Inline,
}

/// Something to do with files.
#[derive(Clone, Debug)]
pub(super) enum FileJob {
    /// Report all partitions of a run to its master.
    Report {
        /// Which run.
        run: RunId,
        /// The epoch to report in.
        epoch: Epoch,
        /// Who is told that it cannot be done now.
        failed: Recipient<ReportFailed>,
    },
    /// Keep the highest term that was seen; until that is done, nothing is reported.
    KeepTerm {
        /// The term.
        term: u64,
    },
    /// Remove what dead writers left unsealed, and tell which runs are there.
    Look {
        /// Who is told.
        seen: Recipient<RunsSeen>,
    },
    /// Remove outputs.
    Release {
        /// Whose.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// Remove all of a run.
    ReleaseRun {
        /// Which one.
        run: RunId,
    },
}

/// Does file jobs in the order in which they are given.
pub(super) enum FileWorker {
    /// On a thread that ends when the sender is dropped and all jobs are done. The queue holds what
    /// masters asked for and did not see answered; each bounds what it asks.
    Thread(Sender<FileJob>),
    Inline(Files),
}

/// The data directories of a worker and who hears of them.
pub(super) struct Files {
    worker: WorkerId,
    directories: Vec<Arc<DataDirectory>>,
    master: MasterGateway,
    /// Releases that failed, oldest first.
    postponed: VecDeque<FileJob>,
    /// A term that could not be kept yet.
    unkept_term: Option<u64>,
    /// Why the last look failed; told when it changes, since looks come each second.
    blind: Option<String>,
}

impl FileWorker {
    pub(super) fn start(
        worker: WorkerId,
        directories: Vec<Arc<DataDirectory>>,
        master: MasterGateway,
        thread: FileThread,
    ) -> io::Result<Self> {
        let (postponed, unkept_term, blind) = (VecDeque::new(), None, None);
        let mut files = Files { worker, directories, master, postponed, unkept_term, blind };
        match thread {
            FileThread::Inline => Ok(Self::Inline(files)),
            FileThread::Own => {
                let (sender, jobs) = unbounded();
                let work = move || jobs.iter().for_each(|job| files.perform(job));
                thread::Builder::new().name("shuffle-files".to_owned()).spawn(work)?;
                Ok(Self::Thread(sender))
            }
        }
    }

    pub(super) fn give(&mut self, job: FileJob) {
        match self {
            Self::Inline(files) => files.perform(job),
            Self::Thread(sender) => {
                if sender.send(job).is_err() {
                    warn!("the thread for partition files is gone");
                }
            }
        }
    }
}

impl Files {
    fn perform(&mut self, job: FileJob) {
        while let Some(postponed) = self.postponed.pop_front() {
            if let Err(error) = self.attempt(&postponed) {
                self.postponed.push_front(postponed);
                debug!(worker = %self.worker, error = with_causes(&error), "still postponed");
                break;
            }
        }
        if let FileJob::KeepTerm { term } = &job {
            self.unkept_term = Some(*term);
        }
        if let Err(error) = self.keep_term() {
            let error = with_causes(&error);
            warn!(worker = %self.worker, error, "a term cannot be kept; nothing is reported");
        }
        let done = self.attempt(&job);
        if let FileJob::Report { run, failed, .. } = &job
            && (done.is_err() || self.unkept_term.is_some())
        {
            failed.do_send(ReportFailed(*run));
        }
        if matches!(job, FileJob::Look { .. }) {
            self.tell_of_look(done);
            return;
        }
        let Err(error) = done else { return };
        warn!(worker = %self.worker, error = with_causes(&error), ?job, "postponed");
        match job {
            // It is asked for again: a report when it failed, a term with the next job.
            FileJob::Report { .. } | FileJob::KeepTerm { .. } | FileJob::Look { .. } => {}
            FileJob::Release { .. } | FileJob::ReleaseRun { .. } => self.postpone(job),
        }
    }

    fn tell_of_look(&mut self, looked: Result<(), DiskError>) {
        let blind = looked.err().map(|error| with_causes(&error));
        if let Some(error) = blind.as_ref().filter(|_| self.blind != blind) {
            warn!(
                worker = %self.worker,
                error,
                "the data directory cannot be looked through; if it is gone, end this process and \
                 start it on one that is there"
            );
        }
        self.blind = blind;
    }

    fn keep_term(&mut self) -> Result<(), DiskError> {
        let Some(term) = self.unkept_term else { return Ok(()) };
        for directory in self.directories.iter().filter(|it| it.is_of_a_service()) {
            directory.keep_term(term)?;
        }
        self.unkept_term = None;
        Ok(())
    }

    fn postpone(&mut self, job: FileJob) {
        if self.postponed.len() >= POSTPONED_MAX {
            self.postponed.pop_front();
        }
        self.postponed.push_back(job);
    }

    /// Does the job in all directories; the last error counts.
    fn attempt(&self, job: &FileJob) -> Result<(), DiskError> {
        match job {
            FileJob::Report { run, epoch, .. } => self.in_each(|it| self.report(it, *run, *epoch)),
            FileJob::Release { attempts } => self.in_each(|it| it.release(attempts)),
            FileJob::ReleaseRun { run } => self.in_each(|it| it.release_run(*run)),
            FileJob::Look { seen } => {
                let mut runs = Vec::new();
                let looked = self.in_each(|it| {
                    runs.extend(it.runs()?);
                    it.remove_dead_writers().map(drop)
                });
                seen.do_send(RunsSeen(runs));
                looked
            }
            FileJob::KeepTerm { .. } => Ok(()),
        }
    }

    fn in_each(
        &self,
        mut job: impl FnMut(&DataDirectory) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let mut result = Ok(());
        for directory in &self.directories {
            result = job(directory).and(result);
        }
        result
    }

    fn report(&self, directory: &DataDirectory, run: RunId, epoch: Epoch) -> Result<(), DiskError> {
        // A mere writer leaves that to the service, and one that has not kept the term of who asks
        // must not answer: its next life would obey an older one.
        if !directory.is_kept_here() || self.unkept_term.is_some() {
            return Ok(());
        }
        let inventory = directory.inventory(run)?;
        for damage in inventory.damaged {
            let path = damage.path.display();
            warn!(worker = %self.worker, %run, %path, reason = damage.reason, "damaged partition");
        }
        let message = ToJobMaster::AllPartitionsWithMetrics {
            worker: self.worker,
            data_directory: directory.id(),
            finished: inventory.finished,
        };
        self.master.do_send(Post(Envelope { run, epoch, message }));
        Ok(())
    }
}
