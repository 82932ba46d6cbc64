//! The store in memory: what tests and simulations use, with failures on request.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use regrow_protocol::{Epoch, RunId};

use crate::{
    BatchPosition, EventStore, Log, LogPart, LogPlace, StoreError, Table, document, fence, frame,
    log_assembler::LogAssembler,
};

/// A store in memory. Clones are handles on the same store, each with a poison of its own: a
/// clone stands for the writer of a restarted process.
#[derive(Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    poisoned: bool,
}

#[derive(Default)]
struct Shared {
    term: u64,
    logs: BTreeMap<RunId, MemoryLog>,
    documents: BTreeMap<(Table, String), Vec<u8>>,
    failing_writes: u64,
    failing_syncs: u64,
}

impl Shared {
    fn highest(&self, run: RunId) -> Option<Epoch> {
        self.logs.get(&run).and_then(|log| log.highest)
    }
}

#[derive(Default)]
struct MemoryLog {
    highest: Option<Epoch>,
    start: u64,
    next_sequence: u64,
    frames: BTreeMap<u64, Vec<u8>>,
}

impl MemoryLog {
    fn read(&self, run: RunId) -> Log {
        let mut assembler = LogAssembler::new(self.start);
        for bytes in self.frames.values() {
            match frame::decode(run, bytes) {
                Ok(frame) => assembler.batch(0, None, frame),
                Err(error) => assembler.damage(0, None, error.to_string()),
            }
        }
        assembler.finish(self.next_sequence)
    }

    fn read_part(&self, run: RunId, from: LogPlace, bytes_max: usize) -> LogPart {
        let first = self.start.max(from.sequence);
        let mut assembler = LogAssembler::part(first, bytes_max);
        for bytes in self.frames.range(first..).map(|(_, bytes)| bytes) {
            match frame::decode(run, bytes) {
                Ok(frame) => assembler.batch(0, None, frame),
                Err(error) => assembler.damage(0, None, error.to_string()),
            }
            if assembler.is_full() {
                break;
            }
        }
        assembler.finish_part(self.start, self.next_sequence)
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), poisoned: false }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next `count` writes fail as on a full disk: nothing of them is stored. An attempt
    /// to reopen counts as a write.
    pub fn fail_writes(&self, count: u64) {
        self.shared().failing_writes = count;
    }

    /// Lets the next `count` syncs fail: what was written is seen after [`EventStore::reopen`],
    /// though no one was told so.
    pub fn fail_syncs(&self, count: u64) {
        self.shared().failing_syncs = count;
    }

    /// Flips a bit in a batch, if it is there.
    pub fn damage_batch(&self, run: RunId, sequence: u64) {
        let mut shared = self.shared();
        let frame = shared.logs.get_mut(&run).and_then(|log| log.frames.get_mut(&sequence));
        if let Some(byte) = frame.and_then(|frame| frame.last_mut()) {
            *byte ^= 1;
        }
    }

    /// Flips a bit of a document.
    pub fn damage_document(&self, table: Table, key: &str) {
        let mut shared = self.shared();
        let document = shared.documents.get_mut(&(table, key.to_owned()));
        if let Some(byte) = document.and_then(|document| document.last_mut()) {
            *byte ^= 1;
        }
    }

    /// Forgets the batches from `sequence` on, as if they had never been appended.
    pub fn lose_tail(&self, run: RunId, sequence: u64) {
        if let Some(log) = self.shared().logs.get_mut(&run) {
            drop(log.frames.split_off(&sequence));
            log.next_sequence = log.next_sequence.min(sequence);
        }
    }

    // A panic of another handle's owner leaves whole batches: no call here stops half way.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned { path: path() });
        }
        Ok(())
    }

    // Decides and writes under one lock, so that no other handle comes between; in the middle come
    // the failures that were asked for.
    fn change<C, T>(
        &mut self,
        decide: impl FnOnce(&Shared) -> Result<C, StoreError>,
        write: impl FnOnce(&mut Shared, C) -> T,
    ) -> Result<T, StoreError> {
        let mut shared = self.shared();
        let decided = decide(&shared)?;
        if let Err(error) = take_failure(&mut shared.failing_writes, "write") {
            drop(shared);
            self.poisoned = true;
            return Err(error);
        }
        let written = write(&mut shared, decided);
        let synced = take_failure(&mut shared.failing_syncs, "sync");
        drop(shared);
        self.poisoned = synced.is_err();
        synced.map(|()| written)
    }
}

impl EventStore for MemoryStore {
    fn claim_term_above(&mut self, floor: u64) -> Result<u64, StoreError> {
        self.check()?;
        let claim = |shared: &mut Shared, ()| {
            shared.term = shared.term.max(floor) + 1;
            shared.term
        };
        self.change(|_| Ok(()), claim)
    }

    fn open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        self.check()?;
        let decide = |shared: &Shared| fence::claim(shared.highest(run), epoch);
        self.change(decide, |shared, ()| {
            let log = shared.logs.entry(run).or_default();
            log.highest = Some(epoch);
            log.read(run)
        })
    }

    fn read_log(&mut self, run: RunId) -> Result<Log, StoreError> {
        self.check()?;
        Ok(self.shared().logs.get(&run).map(|log| log.read(run)).unwrap_or_default())
    }

    fn read_part(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        self.check()?;
        let shared = self.shared();
        let part = shared.logs.get(&run).map(|log| log.read_part(run, from, bytes_max));
        Ok(part.unwrap_or_default())
    }

    fn append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        self.check()?;
        let decide = |shared: &Shared| {
            fence::admit(shared.highest(run), epoch)?;
            let sequence = shared.logs.get(&run).map_or(0, |log| log.next_sequence);
            let (bytes, checksum) = frame::encode(run, epoch, sequence, batch)?;
            Ok((bytes, BatchPosition { segment: 0, sequence, checksum }))
        };
        self.change(decide, |shared, (bytes, position)| {
            let log = shared.logs.entry(run).or_default();
            log.frames.insert(position.sequence, bytes);
            log.next_sequence = position.sequence + 1;
            position
        })
    }

    fn remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError> {
        self.check()?;
        let decide = |shared: &Shared| {
            fence::admit(shared.highest(run), epoch)?;
            let log = shared.logs.get(&run);
            let frame = log.and_then(|log| log.frames.get(&position.sequence));
            frame::check_at(run, position, frame.map(Vec::as_slice))
        };
        self.change(decide, |shared, ()| {
            let log = shared.logs.entry(run).or_default();
            log.frames = log.frames.split_off(&position.sequence);
            log.start = position.sequence;
        })
    }

    fn remove_log(&mut self, run: RunId) -> Result<(), StoreError> {
        self.check()?;
        self.change(|_| Ok(()), |shared, ()| drop(shared.logs.remove(&run)))
    }

    fn runs(&mut self) -> Result<Vec<RunId>, StoreError> {
        self.check()?;
        Ok(self.shared().logs.keys().copied().collect())
    }

    fn put(&mut self, table: Table, key: &str, document: &[u8]) -> Result<(), StoreError> {
        self.check()?;
        document::check_key(key)?;
        let bytes = document::encode(document::table_name(table), key.as_bytes(), 0, document)?;
        let key = (table, key.to_owned());
        self.change(|_| Ok(()), |shared, ()| drop(shared.documents.insert(key, bytes)))
    }

    fn get(&mut self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.check()?;
        let shared = self.shared();
        let Some(bytes) = shared.documents.get(&(table, key.to_owned())) else {
            return Ok(None);
        };
        match document::decode(document::table_name(table), key.as_bytes(), bytes) {
            Ok(document) => Ok(Some(document.bytes)),
            Err(flaw) => Err(flaw.into_error(&path(), table, key)),
        }
    }

    fn keys(&mut self, table: Table) -> Result<Vec<String>, StoreError> {
        self.check()?;
        let shared = self.shared();
        let keys = shared.documents.keys().filter(|(of, _)| *of == table);
        Ok(keys.map(|(_, key)| key.clone()).collect())
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        self.check()?;
        let key = (table, key.to_owned());
        self.change(|_| Ok(()), |shared, ()| drop(shared.documents.remove(&key)))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.change(|_| Ok(()), |_, ()| ())
    }
}

fn take_failure(left: &mut u64, action: &'static str) -> Result<(), StoreError> {
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    let source = io::Error::from(io::ErrorKind::StorageFull);
    Err(StoreError::Io { action, path: path(), source })
}

fn path() -> PathBuf {
    Path::new("memory").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(1);
    const EPOCH: Epoch = Epoch::new(1, 0);

    fn opened() -> MemoryStore {
        let mut store = MemoryStore::new();
        store.open_log(RUN, EPOCH).unwrap();
        store
    }

    #[test]
    fn a_restarted_writer_sees_what_the_first_one_appended() {
        let mut first = opened();
        first.append(RUN, EPOCH, b"a").unwrap();
        let mut second = first.clone();
        let log = second.open_log(RUN, EPOCH.next_life()).unwrap();
        assert_eq!(log.batches[0].bytes, b"a");
        assert!(matches!(first.append(RUN, EPOCH, b"b"), Err(StoreError::Fenced { .. })));
    }

    #[test]
    fn log_5_a_failed_write_stores_nothing_and_poisons_until_it_heals() {
        let mut store = opened();
        store.fail_writes(2);
        assert!(matches!(store.append(RUN, EPOCH, b"a"), Err(StoreError::Io { .. })));
        assert!(matches!(store.append(RUN, EPOCH, b"a"), Err(StoreError::Poisoned { .. })));
        assert!(matches!(store.reopen(), Err(StoreError::Io { .. })));
        store.reopen().unwrap();
        assert_eq!(store.read_log(RUN).unwrap(), Log::default());
        assert_eq!(store.append(RUN, EPOCH, b"b").unwrap().sequence, 0);
    }

    #[test]
    fn log_5_a_failed_sync_may_have_stored_the_batch() {
        let mut store = opened();
        store.fail_syncs(1);
        assert!(store.append(RUN, EPOCH, b"a").is_err());
        store.reopen().unwrap();
        assert_eq!(store.read_log(RUN).unwrap().batches.len(), 1);
        assert_eq!(store.append(RUN, EPOCH, b"b").unwrap().sequence, 1);
    }

    #[test]
    fn a_lost_tail_is_as_if_it_had_never_been() {
        let mut store = opened();
        for batch in [b"a", b"b", b"c"] {
            store.append(RUN, EPOCH, batch).unwrap();
        }
        store.lose_tail(RUN, 1);
        let log = store.read_log(RUN).unwrap();
        assert_eq!((log.batches.len(), log.damage), (1, None));
    }

    #[test]
    fn a_poisoned_handle_does_not_poison_others() {
        let mut store = opened();
        let mut other = store.clone();
        store.fail_writes(1);
        assert!(store.append(RUN, EPOCH, b"a").is_err());
        other.append(RUN, EPOCH, b"a").unwrap();
    }
}
