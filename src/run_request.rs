//! What is settled about a run before it is launched, by the command line or by a program.

mod output_check;

use std::{
    io,
    num::NonZero,
    path::{Path, PathBuf},
};

use regrow_actors::{
    archive::Archive,
    launch::{InterruptedRun, check_output_unused},
};
use regrow_protocol::JobId;
use regrow_runtime::{JobState, SinkSpec, with_causes};
use thiserror::Error;

use self::output_check::{check_free, check_inputs_stay};
use crate::{job_arguments::JobArguments, registered_job::RegisteredJob};

/// Where runs are kept unless told.
pub(crate) const DATA_DIRECTORY: &str = ".regrow";

/// The most task managers of a run in one process.
pub(crate) const TASK_MANAGERS_MAX: u32 = 1024;

/// The most tasks that a task manager runs at once.
pub(crate) const SLOTS_MAX: u32 = 1024;

/// Why a run is refused before anything of it is there: what must change.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct Refusal(pub(crate) String);

/// The arguments of a job as they are recorded, after the job was built once from them: without the
/// working directory if the job does not depend on it, so that it is the same wherever it is started.
pub(crate) fn recorded_arguments(
    name: &str,
    job: &RegisteredJob,
    mut arguments: JobArguments,
) -> Result<Vec<u8>, Refusal> {
    let wrong = |error| Refusal(format!("job {name} cannot be built: {error}"));
    let (built, used_working_directory) = job.build(&arguments).map_err(wrong)?;
    if arguments.overwrite && built.graph.sinks.is_empty() {
        return Err(Refusal(format!(
            "--overwrite has no meaning for job {name}, which writes no files"
        )));
    }
    check_inputs_stay(&built.inputs, &built.graph.sinks)?;
    if !used_working_directory {
        arguments.working_directory = None;
    }
    arguments.to_bytes().map_err(Refusal)
}

/// Refuses a job that is new and whose output directories are in use, by another run or by files.
pub(crate) fn check_output(
    job: &JobId,
    sinks: &[SinkSpec],
    interrupted: &[InterruptedRun],
    data_directory: &Path,
) -> Result<(), Refusal> {
    if is_known(job, interrupted, data_directory) {
        return Ok(());
    }
    check_output_unused(data_directory, job, sinks)
        .map_err(|error| Refusal(with_causes(&error)))?;
    check_free(sinks)
}

/// Whether a run of this job id goes on, or finished and gives its result again.
fn is_known(job: &JobId, interrupted: &[InterruptedRun], data_directory: &Path) -> bool {
    let archived = Archive::new(data_directory).read(job).ok().flatten();
    interrupted.iter().any(|run| run.job == *job)
        || archived.is_some_and(|archived| archived.outcome.state == JobState::Finished)
}

/// A job id of 128 random bits.
pub(crate) fn random_job() -> Result<JobId, Refusal> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| Refusal(format!("cannot get random bits: {error}")))?;
    Ok(JobId::from_bits(u128::from_le_bytes(bits)))
}

/// How many tasks a task manager runs at once unless told.
pub(crate) fn slots_default() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    u32::try_from(cores).unwrap_or(1)
}

/// Where runs are kept unless told.
pub(crate) fn data_directory_default() -> PathBuf {
    PathBuf::from(DATA_DIRECTORY)
}

/// `path` from the root on.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    let failed = |error: io::Error| Refusal(format!("cannot find {}: {error}", path.display()));
    std::path::absolute(path).map_err(failed)
}

/// The directory from which relative paths are taken.
pub(crate) fn working_directory() -> Result<PathBuf, Refusal> {
    std::env::current_dir()
        .map_err(|error| Refusal(format!("cannot tell the working directory: {error}")))
}
