//! The surroundings of a task, in memory, for unit tests of operators.

use std::{collections::VecDeque, path::Path, sync::Arc};

use regrow_actors::task::{NextSplit, Step, Task, TaskContext};
use regrow_protocol::{
    Accumulators, DataDirectoryId, DataSetId, Epoch, ExecutionAttemptId, InputGate, InputId, JobId,
    JobVertexId, OutputSpec, PartitionId, PinnedSplits, PlanId, ProducerPartition, RunId,
    SinkTarget, Split, StagedFile, SubpartitionRange, TaskDeployment, TaskFailure, TaskMetrics,
};

/// Surroundings that give a task what the test put in and keep what it made.
pub(crate) struct TestContext {
    pub(crate) deployment: TaskDeployment,
    pub(crate) splits: VecDeque<Split>,
    /// Blocks of each input, in order.
    inputs: Vec<VecDeque<Vec<u8>>>,
    /// Blocks written: output, subpartition, bytes.
    pub(crate) written: Vec<(usize, u32, Vec<u8>)>,
    pub(crate) staged: Vec<StagedFile>,
    pub(crate) slept: Vec<std::time::Duration>,
    pub(crate) cancelled: bool,
    directory: tempfile::TempDir,
    split_wanted: bool,
    accumulators: Accumulators,
    metrics: TaskMetrics,
}

impl TestContext {
    /// Surroundings of subtask `subtask` of vertex 0.
    pub(crate) fn new(subtask: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let staging_directory = directory.path().to_str().unwrap().to_owned();
        Self {
            deployment: deployment(subtask, staging_directory),
            splits: VecDeque::new(),
            inputs: Vec::new(),
            written: Vec::new(),
            staged: Vec::new(),
            slept: Vec::new(),
            cancelled: false,
            directory,
            split_wanted: false,
            accumulators: Accumulators::default(),
            metrics: TaskMetrics::default(),
        }
    }

    /// Gives the attempt an input of `producers` subtasks.
    pub(crate) fn read_from(&mut self, producers: u32, subpartitions: SubpartitionRange) {
        let producers: Arc<[ProducerPartition]> = (0..producers)
            .map(|subtask| ProducerPartition {
                partition: PartitionId { attempt: attempt(subtask), data_set: DataSetId(0) },
                data_directory: DataDirectoryId::from_bits(1),
            })
            .collect();
        let (data_set, input) = (DataSetId(0), InputId(0));
        self.deployment.inputs.push(InputGate { data_set, input, subpartitions, producers });
    }

    /// Gives input number `input` these blocks.
    pub(crate) fn set_input(&mut self, input: usize, blocks: impl IntoIterator<Item = Vec<u8>>) {
        self.inputs.resize_with(self.inputs.len().max(input + 1), VecDeque::new);
        self.inputs[input] = blocks.into_iter().collect();
    }

    /// Runs a task as a runner does, until it finishes or fails.
    pub(crate) fn run(&mut self, task: &mut dyn Task) -> Result<(), TaskFailure> {
        loop {
            match task.run(self)? {
                Step::Finished => return Ok(()),
                Step::AwaitSplit => self.split_wanted = true,
                Step::Sleep(duration) => self.slept.push(duration),
            }
        }
    }

    /// Blocks written to a subpartition of output 0.
    pub(crate) fn subpartition(&self, index: u32) -> impl Iterator<Item = &[u8]> {
        let wanted = self.written.iter().filter(move |(_, subpartition, _)| *subpartition == index);
        wanted.map(|(_, _, block)| block.as_slice())
    }

    /// Content of the only staged file; none if there is no such file.
    pub(crate) fn staged_text(&self) -> Option<String> {
        let [file] = self.staged.as_slice() else { return None };
        Some(String::from_utf8(self.staged_bytes(file)).unwrap())
    }

    /// Content of a staged file, which must be as it was noted.
    pub(crate) fn staged_bytes(&self, file: &StagedFile) -> Vec<u8> {
        let bytes = std::fs::read(self.directory.path().join(&file.staged_name)).unwrap();
        assert_eq!((bytes.len() as u64, crc32c::crc32c(&bytes)), (file.bytes, file.checksum));
        bytes
    }
}

fn attempt(subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId {
        run: RunId::from_bits(1),
        vertex: JobVertexId(0),
        subtask,
        epoch: Epoch::new(1, 0),
        number: 0,
    }
}

fn deployment(subtask: u32, staging_directory: String) -> TaskDeployment {
    TaskDeployment {
        attempt: attempt(subtask),
        job: JobId::from_bits(1),
        job_name: "test".to_owned(),
        arguments: Vec::new(),
        graph_hash: 0,
        parallelism: 1,
        plan: PlanId(0),
        inputs: Vec::new(),
        outputs: vec![OutputSpec { data_set: DataSetId(0), subpartitions: 4 }],
        sinks: vec![SinkTarget { sink: 0, staging_directory }],
        splits: PinnedSplits::OnRequest,
        ledger: None,
        memory_bytes: 64 << 20,
        locations: Vec::new(),
    }
}

impl TaskContext for TestContext {
    fn deployment(&self) -> &TaskDeployment {
        &self.deployment
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    fn take_split(&mut self) -> Option<NextSplit> {
        let wanted = std::mem::take(&mut self.split_wanted);
        wanted.then(|| self.splits.pop_front().map_or(NextSplit::End, NextSplit::Split))
    }

    fn read_block(&mut self, input: usize, block: &mut Vec<u8>) -> Result<bool, TaskFailure> {
        block.clear();
        let Some(next) = self.inputs[input].pop_front() else { return Ok(false) };
        block.extend_from_slice(&next);
        Ok(true)
    }

    fn write_block(
        &mut self,
        output: usize,
        subpartition: u32,
        block: &[u8],
        records: u64,
    ) -> Result<(), TaskFailure> {
        assert!(records > 0 && !block.is_empty());
        self.written.push((output, subpartition, block.to_vec()));
        Ok(())
    }

    fn add_staged_file(&mut self, file: StagedFile) {
        self.staged.push(file);
    }

    fn spill_directory(&mut self) -> Result<&Path, TaskFailure> {
        Ok(self.directory.path())
    }

    fn accumulators(&mut self) -> &mut Accumulators {
        &mut self.accumulators
    }

    fn metrics(&mut self) -> &mut TaskMetrics {
        &mut self.metrics
    }
}
