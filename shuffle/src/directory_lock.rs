//! A lock that ends with its holder.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use crate::disk_error::{DiskError, During};

/// An exclusive lock on a file, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock(File);

impl DirectoryLock {
    /// Waits for the lock of the file at `path`, which is made if it is not there.
    pub(crate) fn wait(path: &Path) -> Result<Self, DiskError> {
        let file = open(path)?;
        file.lock().during("lock", path)?;
        Ok(Self(file))
    }

    /// Takes the lock of the file at `path`, which is made if it is not there; `None` when somebody
    /// holds it.
    pub(crate) fn try_take(path: PathBuf) -> Result<Option<Self>, DiskError> {
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(DiskError { action: "lock", path, source }),
        }
    }
}

/// Closing the file would not do: a process that another thread is just starting has it open too,
/// until it executes its program.
impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A lock that cannot be given back ends with the descriptor.
        let _ = self.0.unlock();
    }
}

fn open(path: &Path) -> Result<File, DiskError> {
    File::options().create(true).truncate(false).write(true).open(path).during("open", path)
}
