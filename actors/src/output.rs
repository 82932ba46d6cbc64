//! Publishes the files of a job's sinks, once.
//!
//! Layout of an output directory while a run writes to it:
//! ```text
//! OUT/part-00000.csv ...          published files, and nothing else of ours after the end
//! OUT/.regrow-<run id>/owner      which job and run stage here, where the manifest will be
//! OUT/.regrow-<run id>/...        staged files; their names are chosen by the tasks
//! OUT/.regrow-<run id>/manifest   (first sink only) what is to be published, once it is decided
//! ```
//! Invariants:
//! - The manifest is written once, atomically, and whoever finds one follows it: it is the point
//!   from which the output is published, whatever happens.
//! - Each step may be the last before a crash; doing all of them again ends in the same listing.
//! - No file is replaced or removed but those that the manifest lists, and only as it lists them.

mod disk;
mod error;
mod hidden_directories;
mod leftovers;
mod listing;
mod manifest;
mod prepare;
mod probe;
mod publish;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use regrow_protocol::{ExecutionAttemptId, JobId, RunId};
use regrow_runtime::{CommitPlan, JobState, OutputPreparation, SinkSpec};

use self::{disk::Disk, manifest::Owner};
pub(crate) use self::{
    error::OutputError,
    hidden_directories::{HiddenDirectory, hidden_directory_of},
    leftovers::{highest_staged, is_publishing, remove_staging, staging_directories},
    prepare::check_place,
    probe::check_seen,
};

/// Publishes the files of one run. Its calls block on the disk: use it on a thread of its own.
///
/// Clones exclude each other, so a thread that an ended life left behind cannot interfere with the
/// life after it.
#[derive(Clone, Debug)]
pub(crate) struct OutputCommitter {
    job: JobId,
    disk: Disk,
    one_at_a_time: Arc<Mutex<()>>,
}

impl OutputCommitter {
    /// Publishes in the name of `job`.
    pub(crate) fn new(job: JobId) -> Self {
        Self { job, disk: Disk::default(), one_at_a_time: Arc::default() }
    }

    /// Makes the hidden directories; gives them, one per sink. Doing it again changes nothing.
    ///
    /// # Errors
    /// When an output directory cannot be used: nothing of anybody was harmed, the job fails.
    pub(crate) fn prepare(
        &self,
        preparation: &OutputPreparation,
    ) -> Result<Vec<String>, OutputError> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        prepare::prepare(&self.disk, &self.job, preparation)
    }

    /// Why a new job may not write to `sinks`, as far as that can be told without changing anything.
    ///
    /// # Errors
    /// When a directory holds something, or another run writes there.
    pub(crate) fn check_free(sinks: &[SinkSpec]) -> Result<(), OutputError> {
        sinks.iter().try_for_each(prepare::check_free_for_new)
    }

    /// The attempts whose staged files are missing or differ from their records, ascending. Looks
    /// at lengths, and at contents too when the host restarted since the files were staged.
    pub(crate) fn lost_staged_files(&self, plan: &CommitPlan) -> Vec<ExecutionAttemptId> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        publish::lost_staged_files(plan)
    }

    /// Publishes the winners of `plan`, or what an earlier call decided to publish.
    ///
    /// # Errors
    /// When a file is in the way or gone, or the disk refuses: the file is named.
    pub(crate) fn commit(&self, plan: &CommitPlan) -> Result<(), OutputError> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        publish::commit(&self.disk, &self.job, plan)
    }

    /// What the manifest of `run` says is to be published: the plan of a commit that had begun, also
    /// when the log does not say so (rules 5.12 and 6.2). None if there is no manifest; one that
    /// cannot be read is found by [`commit`](Self::commit), which says why.
    pub(crate) fn decided(&self, run: RunId, sinks: &[SinkSpec]) -> Option<CommitPlan> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        leftovers::decided(run, sinks)
    }

    /// Removes what `run` staged, and the output directories that it made and left empty unless it
    /// finished; published files stay. For runs that ended, `state` says how.
    ///
    /// # Errors
    /// When a hidden directory cannot be removed; call it again.
    pub(crate) fn clean_up(
        &self,
        run: RunId,
        sinks: &[SinkSpec],
        state: JobState,
    ) -> Result<(), OutputError> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        // The first sink's directory holds the manifest: it goes last, so that the others never
        // look like leftovers of a run that published nothing.
        for sink in sinks.iter().rev() {
            let hidden = hidden_directory(sink, run);
            let made = Owner::read(&hidden).ok().flatten().and_then(|owner| owner.made);
            self.disk.remove_directory(&hidden)?;
            // A job that finished has an output, also one without files.
            if let Some(topmost) = made.filter(|_| state != JobState::Finished) {
                self.disk.remove_empty(Path::new(&sink.directory), &topmost);
            }
        }
        Ok(())
    }
}

/// Prefix of all hidden directories.
const HIDDEN_PREFIX: &str = ".regrow-";

fn hidden_directory(sink: &SinkSpec, run: RunId) -> PathBuf {
    hidden_directory_of(Path::new(&sink.directory), run)
}
