//! What many finishes have in common.

use regrow_protocol::{Accumulator, DataSetId, Epoch, FinishRecord, JobVertexId, PlanId, RunId};
use serde::{Deserialize, Serialize};

/// What is the same in all finishes of a vertex, as long as it is planned and led in one way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FinishKind {
    pub(super) run: RunId,
    pub(super) vertex: JobVertexId,
    pub(super) epoch: Epoch,
    pub(super) plan: PlanId,
    /// How many inputs each has.
    pub(super) inputs: u32,
    /// For which data sets each has an output.
    pub(super) outputs: Vec<DataSetId>,
    /// The accumulators that each has.
    pub(super) accumulators: Vec<(String, AccumulatorKind)>,
}

/// What an accumulator does with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AccumulatorKind {
    Sum,
    Min,
    Max,
}

/// What mostly tells kinds apart.
pub(super) type Key = (JobVertexId, Epoch, PlanId);

/// The key of the kind of a record.
pub(super) fn key(record: &FinishRecord) -> Key {
    (record.attempt.vertex, record.attempt.epoch, record.plan)
}

impl FinishKind {
    /// The kind of a record.
    pub(super) fn of(record: &FinishRecord) -> Self {
        let accumulators = record.accumulators.iter();
        Self {
            run: record.attempt.run,
            vertex: record.attempt.vertex,
            epoch: record.attempt.epoch,
            plan: record.plan,
            inputs: u32::try_from(record.inputs.len()).unwrap_or(u32::MAX),
            outputs: record.outputs.iter().map(|output| output.data_set).collect(),
            accumulators: accumulators
                .map(|(name, value)| (name.to_owned(), AccumulatorKind::from(value)))
                .collect(),
        }
    }

    /// Whether a record is of this kind.
    pub(super) fn fits(&self, record: &FinishRecord) -> bool {
        let attempt = &record.attempt;
        self.vertex == attempt.vertex
            && self.epoch == attempt.epoch
            && self.plan == record.plan
            && self.run == attempt.run
            && self.inputs as usize == record.inputs.len()
            && self.outputs.iter().eq(record.outputs.iter().map(|output| &output.data_set))
            && self
                .accumulators
                .iter()
                .map(|(name, kind)| (name.as_str(), *kind))
                .eq(record.accumulators.iter().map(|(name, value)| (name, value.into())))
    }
}

impl AccumulatorKind {
    pub(super) const fn of(self, value: i64) -> Accumulator {
        match self {
            Self::Sum => Accumulator::Sum(value),
            Self::Min => Accumulator::Min(value),
            Self::Max => Accumulator::Max(value),
        }
    }
}

impl From<Accumulator> for AccumulatorKind {
    fn from(accumulator: Accumulator) -> Self {
        match accumulator {
            Accumulator::Sum(_) => Self::Sum,
            Accumulator::Min(_) => Self::Min,
            Accumulator::Max(_) => Self::Max,
        }
    }
}
