//! The store in plain files: the reference, which another program can read too.
//!
//! ```text
//! lock, FORMAT                            see `home`
//! terms/term-<term>                       an empty file: its name is the claim
//! runs/<run id>/                          see `run_directory`
//! documents/<table>/<escaped key>         one framed document
//! ```
//! Numbers in names have leading zeros, so that the order of names is the order of numbers.

mod escaped_key;
mod run_directory;
mod segment;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
};

use regrow_protocol::{Epoch, RunId};

use crate::{
    BatchPosition, EventStore, Log, LogPart, LogPlace, StoreError, Table, document, durable, fence,
    frame, home::Home,
};
use run_directory::RunDirectory;
pub use segment::SEGMENT_BYTES_MAX;
use segment::SegmentWriter;

pub(crate) const KIND: &str = "file";
const TERM: &str = "term-";

/// A store in a directory of plain files.
pub struct FileStore {
    home: Home,
    logs: BTreeMap<RunId, OpenLog>,
    poison: Option<Poison>,
}

/// What this handle knows of a log, so that an append reads nothing.
struct OpenLog {
    highest: Option<Epoch>,
    next_sequence: u64,
    next_segment: u64,
    writer: Option<SegmentWriter>,
}

/// A failed write; bytes of a batch that no one was told of are cut off when it is lifted.
struct Poison {
    cut: Option<segment::Cut>,
}

impl FileStore {
    /// Opens the store in `path`, or makes one.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another handle has it open; others when it cannot be read or
    /// written or holds something else.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let home = Home::open(path, KIND)?;
        let store = Self { home, logs: BTreeMap::new(), poison: None };
        store.remove_leftovers()?;
        store.make_names_durable()?;
        Ok(store)
    }

    // What a writer left that was killed in the middle of a replacement or a removal.
    fn remove_leftovers(&self) -> Result<(), StoreError> {
        durable::remove_unfinished(self.home.path())?;
        for table in [Table::JobGraphs, Table::Results] {
            durable::remove_unfinished(&self.table(table))?;
        }
        run_directory::remove_leftovers(&self.runs_directory())
    }

    // A process that was killed may have made a directory and not have synced the one above.
    fn make_names_durable(&self) -> Result<(), StoreError> {
        let documents = self.home.path().join("documents");
        for directory in [self.home.path(), &self.runs_directory(), &documents] {
            if directory.is_dir() {
                durable::sync_directory(directory)?;
            }
        }
        Ok(())
    }

    fn runs_directory(&self) -> PathBuf {
        self.home.path().join("runs")
    }

    fn run_directory(&self, run: RunId) -> RunDirectory {
        RunDirectory::new(&self.runs_directory(), run)
    }

    fn table(&self, table: Table) -> PathBuf {
        self.home.path().join("documents").join(document::table_name(table))
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.poison.is_some() {
            return Err(StoreError::Poisoned { path: self.home.path().to_owned() });
        }
        Ok(())
    }

    // After a failed write the handle is poisoned; other failures changed nothing.
    fn poison_on_failure<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Io { .. }) = &result {
            self.poison = Some(Poison { cut: None });
        }
        result
    }

    fn open_entry(&mut self, run: RunId) -> Result<&mut OpenLog, StoreError> {
        let directory = self.run_directory(run);
        match self.logs.entry(run) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let read = directory.read()?;
                Ok(entry.insert(OpenLog {
                    highest: directory.highest_claim()?,
                    next_sequence: read.next_sequence,
                    next_segment: read.next_segment,
                    writer: None,
                }))
            }
        }
    }

    fn try_append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        let directory = self.run_directory(run);
        let log = self.open_entry(run)?;
        fence::admit(log.highest, epoch)?;
        let (bytes, checksum) = frame::encode(run, epoch, log.next_sequence, batch)?;
        let writer = if let Some(writer) = log.writer.take_if(|writer| !writer.is_full()) {
            writer
        } else {
            let writer = directory.create_segment(log.next_segment)?;
            log.next_segment += 1;
            writer
        };
        let writer = log.writer.insert(writer);
        let sequence = log.next_sequence;
        if let Err(error) = writer.append(&bytes) {
            self.poison = Some(Poison { cut: Some(writer.cut()) });
            return Err(error);
        }
        log.next_sequence += 1;
        Ok(BatchPosition { segment: writer.segment(), sequence, checksum })
    }

    fn try_claim_term(&self, floor: u64) -> Result<u64, StoreError> {
        let directory = self.home.path().join("terms");
        durable::create_directory(&directory)?;
        let names = durable::names(&directory)?;
        let terms: Vec<u64> =
            names.iter().filter_map(|name| name.strip_prefix(TERM)?.parse().ok()).collect();
        let term = terms.last().map_or(0, |highest| *highest).max(floor) + 1;
        durable::create_marker(&directory.join(format!("{TERM}{term:020}")))?;
        // The highest one says all; it is durable, so the lower ones may go.
        for lower in terms {
            durable::remove_file(&directory.join(format!("{TERM}{lower:020}")))?;
        }
        Ok(term)
    }

    fn try_open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        let directory = self.run_directory(run);
        fence::claim(directory.highest_claim()?, epoch)?;
        directory.claim(epoch)?;
        let read = directory.read()?;
        directory.make_durable(&read)?;
        self.logs.insert(
            run,
            OpenLog {
                highest: Some(epoch),
                next_sequence: read.next_sequence,
                next_segment: read.next_segment,
                writer: None,
            },
        );
        Ok(read.log)
    }
}

impl EventStore for FileStore {
    fn claim_term_above(&mut self, floor: u64) -> Result<u64, StoreError> {
        self.check()?;
        let result = self.try_claim_term(floor);
        self.poison_on_failure(result)
    }

    fn open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        self.check()?;
        let result = self.try_open_log(run, epoch);
        self.poison_on_failure(result)
    }

    fn read_log(&mut self, run: RunId) -> Result<Log, StoreError> {
        self.check()?;
        Ok(self.run_directory(run).read()?.log)
    }

    fn read_part(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        self.check()?;
        self.run_directory(run).read_part(from, bytes_max)
    }

    fn append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        self.check()?;
        let result = self.try_append(run, epoch, batch);
        if self.poison.is_some() {
            return result;
        }
        self.poison_on_failure(result)
    }

    fn remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError> {
        self.check()?;
        fence::admit(self.open_entry(run)?.highest, epoch)?;
        let directory = self.run_directory(run);
        directory.check_at(position)?;
        self.poison_on_failure(directory.remove_before(position))
    }

    fn remove_log(&mut self, run: RunId) -> Result<(), StoreError> {
        self.check()?;
        self.logs.remove(&run);
        let result = self.run_directory(run).remove();
        self.poison_on_failure(result)
    }

    fn runs(&mut self) -> Result<Vec<RunId>, StoreError> {
        self.check()?;
        let names = durable::names(&self.runs_directory())?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn put(&mut self, table: Table, key: &str, document: &[u8]) -> Result<(), StoreError> {
        self.check()?;
        document::check_key(key)?;
        let bytes = document::encode(document::table_name(table), key.as_bytes(), 0, document)?;
        let directory = self.table(table);
        let result = durable::create_directory(&directory).and_then(|()| {
            durable::replace_file(&directory.join(escaped_key::escape(key)), &bytes)
        });
        self.poison_on_failure(result)
    }

    fn get(&mut self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.check()?;
        document::check_key(key)?;
        let path = self.table(table).join(escaped_key::escape(key));
        let Some(bytes) = durable::read_file(&path)? else {
            return Ok(None);
        };
        match document::decode(document::table_name(table), key.as_bytes(), &bytes) {
            Ok(document) => Ok(Some(document.bytes)),
            Err(flaw) => Err(flaw.into_error(self.home.path(), table, key)),
        }
    }

    fn keys(&mut self, table: Table) -> Result<Vec<String>, StoreError> {
        self.check()?;
        let names = durable::names(&self.table(table))?;
        let mut keys: Vec<String> =
            names.iter().filter_map(|name| escaped_key::unescape(name)).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        self.check()?;
        document::check_key(key)?;
        let directory = self.table(table);
        if !directory.is_dir() {
            return Ok(());
        }
        let result = durable::remove_file(&directory.join(escaped_key::escape(key)))
            .and_then(|()| durable::sync_directory(&directory));
        self.poison_on_failure(result)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        // Whatever happens below, nothing is written on the old files any more.
        self.logs.clear();
        if let Some(Poison { cut: Some(cut) }) = &self.poison {
            cut.carry_out()?;
        }
        self.remove_leftovers()?;
        durable::probe(self.home.path())?;
        self.poison = None;
        let verified = crate::verify(self);
        self.poison_on_failure(verified).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(1);
    const EPOCH: Epoch = Epoch::new(1, 0);

    #[test]
    fn recovery_3_7_what_a_failed_sync_left_is_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = FileStore::open(directory.path()).unwrap();
        store.open_log(RUN, EPOCH).unwrap();
        store.append(RUN, EPOCH, b"a").unwrap();
        let cut = store.logs[&RUN].writer.as_ref().unwrap().cut();
        store.append(RUN, EPOCH, b"written, but its sync failed").unwrap();
        store.poison = Some(Poison { cut: Some(cut) });
        assert!(matches!(store.append(RUN, EPOCH, b"b"), Err(StoreError::Poisoned { .. })));
        store.reopen().unwrap();
        let position = store.append(RUN, EPOCH, b"b").unwrap();
        assert_eq!((position.segment, position.sequence), (1, 1));
        let log = store.read_log(RUN).unwrap();
        assert_eq!((log.batches.len(), log.damage), (2, None));
    }

    #[test]
    fn a_part_of_a_log_is_read_without_the_segments_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = FileStore::open(directory.path()).unwrap();
        store.open_log(RUN, EPOCH).unwrap();
        let batch = vec![7; usize::try_from(SEGMENT_BYTES_MAX).unwrap()];
        for _ in 0..3 {
            store.append(RUN, EPOCH, &batch).unwrap();
        }
        let next = store.read_part(RUN, LogPlace::default(), batch.len()).unwrap().next.unwrap();
        assert_eq!(next, LogPlace { segment: 1, sequence: 1 });
        // A file that cannot be read would be an error.
        let run = directory.path().join("runs").join(RUN.to_string());
        let first = run.join(format!("segment-{:020}.log", 0));
        std::fs::remove_file(&first).unwrap();
        std::fs::create_dir(&first).unwrap();
        let part = store.read_part(RUN, next, usize::MAX).unwrap();
        assert_eq!((part.log.batches.len(), part.log.damage, part.next), (2, None, None));
        assert!(store.read_log(RUN).is_err());
    }

    #[test]
    fn segments_roll_at_their_size_and_go_when_a_snapshot_stands_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = FileStore::open(directory.path()).unwrap();
        store.open_log(RUN, EPOCH).unwrap();
        let batch = vec![7; usize::try_from(SEGMENT_BYTES_MAX / 2).unwrap()];
        let positions: Vec<BatchPosition> =
            (0..6).map(|_| store.append(RUN, EPOCH, &batch).unwrap()).collect();
        let segments: Vec<u64> = positions.iter().map(|position| position.segment).collect();
        assert_eq!(segments, [0, 0, 1, 1, 2, 2]);
        let part = store.read_part(RUN, LogPlace::default(), 3 * batch.len()).unwrap();
        assert_eq!((part.log.batches.len(), part.next.unwrap().segment), (3, 1));
        store.remove_before(RUN, EPOCH, positions[5]).unwrap();
        let names = durable::names(&directory.path().join("runs").join(RUN.to_string())).unwrap();
        let left = names.iter().filter(|name| name.starts_with("segment-")).count();
        assert_eq!((left, store.read_log(RUN).unwrap().batches.len()), (1, 1));
    }
}
