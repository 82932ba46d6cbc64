//! Which of the directories holds the database.
//!
//! `database-<number>` is whole; the highest number counts. `database-<number>.new` is being
//! written. Whatever is killed when, one whole database is there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    StoreError,
    durable::{self, Tried},
};

const PREFIX: &str = "database-";
const UNFINISHED: &str = ".new";

/// The place of the database within a store's directory.
pub(super) struct DatabaseDirectory {
    home: PathBuf,
    number: u64,
}

impl DatabaseDirectory {
    /// Finds the database and removes what was left beside it.
    pub(super) fn open(home: &Path) -> Result<Self, StoreError> {
        let names = durable::names(home)?;
        let number = |name: &String| name.strip_prefix(PREFIX)?.parse::<u64>().ok();
        let highest = names.iter().filter_map(number).max().unwrap_or(0);
        let directory = Self { home: home.to_owned(), number: highest };
        directory.remove_others()?;
        Ok(directory)
    }

    /// The directory of the database.
    pub(super) fn current(&self) -> PathBuf {
        self.home.join(name(self.number))
    }

    /// The directory in which the next database is to be written.
    pub(super) fn begin_next(&self) -> Result<PathBuf, StoreError> {
        self.remove_others()?;
        Ok(self.next_unfinished())
    }

    /// Puts the next database in place of the current one; both are closed.
    pub(super) fn finish_next(&mut self) -> Result<(), StoreError> {
        let unfinished = self.next_unfinished();
        let next = self.home.join(name(self.number + 1));
        fs::rename(&unfinished, &next).tried("rename", &unfinished)?;
        self.number += 1;
        durable::sync_directory(&self.home)?;
        self.remove_others()
    }

    fn next_unfinished(&self) -> PathBuf {
        self.home.join(format!("{}{UNFINISHED}", name(self.number + 1)))
    }

    fn remove_others(&self) -> Result<(), StoreError> {
        let current = name(self.number);
        for name in durable::names(&self.home)? {
            if name.starts_with(PREFIX) && name != current {
                let path = self.home.join(name);
                fs::remove_dir_all(&path).tried("remove", &path)?;
            }
        }
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_being_written_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        for name in ["database-000003", "database-000004.new", "database-000002"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        let directory = DatabaseDirectory::open(home.path()).unwrap();
        assert_eq!(directory.current(), home.path().join("database-000003"));
        assert_eq!(durable::names(home.path()).unwrap(), ["database-000003"]);
    }

    #[test]
    fn the_next_database_replaces_the_current_one() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = DatabaseDirectory::open(home.path()).unwrap();
        fs::create_dir(directory.current()).unwrap();
        fs::create_dir(directory.begin_next().unwrap()).unwrap();
        directory.finish_next().unwrap();
        assert_eq!(durable::names(home.path()).unwrap(), ["database-000001"]);
        assert!(directory.current().is_dir());
    }
}
