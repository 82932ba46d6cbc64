//! The event store of a leader: refuses all as soon as another process may lead.

use std::{path::PathBuf, sync::Arc};

use crossbeam_channel::Sender;
use regrow_protocol::{Epoch, RunId};
use regrow_store::{BatchPosition, EventStore, Log, LogPart, LogPlace, StoreError, Table};

use super::leadership::{Leadership, LeadershipLoss};

/// A store that its process uses only while it leads. It looks before it changes anything, so as
/// not to open what belongs to the next leader, and after, so as not to tell of something that only
/// it can find: the system keeps files that are deleted writable for who has them open.
pub(crate) struct LedStore {
    store: Box<dyn EventStore>,
    watch: LeadershipWatch,
}

/// What a store needs to know whether its process leads.
#[derive(Clone)]
pub(crate) struct LeadershipWatch {
    /// Where the store is, for people.
    pub(crate) path: PathBuf,
    pub(crate) leadership: Arc<Leadership>,
    /// Told when the leadership is found lost.
    pub(crate) lost: Sender<LeadershipLoss>,
}

impl LeadershipWatch {
    /// # Errors
    /// [`StoreError::Withdrawn`] when another process may lead.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.leadership.check().map_err(|lost| {
            // Full if it was told already.
            let _ = self.lost.try_send(lost);
            StoreError::Withdrawn { path: self.path.clone(), reason: lost.to_string() }
        })
    }
}

impl LedStore {
    pub(crate) fn new(store: Box<dyn EventStore>, watch: LeadershipWatch) -> Self {
        Self { store, watch }
    }

    fn led<T>(
        &mut self,
        work: impl FnOnce(&mut dyn EventStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.watch.check()?;
        let result = work(&mut *self.store);
        // Also instead of an error: what went wrong may come of the loss.
        self.watch.check()?;
        result
    }
}

impl EventStore for LedStore {
    fn claim_term_above(&mut self, floor: u64) -> Result<u64, StoreError> {
        self.led(|store| store.claim_term_above(floor))
    }

    fn open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        self.led(|store| store.open_log(run, epoch))
    }

    fn read_log(&mut self, run: RunId) -> Result<Log, StoreError> {
        self.led(|store| store.read_log(run))
    }

    fn read_part(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        self.led(|store| store.read_part(run, from, bytes_max))
    }

    fn append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        self.led(|store| store.append(run, epoch, batch))
    }

    fn remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError> {
        self.led(|store| store.remove_before(run, epoch, position))
    }

    fn remove_log(&mut self, run: RunId) -> Result<(), StoreError> {
        self.led(|store| store.remove_log(run))
    }

    fn runs(&mut self) -> Result<Vec<RunId>, StoreError> {
        self.led(|store| store.runs())
    }

    fn put(&mut self, table: Table, key: &str, document: &[u8]) -> Result<(), StoreError> {
        self.led(|store| store.put(table, key, document))
    }

    fn get(&mut self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.led(|store| store.get(table, key))
    }

    fn keys(&mut self, table: Table) -> Result<Vec<String>, StoreError> {
        self.led(|store| store.keys(table))
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        self.led(|store| store.remove(table, key))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.led(|store| store.reopen())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use crossbeam_channel::bounded;
    use regrow_store::SledStore;

    use super::*;

    const RUN: RunId = RunId::from_bits(7);
    const EPOCH: Epoch = Epoch::new(1, 0);

    #[test]
    fn fault_23_what_is_written_to_a_deleted_store_is_never_said_to_be_stored() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        let lock = File::create(data.join("leader.lock")).unwrap();
        let leadership = Arc::new(Leadership::of(&lock, &data.join("leader.lock")).unwrap());
        let path = data.join("store");
        let (lost, losses) = bounded(1);
        let watch = LeadershipWatch { path: path.clone(), leadership, lost };
        let mut store = LedStore::new(Box::new(SledStore::open(&path).unwrap()), watch);
        store.open_log(RUN, EPOCH).unwrap();
        store.append(RUN, EPOCH, b"stored").unwrap();
        assert!(losses.is_empty());

        let vanishes = |store: &mut dyn EventStore| {
            fs::remove_dir_all(&data).unwrap();
            store.append(RUN, EPOCH, b"to nowhere")
        };
        let refused = store.led(vanishes).unwrap_err();
        assert!(matches!(refused, StoreError::Withdrawn { .. }), "{refused}");
        assert_eq!(losses.try_recv(), Ok(LeadershipLoss::Gone));
        let reopened = store.reopen().unwrap_err();
        assert!(matches!(reopened, StoreError::Withdrawn { .. }), "{reopened}");
        assert!(store.claim_term().is_err() && store.get(Table::Results, "job").is_err());
        assert!(!data.exists(), "it is not made again");
    }
}
