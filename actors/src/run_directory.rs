//! What a local run keeps under the data directory while it is not over: `runs/<job id>/`.
//!
//! ```text
//! runs/<job id>/lock         locked by the process that runs the job; holds its process id
//! runs/<job id>/run.json     what runs, written before the job is accepted
//! runs/<job id>/store/       the event store
//! runs/<job id>/shuffle/     the workers' data directories
//! runs/<job id>/reports/     one file per recovery
//! ```

mod lock;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use regrow_protocol::JobId;
use regrow_runtime::StoreKind;
use regrow_store::StoreError;
use serde::{Deserialize, Serialize};

use self::lock::{Lock, is_locked};
use crate::{
    durable_file,
    launch::{InterruptedRun, LaunchError},
};

const FORMAT: u32 = 1;

/// Begins the names of run directories that are being removed; no job id begins with it.
const REMOVED_PREFIX: &str = ".removed-";

/// The directory of a run, locked by this process.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    job: JobId,
    lock: Lock,
}

/// What a local run runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFile {
    format: u32,
    job: JobId,
    job_name: String,
    arguments: Vec<u8>,
    settings: Vec<(String, String)>,
    ledger: Option<PathBuf>,
    store: StoreName,
}

/// [`StoreKind`], as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoreName {
    Sled,
    File,
    Memory,
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
        sweep(&Self::all(data_directory));
        Ok(Self { path, job: job.clone(), lock })
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    pub(crate) fn shuffle(&self) -> PathBuf {
        self.path.join("shuffle")
    }

    /// What an earlier process wrote, if there was one and the run can go on.
    pub(crate) fn resumable(&self) -> Option<RunFile> {
        RunFile::read(&self.path).filter(|file| file.store != StoreName::Memory)
    }

    /// Notes what runs.
    pub(crate) fn note(&self, run: &InterruptedRun, store: StoreKind) -> Result<(), LaunchError> {
        let store = match store {
            StoreKind::Sled => StoreName::Sled,
            StoreKind::File => StoreName::File,
            StoreKind::Memory => StoreName::Memory,
        };
        let InterruptedRun { job, job_name, arguments, settings, ledger } = run.clone();
        let file = RunFile { format: FORMAT, job, job_name, arguments, settings, ledger, store };
        let path = RunFile::path(&self.path);
        let content = serde_json::to_vec_pretty(&file).map_err(io::Error::other);
        content
            .and_then(|content| durable_file::replace(&path, &[&content]))
            .map_err(|source| LaunchError::Directory { action: "write", path, source })
    }

    /// Removes all but the lock: nothing of an earlier run that cannot go on may be mistaken for
    /// this one's.
    pub(crate) fn clear(&self) -> Result<(), LaunchError> {
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

impl RunFile {
    fn path(directory: &Path) -> PathBuf {
        directory.join("run.json")
    }

    /// A file that is missing or cannot be understood is none: such a run was never accepted.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let content = fs::read(Self::path(directory)).ok()?;
        serde_json::from_slice(&content).ok().filter(|file: &Self| file.format == FORMAT)
    }

    pub(crate) fn store_kind(&self) -> StoreKind {
        match self.store {
            StoreName::Sled => StoreKind::Sled,
            StoreName::File => StoreKind::File,
            StoreName::Memory => StoreKind::Memory,
        }
    }

    pub(crate) fn into_run(self) -> InterruptedRun {
        let Self { format: _, job, job_name, arguments, settings, ledger, store: _ } = self;
        InterruptedRun { job, job_name, arguments, settings, ledger }
    }
}

/// The runs under `data_directory` that were interrupted and can be resumed, by job id. Opens no
/// store; runs that another process works on are left out.
///
/// # Errors
/// When the data directory cannot be listed.
pub fn interrupted_runs(data_directory: &Path) -> Result<Vec<InterruptedRun>, LaunchError> {
    let all = RunDirectory::all(data_directory);
    let failed = |source| LaunchError::Directory { action: "list", path: all.clone(), source };
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let is_job = path
            .file_name()
            .is_some_and(|name| name.to_str().is_some_and(|name| name.parse::<JobId>().is_ok()));
        let file = RunFile::read(&path).filter(|file| file.store != StoreName::Memory);
        if let Some(file) = file.filter(|_| is_job && !is_locked(&path)) {
            runs.push(file.into_run());
        }
    }
    runs.sort_unstable_by(|one, other| one.job.cmp(&other.job));
    Ok(runs)
}

/// Removes what a process left behind that died while it removed its directory.
fn sweep(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let is_leftover = entry.file_name().to_string_lossy().starts_with(REMOVED_PREFIX);
        if is_leftover && !is_locked(&entry.path()) {
            // Somebody else may sweep, too; what stays is swept next time.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Says who has the directory.
fn in_use(path: &Path, owner: String) -> LaunchError {
    LaunchError::Store(StoreError::InUse { path: path.to_owned(), owner })
}
