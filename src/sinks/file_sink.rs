//! What all sinks that write files have in common.

use std::{io, marker::PhantomData};

use regrow_actors::task::TaskContext;
use regrow_protocol::{SinkTarget, TaskDeployment, TaskFailure};

use super::staged_output::StagedOutput;
use crate::chain::Consume;

/// Bytes that a file being written has in memory: enough that a gigabyte goes out with a thousand
/// writes.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// The same where memory is scarce.
const BUFFER_BYTES_MIN: u64 = 64 << 10;

/// Which part of a task's memory the buffer may take.
const MEMORY_SHARE: u64 = 8;

/// How records of type `R` stand in a file.
pub(crate) trait Format<R: ?Sized>: Clone + Send + Sync + 'static {
    /// What the names of files end with.
    const EXTENSION: &'static str;

    /// A file that is being written.
    type File: Send;

    /// Begins a file, which may have `buffer_bytes` in memory.
    ///
    /// # Errors
    /// When the disk refuses what every file begins with.
    fn open(&self, output: StagedOutput, buffer_bytes: usize) -> Result<Self::File, TaskFailure>;

    /// Appends a record.
    ///
    /// # Errors
    /// When the record does not fit the format, or the disk refuses it.
    fn append(&self, record: &R, file: &mut Self::File) -> Result<(), TaskFailure>;

    /// Writes what is in memory, and gives the file back.
    ///
    /// # Errors
    /// When the disk refuses it.
    fn close(file: Self::File) -> io::Result<StagedOutput>;
}

/// The end of a chain that writes a file of the format `F`: staged, synced and noted for the commit
/// of the job. A task without records makes no file.
pub(crate) struct FileSink<R: ?Sized, F: Format<R>> {
    target: SinkTarget,
    format: F,
    file: Option<F::File>,
    records: u64,
    record_type: PhantomData<fn(&R)>,
}

impl<R: ?Sized, F: Format<R>> FileSink<R, F> {
    /// Makes the sink of an attempt whose vertex has one sink.
    pub(crate) fn new(deployment: &TaskDeployment, format: F) -> Result<Self, TaskFailure> {
        let Some(target) = deployment.sinks.first() else {
            return Err(TaskFailure::unrecoverable(format!(
                "attempt {} was sent without the directory of its sink",
                deployment.attempt
            )));
        };
        let target = target.clone();
        Ok(Self { target, format, file: None, records: 0, record_type: PhantomData })
    }
}

impl<R: ?Sized + 'static, F: Format<R>> Consume<R> for FileSink<R, F> {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let deployment = context.deployment();
            let output = StagedOutput::create(deployment, &self.target, F::EXTENSION)?;
            self.file.insert(self.format.open(output, buffer_bytes(deployment.memory_bytes))?)
        };
        self.records += 1;
        self.format.append(record, file)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let staged = F::close(file).map_err(write_failure)?.seal()?;
        let metrics = context.metrics();
        metrics.records_out += self.records;
        metrics.bytes_out += staged.bytes;
        context.add_staged_file(staged);
        Ok(())
    }
}

/// What an output says of a failed write names the file.
pub(crate) fn write_failure(error: io::Error) -> TaskFailure {
    TaskFailure::task(error.to_string())
}

fn buffer_bytes(memory_bytes: u64) -> usize {
    let bytes = (memory_bytes / MEMORY_SHARE).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
