//! The contract of event stores.

use std::fmt;

use regrow_protocol::{Epoch, RunId};

use crate::StoreError;

/// Stores batches of events per run, and small documents.
///
/// Calls block for as long as the disk needs: use it from a thread of its own.
pub trait EventStore: Send {
    /// Claims the next term of leadership: greater than any that was ever claimed here, durable.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn claim_term(&mut self) -> Result<u64, StoreError> {
        self.claim_term_above(0)
    }

    /// As [`claim_term`](Self::claim_term), and greater than `floor`: the highest term that is
    /// known from elsewhere, which counts where the store has lost its own.
    ///
    /// # Errors
    /// As [`claim_term`](Self::claim_term).
    fn claim_term_above(&mut self, floor: u64) -> Result<u64, StoreError>;

    /// Claims `epoch` of `run`, makes durable what can be read of its log, and returns it. From
    /// here on an append of a lower epoch is refused. A run without a log has an empty one. An
    /// incomplete batch at its end ([`LogDamage::INCOMPLETE_END`]) is reported once, and cut off.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when an equal or higher epoch was claimed; others when the store
    /// cannot be read or written: `epoch` may be claimed then, so the next try takes a higher one.
    fn open_log(&mut self, run: RunId, epoch: Epoch) -> Result<Log, StoreError>;

    /// Reads a log without claiming anything.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn read_log(&mut self, run: RunId) -> Result<Log, StoreError>;

    /// Reads a part of a log without claiming anything: the batches from `from` on, until they have
    /// `bytes_max` bytes together, one at least. What lies before is not read, so that a log can be
    /// read part by part while it is written.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn read_part(
        &mut self,
        run: RunId,
        from: LogPlace,
        bytes_max: usize,
    ) -> Result<LogPart, StoreError>;

    /// Appends `batch`. It is on stable storage when this returns.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when a higher epoch was claimed, or this one never;
    /// [`StoreError::Invalid`] when the batch is empty or above
    /// [`BATCH_BYTES_MAX`](crate::BATCH_BYTES_MAX); others poison the handle: nothing is known of
    /// the batch until [`reopen`](Self::reopen).
    fn append(
        &mut self,
        run: RunId,
        epoch: Epoch,
        batch: &[u8],
    ) -> Result<BatchPosition, StoreError>;

    /// Removes all batches of `run` before `position`; safe at each step. The batch at `position`
    /// must be one that replaces them.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn remove_before(
        &mut self,
        run: RunId,
        epoch: Epoch,
        position: BatchPosition,
    ) -> Result<(), StoreError>;

    /// Removes the log of `run` with its claims of epochs.
    ///
    /// # Errors
    /// As [`append`](Self::append), without fencing.
    fn remove_log(&mut self, run: RunId) -> Result<(), StoreError>;

    /// Runs whose log was opened and not removed, ascending.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn runs(&mut self) -> Result<Vec<RunId>, StoreError>;

    /// Stores a document under `key`, in place of one that is there; durable.
    ///
    /// # Errors
    /// As [`append`](Self::append), without fencing.
    fn put(&mut self, table: Table, key: &str, document: &[u8]) -> Result<(), StoreError>;

    /// The document under `key`. One whose checksum is wrong is an error that names it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&mut self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The keys of a table, ascending.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn keys(&mut self, table: Table) -> Result<Vec<String>, StoreError>;

    /// Removes the document under `key`, if there is one; durable.
    ///
    /// # Errors
    /// As [`append`](Self::append), without fencing.
    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError>;

    /// Opens the store afresh after a failure, verifies it, and lifts the poison.
    ///
    /// # Errors
    /// When the store still cannot be read or written; try again later.
    fn reopen(&mut self) -> Result<(), StoreError>;
}

/// A table of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Accepted jobs, by job id.
    JobGraphs,
    /// Results of terminal jobs, by job id.
    Results,
}

/// What was read of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The valid batches, in order.
    pub batches: Vec<LogBatch>,
    /// What was found wrong, if anything; the batches end before it, or (when a later batch may
    /// stand for all before it) go on behind it: see [`LogBatch::follows_damage`].
    pub damage: Option<LogDamage>,
}

/// A place in a log, between two batches. The default one is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// Segment of the batch behind it; 0 for stores without segments. Nothing is read of those
    /// before it.
    pub segment: u64,
    /// Sequence number of the batch behind it.
    pub sequence: u64,
}

/// What was read of a part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPart {
    /// Sequence number before which all batches were removed; if it is above that of the place from
    /// which on was read, a snapshot stands for what lies between.
    pub start: u64,
    /// The batches and what is wrong with this part, as in a whole log.
    pub log: Log,
    /// Where the next part begins; none at the end of the log.
    pub next: Option<LogPlace>,
}

/// One batch of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBatch {
    /// Where it stands.
    pub position: BatchPosition,
    /// Who wrote it.
    pub epoch: Epoch,
    /// Whether a damage or gap lies between it and the valid batches before: it counts only if it,
    /// or one after the damage before it, is a full snapshot.
    pub follows_damage: bool,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// A position in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchPosition {
    /// Segment, from 0; 0 for stores without segments.
    pub segment: u64,
    /// Sequence number of the batch within the log, from 0, without gaps.
    pub sequence: u64,
    /// CRC32C of the batch.
    pub checksum: u32,
}

/// Something wrong in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Segment in which it lies.
    pub segment: u64,
    /// Sequence number of the first batch that cannot be read.
    pub sequence: u64,
    /// Byte offset within the segment's file, where there is one.
    pub offset: Option<u64>,
    /// What was found.
    pub reason: String,
}

impl LogDamage {
    /// The reason when the last bytes of the log are a batch that was never written whole: what a
    /// writer leaves that is killed in mid-append. Such a batch was not acknowledged.
    pub const INCOMPLETE_END: &str = "incomplete batch at the end";
}

/// Where, then what: `segment 0, batch 3, byte 17: a wrong checksum`.
impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, sequence, offset, reason } = self;
        write!(f, "segment {segment}, batch {sequence}")?;
        if let Some(offset) = offset {
            write!(f, ", byte {offset}")?;
        }
        write!(f, ": {reason}")
    }
}
