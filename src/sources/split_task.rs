//! The task of a vertex that begins with a source.

use regrow_actors::task::{NextSplit, Step, Task, TaskContext};
use regrow_protocol::{Split, TaskFailure};

use super::source::SplitProgress;
use crate::chain::Consume;

/// Reads the splits of one attempt, one after the other.
pub(super) trait ReadSplits: Send + 'static {
    /// What they hold.
    type Item: ?Sized;

    /// Begins a split.
    fn open(&mut self, split: &Split) -> Result<(), TaskFailure>;

    /// Passes on some of the records of the split: so few that it takes no notable time.
    fn read<E: Consume<Self::Item>>(
        &mut self,
        end: &mut E,
        context: &mut dyn TaskContext,
    ) -> Result<SplitProgress, TaskFailure>;

    /// All splits of the attempt were read.
    fn end(&mut self, _context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        Ok(())
    }
}

/// The task of a vertex that begins with a source.
pub(super) struct SplitTask<S, E> {
    source: S,
    end: E,
    progress: SplitProgress,
}

impl<S: ReadSplits, E: Consume<S::Item>> SplitTask<S, E> {
    /// Makes a task that gives all records to `end`.
    pub(super) fn new(source: S, end: E) -> Self {
        Self { source, end, progress: SplitProgress::End }
    }

    /// Passes on what is left of the current split, if there is one.
    fn finish_split(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        while self.progress == SplitProgress::More {
            if context.is_cancelled() {
                return Err(TaskFailure::Cancelled);
            }
            self.progress = self.source.read(&mut self.end, context)?;
        }
        Ok(())
    }
}

impl<S: ReadSplits, E: Consume<S::Item>> Task for SplitTask<S, E> {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        loop {
            self.finish_split(context)?;
            match context.take_split() {
                None => return Ok(Step::AwaitSplit),
                Some(NextSplit::Split(split)) => {
                    self.source.open(&split)?;
                    self.progress = SplitProgress::More;
                }
                Some(NextSplit::End) => {
                    self.source.end(context)?;
                    self.end.finish(context)?;
                    return Ok(Step::Finished);
                }
            }
        }
    }
}
