//! Changes on the disk, one step each, so that a test can end the world after any of them.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use super::{OutputError, listing::kind};

/// Changes on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// How many more changes succeed, where a test limits them.
    steps_left: Option<Arc<AtomicU32>>,
}

impl Disk {
    /// Makes `path` and what is missing above it; gives the topmost directory that was not there.
    /// What was made is durable.
    pub(super) fn create_output_directory(
        &self,
        path: &Path,
    ) -> Result<Option<PathBuf>, OutputError> {
        if path.is_dir() {
            return Ok(None);
        }
        if fs::symlink_metadata(path).is_ok() {
            return Err(OutputError::NoDirectory { path: path.to_owned(), found: kind(path) });
        }
        let topmost = path.ancestors().take_while(|path| !path.exists()).last();
        self.step("create output directory", path, || fs::create_dir_all(path))?;
        if let Some(parent) = path.parent() {
            self.sync_directory(parent)?;
        }
        Ok(topmost.map(Path::to_owned))
    }

    /// Removes `path` and what is above it up to `topmost`, as far as it is empty.
    pub(super) fn remove_empty(&self, path: &Path, topmost: &Path) {
        let made = path.ancestors().take_while(|path| path.starts_with(topmost));
        // One that holds something stays, with all that is above it.
        let removed = |path: &&Path| self.count_step().and_then(|()| fs::remove_dir(path)).is_ok();
        made.take_while(removed).for_each(drop);
    }

    pub(super) fn create_directory(&self, path: &Path) -> Result<(), OutputError> {
        self.step("create staging directory", path, || match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        })
    }

    /// Writes a file that is there whole or not at all, durable.
    pub(super) fn write_whole(&self, path: &Path, content: &[u8]) -> Result<(), OutputError> {
        let temporary = path.with_extension("new");
        self.step("write", &temporary, || {
            let mut file = File::create(&temporary)?;
            file.write_all(content)?;
            file.sync_all()
        })?;
        self.rename("write", &temporary, path)?;
        match path.parent() {
            Some(parent) => self.sync_directory(parent),
            None => Ok(()),
        }
    }

    pub(super) fn rename(
        &self,
        action: &'static str,
        from: &Path,
        to: &Path,
    ) -> Result<(), OutputError> {
        self.step(action, to, || fs::rename(from, to))
    }

    pub(super) fn remove_file(&self, path: &Path) -> Result<(), OutputError> {
        self.step("remove", path, || absent_is_fine(fs::remove_file(path)))
    }

    pub(super) fn remove_directory(&self, path: &Path) -> Result<(), OutputError> {
        self.step("remove staging directory", path, || absent_is_fine(fs::remove_dir_all(path)))
    }

    pub(super) fn sync_directory(&self, path: &Path) -> Result<(), OutputError> {
        self.step("sync directory", path, || File::open(path)?.sync_all())
    }

    fn step(
        &self,
        action: &'static str,
        path: &Path,
        change: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), OutputError> {
        self.count_step().and_then(|()| change()).map_err(|source| OutputError::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }

    /// A disk that refuses everything after `steps` changes.
    #[cfg(test)]
    pub(super) fn dying_after(steps: u32) -> Self {
        Self { steps_left: Some(Arc::new(AtomicU32::new(steps))) }
    }

    fn count_step(&self) -> io::Result<()> {
        let Some(left) = &self.steps_left else { return Ok(()) };
        let step =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        step.map(|_| ()).map_err(|_| io::Error::other("the host died, says the test"))
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
