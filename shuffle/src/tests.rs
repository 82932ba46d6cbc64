//! Stories about whole data directories.

mod crash;
mod damage;
mod disk;
mod inventory;
mod release;
mod remote;
mod round_trip;
mod service;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use regrow_protocol::{
    Accumulators, DataDirectoryId, DataSetId, Epoch, ExecutionAttemptId, FinishRecord, InputId,
    JobVertexId, OutputSpec, PartitionId, PlanId, RunId, SubpartitionRange, TaskMetrics,
};
use tempfile::TempDir;

use crate::{AttemptWriter, DataDirectory, FetchError, PartitionReader, RunInventory, WriteError};

const RUN: RunId = RunId::from_bits(0xabc);

/// A root with one data directory in it.
struct Fixture {
    root: TempDir,
    directory: Arc<DataDirectory>,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let id = DataDirectoryId::from_bits(0xd);
        let directory = Arc::new(DataDirectory::create(root.path(), id).unwrap());
        Self { root, directory }
    }

    /// Ends the life of the directory and starts the next one.
    fn next_life(self) -> Self {
        let Self { root, directory } = self;
        drop(directory);
        let mut taken = DataDirectory::take_over(root.path()).unwrap();
        assert_eq!(taken.len(), 1);
        Self { root, directory: Arc::new(taken.remove(0)) }
    }

    fn writer(&self, attempt: ExecutionAttemptId, subpartitions: &[u32]) -> AttemptWriter {
        AttemptWriter::create(&self.directory, attempt, &outputs(subpartitions), 1 << 20).unwrap()
    }

    /// Seals an attempt with one block per output: the attempt's subtask, then the output.
    fn seal(&self, attempt: ExecutionAttemptId, outputs: usize) -> FinishRecord {
        let mut writer = self.writer(attempt, &vec![2; outputs]);
        for output in 0..outputs {
            writer.write_block(output, 1, &content(attempt, output), 3).unwrap();
        }
        writer.seal(record(attempt)).unwrap()
    }

    fn read(&self, partition: PartitionId) -> Result<Vec<Vec<u8>>, FetchError> {
        self.read_range(partition, 0..2)
    }

    fn read_range(
        &self,
        partition: PartitionId,
        range: std::ops::Range<u32>,
    ) -> Result<Vec<Vec<u8>>, FetchError> {
        let range = SubpartitionRange { start: range.start, end: range.end };
        let root = self.root.path();
        let mut reader = PartitionReader::open(root, self.directory.id(), partition, range)?;
        let mut blocks = Vec::new();
        let mut block = Vec::new();
        while reader.next_block(&mut block)? {
            blocks.push(block.clone());
        }
        Ok(blocks)
    }

    fn inventory(&self) -> RunInventory {
        self.directory.inventory(RUN).unwrap()
    }

    fn run_path(&self) -> PathBuf {
        self.directory.root().join(self.directory.id().to_string()).join(RUN.to_string())
    }

    /// Names in the directory of the run, ascending.
    fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.run_path()) else { return Vec::new() };
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn attempt(subtask: u32) -> ExecutionAttemptId {
    let epoch = Epoch::new(1, 0);
    ExecutionAttemptId { run: RUN, vertex: JobVertexId(0), subtask, epoch, number: 0 }
}

fn partition(attempt: ExecutionAttemptId, output: usize) -> PartitionId {
    PartitionId { attempt, data_set: DataSetId(u32::try_from(output).unwrap()) }
}

fn content(attempt: ExecutionAttemptId, output: usize) -> Vec<u8> {
    format!("output {output} of {attempt}").into_bytes()
}

fn outputs(subpartitions: &[u32]) -> Vec<OutputSpec> {
    let spec =
        |(data_set, subpartitions)| OutputSpec { data_set: DataSetId(data_set), subpartitions };
    (0..).zip(subpartitions.iter().copied()).map(spec).collect()
}

fn record(attempt: ExecutionAttemptId) -> FinishRecord {
    FinishRecord {
        attempt,
        plan: PlanId(7),
        inputs: vec![InputId(8)],
        outputs: Vec::new(),
        metrics: TaskMetrics { records_in: 9, ..TaskMetrics::default() },
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    }
}
