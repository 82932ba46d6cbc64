//! What a writer removes unless it is sealed.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tracing::warn;

use crate::disk_error::unless_gone;

/// A file that is removed when it is dropped, unless it got its final name.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: File,
    path: PathBuf,
}

impl TemporaryFile {
    /// Creates the file for reading and writing; it must not be there.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { file, path })
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes all of `bytes` at the cursor.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its final name; what had that name is replaced.
    pub(crate) fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        // Nothing is left to remove.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        // Its room must be free at once: a process that is just being started may hold the file open
        // for a moment, and then removing it alone frees nothing.
        if let Err(error) =
            self.file.set_len(0).and_then(|()| unless_gone(fs::remove_file(&self.path)))
        {
            warn!(path = %self.path.display(), %error, "cannot remove an unsealed file");
        }
    }
}

/// A directory that is removed with all its files when it is dropped.
#[derive(Debug)]
pub(crate) struct SpillDirectory(PathBuf);

impl SpillDirectory {
    /// Makes the directory; its parent must be there.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SpillDirectory {
    fn drop(&mut self) {
        if let Err(error) = unless_gone(fs::remove_dir_all(&self.0)) {
            warn!(path = %self.0.display(), %error, "cannot remove a spill directory");
        }
    }
}
