//! The finish records of attempts without outputs.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::disk_error::{DiskError, During};

/// The append-only file of finish frames of one run; its frames are drawn in
/// [`finish_frame`](crate::finish_frame).
#[derive(Debug)]
pub(crate) struct FinishLog {
    file: File,
    path: PathBuf,
    length: u64,
}

impl FinishLog {
    /// Opens the log at `path`; makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, DiskError> {
        let file = OpenOptions::new().create(true).append(true).open(path).during("open", path)?;
        let length = file.metadata().during("look at", path)?.len();
        Ok(Self { file, path: path.to_owned(), length })
    }

    /// Whether the file still has a name: one that was removed proves nothing.
    pub(crate) fn has_a_name(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
    }

    /// Appends one frame with a single write, and gives the log back with the offset of its end.
    /// After a failure the log must be opened again; what was written in part is cut off, or, if
    /// that fails too, skipped by readers.
    pub(crate) fn append(mut self, frame: &[u8]) -> Result<(Self, u64), DiskError> {
        let written = match self.file.write(frame) {
            Ok(written) if written == frame.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::StorageFull.into()),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            // The frame is reported as not written either way.
            let _ = self.file.set_len(self.length);
            return Err(error).during("append a finish record to", &self.path);
        }
        self.length += frame.len() as u64;
        let end = self.length;
        Ok((self, end))
    }
}
