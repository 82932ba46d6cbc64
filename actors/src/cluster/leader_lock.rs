//! Who leads, among the `JobManagers` of one host and one data directory
//! (`high-availability.type: local`).
//!
//! ```text
//! leader.lock   locked by the process that leads, for as long as it lives
//! leader.json   where it listens, for those who look for it
//! ```
//! The system gives the lock to the next one the moment a process is gone, however it went. A leader
//! that is paused keeps it: this kind of leadership does not survive that.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process, thread,
};

use crossbeam_channel::{Receiver, bounded, select};
use serde::{Deserialize, Serialize};

use crate::durable_file;

/// The lock of the leader, held until it is dropped.
#[derive(Debug)]
pub(crate) struct LeaderLock {
    directory: PathBuf,
    file: File,
}

/// Where a leader is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaderPlace {
    /// `host:port`.
    pub(crate) address: String,
    /// Of its process, for people.
    pub(crate) pid: u32,
}

impl LeaderLock {
    /// Waits until this process leads; none if `stop` spoke first.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub(crate) fn wait(directory: &Path, stop: &Receiver<()>) -> io::Result<Option<Self>> {
        let file = Self::open(directory)?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(Self { directory: directory.to_owned(), file })),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // The thread is left behind when the process stops before it leads.
        let (locked, waits) = bounded(1);
        thread::Builder::new().name("regrow-standby".to_owned()).spawn(move || {
            let result = file.lock().map(|()| file);
            drop(locked.send(result));
        })?;
        select! {
            recv(waits) -> locked => {
                let ended = |_| io::Error::other("the thread that waits for the lock ended");
                let file = locked.map_err(ended)??;
                Ok(Some(Self { directory: directory.to_owned(), file }))
            }
            recv(stop) -> _ => Ok(None),
        }
    }

    /// Whether nobody leads at this moment.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub(crate) fn is_free(directory: &Path) -> io::Result<bool> {
        let file = Self::open(directory)?;
        match file.try_lock() {
            Ok(()) => file.unlock().map(|()| true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn open(directory: &Path) -> io::Result<File> {
        fs::create_dir_all(directory)?;
        let path = directory.join("leader.lock");
        File::options().create(true).truncate(false).write(true).open(path)
    }

    /// Tells those who look for the leader where it listens.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub(crate) fn announce(&self, address: String) -> io::Result<()> {
        let place = LeaderPlace { address, pid: process::id() };
        let text = serde_json::to_vec(&place).map_err(io::Error::other)?;
        durable_file::replace(&self.directory.join("leader.json"), &[&text])
    }
}

impl Drop for LeaderLock {
    fn drop(&mut self) {
        // A child between fork and exec may hold a copy of the descriptor: released explicitly.
        let _ = self.file.unlock();
    }
}

impl LeaderPlace {
    /// Where the newest leader of a data directory said that it listens; it may be gone.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join("leader.json")).ok()?).ok()
    }

    /// The addresses at which to look for the leader: those that are known, or else what the data
    /// directory says at the moment.
    pub(crate) fn addresses(
        known: Vec<String>,
        directory: PathBuf,
    ) -> Box<dyn Fn() -> Vec<String> + Send + Sync> {
        Box::new(move || {
            if !known.is_empty() {
                return known.clone();
            }
            Self::read(&directory).map(|place| place.address).into_iter().collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_23_the_second_waits_and_leads_when_the_first_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let (_stop, stopped) = bounded(1);
        let first = LeaderLock::wait(&path, &stopped).unwrap().unwrap();
        first.announce("127.0.0.1:1".to_owned()).unwrap();
        assert_eq!(LeaderPlace::read(&path).unwrap().pid, process::id());
        let waiting = thread::spawn(move || LeaderLock::wait(&path, &stopped).unwrap().is_some());
        drop(first);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_standby_that_is_stopped_does_not_lead() {
        let directory = tempfile::tempdir().unwrap();
        let (stop, stopped) = bounded(1);
        let first = LeaderLock::wait(directory.path(), &stopped).unwrap();
        stop.send(()).unwrap();
        assert!(LeaderLock::wait(directory.path(), &stopped).unwrap().is_none());
        drop(first);
    }
}
