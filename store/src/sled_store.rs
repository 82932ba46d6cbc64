//! The store on sled: the default.
//!
//! ```text
//! lock, FORMAT          see `home`
//! database-<number>/    sled's; one that is newer and whole replaces those before
//! witness               see `witness`
//! ```
//! Trees: `batches` holds one frame under run id and sequence number, so that a log is one range;
//! `runs` the record of each run; `terms` the highest term; a tree per table its documents.

mod database;
mod database_directory;
mod documents;
mod keys;
mod run_record;
mod witness;

use std::{collections::BTreeMap, ops::ControlFlow, path::Path};

use regrow_protocol::{Epoch, RunId};

use crate::{
    BatchPosition, EventStore, Log, LogPart, LogPlace, StoreError, Table, document, fence, frame,
    home::{self, Home},
    log_assembler::LogAssembler,
};
use database::{Database, Tree};
use database_directory::DatabaseDirectory;
use keys::{RUN_WITNESS, batch_key, document_witness, frame_at, run_key, tree, witness_key};
use run_record::RunRecord;
use witness::{Testimony, Witness};

const KIND: &str = "sled";
const TERM_KEY: &[u8] = b"term";

/// A store in a directory with a sled database.
pub struct SledStore {
    // Closed before the lock is given back: fields are dropped in this order.
    database: Option<Database>,
    witness: Witness,
    directory: DatabaseDirectory,
    logs: BTreeMap<RunId, OpenLog>,
    poison: Option<Poison>,
    home: Home,
}

/// What this handle knows of a log, so that an append reads nothing.
struct OpenLog {
    record: RunRecord,
    next_sequence: u64,
}

/// What has to be done before the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poison {
    /// The disk was full: what is on it is sound.
    Reopen,
    /// A sync failed: what can be read may not be on the disk, so all is written once more.
    Rewrite,
}

/// What was read of a log, and where writing goes on.
struct ReadLog {
    log: Log,
    record: RunRecord,
    next_sequence: u64,
}

impl SledStore {
    /// Opens the store in `path`, or makes one.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another handle has it open; others when it cannot be read or
    /// written or holds something else.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let home = Home::open(path, KIND)?;
        let directory = DatabaseDirectory::open(path)?;
        let witness = Witness::open(&path.join("witness"))?;
        let database = Some(Database::open(&directory.current())?);
        Ok(Self { database, witness, directory, logs: BTreeMap::new(), poison: None, home })
    }

    /// Writes all that is alive into a new database, for the old one's files rarely shrink.
    /// Returns the bytes before and after.
    ///
    /// # Errors
    /// As [`EventStore::append`], without fencing.
    pub fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        let before = self.bytes_on_disk()?;
        let result = self.rewrite();
        self.poison_on_failure(result)?;
        Ok((before, self.bytes_on_disk()?))
    }

    /// Bytes of all files of the store.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        home::bytes_on_disk(self.home.path())
    }

    fn rewrite(&mut self) -> Result<(), StoreError> {
        let next = self.directory.begin_next()?;
        self.database()?.copy_to(&next)?;
        self.database = None;
        self.directory.finish_next()?;
        self.database = Some(Database::open(&self.directory.current())?);
        Ok(())
    }

    fn database(&mut self) -> Result<&mut Database, StoreError> {
        if self.poison.is_none()
            && let Some(database) = &mut self.database
        {
            return Ok(database);
        }
        Err(StoreError::Poisoned { path: self.home.path().to_owned() })
    }

    // A failed write says nothing of what is stored; a panic of sled nothing of its state.
    fn poison_on_failure<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Err(StoreError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                self.poison = self.poison.or(Some(Poison::Reopen));
            }
            Err(StoreError::Io { .. } | StoreError::Damaged { .. }) => {
                self.poison = Some(Poison::Rewrite);
            }
            Ok(_) | Err(_) => {}
        }
        result
    }

    fn read(&mut self, run: RunId) -> Result<ReadLog, StoreError> {
        let testimony = self.witness.of(&witness_key(run)).unwrap_or_default();
        let database = self.database()?;
        let stored = database.get(Tree::Runs, &run_key(run))?;
        let record = stored.as_deref().map(|bytes| RunRecord::decode(run, bytes)).transpose();
        let (mut record, mut assembler) = match record {
            Ok(record) => {
                let record = record.unwrap_or_default();
                (record, LogAssembler::new(record.start))
            }
            Err(reason) => {
                let mut assembler = LogAssembler::new(0);
                assembler.damage(0, None, format!("record of the run: {reason}"));
                (RunRecord::default(), assembler)
            }
        };
        let first = batch_key(run, assembler.next_sequence());
        let mut claimed = record.highest;
        let visited =
            database.visit(Tree::Batches, (&first, &batch_key(run, u64::MAX)), |key, value| {
                match frame_at(run, key, value) {
                    Ok(frame) => {
                        claimed = claimed.max(Some(frame.epoch));
                        assembler.batch(0, None, frame);
                    }
                    Err(reason) => assembler.damage(0, None, reason),
                }
            });
        match visited {
            Ok(()) => {}
            // What cannot be read of this log is the damage of this log, not of the others.
            Err(StoreError::Damaged { reason, .. }) => assembler.damage(0, None, reason),
            Err(error) => return Err(error),
        }
        record.highest =
            claimed.max((testimony != Testimony::default()).then_some(testimony.epoch));
        let unreadable = u64::from(assembler.ends_damaged());
        let started = if record.start > 0 { record.start + 1 } else { 0 };
        let end = testimony.number.max(started);
        let next_sequence = end.max(assembler.next_sequence() + unreadable);
        Ok(ReadLog { log: assembler.finish(end), record, next_sequence })
    }

    fn read_from(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        let testimony = self.witness.of(&witness_key(run)).unwrap_or_default();
        let database = self.database()?;
        let stored = database.get(Tree::Runs, &run_key(run))?;
        let record = stored.as_deref().map(|bytes| RunRecord::decode(run, bytes)).transpose();
        let start = record.as_ref().map_or(0, |record| record.unwrap_or_default().start);
        let first = start.max(from.sequence);
        let mut assembler = LogAssembler::part(first, bytes_max);
        if let Err(reason) = record
            && first == 0
        {
            assembler.damage(0, None, format!("record of the run: {reason}"));
        }
        let range = (&batch_key(run, first)[..], &batch_key(run, u64::MAX)[..]);
        let visited = database.visit_until(Tree::Batches, range, |key, value| {
            match frame_at(run, key, value) {
                Ok(frame) => assembler.batch(0, None, frame),
                Err(reason) => assembler.damage(0, None, reason),
            }
            if assembler.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match visited {
            Ok(()) => {}
            // As in a log that is read whole.
            Err(StoreError::Damaged { reason, .. }) => assembler.damage(0, None, reason),
            Err(error) => return Err(error),
        }
        let started = if start > 0 { start + 1 } else { 0 };
        Ok(assembler.finish_part(start, testimony.number.max(started)))
    }

    fn open_entry(&mut self, run: RunId) -> Result<&mut OpenLog, StoreError> {
        if !self.logs.contains_key(&run) {
            let ReadLog { record, next_sequence, .. } = self.read(run)?;
            self.logs.insert(run, OpenLog { record, next_sequence });
        }
        Ok(self
            .logs
            .entry(run)
            .or_insert_with(|| OpenLog { record: RunRecord::default(), next_sequence: 0 }))
    }

    fn put_record(&mut self, run: RunId, record: RunRecord) -> Result<(), StoreError> {
        let bytes = record.encode(run)?;
        let database = self.database()?;
        database.insert(Tree::Runs, &run_key(run), bytes)?;
        database.sync()
    }

    fn try_open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        let ReadLog { log, record, next_sequence } = self.read(run)?;
        fence::claim(record.highest, epoch)?;
        let record = RunRecord { highest: Some(epoch), ..record };
        // The sync in it makes what was read durable as well.
        self.put_record(run, record)?;
        self.logs.insert(run, OpenLog { record, next_sequence });
        self.witness.note(&witness_key(run), Testimony { epoch, number: next_sequence });
        Ok(log)
    }

    fn try_append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        let log = self.open_entry(run)?;
        fence::admit(log.record.highest, epoch)?;
        let sequence = log.next_sequence;
        let (bytes, checksum) = frame::encode(run, epoch, sequence, batch)?;
        let database = self.database()?;
        database.insert(Tree::Batches, &batch_key(run, sequence), bytes)?;
        database.sync()?;
        self.open_entry(run)?.next_sequence += 1;
        self.witness.note(&witness_key(run), Testimony { epoch, number: sequence + 1 });
        Ok(BatchPosition { segment: 0, sequence, checksum })
    }

    fn try_remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError> {
        let record = self.open_entry(run)?.record;
        fence::admit(record.highest, epoch)?;
        let database = self.database()?;
        let bytes = database.get(Tree::Batches, &batch_key(run, position.sequence))?;
        frame::check_at(run, position, bytes.as_deref())?;
        // Durable first: from here on what lies before counts as removed, whether it is or not.
        let record = RunRecord { start: record.start.max(position.sequence), ..record };
        self.put_record(run, record)?;
        self.open_entry(run)?.record = record;
        let Some(last) = position.sequence.checked_sub(1) else {
            return Ok(());
        };
        let database = self.database()?;
        let range = (&batch_key(run, 0)[..], &batch_key(run, last)[..]);
        let keys = database.keys(Tree::Batches, range)?;
        database.remove(Tree::Batches, &keys)?;
        database.sync()
    }

    fn try_remove_log(&mut self, run: RunId) -> Result<(), StoreError> {
        self.logs.remove(&run);
        self.witness.forget(&witness_key(run))?;
        let database = self.database()?;
        let range = (&batch_key(run, 0)[..], &batch_key(run, u64::MAX)[..]);
        let keys = database.keys(Tree::Batches, range)?;
        // The record is last: while batches are left, so are the claims.
        database.remove(Tree::Batches, &keys)?;
        database.remove(Tree::Runs, &[run_key(run)])?;
        database.sync()
    }

    fn try_claim_term(&mut self, floor: u64) -> Result<u64, StoreError> {
        let witnessed = self.witness.of(TERM_KEY).map_or(0, |testimony| testimony.number);
        let witnessed = witnessed.max(floor);
        let path = self.home.path().to_owned();
        let database = self.database()?;
        let stored = database.get(Tree::Terms, TERM_KEY)?;
        let name = Tree::Terms.name();
        let stored = stored.map(|bytes| document::decode(name, TERM_KEY, &bytes)).transpose();
        let stored = match stored {
            Ok(document) => document.map_or(0, |document| document.revision),
            // The witness, or the caller, is as good a witness.
            Err(_) if witnessed > 0 => witnessed,
            Err(flaw) => {
                let reason = format!("the highest term: {flaw}");
                return Err(StoreError::Damaged { path, reason });
            }
        };
        let term = stored.max(witnessed) + 1;
        let bytes = document::encode(name, TERM_KEY, term, &[])?;
        database.insert(Tree::Terms, TERM_KEY, bytes)?;
        database.sync()?;
        self.witness.note(TERM_KEY, Testimony { epoch: Epoch::default(), number: term });
        Ok(term)
    }

    fn try_reopen(&mut self) -> Result<(), StoreError> {
        let poison = self.poison.unwrap_or(Poison::Reopen);
        self.logs.clear();
        self.database = None;
        // Without a database every call finds the store poisoned.
        self.database = Some(Database::open(&self.directory.current())?);
        self.poison = None;
        let result = self.make_whole(poison);
        if result.is_err() {
            self.poison = Some(poison);
        }
        result
    }

    fn make_whole(&mut self, poison: Poison) -> Result<(), StoreError> {
        if poison == Poison::Rewrite {
            self.rewrite()?;
        }
        crate::durable::probe(self.home.path())?;
        crate::verify(self).map(drop)
    }
}

impl EventStore for SledStore {
    fn claim_term_above(&mut self, floor: u64) -> Result<u64, StoreError> {
        let result = self.try_claim_term(floor);
        self.poison_on_failure(result)
    }

    fn open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError> {
        let result = self.try_open_log(run, epoch);
        self.poison_on_failure(result)
    }

    fn read_log(&mut self, run: RunId) -> Result<Log, StoreError> {
        Ok(self.read(run)?.log)
    }

    fn read_part(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError> {
        self.read_from(run, from, bytes_max)
    }

    fn append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError> {
        let result = self.try_append(run, epoch, batch);
        self.poison_on_failure(result)
    }

    fn remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError> {
        let result = self.try_remove_before(run, epoch, position);
        self.poison_on_failure(result)
    }

    fn remove_log(&mut self, run: RunId) -> Result<(), StoreError> {
        let result = self.try_remove_log(run);
        self.poison_on_failure(result)
    }

    fn runs(&mut self) -> Result<Vec<RunId>, StoreError> {
        let whole = (&[][..], &[0xff; 17][..]);
        let mut keys = self.database()?.keys(Tree::Runs, whole)?;
        keys.extend(self.witness.keys(RUN_WITNESS).map(<[u8]>::to_vec));
        keys.sort_unstable();
        keys.dedup();
        let bits = |key: Vec<u8>| Some(u128::from_be_bytes(*key.as_array()?));
        Ok(keys.into_iter().filter_map(bits).map(RunId::from_bits).collect())
    }

    fn put(&mut self, table: Table, key: &str, document: &[u8]) -> Result<(), StoreError> {
        let result = self.try_put(table, key, document);
        self.poison_on_failure(result)
    }

    fn get(&mut self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get_document(table, key)?.map(|document| document.bytes))
    }

    fn keys(&mut self, table: Table) -> Result<Vec<String>, StoreError> {
        let whole = (&[][..], &[0xff; 256][..]);
        let mut keys = self.database()?.keys(tree(table), whole)?;
        keys.extend(self.witness.keys(&document_witness(table, "")).map(<[u8]>::to_vec));
        keys.sort_unstable();
        keys.dedup();
        Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect())
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        let result = self.try_remove(table, key);
        self.poison_on_failure(result)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.try_reopen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(1);
    const EPOCH: Epoch = Epoch::new(1, 0);

    #[test]
    fn recovery_3_7_after_a_failed_sync_all_is_written_once_more() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SledStore::open(directory.path()).unwrap();
        store.open_log(RUN, EPOCH).unwrap();
        store.append(RUN, EPOCH, b"a").unwrap();
        let failed = StoreError::Io {
            action: "sync",
            path: directory.path().to_owned(),
            source: std::io::Error::other("failed"),
        };
        assert!(store.poison_on_failure::<()>(Err(failed)).is_err());
        assert!(matches!(store.append(RUN, EPOCH, b"b"), Err(StoreError::Poisoned { .. })));
        store.reopen().unwrap();
        assert_eq!(store.directory.current(), directory.path().join("database-000001"));
        assert_eq!(store.append(RUN, EPOCH, b"b").unwrap().sequence, 1);
        assert_eq!(store.read_log(RUN).unwrap().batches.len(), 2);
    }

    #[test]
    fn a_refused_call_poisons_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SledStore::open(directory.path()).unwrap();
        assert!(matches!(store.append(RUN, EPOCH, b"a"), Err(StoreError::Fenced { .. })));
        assert!(matches!(store.put(Table::Results, "", b"a"), Err(StoreError::Invalid { .. })));
        store.open_log(RUN, EPOCH).unwrap();
    }
}
