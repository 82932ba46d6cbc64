//! A call to the file system that failed.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A call to the file system that failed: what was tried, on what, and what to do about it.
#[derive(Debug, Error)]
#[error("cannot {action} {}{}", .path.display(), Advice(.source))]
pub struct DiskError {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl DiskError {
    /// Whether the disk, or the user's share of it, is full: releasing partitions may cure it.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// What a person can do about an error of the file system.
struct Advice<'a>(&'a io::Error);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.kind();
        if is_full(self.0) {
            return f.write_str(": no space left; free some there or set another regrow.data-dir");
        }
        if matches!(kind, io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied) {
            return f.write_str(
                ": not permitted; make it writable for this user or set another regrow.data-dir",
            );
        }
        if kind == io::ErrorKind::NotFound {
            return f.write_str(": it is gone; was it removed while in use?");
        }
        Ok(())
    }
}

/// Names what was tried when a call fails.
pub(crate) trait During<T> {
    /// Wraps the error with what was tried and on what.
    fn during(self, action: &'static str, path: &Path) -> Result<T, DiskError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, DiskError> {
        self.map_err(|source| DiskError { action, path: path.to_owned(), source })
    }
}

/// A removal that finds nothing has done its work.
pub(crate) fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_says_what_was_tried_and_what_to_do() {
        let failed: io::Result<()> = Err(io::ErrorKind::StorageFull.into());
        let error = failed.during("write blocks to", Path::new("/data/x")).unwrap_err();
        assert!(error.is_full());
        let text = error.to_string();
        assert!(text.starts_with("cannot write blocks to /data/x: no space left"), "{text}");
        assert!(text.ends_with("set another regrow.data-dir"), "{text}");
    }
}
