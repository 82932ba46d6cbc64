//! One input of an attempt: the partitions of its producers, one after the other.

use std::path::{Path, PathBuf};

use regrow_protocol::{InputGate, ProducerPartition, TaskFailure, TaskMetrics};
use regrow_runtime::with_causes;
use regrow_shuffle::{FetchError, PartitionReader};

/// `ENFILE` and `EMFILE`: the host is short of something, the partition is sound.
const OUT_OF_DESCRIPTORS: [i32; 2] = [23, 24];

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
        FetchError::Unreadable { partition, source, .. } => {
            let out_of_descriptors =
                source.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code));
            if out_of_descriptors {
                return TaskFailure::task(format!("{reason}; raise the limit of open files"));
            }
            // A disk that does not give back what was written: another try reads the same.
            TaskFailure::InputLost { partition, reason }
        }
        FetchError::OutOfRange { .. } => TaskFailure::unrecoverable(reason),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use regrow_protocol::{DataSetId, PartitionId, SubpartitionRange};

    use super::*;
    use crate::worker::bench::attempt;

    #[test]
    fn fault_39_each_error_of_a_read_leads_to_its_own_action() {
        let partition = PartitionId { attempt: attempt(1, 0), data_set: DataSetId(0) };
        let path = PathBuf::from("/data/p");
        let unreadable = |code| FetchError::Unreadable {
            partition,
            path: path.clone(),
            source: io::Error::from_raw_os_error(code),
        };
        let lost = [
            FetchError::Gone { partition, path: path.clone() },
            FetchError::Corrupt { partition, path: path.clone(), reason: "bits".to_owned() },
            unreadable(5),
        ];
        for error in lost {
            let text = error.to_string();
            let failure = fetch_failure(error);
            let TaskFailure::InputLost { partition: named, reason } = failure else {
                panic!("{failure:?}");
            };
            assert_eq!(named, partition);
            assert!(reason.starts_with(&text), "{reason}");
        }
        for code in OUT_OF_DESCRIPTORS {
            assert!(matches!(fetch_failure(unreadable(code)), TaskFailure::Task { .. }));
        }
        let range = SubpartitionRange { start: 4, end: 9 };
        let error = FetchError::OutOfRange { partition, range, subpartitions: 2 };
        assert!(matches!(fetch_failure(error), TaskFailure::Unrecoverable { .. }));
    }
}
