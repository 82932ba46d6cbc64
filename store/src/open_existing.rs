//! Opens a store without being told of which kind it is.

use std::path::Path;

use crate::{EventStore, FileStore, SledStore, StoreError, file_store, home::Home};

/// Opens the store at `path`, of whichever kind it is; none if there is none, and none is made.
///
/// # Errors
/// As [`FileStore::open`] and [`SledStore::open`]; also when what is there is no store.
pub fn open_existing(path: &Path) -> Result<Option<Box<dyn EventStore>>, StoreError> {
    let Some(kind) = Home::kind_at(path)? else { return Ok(None) };
    Ok(Some(match kind.as_str() {
        file_store::KIND => Box::new(FileStore::open(path)?),
        // What is of no kind at all is told as damaged.
        _ => Box::new(SledStore::open(path)?),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regrow_protocol::{Epoch, RunId};

    use super::*;

    #[test]
    fn a_store_is_opened_as_what_it_is_and_none_is_made() {
        let root = tempfile::tempdir().unwrap();
        let [file, sled, other] = ["file", "sled", "other"].map(|name| root.path().join(name));
        let (run, epoch) = (RunId::from_bits(1), Epoch::new(1, 0));
        FileStore::open(&file).unwrap().open_log(run, epoch).unwrap();
        SledStore::open(&sled).unwrap().open_log(run, epoch).unwrap();
        for path in [file, sled] {
            assert_eq!(open_existing(&path).unwrap().unwrap().runs().unwrap(), [run]);
        }
        assert!(open_existing(&other).unwrap().is_none() && !other.exists());
        fs::write(&other, "a file").unwrap();
        assert!(open_existing(&other).unwrap().is_none());
        fs::remove_file(&other).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("FORMAT"), "?").unwrap();
        assert!(matches!(open_existing(&other), Err(StoreError::Damaged { .. })));
    }
}
