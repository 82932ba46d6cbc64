//! The proof that an attempt finished.

use serde::{Deserialize, Serialize};

use crate::{
    Accumulators, DataSetId, ExecutionAttemptId, InputId, PartitionId, PlanId, SplitId,
    SubpartitionBytes,
};

/// All that a `JobMaster` needs to count an attempt as finished, sealed beside its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishRecord {
    /// Who finished; names the run.
    pub attempt: ExecutionAttemptId,
    /// The plan of its vertex at the time.
    pub plan: PlanId,
    /// What it read, one per input edge, in the order of the edges.
    pub inputs: Vec<InputId>,
    /// What it produced, one per data set of its vertex, in their order.
    pub outputs: Vec<PartitionMetrics>,
    /// What it did.
    pub metrics: TaskMetrics,
    /// What it counted.
    pub accumulators: Accumulators,
    /// The splits it read, in the order it got them.
    pub splits: Vec<SplitId>,
    /// The files it staged for the sinks of its vertex.
    pub staged_files: Vec<StagedFile>,
}

impl FinishRecord {
    /// The partitions it produced.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + '_ {
        self.outputs
            .iter()
            .map(|output| PartitionId { attempt: self.attempt, data_set: output.data_set })
    }
}

/// Size and shape of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionMetrics {
    /// For which data set.
    pub data_set: DataSetId,
    /// Bytes of records per subpartition, as consumers read them.
    pub subpartition_bytes: SubpartitionBytes,
    /// Records in all subpartitions.
    pub records: u64,
    /// CRC32C over the index of the partition, which holds a checksum of each block.
    pub checksum: u32,
}

/// What an attempt did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMetrics {
    /// Records read from inputs or splits.
    pub records_in: u64,
    /// Bytes read from inputs or splits.
    pub bytes_in: u64,
    /// Records written to outputs or sinks.
    pub records_out: u64,
    /// Bytes written to outputs or sinks.
    pub bytes_out: u64,
    /// From dispatch at the worker to the seal.
    pub duration_ms: u64,
}

/// A file that a sink task wrote and that a commit will publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Index of the sink within its job, from 0.
    pub sink: u32,
    /// Name within the hidden directory of the run.
    pub staged_name: String,
    /// Name that it gets in the output directory.
    pub final_name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC32C of its content.
    pub checksum: u32,
}
