//! The lock of a run directory; the system drops it with the process.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process, thread,
    time::Duration,
};

use super::in_use;
use crate::launch::LaunchError;

/// Name of the locked file.
pub(super) const FILE_NAME: &str = "lock";

/// Others look whether the lock is free, which takes it for a moment, and directories are removed:
/// so it is tried this often before it counts as held.
const TRIES: u32 = 20;

const PAUSE: Duration = Duration::from_millis(5);

/// A lock, held until the drop.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks `directory` for this process; makes it if it is not there.
    pub(super) fn take(directory: &Path) -> Result<Self, LaunchError> {
        let failed = |source| LaunchError::Directory {
            action: "lock run directory",
            path: directory.to_owned(),
            source,
        };
        let mut missing = None;
        for _ in 0..TRIES {
            match try_once(directory) {
                Ok(Some(file)) => return Ok(Self { _file: file }),
                Ok(None) => {
                    missing = None;
                    pause();
                }
                // The directory was removed between two steps, or cannot be made where it is to be.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing = Some(error);
                    pause();
                }
                Err(source) => {
                    remove_unused(directory);
                    return Err(failed(source));
                }
            }
        }
        Err(missing.map_or_else(|| in_use(directory, owner(directory)), failed))
    }

    /// Locks `directory`, which is there, if nobody has it.
    pub(super) fn take_if_free(directory: &Path) -> Option<Self> {
        if is_locked(directory) {
            return None;
        }
        try_once(directory).ok().flatten().map(|file| Self { _file: file })
    }
}

fn try_once(directory: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(directory)?;
    let path = directory.join(FILE_NAME);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The directory may have been removed, and even made again, since the file was opened.
    if fs::metadata(&path)?.ino() != file.metadata()?.ino() {
        return Ok(None);
    }
    file.set_len(0)?;
    writeln!(file, "{}", process::id())?;
    Ok(Some(file))
}

/// Who holds, or held last, the lock of `directory`, for people.
pub(super) fn owner(directory: &Path) -> String {
    let owner = fs::read_to_string(directory.join(FILE_NAME)).unwrap_or_default();
    match owner.trim() {
        "" => "another process".to_owned(),
        pid => format!("process {pid}"),
    }
}

/// Whether a process holds the lock of `directory`.
pub(super) fn is_locked(directory: &Path) -> bool {
    let Ok(file) = File::open(directory.join(FILE_NAME)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes a directory that holds nothing but a lock that nobody could write to, such as a full disk
/// leaves.
fn remove_unused(directory: &Path) {
    let path = directory.join(FILE_NAME);
    let is_unused = fs::metadata(&path).is_ok_and(|lock| lock.len() == 0)
        && fs::read_dir(directory).is_ok_and(|entries| entries.count() == 1);
    if is_unused {
        drop(fs::remove_file(&path));
        drop(fs::remove_dir(directory));
    }
}

#[expect(clippy::disallowed_methods, reason = "a starting program has no actors yet")]
fn pause() {
    thread::sleep(PAUSE);
}
