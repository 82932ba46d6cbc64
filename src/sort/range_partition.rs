//! The end of a vertex whose records are divided into ranges.

use std::{marker::PhantomData, ops::Range, sync::Arc};

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    boundaries::Boundaries, key_function::KeyFunction, sampler::Sample, sort_key::KeyParts,
};
use crate::{
    chain::Consume,
    exchange::{PartitionWriter, read_input},
    record::Record,
};

/// Writes each record to the subpartition of its range; the ranges of an attempt are the
/// subpartitions of its output, in order.
pub(super) struct RangePartition<R: ?Sized, K> {
    key_function: Arc<K>,
    key: KeyParts,
    /// The input that tells the ranges.
    input: usize,
    boundaries: Option<Boundaries>,
    record_bytes: Vec<u8>,
    /// Records that may go to any of several ranges.
    undecided: usize,
    writer: PartitionWriter,
    record_type: PhantomData<fn(&R)>,
}

impl<R: Record + ?Sized, K: KeyFunction<R>> RangePartition<R, K> {
    /// Makes the end of an attempt that learns of the ranges from input number `input`.
    pub(super) fn new(deployment: &TaskDeployment, key_function: Arc<K>, input: usize) -> Self {
        Self {
            key_function,
            key: KeyParts::default(),
            input,
            boundaries: None,
            record_bytes: Vec::new(),
            undecided: 0,
            writer: PartitionWriter::of(deployment, 0),
            record_type: PhantomData,
        }
    }

    #[cold]
    fn read_boundaries(&self, context: &mut dyn TaskContext) -> Result<Boundaries, TaskFailure> {
        let mut samples = Vec::new();
        read_input(self.input, context, |rest, _| {
            samples.push(Sample::read(rest, &mut None)?.clone());
            Ok(())
        })?;
        Ok(Boundaries::new(&samples, self.writer.subpartitions()))
    }

    #[cold]
    fn choose(&mut self, found: Range<usize>, record: &R) -> Result<usize, TaskFailure> {
        let Some(boundaries) = &self.boundaries else { return Ok(0) };
        self.record_bytes.clear();
        record.write(&mut self.record_bytes)?;
        let found = boundaries.by_record(found, &self.record_bytes);
        self.undecided = self.undecided.wrapping_add(1);
        Ok(found.start + self.undecided % found.len())
    }
}

impl<R: Record + ?Sized, K: KeyFunction<R>> Consume<R> for RangePartition<R, K> {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let boundaries = if let Some(boundaries) = &self.boundaries {
            boundaries
        } else {
            let boundaries = self.read_boundaries(context)?;
            self.boundaries.insert(boundaries)
        };
        self.key.clear();
        self.key_function.add_parts(record, &mut self.key);
        let found = boundaries.by_key(self.key.form());
        let range = if found.len() == 1 { found.start } else { self.choose(found, record)? };
        #[expect(clippy::cast_possible_truncation, reason = "there are as many as subpartitions")]
        self.writer.write(range as u32, record, context)
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.writer.flush(context)
    }
}
