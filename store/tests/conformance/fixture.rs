//! Stores of each kind to test.

use std::path::Path;

use regrow_protocol::{Epoch, RunId};
use regrow_store::{EventStore, FileStore, MemoryStore, SledStore, StoreError};
use tempfile::TempDir;

pub(crate) const RUN: RunId = RunId::from_bits(7);
pub(crate) const EPOCH: Epoch = Epoch::new(1, 0);

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    File,
    Sled,
}

impl Kind {
    pub(crate) const PERSISTENT: [Self; 2] = [Self::File, Self::Sled];

    pub(crate) fn open(self, path: &Path) -> Box<dyn EventStore> {
        self.try_open(path).unwrap()
    }

    pub(crate) fn try_open(self, path: &Path) -> Result<Box<dyn EventStore>, StoreError> {
        Ok(match self {
            Self::Memory => Box::new(MemoryStore::new()),
            Self::File => Box::new(FileStore::open(path)?),
            Self::Sled => Box::new(SledStore::open(path)?),
        })
    }
}

/// A place where a store lives through many handles.
pub(crate) struct Fixture {
    kind: Kind,
    directory: TempDir,
    memory: MemoryStore,
}

impl Fixture {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, directory: tempfile::tempdir().unwrap(), memory: MemoryStore::new() }
    }

    /// A handle, as the next process would get it. The one before is to be dropped.
    pub(crate) fn open(&self) -> Box<dyn EventStore> {
        match self.kind {
            Kind::Memory => Box::new(self.memory.clone()),
            Kind::File | Kind::Sled => self.kind.open(&self.path()),
        }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("store")
    }
}

/// The batches of a run.
pub(crate) fn batches(store: &mut dyn EventStore, run: RunId) -> Vec<Vec<u8>> {
    let log = store.read_log(run).unwrap();
    assert_eq!(log.damage, None);
    log.batches.into_iter().map(|batch| batch.bytes).collect()
}

/// Different bytes for each number, of different lengths.
pub(crate) fn batch(number: u64) -> Vec<u8> {
    let length = 1 + usize::try_from(number * 37 % 300).unwrap();
    number.to_le_bytes().into_iter().cycle().take(length + 8).collect()
}
