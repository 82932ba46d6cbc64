//! The producer's half of `count_by_key`: counts what it sees before it sends it.

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::key_counter::{Full, KeyCounter};
use crate::{
    chain::Consume,
    exchange::PartitionWriter,
    record::{write_bytes, write_number},
};

/// Counts keys and writes (key, count), divided by key. A key comes out more than once when memory
/// was short.
pub(crate) struct Combine {
    counter: KeyCounter,
    writer: PartitionWriter,
}

impl Combine {
    /// Makes the end of the chain of an attempt whose only output is the counts.
    pub(crate) fn new(deployment: &TaskDeployment) -> Self {
        Self {
            counter: KeyCounter::new(deployment.memory_bytes / 2),
            writer: PartitionWriter::of(deployment, 0),
        }
    }

    fn empty(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        for (key, hash, count) in self.counter.iter() {
            let encode = |block: &mut Vec<u8>| {
                write_bytes(key, block);
                write_number(count, block);
                Ok(())
            };
            self.writer.write_with(self.writer.subpartition_of(hash), encode, context)?;
        }
        self.counter.clear();
        Ok(())
    }
}

impl<R: AsRef<str> + ?Sized> Consume<R> for Combine {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let key = record.as_ref().as_bytes();
        if self.counter.add(key, 1).is_ok() {
            return Ok(());
        }
        self.empty(context)?;
        // An empty counter takes any key.
        self.counter.add(key, 1).map_err(|Full| {
            TaskFailure::task("an empty counter of keys has no room for a single key")
        })
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.empty(context)?;
        self.writer.flush(context)
    }
}
