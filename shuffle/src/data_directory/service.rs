//! A directory that a stand-alone shuffle service keeps, and several processes write.
//!
//! Which of them live is told by locks: a writer's unsealed files are removed when its lock is free,
//! so no living one is ever robbed, and a dead one leaves nothing.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    process,
};

use regrow_protocol::{DataDirectoryId, WorkerId};
use serde::{Deserialize, Serialize};
use tracing::info;

use super::{DataDirectory, DirectoryError, Holding, LOCK, ids_in, lock_root, names};
use crate::{
    directory_lock::DirectoryLock,
    disk_error::{DiskError, During, unless_gone},
};

/// Marks a directory that a service keeps, and tells of its newest life.
const SERVICE: &str = "service.json";

/// The highest term that a service saw.
const TERM: &str = "term";

/// Holds a directory for each process that writes what a service keeps.
const WRITERS: &str = "writers";

/// The newest life of a service, for people.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ServiceNote {
    pid: u32,
    address: Option<String>,
}

impl DataDirectory {
    /// Takes over, for a stand-alone shuffle service, the directory under `root` that the former
    /// life of a service kept, or makes the directory `new`; it comes first. Behind it come all
    /// others that no living process uses. What dead writers left unsealed is removed.
    ///
    /// # Errors
    /// When another service lives there, or the file system refuses.
    pub fn keep(root: &Path, new: DataDirectoryId) -> Result<Vec<Self>, DirectoryError> {
        fs::create_dir_all(root).during("make", root)?;
        let mut kept = Vec::new();
        {
            let _root_lock = lock_root(root)?;
            for id in ids_in(root)?.into_iter().filter(|id| is_marked(&root.join(id.to_string()))) {
                kept.push(Self::open_for_service(root, id)?);
            }
            if kept.is_empty() {
                let path = root.join(new.to_string());
                fs::create_dir(&path).during("make data directory", &path)?;
                kept.push(Self::open_for_service(root, new)?);
            }
            for directory in &kept {
                directory.remove_unsealed();
                directory.note_life(None)?;
            }
        }
        for directory in &kept {
            directory.remove_dead_writers()?;
        }
        kept.extend(Self::take_over(root)?);
        Ok(kept)
    }

    fn open_for_service(root: &Path, id: DataDirectoryId) -> Result<Self, DirectoryError> {
        let path = root.join(id.to_string());
        let Some(lock) = DirectoryLock::try_take(path.join(LOCK))? else {
            let ServiceNote { pid, address } = ServiceNote::read(&path);
            return Err(DirectoryError::ServiceRuns { path, pid, address });
        };
        Ok(Self::held(root, id, Holding::Service, lock))
    }

    /// Says where the service of this directory listens, for those who look at its files.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn note_life(&self, address: Option<String>) -> Result<(), DiskError> {
        let note = ServiceNote { pid: process::id(), address };
        let path = self.path.join(SERVICE);
        let text = serde_json::to_vec(&note).map_err(io::Error::other).during("describe", &path)?;
        replace(&path, &text)
    }

    /// Joins the directory under `root` that a living shuffle service keeps, as one of those who
    /// write there; none if no service lives.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn join(root: &Path, worker: WorkerId) -> Result<Option<Self>, DirectoryError> {
        if !root.try_exists().during("look at", root)? {
            return Ok(None);
        }
        // A service that starts, and one that looks for dead writers, take this lock, too.
        let _root_lock = lock_root(root)?;
        for id in ids_in(root)? {
            let path = root.join(id.to_string());
            if !is_marked(&path) || DirectoryLock::try_take(path.join(LOCK))?.is_some() {
                continue;
            }
            let workspace = path.join(WRITERS).join(worker.to_string());
            fs::create_dir_all(&workspace).during("make", &workspace)?;
            let lock = DirectoryLock::wait(&workspace.join(LOCK))?;
            let holding = Holding::Writer { worker, workspace };
            return Ok(Some(Self::held(root, id, holding, lock)));
        }
        Ok(None)
    }

    /// Removes what writers left unsealed whose processes are gone, and tells who they were.
    ///
    /// # Errors
    /// When the file system refuses; the rest is removed at the next call.
    pub fn remove_dead_writers(&self) -> Result<Vec<WorkerId>, DiskError> {
        let writers = self.path.join(WRITERS);
        if !matches!(self.holding, Holding::Service)
            || !writers.try_exists().during("look at", &writers)?
        {
            return Ok(Vec::new());
        }
        let mut dead = Vec::new();
        for name in names(&writers)? {
            let Ok(worker) = name.parse::<WorkerId>() else { continue };
            let place = writers.join(&name);
            if is_free(&place)? && self.remove_if_dead(&place)? {
                info!(directory = %self.id, %worker, "removed what a dead writer left unsealed");
                dead.push(worker);
            }
        }
        Ok(dead)
    }

    /// Looks again under the lock that a starting writer holds until it has its own.
    fn remove_if_dead(&self, place: &Path) -> Result<bool, DiskError> {
        let _root_lock = lock_root(&self.root)?;
        let dead = is_free(place)?;
        if dead {
            unless_gone(fs::remove_dir_all(place)).during("remove", place)?;
        }
        Ok(dead)
    }

    /// The highest term that a service kept for this directory; 0 if none did.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn term(&self) -> Result<u64, DirectoryError> {
        let path = self.path.join(TERM);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            text => text.during("read", &path)?,
        };
        let what = "the highest term of a JobManager that was seen";
        let loss = "JobManager can be alive";
        text.trim().parse().map_err(|_| DirectoryError::Garbled { path, what, loss })
    }

    /// Keeps the highest term that was seen, on stable storage when this returns.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn keep_term(&self, term: u64) -> Result<(), DiskError> {
        replace(&self.path.join(TERM), format!("{term}\n").as_bytes())
    }
}

impl ServiceNote {
    /// What the newest life of a service noted; nothing where it did not come to that.
    fn read(path: &Path) -> Self {
        let note = fs::read(path.join(SERVICE)).ok();
        note.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

/// Whether a shuffle service keeps the directory at `path`.
pub(super) fn is_marked(path: &Path) -> bool {
    path.join(SERVICE).exists()
}

/// Whether no living process writes with the workspace at `place`.
fn is_free(place: &Path) -> Result<bool, DiskError> {
    if !place.is_dir() {
        return Ok(false);
    }
    match DirectoryLock::try_take(place.join(LOCK)) {
        Ok(lock) => Ok(lock.is_some()),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Replaces a file; even after a crash it holds the old or the new content.
fn replace(path: &Path, content: &[u8]) -> Result<(), DiskError> {
    let new = path.with_extension("new");
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.during("write", &new)?;
    fs::rename(&new, path).during("replace", path)?;
    if let Some(parent) = path.parent() {
        File::open(parent).and_then(|directory| directory.sync_all()).during("sync", parent)?;
    }
    Ok(())
}
