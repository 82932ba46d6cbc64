//! Writes all outputs of one attempt.

use std::{path::Path, sync::Arc};

use regrow_protocol::{DataSetId, ExecutionAttemptId, FinishRecord, OutputSpec, PartitionId};

use crate::{
    block_buffer::BlockBuffer,
    block_header::BlockHeader,
    closed_partition::ClosedPartition,
    data_directory::DataDirectory,
    disk_error::During,
    finish_frame::{FinishFrame, encode_record},
    footer::SUBPARTITIONS_MAX,
    partition_writer::PartitionWriter,
    run_directory::{RunDirectory, Unsealed, UnsealedFile},
    run_file::RunFile,
    temporary::SpillDirectory,
    write_error::WriteError,
};

/// Blocks in memory per subpartition beyond which more would make nothing faster: pieces of this
/// length are read sequentially, and the less memory goes round, the more of it is in caches.
const USEFUL_BYTES_PER_SUBPARTITION: usize = 256 << 10;

/// Memory that is useful even with few subpartitions: what most attempts write altogether.
const USEFUL_BYTES_MIN: usize = 32 << 20;

/// Writes all outputs of one attempt and seals them with its finish record.
///
/// Blocks wait in memory until the budget is reached, then those of all outputs are written.
/// Dropped without a seal, it leaves nothing behind.
#[derive(Debug)]
pub struct AttemptWriter {
    /// Keeps the lock for as long as files may be written.
    _directory: Arc<DataDirectory>,
    run: Arc<RunDirectory>,
    attempt: ExecutionAttemptId,
    outputs: Vec<PartitionWriter>,
    buffer: BlockBuffer,
    memory_bytes: usize,
    spill: Option<SpillDirectory>,
    failed: bool,
}

impl AttemptWriter {
    /// Starts an attempt with these outputs. Blocks take at most `memory_bytes`, or one block if
    /// that is more. Touches no file yet.
    ///
    /// # Errors
    /// When the outputs do not fit the limits.
    pub fn create(
        directory: &Arc<DataDirectory>,
        attempt: ExecutionAttemptId,
        outputs: &[OutputSpec],
        memory_bytes: u64,
    ) -> Result<Self, WriteError> {
        check(outputs)?;
        let writer = |output: &OutputSpec| {
            let partition = PartitionId { attempt, data_set: output.data_set };
            PartitionWriter::new(partition, output.subpartitions)
        };
        let subpartitions: usize = outputs.iter().map(|output| output.subpartitions as usize).sum();
        let useful = (subpartitions * USEFUL_BYTES_PER_SUBPARTITION).max(USEFUL_BYTES_MIN);
        Ok(Self {
            _directory: Arc::clone(directory),
            run: directory.run(attempt.run),
            attempt,
            outputs: outputs.iter().map(writer).collect(),
            buffer: BlockBuffer::new(directory.chunk_pool()),
            memory_bytes: usize::try_from(memory_bytes).unwrap_or(usize::MAX).min(useful),
            spill: None,
            failed: false,
        })
    }

    /// Writes a block of `records` records to a subpartition of the `output`th output. A reader
    /// gets exactly these bytes as one block.
    ///
    /// # Errors
    /// When the block does not fit the limits, or the disk refuses; then drop the writer.
    pub fn write_block(
        &mut self,
        output: usize,
        subpartition: u32,
        block: &[u8],
        records: u64,
    ) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        let missing = || WriteError::NoSuchSubpartition { output, subpartition };
        let index = u32::try_from(output).map_err(|_| missing())?;
        if !self.outputs.get(output).is_some_and(|writer| writer.has(subpartition)) {
            return Err(missing());
        }
        let header =
            BlockHeader::of(block).ok_or(WriteError::BlockTooLong { bytes: block.len() })?;
        let bytes = BlockHeader::BYTES + block.len();
        if !self.buffer.is_empty() && self.buffer.bytes().saturating_add(bytes) > self.memory_bytes
        {
            self.write_out()?;
        }
        self.buffer.push(index, subpartition, header, block);
        if let Some(writer) = self.outputs.get_mut(output) {
            writer.count(subpartition, header, records);
        }
        Ok(())
    }

    /// A directory for files of this attempt's operators: made on the first call, removed with all
    /// that is in it when the attempt is sealed or dropped.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn spill_directory(&mut self) -> Result<&Path, WriteError> {
        let spill = match self.spill.take() {
            Some(spill) => spill,
            None => self.run.create_spill(self.attempt)?,
        };
        Ok(self.spill.insert(spill).path())
    }

    /// Seals the attempt: fills in `outputs` of the record, writes all that is left, and makes it
    /// the proof that the attempt finished. That is the point of no return: when it succeeds, the
    /// proof and all outputs are on disk and survive the process.
    ///
    /// When the attempt was sealed before (it was dispatched twice), the first seal stays untouched
    /// and its record is returned.
    ///
    /// # Errors
    /// When the disk refuses, or the run was released; nothing of the attempt is left then.
    ///
    /// # Panics
    /// When the record is of another attempt.
    pub fn seal(mut self, mut record: FinishRecord) -> Result<FinishRecord, WriteError> {
        assert_eq!(record.attempt, self.attempt, "an attempt is sealed with its own record");
        if self.failed {
            return Err(WriteError::Failed);
        }
        self.write_out()?;
        let mut closed = Vec::with_capacity(self.outputs.len());
        for output in self.outputs.drain(..) {
            closed.push(output.close(&self.run)?);
        }
        record.outputs = closed.iter().map(|output| output.metrics().clone()).collect();
        let unsealed = self.close(closed, &encode_record(&record)?)?;
        self.run.seal(record, unsealed)
    }

    fn close(
        &self,
        mut closed: Vec<ClosedPartition>,
        record: &[u8],
    ) -> Result<Unsealed, WriteError> {
        if closed.is_empty() {
            return Ok(Unsealed::Frame(FinishFrame::finished(record)));
        }
        if closed.len() == 1
            && let Some(only) = closed.pop()
        {
            return Ok(Unsealed::Files(vec![only.write_trailer(record)?]));
        }
        let mut files = Vec::with_capacity(closed.len() + 1);
        for output in closed {
            files.push(output.write_trailer(&[])?);
        }
        files.push(self.write_finish(record)?);
        Ok(Unsealed::Files(files))
    }

    fn write_finish(&self, record: &[u8]) -> Result<UnsealedFile, WriteError> {
        let temporary = self.run.create_temporary(self.attempt)?;
        let frame = FinishFrame::finished(record);
        temporary.write(&frame).during("write a finish record to", temporary.path())?;
        let bytes = frame.len() as u64;
        Ok(UnsealedFile { name: RunFile::Finish(self.attempt), bytes, temporary })
    }

    /// Writes what waits in memory, one region per output.
    fn write_out(&mut self) -> Result<(), WriteError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.failed = true;
        self.buffer.sort();
        for (output, writer) in (0..).zip(&mut self.outputs) {
            writer.write_region(&self.run, self.buffer.slices(output))?;
        }
        self.buffer.clear(self.memory_bytes);
        self.failed = false;
        Ok(())
    }
}

fn check(outputs: &[OutputSpec]) -> Result<(), WriteError> {
    let mut seen: Vec<DataSetId> = Vec::with_capacity(outputs.len());
    for &OutputSpec { data_set, subpartitions } in outputs {
        if !(1..=SUBPARTITIONS_MAX).contains(&subpartitions) {
            return Err(WriteError::SubpartitionCount { data_set, subpartitions });
        }
        if seen.contains(&data_set) {
            return Err(WriteError::DuplicateDataSet { data_set });
        }
        seen.push(data_set);
    }
    Ok(())
}
