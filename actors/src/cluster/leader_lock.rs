//! Who leads, among the `JobManagers` of one host and one data directory
//! (`high-availability.type: local`).
//!
//! ```text
//! leader.lock   locked by the process that leads, for as long as it lives
//! leader.json   where it listens, for those who look for it
//! ```
//! The system gives the lock to the next one the moment a process is gone, however it went. A leader
//! that is paused keeps it: this kind of leadership does not survive that. One whose directory is
//! deleted or moved away notices, and leads no longer; a standby waits until it is there again.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    process,
    sync::Arc,
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, bounded, select};
use serde::{Deserialize, Serialize};

use super::leadership::{Leadership, LeadershipLoss};
use crate::durable_file;

/// Name of the file that the leader locks.
const LOCK: &str = "leader.lock";

/// Name of the file that says where the leader listens.
const PLACE: &str = "leader.json";

/// How often a standby looks whether a directory that is away is back.
const AWAY_LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The lock of the leader, held until it is dropped.
#[derive(Debug)]
pub(crate) struct LeaderLock {
    directory: PathBuf,
    file: File,
    leadership: Arc<Leadership>,
}

/// Where a leader is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaderPlace {
    /// `host:port`.
    pub(crate) address: String,
    /// Of its process, for people.
    pub(crate) pid: u32,
    /// Name of the cluster that it leads; not told by earlier versions.
    #[serde(default)]
    pub(crate) cluster_id: Option<String>,
}

impl LeaderLock {
    /// Waits until this process leads; none if `stop` spoke first. A directory that is
    /// deleted or moved away is waited for, too: `away` hears of it, once each time.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub(crate) fn wait(
        directory: &Path,
        stop: &Receiver<()>,
        mut away: impl FnMut(),
    ) -> io::Result<Option<Self>> {
        loop {
            match Self::wait_for_file(directory, stop) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                ended => return ended,
            }
            away();
            // Nobody but who took it away makes it again, or a second cluster would begin there.
            while fs::symlink_metadata(directory).is_err() {
                select! {
                    recv(stop) -> _ => return Ok(None),
                    default(AWAY_LOOK_INTERVAL) => {}
                }
            }
        }
    }

    /// Waits for the lock on the file that is in the directory now.
    ///
    /// # Errors
    /// Of kind `NotFound` when the directory is not there.
    fn wait_for_file(directory: &Path, stop: &Receiver<()>) -> io::Result<Option<Self>> {
        loop {
            if let Some(lock) = Self::try_take(directory)? {
                return Ok(Some(lock));
            }
            let Some(file) = wait_for(Self::open(directory)?, stop)? else { return Ok(None) };
            let lock = Self::new(directory, file)?;
            match lock.leadership.check() {
                Ok(()) => return Ok(Some(lock)),
                // Somebody made another one: it is waited for.
                Err(LeadershipLoss::Replaced) => {}
                Err(gone @ LeadershipLoss::Gone) => {
                    return Err(io::Error::new(ErrorKind::NotFound, gone));
                }
            }
        }
    }

    /// Whether nobody leads at this moment; makes the directory if it is not there.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub(crate) fn is_free(directory: &Path) -> io::Result<bool> {
        fs::create_dir_all(directory)?;
        Ok(Self::try_take(directory)?.is_some())
    }

    /// Leads, if nobody does.
    fn try_take(directory: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = Self::open(directory)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
            let lock = Self::new(directory, file)?;
            // Else it was deleted between the two, and others would lock another one.
            if lock.leadership.check().is_ok() {
                return Ok(Some(lock));
            }
        }
    }

    fn open(directory: &Path) -> io::Result<File> {
        let path = directory.join(LOCK);
        File::options().create(true).truncate(false).write(true).open(path)
    }

    /// That of who has locked `file`.
    fn new(directory: &Path, file: File) -> io::Result<Self> {
        let leadership = Arc::new(Leadership::of(&file, &directory.join(LOCK))?);
        Ok(Self { directory: directory.to_owned(), file, leadership })
    }

    /// Says whether this process still leads, for as long as the lock is held.
    pub(crate) fn leadership(&self) -> Arc<Leadership> {
        Arc::clone(&self.leadership)
    }

    /// Tells those who look for the leader where it listens.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub(crate) fn announce(&self, address: String, cluster_id: &str) -> io::Result<()> {
        let cluster_id = Some(cluster_id.to_owned());
        let place = LeaderPlace { address, pid: process::id(), cluster_id };
        let text = serde_json::to_vec(&place).map_err(io::Error::other)?;
        durable_file::replace(&self.directory.join(PLACE), &[&text])
    }
}

/// Waits until `file` is locked by this process; none if `stop` spoke first. The thread that waits is
/// left behind then.
fn wait_for(file: File, stop: &Receiver<()>) -> io::Result<Option<File>> {
    let (locked, waits) = bounded(1);
    thread::Builder::new().name("regrow-standby".to_owned()).spawn(move || {
        let result = file.lock().map(|()| file);
        drop(locked.send(result));
    })?;
    select! {
        recv(waits) -> locked => {
            let ended = |_| io::Error::other("the thread that waits for the lock ended");
            locked.map_err(ended)?.map(Some)
        }
        recv(stop) -> _ => Ok(None),
    }
}

impl Drop for LeaderLock {
    fn drop(&mut self) {
        // A child between fork and exec may hold a copy of the descriptor: released explicitly.
        let _ = self.file.unlock();
    }
}

/// Who uses the data directory of a cluster, for those who want to look into it.
#[derive(Debug)]
pub enum ClusterPlace {
    /// It is of no cluster.
    NoCluster,
    /// A process leads it: ask that.
    Led,
    /// Nobody leads it, and nobody will before this is dropped.
    Free(Unled),
}

/// Keeps others from leading, until it is dropped: they wait.
#[derive(Debug)]
pub struct Unled {
    _lock: LeaderLock,
}

impl ClusterPlace {
    /// Finds out about `directory`.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn of(directory: &Path) -> io::Result<Self> {
        if !directory.join(LOCK).exists() {
            return Ok(Self::NoCluster);
        }
        let lock = LeaderLock::try_take(directory)?;
        Ok(lock.map_or(Self::Led, |lock| Self::Free(Unled { _lock: lock })))
    }
}

impl LeaderPlace {
    /// The name of the cluster that it leads, if that is another than `cluster_id`.
    pub(crate) fn other_cluster(&self, cluster_id: &str) -> Option<&str> {
        self.cluster_id.as_deref().filter(|leads| *leads != cluster_id)
    }

    /// Where the newest leader of a data directory said that it listens; it may be gone.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        Self::find(directory).ok()
    }

    /// As [`read`](Self::read).
    ///
    /// # Errors
    /// Why the directory does not say so, for people.
    pub(crate) fn find(directory: &Path) -> Result<Self, String> {
        let text = fs::read(directory.join(PLACE)).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return format!("its {PLACE} cannot be read: {error}");
            }
            if directory.is_dir() {
                return format!("it holds no {PLACE}: no JobManager has led there");
            }
            "there is no such directory".to_owned()
        })?;
        serde_json::from_slice(&text).map_err(|error| format!("its {PLACE} is damaged: {error}"))
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
        let first = LeaderLock::wait(&path, &stopped, || ()).unwrap().unwrap();
        first.announce("127.0.0.1:1".to_owned(), "one").unwrap();
        assert_eq!(LeaderPlace::read(&path).unwrap().pid, process::id());
        assert_eq!(LeaderPlace::read(&path).unwrap().other_cluster("one"), None);
        assert_eq!(LeaderPlace::read(&path).unwrap().other_cluster("two"), Some("one"));
        let waiting =
            thread::spawn(move || LeaderLock::wait(&path, &stopped, || ()).unwrap().is_some());
        drop(first);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn who_looks_into_a_directory_learns_whether_somebody_leads_it() {
        let directory = tempfile::tempdir().unwrap();
        let (_stop, stopped) = bounded(1);
        let place = || ClusterPlace::of(directory.path()).unwrap();
        assert!(matches!(place(), ClusterPlace::NoCluster));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let leader = LeaderLock::wait(directory.path(), &stopped, || ()).unwrap();
        assert!(matches!(place(), ClusterPlace::Led));
        drop(leader);
        let free = place();
        assert!(matches!(free, ClusterPlace::Free(_)));
        assert!(!LeaderLock::is_free(directory.path()).unwrap());
        drop(free);
        assert!(LeaderLock::is_free(directory.path()).unwrap());
    }

    #[test]
    fn what_an_earlier_version_announced_is_read() {
        let place: LeaderPlace = serde_json::from_str(r#"{"address":"a:1","pid":7}"#).unwrap();
        assert_eq!((place.pid, place.other_cluster("two")), (7, None));
    }

    #[test]
    fn fault_23_a_standby_takes_no_lock_that_others_cannot_see() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let (_stop, stopped) = bounded(1);
        assert!(LeaderLock::is_free(&path).unwrap());
        let first = LeaderLock::wait(&path, &stopped, || ()).unwrap().unwrap();
        let waited_for = LeaderLock::open(&path).unwrap();
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(first.leadership().check(), Err(LeadershipLoss::Gone));
        let second = LeaderLock::wait(&path, &stopped, || ()).unwrap().unwrap();
        drop(first);
        let standby = wait_for(waited_for, &stopped).unwrap().unwrap();
        let standby = LeaderLock::new(&path, standby).unwrap();
        assert_eq!(standby.leadership().check(), Err(LeadershipLoss::Replaced));
        assert_eq!(second.leadership().check(), Ok(()));
    }

    #[test]
    fn fault_23_a_standby_waits_for_a_directory_that_is_away_and_leads_when_it_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (directory.path().join("data"), directory.path().join("elsewhere"));
        let (_stop, stopped) = bounded(1);
        assert!(LeaderLock::is_free(&path).unwrap());
        let first = LeaderLock::wait(&path, &stopped, || ()).unwrap().unwrap();
        let (told, tells) = bounded(2);
        let standby = {
            let path = path.clone();
            let away = move || told.send(()).unwrap();
            thread::spawn(move || LeaderLock::wait(&path, &stopped, away).unwrap())
        };
        fs::rename(&path, &elsewhere).unwrap();
        assert_eq!(first.leadership().check(), Err(LeadershipLoss::Gone));
        drop(first);
        tells.recv().unwrap();
        assert!(!path.exists(), "it makes no directory in its place");
        fs::rename(&elsewhere, &path).unwrap();
        let standby = standby.join().unwrap().unwrap();
        assert_eq!(standby.leadership().check(), Ok(()));
        assert!(tells.recv().is_err(), "it tells that once");
    }

    #[test]
    fn a_standby_that_is_stopped_does_not_lead() {
        let directory = tempfile::tempdir().unwrap();
        let (stop, stopped) = bounded(1);
        let first = LeaderLock::wait(directory.path(), &stopped, || ()).unwrap();
        stop.send(()).unwrap();
        assert!(LeaderLock::wait(directory.path(), &stopped, || ()).unwrap().is_none());
        drop(first);
    }
}
