//! The end of a vertex whose records go on as they are, without a key.

use std::marker::PhantomData;

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use crate::{chain::Consume, exchange::PartitionWriter, record::Record};

/// Writes records to one output, to its subpartitions in turn where there are several.
pub(crate) struct Forward<R: ?Sized> {
    writer: PartitionWriter,
    next: u32,
    record_type: PhantomData<fn(&R)>,
}

impl<R: Record + ?Sized> Forward<R> {
    /// Makes the end of an attempt that writes output number `output`.
    pub(crate) fn new(deployment: &TaskDeployment, output: usize) -> Self {
        let writer = PartitionWriter::of(deployment, output);
        Self { writer, next: 0, record_type: PhantomData }
    }
}

impl<R: Record + ?Sized> Consume<R> for Forward<R> {
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let subpartition = self.next;
        self.next = (subpartition + 1) % self.writer.subpartitions();
        self.writer.write(subpartition, record, context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.writer.flush(context)
    }
}
