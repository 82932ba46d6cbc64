//! A file of entries on disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file of entries that is complete; removed when dropped.
#[derive(Debug)]
pub(crate) struct SpillFile {
    path: PathBuf,
    bytes: u64,
}

impl SpillFile {
    /// The file at `path`, of which `bytes` were written.
    pub(super) fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes that `bytes` more were written.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // If it stays, it goes with the attempt's directory.
        let _ = fs::remove_file(&self.path);
    }
}
