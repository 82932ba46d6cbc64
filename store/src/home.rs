//! The directory of a store: who owns it, and which format it has.
//!
//! ```text
//! lock     held by the owner; its text is the owner's process id
//! FORMAT   "regrow-store <kind> <format>\n", written before anything else
//! ```

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use crate::{
    StoreError,
    durable::{self, Tried},
};

const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "FORMAT";
const MARKER: &str = "regrow-store";

/// A directory that this handle owns until it is dropped.
pub(crate) struct Home {
    path: PathBuf,
    lock: File,
}

impl Home {
    /// Makes or takes over the directory of a store of `kind`.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another handle owns it, [`StoreError::Format`] and
    /// [`StoreError::Damaged`] when it holds something else.
    pub(crate) fn open(path: &Path, kind: &str) -> Result<Self, StoreError> {
        durable::create_directory(path)?;
        let lock = lock(path)?;
        let home = Self { path: path.to_owned(), lock };
        home.check_format(kind)?;
        Ok(home)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A damage of the whole store.
    pub(crate) fn damaged(&self, reason: String) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), reason }
    }

    /// The kind of the store at `path`, as it says itself; none if nothing says that there is one.
    pub(crate) fn kind_at(path: &Path) -> Result<Option<String>, StoreError> {
        if !path.is_dir() {
            return Ok(None);
        }
        let Some(bytes) = durable::read_file(&path.join(FORMAT_FILE))? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(text.split_whitespace().nth(1).unwrap_or_default().to_owned()))
    }

    fn check_format(&self, kind: &str) -> Result<(), StoreError> {
        let path = self.path.join(FORMAT_FILE);
        let Some(bytes) = durable::read_file(&path)? else {
            return durable::replace_file(&path, format!("{MARKER} {kind} {FORMAT}\n").as_bytes());
        };
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text.split_whitespace().collect();
        let [MARKER, found_kind, found] = words[..] else {
            return Err(self.damaged(format!("its file FORMAT says {text:?}")));
        };
        if found_kind != kind {
            return Err(self.damaged(format!("it is of kind {found_kind}, {kind} was asked for")));
        }
        match found.parse() {
            Ok(FORMAT) => Ok(()),
            Ok(found) => {
                Err(StoreError::Format { path: self.path.clone(), found, supported: FORMAT })
            }
            Err(_) => Err(self.damaged(format!("its file FORMAT says {text:?}"))),
        }
    }
}

// A child process that is just being started holds a copy of the open file until it runs its
// program, and with it the lock, unless that is given back by name.
impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "cannot unlock the store");
        }
    }
}

// The lock ends with its owner, however that ends; the file stays, so that all lock the same one.
fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .tried("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let owner = owner(&mut file);
            return Err(StoreError::InUse { path: directory.to_owned(), owner });
        }
        Err(TryLockError::Error(error)) => return Err(error).tried("lock", &path),
    }
    // On a full disk the name may be missing; that must not keep anyone from reading the store.
    let named = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
    if let Err(error) = named {
        tracing::warn!(path = %path.display(), %error, "cannot name the owner of the store");
    }
    Ok(file)
}

fn owner(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text).map(|_| text.trim().parse::<u32>()) {
        Ok(Ok(process)) => format!("process {process}"),
        Ok(Err(_)) | Err(_) => "another process".to_owned(),
    }
}

/// Bytes of all files below `path`.
pub(crate) fn bytes_on_disk(path: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for name in durable::names(path)? {
        let entry = path.join(name);
        let metadata = fs::metadata(&entry).tried("read size of", &entry)?;
        bytes += if metadata.is_dir() { bytes_on_disk(&entry)? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leadership_23_the_second_owner_is_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let first = Home::open(directory.path(), "file").unwrap();
        let error = Home::open(directory.path(), "file").err().unwrap();
        let StoreError::InUse { owner, .. } = error else { panic!("{error}") };
        assert_eq!(owner, format!("process {}", std::process::id()));
        drop(first);
        Home::open(directory.path(), "file").unwrap();
    }

    #[test]
    fn a_child_that_is_just_being_started_does_not_hold_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(directory.path(), "file").unwrap();
        let copy_in_child = home.lock.try_clone().unwrap();
        drop(home);
        Home::open(directory.path(), "file").unwrap();
        drop(copy_in_child);
    }

    #[test]
    fn log_11_a_later_format_is_refused_with_both_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("FORMAT"), "regrow-store file 2\n").unwrap();
        let error = Home::open(directory.path(), "file").err().unwrap();
        assert!(error.to_string().contains("has format 2, this program reads 1;"), "{error}");
    }

    #[test]
    fn a_store_of_another_kind_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        drop(Home::open(directory.path(), "sled").unwrap());
        let error = Home::open(directory.path(), "file").err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_garbled_format_is_a_damage() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["", "regrow-store file x\n", "\u{0}\u{0}"] {
            fs::write(directory.path().join("FORMAT"), text).unwrap();
            let error = Home::open(directory.path(), "file").err().unwrap();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        }
    }
}
