//! The hidden directories in an output directory, as who does not know their runs finds them.

use std::path::{Path, PathBuf};

use regrow_protocol::{JobId, RunId};

use super::{HIDDEN_PREFIX, OutputError, listing::Listing, manifest::Owner, prepare};

/// A hidden directory of some run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenDirectory {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whose it is, if it says so.
    pub(crate) job: Option<JobId>,
    directory: PathBuf,
    name: String,
}

impl HiddenDirectory {
    /// All that lie in the output directory `directory`, by name. None if it cannot be listed: who
    /// is to write there finds out why.
    pub(crate) fn all(directory: &Path) -> Vec<Self> {
        let names = Listing::read(directory).map(|listing| listing.hidden).unwrap_or_default();
        let found = names.into_iter().map(|name| {
            let path = directory.join(&name);
            let owner = Owner::read(&path).ok().flatten();
            Self { path, job: owner.map(|owner| owner.job), directory: directory.to_owned(), name }
        });
        found.collect()
    }

    /// Checks that its run has not decided what to publish.
    ///
    /// # Errors
    /// When it has, or nobody can tell.
    pub(crate) fn check_undecided(&self) -> Result<(), OutputError> {
        prepare::check_other_run(&self.directory, &self.name, true)
    }
}

/// The hidden directory of `run` in the output directory `directory`.
pub(crate) fn hidden_directory_of(directory: &Path, run: RunId) -> PathBuf {
    directory.join(format!("{HIDDEN_PREFIX}{run}"))
}
