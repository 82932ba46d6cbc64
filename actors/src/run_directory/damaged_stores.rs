//! Event stores that could not be used, kept beside the one that took their place.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::launch::LaunchError;

/// Begins the name of a store that was set aside; its number follows.
const PREFIX: &str = "store-damaged-";

/// How many are kept of one run; above this the oldest goes.
const DAMAGED_STORES_MAX: usize = 3;

/// What is written to see whether the disk works: as much as a store needs to be opened.
const PROBE_BYTES: usize = 1 << 20;

/// What became of a damaged store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetAside {
    /// Where it is now.
    pub(crate) path: PathBuf,
    /// Which older ones were removed for it.
    pub(crate) removed: Vec<PathBuf>,
}

/// Moves `store` to a name of its own in `directory`.
pub(super) fn set_aside(directory: &Path, store: &Path) -> Result<SetAside, LaunchError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| LaunchError::Directory { action, path, source }
    };
    // A disk that is full or refuses to be written lets a store look damaged that is not.
    probe(directory).map_err(failed("write to the disk of the event store, in", directory))?;
    let mut kept = kept(directory).map_err(failed("list", directory))?;
    let number = kept.last().map_or(0, |(number, _)| *number) + 1;
    let path = directory.join(format!("{PREFIX}{number}"));
    fs::rename(store, &path).map_err(failed("set aside event store", store))?;
    kept.push((number, path.clone()));
    let mut removed = Vec::new();
    let too_many = kept.len().saturating_sub(DAMAGED_STORES_MAX);
    for (_, oldest) in kept.into_iter().take(too_many) {
        fs::remove_dir_all(&oldest).map_err(failed("remove", &oldest))?;
        removed.push(oldest);
    }
    Ok(SetAside { path, removed })
}

fn probe(directory: &Path) -> io::Result<()> {
    let path = directory.join("probe");
    let written =
        fs::write(&path, vec![0; PROBE_BYTES]).and_then(|()| File::open(&path)?.sync_all());
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// The stores that were set aside, oldest first.
fn kept(directory: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(number) = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok()) {
            kept.push((number, path));
        }
    }
    kept.sort_unstable();
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_stores_are_kept_by_number_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        let mut all = Vec::new();
        for round in 0..=DAMAGED_STORES_MAX {
            fs::create_dir(&store).unwrap();
            fs::write(store.join("FORMAT"), format!("{round}")).unwrap();
            all.push(set_aside(directory.path(), &store).unwrap());
        }
        let content = |at: usize| fs::read_to_string(all[at].path.join("FORMAT")).unwrap();
        assert!(!all[0].path.exists());
        assert_eq!(all.last().unwrap().removed, [all[0].path.clone()]);
        assert_eq!([1, 2, 3].map(content), ["1", "2", "3"]);
        assert!(!directory.path().join("probe").exists());
    }

    #[test]
    fn a_store_that_cannot_be_moved_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = set_aside(directory.path(), &directory.path().join("store")).unwrap_err();
        assert!(error.to_string().contains("set aside event store"), "{error}");
    }
}
