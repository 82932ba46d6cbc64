//! Why an attempt could not write or seal its outputs.

use regrow_protocol::{DataSetId, EncodeError, RunId};
use thiserror::Error;

use crate::{
    DiskError, block_header::BLOCK_BYTES_MAX, finish_frame::FINISH_RECORD_BYTES_MAX,
    footer::SUBPARTITIONS_MAX,
};

/// Why an attempt could not write or seal its outputs. Nothing of it is left once its writer is
/// dropped.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The run was released meanwhile: end the attempt, nobody waits for it.
    #[error("run {run} has been released")]
    Released {
        /// Which one.
        run: RunId,
    },
    /// The disk refused: another try may help, at best on another worker.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An earlier call on this writer failed, and told why: drop it.
    #[error("an earlier write of this attempt failed")]
    Failed,
    /// The block is too long: write smaller ones.
    #[error("a block of {bytes} bytes is too long, at most {BLOCK_BYTES_MAX} are possible")]
    BlockTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The output or subpartition does not exist: a defect of the caller.
    #[error("there is no subpartition {subpartition} of output {output}")]
    NoSuchSubpartition {
        /// Index of the output.
        output: usize,
        /// The subpartition.
        subpartition: u32,
    },
    /// The number of subpartitions is out of range: a defect of the plan.
    #[error(
        "data set {data_set} cannot have {subpartitions} subpartitions, only 1 to {SUBPARTITIONS_MAX}"
    )]
    SubpartitionCount {
        /// Of which data set.
        data_set: DataSetId,
        /// How many were asked for.
        subpartitions: u32,
    },
    /// Two outputs are for one data set: a defect of the plan.
    #[error("two outputs of the attempt are for data set {data_set}")]
    DuplicateDataSet {
        /// Which one.
        data_set: DataSetId,
    },
    /// The finish record is too long: use fewer accumulators, splits or staged files per task.
    #[error(
        "a finish record of {bytes} bytes is too long, at most {FINISH_RECORD_BYTES_MAX} are possible"
    )]
    RecordTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The finish record cannot be encoded: a defect.
    #[error("cannot encode the finish record")]
    Encode(#[from] EncodeError),
}
