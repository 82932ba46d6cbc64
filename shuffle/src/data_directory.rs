//! One life of what a worker stores.

mod service;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use regrow_protocol::{DataDirectoryId, ExecutionAttemptId, FinishRecord, RunId, WorkerId};
use thiserror::Error;
use tracing::warn;

use crate::{
    chunk_pool::ChunkPool,
    directory_lock::DirectoryLock,
    disk_error::{DiskError, During, unless_gone},
    run_directory::{RELEASED, RunDirectory, Sharing},
    run_file::RunFile,
    run_inventory::RunInventory,
};

/// Within a data directory: held by the process that uses it.
const LOCK: &str = "lock";

/// Within the root: held while data directories are made, taken over or removed.
const ROOT_LOCK: &str = ".lock";

/// The partitions of one directory: those of one worker, in a directory that no other process
/// uses, or those of many, which a stand-alone shuffle service keeps and they write.
///
/// ```text
/// <root>/.lock                    held for a moment by who makes or takes over directories
/// <root>/<data-directory-id>/
///     lock                        held by who keeps the directory, for as long as it lives
///     <run>/                      one file per attempt and data set, see `RunFile`
///     <run>.released/             a run that is just being removed
///     service.json                there if a shuffle service keeps it: its newest life
///     term                        the highest term that the service saw
///     writers/<worker>/lock       held by a process that writes here, for as long as it lives
///     writers/<worker>/<run>/     what it has not sealed; sealing moves it to <run>/ above
/// ```
#[derive(Debug)]
pub struct DataDirectory {
    root: PathBuf,
    path: PathBuf,
    id: DataDirectoryId,
    runs: Mutex<BTreeMap<RunId, Arc<RunDirectory>>>,
    chunk_pool: Arc<ChunkPool>,
    holding: Holding,
    _lock: DirectoryLock,
}

/// In which way a process holds a directory.
#[derive(Debug)]
enum Holding {
    /// It keeps it, and nobody else writes there.
    Keeper,
    /// It keeps what others write there.
    Service,
    /// It writes what a shuffle service keeps.
    Writer { worker: WorkerId, workspace: PathBuf },
}

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Another process, or another worker of this one, uses it: leave it to them.
    #[error("data directory {} is in use by another worker", .path.display())]
    InUse {
        /// Which one.
        path: PathBuf,
    },
    /// A shuffle service keeps a directory here: a second one would get nothing to keep.
    #[error(
        "a shuffle service (process {pid}{}) keeps {} already; stop it, or name another data \
         directory",
        .address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default(),
        .path.display()
    )]
    ServiceRuns {
        /// Which one.
        path: PathBuf,
        /// Of the service; 0 if it does not say.
        pid: u32,
        /// Where it listens.
        address: Option<String>,
    },
    /// A note of a shuffle service holds something else: a person must look at it.
    #[error("{} does not hold {what}; restore it, or remove it if no older {loss}", .path.display())]
    Garbled {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is lost with it.
        loss: &'static str,
    },
    /// The file system refuses: a person must make room, or name another directory.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl DataDirectory {
    /// Makes the directory `id` under `root`, and `root` if it is not there.
    ///
    /// # Errors
    /// When there is one of that id already, or the file system refuses.
    pub fn create(root: &Path, id: DataDirectoryId) -> Result<Self, DirectoryError> {
        fs::create_dir_all(root).during("make", root)?;
        let _root_lock = lock_root(root)?;
        let path = root.join(id.to_string());
        fs::create_dir(&path).during("make data directory", &path)?;
        Self::open(root, id)
    }

    /// Takes over all directories under `root` that no living process uses, ascending by id, and
    /// removes what writers of their previous lives left unsealed. Those that cannot be taken over
    /// are left alone, with a warning if they are not merely in use; so are those of shuffle services.
    ///
    /// # Errors
    /// When `root` is there but cannot be read or locked.
    pub fn take_over(root: &Path) -> Result<Vec<Self>, DirectoryError> {
        if !root.try_exists().during("look at", root)? {
            return Ok(Vec::new());
        }
        let _root_lock = lock_root(root)?;
        let mut taken = Vec::new();
        for id in ids_in(root)? {
            if service::is_marked(&root.join(id.to_string())) {
                continue;
            }
            match Self::open(root, id) {
                Ok(directory) => {
                    directory.remove_unsealed();
                    taken.push(directory);
                }
                Err(DirectoryError::InUse { .. }) => {}
                Err(error) => warn!(directory = %id, %error, "cannot take over a data directory"),
            }
        }
        Ok(taken)
    }

    fn open(root: &Path, id: DataDirectoryId) -> Result<Self, DirectoryError> {
        let path = root.join(id.to_string());
        let Some(lock) = DirectoryLock::try_take(path.join(LOCK))? else {
            return Err(DirectoryError::InUse { path });
        };
        Ok(Self::held(root, id, Holding::Keeper, lock))
    }

    fn held(root: &Path, id: DataDirectoryId, holding: Holding, lock: DirectoryLock) -> Self {
        Self {
            root: root.to_owned(),
            path: root.join(id.to_string()),
            id,
            runs: Mutex::default(),
            chunk_pool: Arc::default(),
            holding,
            _lock: lock,
        }
    }

    /// Whether this process answers for what is there. A mere writer reports and releases nothing:
    /// its view of the directory is empty.
    pub fn is_kept_here(&self) -> bool {
        match self.holding {
            Holding::Keeper | Holding::Service => true,
            Holding::Writer { .. } => false,
        }
    }

    /// Whether this process is the shuffle service that keeps what others write there.
    pub fn is_of_a_service(&self) -> bool {
        matches!(self.holding, Holding::Service)
    }

    /// Its id.
    pub fn id(&self) -> DataDirectoryId {
        self.id
    }

    /// The directory that holds all data directories of the host.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs of which anything is there, ascending.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn runs(&self) -> Result<Vec<RunId>, DiskError> {
        if !self.is_kept_here() {
            return Ok(Vec::new());
        }
        let mut runs: Vec<RunId> =
            names(&self.path)?.iter().filter_map(|name| run_of(name).map(|(run, _)| run)).collect();
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    /// What is there of `run`: all that is proven to have finished, and all that is damaged. Files
    /// that were removed or cut behind the back of this process are noticed, and so are those that
    /// were away and came back.
    ///
    /// # Errors
    /// When the directory of the run cannot be listed; damage in it is no error.
    pub fn inventory(&self, run: RunId) -> Result<RunInventory, DiskError> {
        self.known(run)?.map_or_else(|| Ok(RunInventory::default()), |known| known.inventory())
    }

    /// The record of an attempt that is sealed here, if its outputs are all there.
    ///
    /// # Errors
    /// As [`inventory`](Self::inventory).
    pub fn finish_of(
        &self,
        attempt: ExecutionAttemptId,
    ) -> Result<Option<FinishRecord>, DiskError> {
        self.known(attempt.run)?.map_or(Ok(None), |known| known.finish_of(attempt))
    }

    /// Removes attempts' outputs, the finish record first. Those that are not here are no error, so
    /// a release may be repeated. Readers that have a partition open read on.
    ///
    /// # Errors
    /// When something could not be removed; the rest is. Try again later.
    pub fn release(&self, attempts: &[ExecutionAttemptId]) -> Result<(), DiskError> {
        let mut by_run: BTreeMap<RunId, Vec<ExecutionAttemptId>> = BTreeMap::new();
        for attempt in attempts {
            by_run.entry(attempt.run).or_default().push(*attempt);
        }
        let mut result = Ok(());
        for (run, attempts) in by_run {
            if let Some(known) = self.known(run)?
                && let Err(error) = known.release(&attempts)
            {
                result = Err(error);
            }
        }
        result
    }

    /// Removes all of a run, unsealed files included. Its writers, if any are left, get
    /// [`WriteError::Released`](crate::WriteError::Released). May be repeated.
    ///
    /// # Errors
    /// When something could not be removed. Try again later.
    pub fn release_run(&self, run: RunId) -> Result<(), DiskError> {
        self.run(run).release_all()?;
        self.lock().remove(&run);
        Ok(())
    }

    /// Removes the directory if it holds nothing of any run, and tells whether it did. It cannot be
    /// written to afterwards.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn remove_if_empty(&self) -> Result<bool, DirectoryError> {
        let _root_lock = lock_root(&self.root)?;
        if names(&self.path)?.iter().any(|name| name != LOCK) {
            return Ok(false);
        }
        let lock_path = self.path.join(LOCK);
        unless_gone(fs::remove_file(&lock_path)).during("remove", &lock_path)?;
        unless_gone(fs::remove_dir(&self.path)).during("remove", &self.path)?;
        Ok(true)
    }

    /// Memory for the writers of this directory.
    pub(crate) fn chunk_pool(&self) -> Arc<ChunkPool> {
        Arc::clone(&self.chunk_pool)
    }

    /// The directory of a run, which need not be there yet.
    pub(crate) fn run(&self, run: RunId) -> Arc<RunDirectory> {
        let mut runs = self.lock();
        let known = runs.entry(run).or_insert_with(|| Arc::new(self.new_run(run)));
        Arc::clone(known)
    }

    fn new_run(&self, run: RunId) -> RunDirectory {
        let path = self.run_path(run);
        match &self.holding {
            Holding::Keeper => RunDirectory::kept(run, path, Sharing::Alone),
            Holding::Service => RunDirectory::kept(run, path, Sharing::WithWriters),
            Holding::Writer { worker, workspace } => {
                RunDirectory::written(run, path, workspace.join(run.to_string()), *worker)
            }
        }
    }

    /// The directory of a run that is there; so that questions about others leave no trace.
    fn known(&self, run: RunId) -> Result<Option<Arc<RunDirectory>>, DiskError> {
        if !self.is_kept_here() {
            return Ok(None);
        }
        if let Some(known) = self.lock().get(&run) {
            return Ok(Some(Arc::clone(known)));
        }
        let path = self.run_path(run);
        let exists = path.try_exists().during("look at", &path)?;
        if !exists {
            // Away, and all that is in it with it?
            fs::metadata(&self.path).during("look at", &self.path)?;
        }
        Ok(exists.then(|| self.run(run)))
    }

    fn run_path(&self, run: RunId) -> PathBuf {
        self.path.join(run.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<RunDirectory>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what nobody can seal any more: the lock proves that its writers are dead.
    fn remove_unsealed(&self) {
        let removed = names(&self.path)
            .and_then(|names| names.iter().try_for_each(|name| self.remove_unsealed_in(name)));
        if let Err(error) = removed {
            warn!(directory = %self.id, %error, "cannot remove unsealed files of an earlier life");
        }
    }

    fn remove_unsealed_in(&self, name: &str) -> Result<(), DiskError> {
        let path = self.path.join(name);
        match run_of(name) {
            Some((run, Standing::Kept)) => remove_temporaries(&path, run),
            Some((_, Standing::Released)) => fs::remove_dir_all(&path).during("remove", &path),
            None => Ok(()),
        }
    }
}

/// Whether a run was being removed when its directory was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Kept,
    Released,
}

/// The run whose directory has this name within a data directory.
fn run_of(name: &str) -> Option<(RunId, Standing)> {
    let (id, standing) = match name.strip_suffix(RELEASED) {
        Some(id) => (id, Standing::Released),
        None => (name, Standing::Kept),
    };
    let run: RunId = id.parse().ok()?;
    (run.to_string() == id).then_some((run, standing))
}

fn remove_temporaries(path: &Path, run: RunId) -> Result<(), DiskError> {
    for name in names(path)? {
        let path = path.join(&name);
        match RunFile::parse(run, &name) {
            Some(RunFile::Temporary(..)) => fs::remove_file(&path).during("remove", &path)?,
            Some(RunFile::Spill(..)) => fs::remove_dir_all(&path).during("remove", &path)?,
            Some(RunFile::Partition(_) | RunFile::Finish(_) | RunFile::Log(_)) | None => {}
        }
    }
    Ok(())
}

/// The data directories under a root, ascending.
fn ids_in(root: &Path) -> Result<Vec<DataDirectoryId>, DiskError> {
    let ids = names(root)?
        .into_iter()
        .filter_map(|name| name.parse().ok().filter(|id: &DataDirectoryId| id.to_string() == name));
    let mut ids: Vec<DataDirectoryId> = ids.collect();
    ids.sort_unstable();
    Ok(ids)
}

/// The names in a directory; none of ours is anything but UTF-8.
fn names(path: &Path) -> Result<Vec<String>, DiskError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).during("list", path)? {
        names.push(entry.during("list", path)?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Waits until no other process makes or takes over directories; they need some milliseconds.
fn lock_root(root: &Path) -> Result<DirectoryLock, DiskError> {
    DirectoryLock::wait(&root.join(ROOT_LOCK))
}
