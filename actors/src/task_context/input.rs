//! One input of an attempt: the partitions of its producers, one after the other.

use std::path::{Path, PathBuf};

use regrow_protocol::{InputGate, ProducerPartition, TaskFailure, TaskMetrics};
use regrow_shuffle::{FetchError, PartitionReader};

use crate::error_text::with_causes;

/// Reads the subpartitions of one producer after the other.
pub(super) struct Input {
    /// The directory that holds all data directories of this host.
    root: PathBuf,
    /// Index of the next producer to open.
    next: usize,
    open: Option<PartitionReader>,
}

impl Input {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), next: 0, open: None }
    }

    /// Reads the next block into `block`; false at the end of the last producer.
    pub(super) fn read_block(
        &mut self,
        gate: &InputGate,
        block: &mut Vec<u8>,
        metrics: &mut TaskMetrics,
    ) -> Result<bool, TaskFailure> {
        block.clear();
        if gate.subpartitions.start >= gate.subpartitions.end {
            return Ok(false);
        }
        loop {
            if self.read_open(block)? {
                metrics.bytes_in = metrics.bytes_in.saturating_add(block.len() as u64);
                return Ok(true);
            }
            let Some(producer) = gate.producers.get(self.next) else { return Ok(false) };
            self.next += 1;
            let ProducerPartition { partition, data_directory } = *producer;
            let range = gate.subpartitions;
            let reader = PartitionReader::open(&self.root, data_directory, partition, range)
                .map_err(fetch_failure)?;
            metrics.records_in = metrics.records_in.saturating_add(reader.records());
            self.open = Some(reader);
        }
    }

    /// Reads the next block of the open producer; false when there is none.
    fn read_open(&mut self, block: &mut Vec<u8>) -> Result<bool, TaskFailure> {
        let Some(reader) = &mut self.open else { return Ok(false) };
        if reader.next_block(block).map_err(fetch_failure)? {
            return Ok(true);
        }
        self.open = None;
        Ok(false)
    }
}

/// What an unreadable partition means for the attempt.
fn fetch_failure(error: FetchError) -> TaskFailure {
    let reason = with_causes(&error);
    match error {
        FetchError::Gone { partition, .. } | FetchError::Corrupt { partition, .. } => {
            TaskFailure::InputLost { partition, reason }
        }
        // Out of descriptors, say: the partition itself may be sound.
        FetchError::Unreadable { .. } => TaskFailure::task(reason),
        FetchError::OutOfRange { .. } => TaskFailure::unrecoverable(reason),
    }
}
