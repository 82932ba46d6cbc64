//! What a running attempt sees: its inputs, outputs, splits and counters.

mod input;
mod split_source;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use regrow_protocol::{
    ACCUMULATOR_BYTES_MAX, Accumulators, FinishRecord, Split, StagedFile, TaskDeployment,
    TaskFailure, TaskMetrics,
};
use regrow_runtime::with_causes;
use regrow_shuffle::{AttemptWriter, DataDirectory, RemoteReads, WriteError};
use tokio::time::Instant;

use crate::task::{NextSplit, TaskContext};
use input::{Input, Sources};
use split_source::SplitSource;

pub(crate) use split_source::Wait;

/// The surroundings of one attempt. Dropped before it is sealed, it leaves nothing behind.
pub(crate) struct AttemptContext {
    deployment: Box<TaskDeployment>,
    cancelled: Arc<AtomicBool>,
    inputs: Vec<Input>,
    splits: SplitSource,
    writer: AttemptWriter,
    staged_files: Vec<StagedFile>,
    accumulators: Accumulators,
    metrics: TaskMetrics,
}

impl AttemptContext {
    /// Opens the outputs of an attempt in `directory`; its inputs are opened when they are read,
    /// those of other hosts as `remote` says.
    pub(crate) fn open(
        deployment: Box<TaskDeployment>,
        directory: &Arc<DataDirectory>,
        remote: Option<Arc<RemoteReads>>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Self, TaskFailure> {
        let writer = AttemptWriter::create(
            directory,
            deployment.attempt,
            &deployment.outputs,
            deployment.memory_bytes,
        )
        .map_err(write_failure)?;
        let sources = Sources {
            root: directory.root().to_owned(),
            locations: deployment.locations.as_slice().into(),
            remote,
            epoch: deployment.attempt.epoch,
            cancelled: Arc::clone(&cancelled),
        };
        let inputs = deployment.inputs.iter().map(|_| Input::new(sources.clone())).collect();
        Ok(Self {
            inputs,
            splits: SplitSource::new(&deployment.splits),
            writer,
            staged_files: Vec::new(),
            accumulators: Accumulators::default(),
            metrics: TaskMetrics::default(),
            deployment,
            cancelled,
        })
    }

    /// The task waits for a split; says whether one must be asked for.
    pub(crate) fn await_split(&mut self) -> Result<Wait, TaskFailure> {
        self.splits.next()
    }

    /// The answer to the open request came.
    pub(crate) fn deliver_split(&mut self, split: Option<Split>) {
        self.splits.deliver(split);
    }

    /// Closes all outputs and seals the finish record: the attempt is finished, whatever happens.
    pub(crate) fn seal(self, started: Instant) -> Result<FinishRecord, TaskFailure> {
        check_accumulators(&self.accumulators)?;
        let duration = started.elapsed().as_millis();
        let metrics = TaskMetrics {
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
            ..self.metrics
        };
        let record = FinishRecord {
            attempt: self.deployment.attempt,
            plan: self.deployment.plan,
            inputs: self.deployment.inputs.iter().map(|gate| gate.input).collect(),
            outputs: Vec::new(),
            metrics,
            accumulators: self.accumulators,
            splits: self.splits.into_read(),
            staged_files: self.staged_files,
        };
        self.writer.seal(record).map_err(write_failure)
    }
}

impl TaskContext for AttemptContext {
    fn deployment(&self) -> &TaskDeployment {
        &self.deployment
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn take_split(&mut self) -> Option<NextSplit> {
        self.splits.take()
    }

    fn read_block(&mut self, input: usize, block: &mut Vec<u8>) -> Result<bool, TaskFailure> {
        let gates = &self.deployment.inputs;
        let (Some(gate), Some(reader)) = (gates.get(input), self.inputs.get_mut(input)) else {
            return Err(TaskFailure::unrecoverable(format!(
                "the task has {} inputs and reads number {input}, counted from 0",
                gates.len()
            )));
        };
        reader.read_block(gate, block, &mut self.metrics)
    }

    fn write_block(
        &mut self,
        output: usize,
        subpartition: u32,
        block: &[u8],
        records: u64,
    ) -> Result<(), TaskFailure> {
        self.writer.write_block(output, subpartition, block, records).map_err(write_failure)?;
        self.metrics.records_out = self.metrics.records_out.saturating_add(records);
        self.metrics.bytes_out = self.metrics.bytes_out.saturating_add(block.len() as u64);
        Ok(())
    }

    fn add_staged_file(&mut self, file: StagedFile) {
        self.staged_files.push(file);
    }

    fn spill_directory(&mut self) -> Result<&Path, TaskFailure> {
        self.writer.spill_directory().map_err(write_failure)
    }

    fn accumulators(&mut self) -> &mut Accumulators {
        &mut self.accumulators
    }

    fn metrics(&mut self) -> &mut TaskMetrics {
        &mut self.metrics
    }
}

/// An attempt must not fill the log and the memory of the `JobMaster`.
fn check_accumulators(accumulators: &Accumulators) -> Result<(), TaskFailure> {
    let bytes = accumulators.bytes();
    if bytes <= ACCUMULATOR_BYTES_MAX {
        return Ok(());
    }
    Err(TaskFailure::unrecoverable(format!(
        "the {} accumulators of the task take {bytes} bytes, at most {ACCUMULATOR_BYTES_MAX} are \
         kept of one task: use fewer names or smaller values, or write them to a file",
        accumulators.len()
    )))
}

/// What a refused write means for the attempt.
fn write_failure(error: WriteError) -> TaskFailure {
    match error {
        // Nobody waits for the attempt any more.
        WriteError::Released { .. } => TaskFailure::Cancelled,
        WriteError::Disk(_) | WriteError::Failed => TaskFailure::task(with_causes(&error)),
        WriteError::BlockTooLong { .. }
        | WriteError::NoSuchSubpartition { .. }
        | WriteError::SubpartitionCount { .. }
        | WriteError::DuplicateDataSet { .. }
        | WriteError::RecordTooLong { .. }
        | WriteError::Encode(_) => TaskFailure::unrecoverable(with_causes(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use regrow_protocol::{Accumulator, OpaqueBytes, RunId};
    use regrow_shuffle::DiskError;

    use super::*;

    #[test]
    fn fault_39_each_error_of_a_write_leads_to_its_own_action() {
        let full = WriteError::Disk(DiskError {
            action: "write blocks to",
            path: "/data/p".into(),
            source: io::ErrorKind::StorageFull.into(),
        });
        let TaskFailure::Task { message } = write_failure(full) else {
            panic!("a full disk is worth another try");
        };
        assert!(message.starts_with("cannot write blocks to /data/p: no space left"), "{message}");
        let released = WriteError::Released { run: RunId::from_bits(1) };
        assert_eq!(write_failure(released), TaskFailure::Cancelled);
        let defect = WriteError::NoSuchSubpartition { output: 3, subpartition: 1 };
        assert!(matches!(write_failure(defect), TaskFailure::Unrecoverable { .. }));
    }

    #[test]
    fn an_attempt_with_too_large_accumulators_fails_with_the_limit() {
        let mut accumulators = Accumulators::default();
        let value = |bytes| Accumulator::Custom(vec![OpaqueBytes(vec![0; bytes])]);
        accumulators.add("sketch", value(60 << 10));
        assert_eq!(check_accumulators(&accumulators), Ok(()));
        accumulators.add("sketch", value(60 << 10));
        let failure = check_accumulators(&accumulators).unwrap_err();
        let TaskFailure::Unrecoverable { message } = failure else { panic!("{failure}") };
        assert!(message.contains(&ACCUMULATOR_BYTES_MAX.to_string()), "{message}");
    }
}
