//! What a local run keeps under the data directory while it is not over: `runs/<job id>/`.
//!
//! ```text
//! runs/<job id>/lock         locked by the process that runs the job; holds its process id
//! runs/<job id>/run.json     what runs, and as which run; written before the job is accepted
//! runs/<job id>/store/       the event store
//! runs/<job id>/store-damaged-<number>/    one that could not be used, kept until the run is over
//! runs/<job id>/shuffle/     the workers' data directories
//! runs/<job id>/reports/     one file per recovery
//! ```
//! A cluster keeps the reports of its jobs in the same place, and nothing else.

mod damaged_stores;
mod held_job;
mod lock;
mod noted_run;
mod output_in_use;
mod run_file;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use regrow_protocol::JobId;
use regrow_runtime::{JobSubmission, StoreKind, with_causes};
use regrow_store::StoreError;
use tracing::warn;

use self::lock::{Lock, is_locked};
pub use self::output_in_use::{OutputInUse, check_output_unused};
pub(crate) use self::{
    damaged_stores::SetAside, held_job::held_by_run, noted_run::NotedRun, run_file::RunFile,
};
use crate::{
    launch::{InterruptedRun, LaunchError},
    recovery_reports::reports_directory,
};

/// Begins the names of run directories that are being removed; no job id begins with it.
const REMOVED_PREFIX: &str = ".removed-";

/// The first term that a new store gives out; noted at once, so that a new run notes nothing twice.
const FIRST_TERM: u64 = 1;

/// The directory of a run, locked by this process.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    job: JobId,
    lock: Lock,
}

impl RunDirectory {
    /// The directory that holds all runs.
    pub(crate) fn all(data_directory: &Path) -> PathBuf {
        data_directory.join("runs")
    }

    /// Where the files of a job are while it is not over.
    pub(crate) fn of(data_directory: &Path, job: &JobId) -> PathBuf {
        Self::all(data_directory).join(job.as_str())
    }

    /// Locks the directory of a job, and makes it if it is not there.
    ///
    /// # Errors
    /// When another process has it, or the disk refuses.
    pub(crate) fn lock(data_directory: &Path, job: &JobId) -> Result<Self, LaunchError> {
        let path = Self::of(data_directory, job);
        let lock = Lock::take(&path)?;
        sweep(data_directory);
        Ok(Self { path, job: job.clone(), lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    pub(crate) fn shuffle(&self) -> PathBuf {
        self.path.join("shuffle")
    }

    /// Whether there is no event store: none was made yet, or it is gone.
    pub(crate) fn has_no_store(&self) -> bool {
        match fs::read_dir(self.store()) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Moves a damaged event store out of the way.
    ///
    /// # Errors
    /// When the disk refuses; then the damage may be that of the disk, and nothing was moved.
    pub(crate) fn set_store_aside(&self) -> Result<SetAside, LaunchError> {
        damaged_stores::set_aside(&self.path, &self.store())
    }

    /// What an earlier process wrote, if there was one and the run can go on.
    ///
    /// # Errors
    /// When nobody can tell, because what it wrote is damaged or of another version.
    pub(crate) fn resumable(&self) -> Result<Option<RunFile>, LaunchError> {
        Ok(RunFile::read(&self.path)?.filter(RunFile::survives_its_process))
    }

    /// What is to be noted of a new run.
    pub(crate) fn new_run(
        &self,
        run: InterruptedRun,
        store: StoreKind,
        submission: &JobSubmission,
    ) -> NotedRun {
        let identity = noted_run::identity(submission, FIRST_TERM);
        NotedRun::new(self, RunFile::new(run, store, identity), 0)
    }

    /// The run that `file` is about.
    pub(crate) fn noted(&self, file: RunFile) -> NotedRun {
        let claimed = file.identity().map_or(0, |identity| identity.term);
        NotedRun::new(self, file, claimed)
    }

    /// Removes all but the lock, and what was staged: nothing of an earlier run that cannot go on
    /// may be mistaken for this one's, or be in its way.
    pub(crate) fn clear(&self) -> Result<(), LaunchError> {
        if let Some(file) = RunFile::read(&self.path)? {
            file.remove_staging().map_err(|error| LaunchError::Staging(error.into()))?;
        }
        let failed = |path: &Path, source| LaunchError::Directory {
            action: "clear",
            path: path.into(),
            source,
        };
        for entry in fs::read_dir(&self.path).map_err(|source| failed(&self.path, source))? {
            let path = entry.map_err(|source| failed(&self.path, source))?.path();
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false if path.file_name().is_some_and(|name| name == lock::FILE_NAME) => Ok(()),
                false => fs::remove_file(&path),
            };
            removed.map_err(|source| failed(&path, source))?;
        }
        Ok(())
    }

    /// Unlocks the directory, of which nothing was used, and leaves what others keep there.
    pub(crate) fn release(self) {
        drop(fs::remove_file(self.path.join(lock::FILE_NAME)));
        drop(fs::remove_dir(&self.path));
    }

    /// Removes the directory: the run is over. Who comes meanwhile finds none and makes a new one.
    pub(crate) fn remove(self) -> Result<(), LaunchError> {
        let name = format!("{REMOVED_PREFIX}{}-{}", self.job, process::id());
        let aside = self.path.with_file_name(name);
        let failed = |source| LaunchError::Directory {
            action: "remove run directory",
            path: self.path.clone(),
            source,
        };
        fs::rename(&self.path, &aside).map_err(failed)?;
        drop(self.lock);
        fs::remove_dir_all(&aside).map_err(failed)
    }
}

/// What lies under a data directory of runs that no process works on.
#[derive(Debug, Default)]
pub struct InterruptedRuns {
    /// Those that can be resumed, by job id.
    pub runs: Vec<InterruptedRun>,
    /// Why others cannot be, although they may hold finished work: each error names one.
    pub unreadable: Vec<LaunchError>,
}

/// The runs under `data_directory` that were interrupted. Opens no store; runs that another process
/// works on are left out.
///
/// # Errors
/// When the data directory cannot be listed.
pub fn interrupted_runs(data_directory: &Path) -> Result<InterruptedRuns, LaunchError> {
    let mut found = InterruptedRuns::default();
    for (_, path) in jobs(data_directory)? {
        match RunFile::read(&path) {
            _ if is_locked(&path) => {}
            Ok(file) => {
                let file = file.filter(RunFile::survives_its_process);
                found.runs.extend(file.map(RunFile::into_run));
            }
            Err(error) => found.unreadable.push(error),
        }
    }
    found.runs.sort_unstable_by(|one, other| one.job.cmp(&other.job));
    Ok(found)
}

/// The jobs that have a run directory, with its path.
fn jobs(data_directory: &Path) -> Result<Vec<(JobId, PathBuf)>, LaunchError> {
    let all = RunDirectory::all(data_directory);
    let failed = |source| LaunchError::Directory { action: "list", path: all.clone(), source };
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut jobs = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(job) = name.and_then(|name| name.parse().ok()) {
            jobs.push((job, path));
        }
    }
    Ok(jobs)
}

/// Removes what dead processes left of which nobody can make use: directories that they were
/// removing, and runs that were never accepted or that ended with their process, with what those
/// staged in their output directories. Somebody else may sweep, too; what stays is swept next time.
pub fn sweep(data_directory: &Path) {
    let all = RunDirectory::all(data_directory);
    for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
        let is_leftover = entry.file_name().to_string_lossy().starts_with(REMOVED_PREFIX);
        if is_leftover && !is_locked(&entry.path()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    for (job, path) in jobs(data_directory).unwrap_or_default() {
        if is_of_cluster(data_directory, &job) {
            continue;
        }
        let Some(lock) = Lock::take_if_free(&path) else { continue };
        // A damaged file proves nothing: a person must look at it.
        let Ok(file) = RunFile::read(&path) else { continue };
        if !file.as_ref().is_some_and(RunFile::survives_its_process) {
            bury(RunDirectory { path, job, lock }, file);
        }
    }
}

/// Whether the directory of `job` is there for the recovery reports of a cluster alone.
fn is_of_cluster(data_directory: &Path, job: &JobId) -> bool {
    let path = RunDirectory::of(data_directory, job);
    let is_of_run = path.join(lock::FILE_NAME).exists() || RunFile::path(&path).exists();
    !is_of_run && reports_directory(data_directory, job).is_dir()
}

/// Removes a run that nobody can go on with, and what it staged; first that, for nobody else knows
/// whose it is.
fn bury(directory: RunDirectory, file: Option<RunFile>) {
    if let Some(Err(error)) = file.map(|file| file.remove_staging()) {
        let error = with_causes(&error);
        warn!(job = %directory.job, error, "what an ended run staged is left");
        return;
    }
    drop(directory.remove());
}

/// Says who has the directory.
fn in_use(path: &Path, owner: String) -> LaunchError {
    LaunchError::Store(StoreError::InUse { path: path.to_owned(), owner })
}
