//! What many finishes have in common.

use regrow_protocol::{
    Accumulator, CollectedRecords, DataSetId, Epoch, FinishRecord, JobVertexId, OpaqueBytes,
    PlanId, RunId,
};
use serde::{Deserialize, Serialize};

use crate::log_batch::column::{Garbled, Items};

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
    Custom,
    Collected,
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
    /// Takes a value of this kind, as [`push`] wrote it.
    pub(super) fn take(self, items: &mut Items) -> Result<Accumulator, Garbled> {
        Ok(match self {
            Self::Sum => Accumulator::Sum(items.take_signed()?),
            Self::Min => Accumulator::Min(items.take_signed()?),
            Self::Max => Accumulator::Max(items.take_signed()?),
            Self::Custom => {
                let mut values = Vec::new();
                for _ in 0..items.take()? {
                    values.push(OpaqueBytes(items.take_bytes()?));
                }
                Accumulator::Custom(values)
            }
            Self::Collected => Accumulator::Collected(CollectedRecords {
                records: items.take()?,
                record_type: items.take_text()?,
                bytes: OpaqueBytes(items.take_bytes()?),
            }),
        })
    }
}

/// Appends a value, without its kind.
pub(super) fn push(value: &Accumulator, items: &mut Items) {
    match value {
        Accumulator::Sum(number) | Accumulator::Min(number) | Accumulator::Max(number) => {
            items.push_signed(*number);
        }
        Accumulator::Custom(values) => {
            items.push(values.len() as u64);
            for value in values {
                items.push_bytes(&value.0);
            }
        }
        Accumulator::Collected(collected) => {
            let CollectedRecords { records, record_type, bytes } = collected;
            items.push(*records);
            items.push_bytes(record_type.as_bytes());
            items.push_bytes(&bytes.0);
        }
    }
}

impl From<&Accumulator> for AccumulatorKind {
    fn from(accumulator: &Accumulator) -> Self {
        match accumulator {
            Accumulator::Sum(_) => Self::Sum,
            Accumulator::Min(_) => Self::Min,
            Accumulator::Max(_) => Self::Max,
            Accumulator::Custom(_) => Self::Custom,
            Accumulator::Collected(_) => Self::Collected,
        }
    }
}
