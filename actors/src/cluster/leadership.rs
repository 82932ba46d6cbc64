//! Whether the file that the leader locked is still the one that others would lock.
//!
//! A lock is on a file, not on its name: once `leader.lock` is deleted, or moved away with its
//! directory, the next process makes another one and locks that. Then this process must lead no
//! longer, and tell nobody that anything is stored: what it writes is in files that nobody finds.

use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use thiserror::Error;
use tracing::debug;

/// Looks whether a file that was locked is still there under its name; once it was not, it counts
/// as lost for ever.
#[derive(Debug)]
pub(crate) struct Leadership {
    path: PathBuf,
    locked: FileId,
    lost: OnceLock<LeadershipLoss>,
}

/// What became of the file that a leader locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LeadershipLoss {
    /// No file has its name.
    #[error("its file leader.lock, which this process had locked, is gone")]
    Gone,
    /// Another file has its name.
    #[error("its file leader.lock is another one than this process had locked")]
    Replaced,
}

/// Which file it is, whatever it is called. It is no other one's while the file is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl Leadership {
    /// That of who has locked `file`, which was opened at `path` and must stay open.
    ///
    /// # Errors
    /// When the system does not say which file it is.
    pub(crate) fn of(file: &File, path: &Path) -> io::Result<Self> {
        let locked = FileId::of(&file.metadata()?);
        Ok(Self { path: path.to_owned(), locked, lost: OnceLock::new() })
    }

    /// Looks at the file.
    ///
    /// # Errors
    /// When another process may lead.
    pub(crate) fn check(&self) -> Result<(), LeadershipLoss> {
        if let Some(lost) = self.lost.get() {
            return Err(*lost);
        }
        self.look().map_err(|lost| *self.lost.get_or_init(|| lost))
    }

    fn look(&self) -> Result<(), LeadershipLoss> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if FileId::of(&found) == self.locked => Ok(()),
            Ok(_) => Err(LeadershipLoss::Replaced),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Err(LeadershipLoss::Gone)
            }
            // A disk that does not answer gives nobody else the lock either.
            Err(error) => {
                debug!(path = %self.path.display(), %error, "the lock cannot be looked at");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(path: &Path) -> (File, Leadership) {
        let file = File::create(path).unwrap();
        let leadership = Leadership::of(&file, path).unwrap();
        (file, leadership)
    }

    #[test]
    fn a_file_that_is_deleted_or_moved_away_is_lost_and_stays_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data").join("leader.lock");
        for moved in [false, true] {
            fs::create_dir(path.parent().unwrap()).unwrap();
            let (_file, leadership) = locked(&path);
            assert_eq!(leadership.check(), Ok(()));
            let away = directory.path().join("away");
            fs::rename(path.parent().unwrap(), &away).unwrap();
            assert_eq!(leadership.check(), Err(LeadershipLoss::Gone));
            if moved {
                fs::rename(&away, path.parent().unwrap()).unwrap();
                assert_eq!(leadership.check(), Err(LeadershipLoss::Gone), "others led meanwhile");
                fs::remove_dir_all(path.parent().unwrap()).unwrap();
            } else {
                fs::remove_dir_all(away).unwrap();
            }
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_told_from_the_one_that_was_locked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leader.lock");
        let (_file, leadership) = locked(&path);
        fs::remove_file(&path).unwrap();
        let (_other, of_other) = locked(&path);
        assert_eq!(leadership.check(), Err(LeadershipLoss::Replaced));
        assert_eq!(of_other.check(), Ok(()));
    }
}
