//! Which runs of a data directory still need an output directory that another is to use.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regrow_protocol::{JobId, RunId};
use regrow_runtime::SinkSpec;
use thiserror::Error;

use super::{
    RunFile, jobs,
    lock::{is_locked, owner},
};
use crate::{
    launch::LaunchError,
    output::{HiddenDirectory, check_place, hidden_directory_of},
};

/// Why a job that is new may not write to an output directory, whatever it may overwrite: the work
/// of another run would be lost.
#[derive(Debug, Error)]
pub enum OutputInUse {
    /// A process runs a job that writes there.
    #[error(
        "output directory {directory} is in use by job {job}, which {process} runs; wait until it \
         has ended, cancel it with Ctrl-C, or choose another directory"
    )]
    Running {
        /// The output directory.
        directory: PathBuf,
        /// The other job.
        job: JobId,
        /// Who runs it.
        process: String,
    },
    /// An interrupted run writes there once it goes on.
    #[error(
        "output directory {directory} is in use by job {job}, which was interrupted and can go on; \
         resume it with --resume --job-id {job}, or choose another directory; to give it up, with \
         all that it finished, remove {run_directory} and {hidden}"
    )]
    Interrupted {
        /// The output directory.
        directory: PathBuf,
        /// The other job.
        job: JobId,
        /// What it keeps under the data directory.
        run_directory: PathBuf,
        /// What it staged, beside the output.
        hidden: PathBuf,
    },
    /// The run that staged there is under the data directory, but what it ran cannot be read.
    #[error(
        "output directory {directory} is in use by job {job}, of which nobody can tell whether it \
         can go on; to give it up, remove {hidden}, too, or choose another directory"
    )]
    Unclear {
        /// The output directory.
        directory: PathBuf,
        /// The other job.
        job: JobId,
        /// What it staged, beside the output.
        hidden: PathBuf,
        /// What cannot be read.
        source: Box<LaunchError>,
    },
    /// A run that is not under the data directory is publishing there, or nobody can tell; or what is
    /// there is no directory, or can never be replaced.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
    /// The data directory cannot be listed.
    #[error(transparent)]
    Runs(#[from] LaunchError),
}

/// A run under the data directory that is there to stay.
struct OtherRun {
    job: JobId,
    path: PathBuf,
    is_running: bool,
    /// Which run it is and where it stages; none if an older program noted it.
    staging: Option<(RunId, Vec<PathBuf>)>,
    unreadable: Option<LaunchError>,
}

/// Refuses the new `job` if another run needs one of its output directories: one under
/// `data_directory` that runs or can be resumed, or any that has decided what to publish (rule 6.2).
/// What a run staged that is not under it, and has not decided, is in nobody's way here. Changes
/// nothing.
///
/// # Errors
/// When a directory is in use: the error names the other job and what to do.
pub fn check_output_unused(
    data_directory: &Path,
    job: &JobId,
    sinks: &[SinkSpec],
) -> Result<(), OutputInUse> {
    if sinks.is_empty() {
        return Ok(());
    }
    for sink in sinks {
        check_place(sink).map_err(|error| OutputInUse::Elsewhere(error.into()))?;
    }
    let mut others = other_runs(data_directory, job)?;
    for sink in sinks {
        let directory = Path::new(&sink.directory);
        let found = HiddenDirectory::all(directory);
        let user = others.iter().enumerate().find_map(|(index, other)| {
            other.hidden_in(directory, &found).map(|hidden| (index, hidden))
        });
        if let Some((index, hidden)) = user {
            return Err(others.swap_remove(index).refusal(directory.to_owned(), hidden));
        }
        // What an own earlier run left is judged when the job begins.
        for hidden in found.iter().filter(|hidden| hidden.job.as_ref() != Some(job)) {
            hidden.check_undecided().map_err(|error| OutputInUse::Elsewhere(error.into()))?;
        }
    }
    Ok(())
}

/// The runs of other jobs than `job` that run, can be resumed, or cannot be read.
fn other_runs(data_directory: &Path, job: &JobId) -> Result<Vec<OtherRun>, LaunchError> {
    let mut others = Vec::new();
    for (other, path) in jobs(data_directory)? {
        if other == *job {
            continue;
        }
        // Looked at first: a run that ends meanwhile must not look as if it could be resumed.
        let is_running = is_locked(&path);
        let (staging, unreadable) = match RunFile::read(&path) {
            Ok(Some(file)) if is_running || file.survives_its_process() => {
                (file.identity().map(|found| (found.run, found.staging.clone())), None)
            }
            Ok(_) => continue,
            Err(error) => (None, Some(error)),
        };
        others.push(OtherRun { job: other, path, is_running, staging, unreadable });
    }
    Ok(others)
}

impl OtherRun {
    /// The hidden directory that the run has in `directory`, where `found` lie, or will have: it is
    /// not made before the first task, nor once somebody removed it.
    fn hidden_in(&self, directory: &Path, found: &[HiddenDirectory]) -> Option<PathBuf> {
        let Some((run, staging)) = &self.staging else {
            let own = found.iter().find(|hidden| hidden.job.as_ref() == Some(&self.job));
            return own.map(|hidden| hidden.path.clone());
        };
        let is_here = |path: &&PathBuf| path.parent().is_some_and(|other| same(other, directory));
        let noted = staging.iter().find(is_here).cloned();
        let own = hidden_directory_of(directory, *run);
        noted.or_else(|| found.iter().any(|hidden| hidden.path == own).then_some(own))
    }

    fn refusal(self, directory: PathBuf, hidden: PathBuf) -> OutputInUse {
        let Self { job, path, is_running, unreadable, .. } = self;
        match unreadable {
            _ if is_running => OutputInUse::Running { directory, job, process: owner(&path) },
            Some(source) => {
                OutputInUse::Unclear { directory, job, hidden, source: Box::new(source) }
            }
            None => OutputInUse::Interrupted { directory, job, run_directory: path, hidden },
        }
    }
}

/// Whether two paths lead to the same directory.
fn same(one: &Path, other: &Path) -> bool {
    one == other
        || matches!(
            (fs::canonicalize(one), fs::canonicalize(other)),
            (Ok(one), Ok(other)) if one == other
        )
}
