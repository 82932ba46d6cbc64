//! The vertex of one task that decides where ranges may begin.

use regrow_actors::task::TaskContext;
use regrow_protocol::{TaskDeployment, TaskFailure};

use super::{quantiles::Quantiles, sampler::Sample};
use crate::{chain::Consume, exchange::PartitionWriter};

/// Samples that are passed on to those who cut ranges: several for each range that there can be,
/// and little to read for each of many tasks.
const PLACES_MAX: usize = 4096;

/// Takes all samples and writes few that stand for them. That is what the ranges of all tasks depend
/// on: a partition like any other, which is kept or made again.
pub(super) struct DecideRanges {
    quantiles: Option<Quantiles>,
    writer: PartitionWriter,
}

impl DecideRanges {
    /// Makes the end of the attempt.
    pub(super) fn new(deployment: &TaskDeployment) -> Self {
        Self {
            quantiles: Some(Quantiles::new(deployment.memory_bytes / 2)),
            writer: PartitionWriter::of(deployment, 0),
        }
    }
}

impl Consume<Sample> for DecideRanges {
    fn consume(&mut self, sample: &Sample, _: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        if let Some(quantiles) = &mut self.quantiles {
            quantiles.add(sample.clone());
        }
        Ok(())
    }

    fn finish(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let Some(quantiles) = self.quantiles.take() else { return Ok(()) };
        for sample in quantiles.into_samples(PLACES_MAX) {
            self.writer.write(0, &sample, context)?;
        }
        self.writer.flush(context)
    }
}
