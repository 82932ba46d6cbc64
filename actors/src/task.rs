//! What a `TaskExecutor` needs to know of user code: a contract over bytes.
//!
//! The program that hosts the actors implements it, so that no actor sees a record type. There is
//! one dynamic call per block of records, none per record.

use std::{path::Path, time::Duration};

use regrow_protocol::{
    Accumulators, JobVertexId, Split, StagedFile, TaskDeployment, TaskFailure, TaskMetrics,
};
use regrow_runtime::JobGraph;
pub use regrow_shuffle::BLOCK_BYTES_MAX;

/// Makes tasks and lists splits for the jobs of a program.
///
/// Called on worker threads only, never on the thread of an actor.
pub trait TaskFactory: Send + Sync {
    /// Builds the graph of a job from its arguments.
    ///
    /// # Errors
    /// When there is no such job or its arguments are wrong, with what to do.
    fn build(&self, job_name: &str, arguments: &[u8]) -> Result<JobGraph, String>;

    /// Makes the task of a deployment.
    ///
    /// # Errors
    /// When it cannot be made; for example because the job's builder is not deterministic.
    fn create(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure>;

    /// Lists the splits of a source vertex, numbered from 0.
    ///
    /// # Errors
    /// When the input cannot be listed, with the path and what to do.
    fn discover_splits(
        &self,
        job_name: &str,
        arguments: &[u8],
        vertex: JobVertexId,
    ) -> Result<Vec<Split>, String>;
}

/// One attempt's work. The runner calls [`run`](Self::run) until it finishes or fails.
pub trait Task: Send {
    /// Works until the task is done or must wait. A task checks
    /// [`is_cancelled`](TaskContext::is_cancelled) at least once per block.
    ///
    /// # Errors
    /// When the attempt cannot finish.
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure>;
}

/// Why a task handed its thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All is written; the runner seals the attempt.
    Finished,
    /// It wants the next split: call again once [`TaskContext::take_split`] has an answer.
    AwaitSplit,
    /// It wants to be called again after this time, or at once when it is cancelled.
    Sleep(Duration),
}

/// The answer to a split request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextSplit {
    /// Read this.
    Split(Split),
    /// Nothing is left.
    End,
}

/// What a task sees of its surroundings.
pub trait TaskContext {
    /// What runs.
    fn deployment(&self) -> &TaskDeployment;

    /// Whether the attempt was told to stop; then return [`TaskFailure::Cancelled`].
    fn is_cancelled(&self) -> bool;

    /// The split that was waited for; none before the first [`Step::AwaitSplit`] was answered, and
    /// after each answer was taken. Pinned splits come the same way.
    fn take_split(&mut self) -> Option<NextSplit>;

    /// Reads the next block of an input into `block` (cleared first); false at the end. Blocks come
    /// whole, as [`write_block`](Self::write_block) got them, ordered by producer, then
    /// subpartition; a block never spans two.
    ///
    /// # Errors
    /// [`TaskFailure::InputLost`] when a partition is gone or damaged.
    fn read_block(&mut self, input: usize, block: &mut Vec<u8>) -> Result<bool, TaskFailure>;

    /// Writes a block of `records` whole records, at most [`BLOCK_BYTES_MAX`] bytes, to a
    /// subpartition of an output.
    ///
    /// # Errors
    /// When it is too long, or the disk refuses it.
    fn write_block(
        &mut self,
        output: usize,
        subpartition: u32,
        block: &[u8],
        records: u64,
    ) -> Result<(), TaskFailure>;

    /// Notes a file that the task staged, closed and synced.
    fn add_staged_file(&mut self, file: StagedFile);

    /// A directory for files of this attempt only; made on the first call, removed with the attempt.
    ///
    /// # Errors
    /// When it cannot be made.
    fn spill_directory(&mut self) -> Result<&Path, TaskFailure>;

    /// Counters of this attempt.
    fn accumulators(&mut self) -> &mut Accumulators;

    /// What the attempt did; the runner adds time, and what goes through blocks.
    fn metrics(&mut self) -> &mut TaskMetrics;
}
