//! Why a partition could not be read.

use std::{io, path::PathBuf};

use regrow_protocol::{Epoch, PartitionId, SubpartitionRange};
use thiserror::Error;

/// Why a partition could not be read; each variant is an action of the caller.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The file is not there: run the producer again.
    #[error("partition {partition} is gone: there is no {}", .path.display())]
    Gone {
        /// What was to be read.
        partition: PartitionId,
        /// Where it should be.
        path: PathBuf,
    },
    /// The file does not hold what was written: run the producer again.
    #[error("partition {partition} is damaged at {}: {reason}", .path.display())]
    Corrupt {
        /// What was to be read.
        partition: PartitionId,
        /// Where it lies.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The system refuses to read it (out of descriptors, disk error): try again; if that does
    /// not help, run the producer again.
    #[error("partition {partition} cannot be read at {}", .path.display())]
    Unreadable {
        /// What was to be read.
        partition: PartitionId,
        /// Where it lies.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The partition has no such subpartitions: reader and producer follow different plans, which
    /// no other try cures.
    #[error(
        "partition {partition} has {subpartitions} subpartitions, {} to {} were asked for",
        .range.start, .range.end
    )]
    OutOfRange {
        /// What was to be read.
        partition: PartitionId,
        /// What was asked for; the end is exclusive.
        range: SubpartitionRange,
        /// How many there are.
        subpartitions: u32,
    },
    /// Whoever serves it cannot be reached, which says nothing of the partition: wait, and try
    /// again wherever it is served then.
    #[error("partition {partition} cannot be reached: {reason}")]
    Unreachable {
        /// What was to be read.
        partition: PartitionId,
        /// Where and how long it was tried, and what was found at last.
        reason: String,
    },
    /// A later master leads the run: what the reader does counts for nobody.
    #[error("partition {partition} is not for readers before epoch {known}")]
    Stale {
        /// What was to be read.
        partition: PartitionId,
        /// The epoch that its server knows.
        known: Epoch,
    },
    /// The reader was told to stop.
    #[error("the reader of partition {partition} was told to stop")]
    Stopped {
        /// What was to be read.
        partition: PartitionId,
    },
}

/// `ENFILE` and `EMFILE`: the host is short of something, the partition is sound.
const OUT_OF_DESCRIPTORS: [i32; 2] = [23, 24];

impl FetchError {
    /// Whether the system refused a read for want of descriptors: the partition is sound.
    pub fn is_out_of_descriptors(source: &io::Error) -> bool {
        source.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
    }
}
