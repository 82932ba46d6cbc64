//! Files and directories that are on stable storage when a call returns.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::Path,
};

use crate::StoreError;

/// Ending of files that are not complete yet.
const UNFINISHED: &str = ".new";

/// Tells what was tried, when it failed.
pub(crate) trait Tried<T> {
    /// Names the action and the path.
    fn tried(self, action: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, action: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { action, path: path.to_owned(), source })
    }
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|directory| directory.sync_all()).tried("sync directory", path)
}

/// Makes a directory and what is above it, all durable. One that is there is left as it is.
pub(crate) fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = parent(path);
    create_directory(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).tried("create directory", path);
        }
        Ok(()) | Err(_) => {}
    }
    sync_directory(parent)
}

/// Puts a file in place of the one that is there: either the old or the new one is seen.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = Path::new(&unfinished);
    let mut file = File::create(unfinished).tried("create", unfinished)?;
    file.write_all(bytes).tried("write", unfinished)?;
    file.sync_all().tried("sync", unfinished)?;
    fs::rename(unfinished, path).tried("rename a new file to", path)?;
    sync_directory(parent(path))
}

/// Makes an empty file whose name says all; durable.
pub(crate) fn create_marker(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new().write(true).create_new(true).open(path).tried("create", path)?;
    sync_directory(parent(path))
}

/// Removes a file if it is there. Durable after [`sync_directory`].
pub(crate) fn remove_file(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result.tried("remove", path),
    }
}

/// The names in a directory, ascending; none if there is no such directory.
pub(crate) fn names(path: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        result => result.tried("list", path)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        // A name that is no text is none of ours.
        if let Ok(name) = entry.tried("list", path)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes what a killed writer left half written.
pub(crate) fn remove_unfinished(directory: &Path) -> Result<(), StoreError> {
    for name in names(directory)? {
        if name.ends_with(UNFINISHED) {
            remove_file(&directory.join(name))?;
        }
    }
    Ok(())
}

/// The bytes of a file, if it is there.
pub(crate) fn read_file(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.tried("read", path).map(Some),
    }
}

/// Writes, syncs and removes a file, to see whether that works.
pub(crate) fn probe(directory: &Path) -> Result<(), StoreError> {
    const PROBE_BYTES: usize = 4096;
    let path = directory.join("probe");
    replace_file(&path, &[0; PROBE_BYTES])?;
    remove_file(&path)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_is_removed_and_a_finished_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        replace_file(&directory.path().join("done"), b"x").unwrap();
        fs::write(directory.path().join("half.new"), b"x").unwrap();
        remove_unfinished(directory.path()).unwrap();
        assert_eq!(names(directory.path()).unwrap(), ["done"]);
    }

    #[test]
    fn a_failure_names_what_was_tried_and_where() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("absent/file");
        let error = replace_file(&path, b"x").unwrap_err();
        assert!(error.to_string().starts_with("cannot create "), "{error}");
    }
}
