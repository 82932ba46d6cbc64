//! Why a partition could not be read.

use std::{io, path::PathBuf};

use regrow_protocol::{PartitionId, SubpartitionRange};
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
}
