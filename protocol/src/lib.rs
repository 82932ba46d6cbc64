//! What two machines, or two versions of Regrow, must agree on: ids, epochs, messages, encoding.
//!
//! Invariants:
//! - Every type here is a promise of format. Fields and variants are added with defaults, never
//!   renamed, and nothing changes its meaning.
//! - Every message is one-way; an answer is another message that names its question.
//! - No clock, randomness or input and output: ids are made from bits that a caller brings.

mod accumulators;
mod codec;
mod deployment;
mod envelope;
mod epoch;
mod execution;
mod finish_record;
mod frames;
mod hello;
mod job_id;
mod messages;
mod opaque_bytes;
mod partition_read;
mod random_id;
mod split;
mod stable_hash;
mod subpartition_bytes;
mod task_failure;
mod varint;

pub use accumulators::{
    ACCUMULATOR_BYTES_MAX, Accumulator, AccumulatorKind, Accumulators, CollectedRecords,
};
pub use codec::{DecodeError, EncodeError, decode, encode};
pub use deployment::{
    DirectoryLocation, InputGate, OutputSpec, PinnedSplits, ProducerPartition, SinkTarget,
    SubpartitionRange, TaskDeployment,
};
pub use envelope::Envelope;
pub use epoch::Epoch;
pub use execution::{
    DataSetId, ExecutionAttemptId, ExecutionVertexId, InputId, JobVertexId, PartitionId, PlanId,
};
pub use finish_record::{FinishRecord, PartitionMetrics, StagedFile, TaskMetrics};
pub use frames::{FromWorker, ToWorker};
pub use hello::{Hello, HelloError, PROTOCOL_VERSION, Role};
pub use job_id::{JobId, JobIdError};
pub use messages::{
    Inventory, PartitionKeeper, ReportAnswer, RunStanding, ToJobMaster, ToShuffleService,
    ToTaskExecutor, WorkerDescription,
};
pub use opaque_bytes::OpaqueBytes;
pub use partition_read::{FromPartitionServer, ReadRefusal, ReadRequest, ToPartitionServer};
pub use random_id::{DataDirectoryId, RandomIdError, RunId, SubmissionId, WorkerId};
pub use split::{Split, SplitId};
pub use stable_hash::StableHasher;
pub use subpartition_bytes::SubpartitionBytes;
pub use task_failure::TaskFailure;
pub use varint::{read_varint, write_varint};
