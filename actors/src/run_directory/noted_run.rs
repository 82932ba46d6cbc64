//! What a process knows of a run from its directory, whatever has become of its store.

use std::path::PathBuf;

use regrow_protocol::{Epoch, JobId, RunId};
use regrow_runtime::JobSubmission;
use regrow_shuffle::RunRemains;

use super::{
    RunDirectory,
    run_file::{RunFile, RunIdentity},
};
use crate::{
    launch::LaunchError,
    output::{highest_staged, is_publishing, staging_directories},
};

/// Terms above this one come from names that nobody gave: an epoch must fit into one number.
const TERM_MAX: u64 = u64::MAX / Epoch::LIVES_PER_TERM / 2;

/// The run that a directory is for. Its file stays above all terms that were claimed for it, so that
/// a new store never gives one out again (rule 1.2).
#[derive(Clone, Debug)]
pub(crate) struct NotedRun {
    directory: PathBuf,
    shuffle: PathBuf,
    file: RunFile,
    /// No term above it was claimed, as far as the directory says.
    claimed: u64,
    /// What is known to be lost of the store, for people.
    lacks: Vec<String>,
}

/// What lies of a run outside its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// Whether it had begun to do anything.
    pub(crate) any: bool,
    /// How many finish records there may be.
    pub(crate) finish_records: usize,
    /// Whether it was publishing its output.
    pub(crate) publishing: bool,
    /// The highest term that names and finish records show.
    pub(crate) term: u64,
}

impl NotedRun {
    /// What `file`, which stands in `directory` or is to, says of the run; in it no term above
    /// `claimed` was claimed.
    pub(super) fn new(directory: &RunDirectory, file: RunFile, claimed: u64) -> Self {
        let (shuffle, directory) = (directory.shuffle(), directory.path.clone());
        Self { directory, shuffle, file, claimed, lacks: Vec::new() }
    }

    /// Which run it is; none if an older program noted it.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.file.identity().map(|identity| identity.run)
    }

    /// Of which job it is.
    pub(crate) fn job(&self) -> &JobId {
        self.file.job()
    }

    /// Notes that something is lost of the store.
    pub(crate) fn lacks(&mut self, what: String) {
        self.lacks.push(what);
    }

    /// What is lost of the store.
    pub(crate) fn lacked(&self) -> &[String] {
        &self.lacks
    }

    /// The run as it was accepted, with the graph of `submission`, which must be of the same job.
    pub(crate) fn accepted(&self, submission: &JobSubmission) -> Option<JobSubmission> {
        let RunIdentity { run, submission: accepted, .. } = self.file.identity()?.clone();
        let noted = self.file.clone().into_run();
        Some(JobSubmission {
            job: noted.job,
            run,
            submission: accepted,
            job_name: noted.job_name,
            arguments: noted.arguments,
            graph: submission.graph.clone(),
            ledger: noted.ledger.map(|path| path.to_string_lossy().into_owned()),
            settings: noted.settings,
        })
    }

    /// The highest term that was claimed for the run, as far as its file and, where the store is
    /// lost, names and finish records tell.
    ///
    /// # Errors
    /// When something is there that cannot be read.
    pub(crate) fn term(&self) -> Result<u64, LaunchError> {
        if self.lacks.is_empty() {
            return Ok(self.claimed);
        }
        Ok(self.claimed.max(self.remains()?.term))
    }

    /// What lies of the run outside its store.
    ///
    /// # Errors
    /// When something is there that cannot be read.
    pub(crate) fn remains(&self) -> Result<Remains, LaunchError> {
        let Some(identity) = self.file.identity() else { return Ok(Remains::default()) };
        let stored = RunRemains::look(&self.shuffle, identity.run)
            .map_err(|error| LaunchError::Workers(error.into()))?;
        let staged = highest_staged(&identity.staging);
        let highest = stored.highest.max(staged.unwrap_or_default());
        Ok(Remains {
            any: stored.any || staged.is_some(),
            finish_records: stored.finish_records,
            publishing: is_publishing(&identity.staging),
            term: highest.term.min(TERM_MAX),
        })
    }

    /// Notes the run, durable.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write(&self) -> Result<(), LaunchError> {
        self.file.write(&self.directory)
    }

    /// Notes, durable, that the directory is for the run of `submission`, which is led in `term`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn adopt(
        &mut self,
        submission: &JobSubmission,
        term: u64,
    ) -> Result<(), LaunchError> {
        let noted = self.file.identity().map_or(0, |identity| identity.term);
        let file = self.file.with(identity(submission, term.max(noted)));
        if file != self.file {
            file.write(&self.directory)?;
            self.file = file;
        }
        self.claimed = self.claimed.max(term);
        Ok(())
    }
}

/// What is noted of a run that is led in `term`.
pub(super) fn identity(submission: &JobSubmission, term: u64) -> RunIdentity {
    RunIdentity {
        run: submission.run,
        submission: submission.submission,
        graph_hash: submission.graph.hash(),
        staging: staging_directories(submission.run, &submission.graph.sinks),
        term,
    }
}
