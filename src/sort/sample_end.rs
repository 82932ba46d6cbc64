//! The end of a vertex that samples its records.

use std::{marker::PhantomData, sync::Arc};

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{
    key_function::KeyFunction,
    sampler::{Place, Sampler},
    sort_key::KeyParts,
};
use crate::{
    chain::Consume,
    exchange::{Forward, PartitionWriter},
    record::Record,
};

/// The output that samples go to.
const SAMPLES_OUTPUT: usize = 0;

/// The output that records go to.
const RECORDS_OUTPUT: usize = 1;

/// Samples the records of an attempt: its first output. Where there is a second one, the records
/// go to that.
pub(super) struct SampleEnd<R: ?Sized, K> {
    sampler: Sampler,
    key_function: Arc<K>,
    key: KeyParts,
    samples: PartitionWriter,
    records: Option<Forward<R>>,
    record_type: PhantomData<fn(&R)>,
}

impl<R: Record + ?Sized, K: KeyFunction<R>> SampleEnd<R, K> {
    /// Makes the end of an attempt.
    pub(super) fn new(deployment: &TaskDeployment, key_function: Arc<K>) -> Self {
        let has_records = deployment.outputs.len() > RECORDS_OUTPUT;
        Self {
            sampler: Sampler::default(),
            key_function,
            key: KeyParts::default(),
            samples: PartitionWriter::of(deployment, SAMPLES_OUTPUT),
            records: has_records.then(|| Forward::new(deployment, RECORDS_OUTPUT)),
            record_type: PhantomData,
        }
    }
}

impl<R: Record + ?Sized, K: KeyFunction<R>> Consume<R> for SampleEnd<R, K> {
    #[inline]
    fn consume(&mut self, record: &R, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.sampler.offer(|| {
            self.key.clear();
            self.key_function.add_parts(record, &mut self.key);
            let mut bytes = Vec::new();
            record.write(&mut bytes)?;
            Ok::<_, TaskFailure>(Place::new(self.key.form(), &bytes))
        })?;
        match &mut self.records {
            Some(records) => records.consume(record, context),
            None => Ok(()),
        }
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        for sample in std::mem::take(&mut self.sampler).into_samples() {
            self.samples.write(0, &sample, context)?;
        }
        self.samples.flush(context)?;
        match &mut self.records {
            Some(records) => records.finish(context),
            None => Ok(()),
        }
    }
}
