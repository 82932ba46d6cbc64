//! About how much room an event takes, without encoding it.

use regrow_protocol::{Accumulator, FinishRecord};

use crate::{CoordinatorDelta, JobEvent, RecoveryDecision, VertexReset};

/// Room of the names and numbers of one thing in an encoded event.
const ITEM_BYTES: u64 = 150;

/// Room of a finish record without what it lists, where it stands alone.
const FINISH_BYTES: u64 = 500;

/// Room of a finish in a batch, where what it has in common with others is stored once.
const ROW_BYTES: u64 = 25;

impl JobEvent {
    /// About how many bytes the event adds to a batch of many: right within a small factor, and in
    /// proportion to whatever can be large. Costs far less than encoding it.
    pub fn approximate_bytes(&self) -> u64 {
        ITEM_BYTES
            + match self {
                Self::JobSubmitted(submission) => {
                    let graph = &submission.graph;
                    let items = graph.vertices.len() + graph.edges.len() + graph.sinks.len();
                    items_bytes(items) + submission.arguments.len() as u64
                }
                Self::RecoveryDecided(decision) => decision_bytes(decision),
                Self::JobVertexInitialized { plan, .. } => {
                    plan.inputs.iter().map(|ranges| items_bytes(ranges.len())).sum()
                }
                Self::ExecutionVertexFinished { record, .. } => return row_bytes(record),
                Self::ExecutionVerticesReset { resets } => resets_bytes(resets),
                Self::ResetTakenBack { attempts } => items_bytes(attempts.len()),
                Self::CoordinatorChanged { delta, .. } => delta_bytes(delta),
                Self::CoordinatorSnapshot { state, .. } | Self::Snapshot { state } => {
                    state.len() as u64
                }
                Self::CommitStarted(plan) => items_bytes(2 * plan.winners.len()),
                Self::EpochStarted { .. }
                | Self::WorkerUsed { .. }
                | Self::WorkerLost { .. }
                | Self::CommitFinished
                | Self::CancelRequested => 0,
                Self::FailureDecided { error } => error.len() as u64,
                Self::JobTerminated { error, .. } => error.as_ref().map_or(0, String::len) as u64,
            }
    }
}

fn items_bytes(count: usize) -> u64 {
    (count as u64).saturating_mul(ITEM_BYTES)
}

fn resets_bytes(resets: &[VertexReset]) -> u64 {
    let text = |reset: &VertexReset| reset.reason.message().map_or(0, str::len);
    resets.iter().map(|reset| ITEM_BYTES + text(reset) as u64).sum()
}

fn finish_bytes(record: &FinishRecord) -> u64 {
    let outputs: u64 =
        record.outputs.iter().map(|output| ITEM_BYTES + output.subpartition_bytes.room()).sum();
    let listed = record.staged_files.len() + record.accumulators.len();
    let accumulated = accumulated_bytes(record);
    FINISH_BYTES + outputs + items_bytes(listed) + accumulated + 5 * record.splits.len() as u64
}

fn row_bytes(record: &FinishRecord) -> u64 {
    let outputs: u64 =
        record.outputs.iter().map(|output| ROW_BYTES + output.subpartition_bytes.room()).sum();
    let numbers = record.inputs.len() + record.splits.len() + record.accumulators.len();
    let accumulated = accumulated_bytes(record);
    ROW_BYTES + outputs + items_bytes(record.staged_files.len()) + accumulated + 5 * numbers as u64
}

/// What accumulators hold that are no numbers.
fn accumulated_bytes(record: &FinishRecord) -> u64 {
    let large = |value: &Accumulator| match value {
        Accumulator::Sum(_) | Accumulator::Min(_) | Accumulator::Max(_) => 0,
        Accumulator::Custom(_) | Accumulator::Collected(_) => value.bytes(),
    };
    record.accumulators.iter().map(|(_, value)| large(value)).sum()
}

fn delta_bytes(delta: &CoordinatorDelta) -> u64 {
    match delta {
        CoordinatorDelta::SplitsDiscovered { splits }
        | CoordinatorDelta::ListingMade { splits, .. } => {
            splits.iter().map(|split| 40 + split.payload.len() as u64).sum()
        }
        CoordinatorDelta::SplitsAssigned { splits, .. } => 5 * splits.len() as u64 + ITEM_BYTES,
        CoordinatorDelta::SplitsReturned { attempts } => items_bytes(attempts.len()),
        CoordinatorDelta::SubtaskReset { .. } | CoordinatorDelta::ListingForgotten { .. } => {
            ITEM_BYTES
        }
    }
}

fn decision_bytes(decision: &RecoveryDecision) -> u64 {
    let found: u64 = decision.found.iter().map(|(_, _, record)| finish_bytes(record)).sum();
    let deltas: u64 = decision.deltas.iter().map(|(_, _, delta)| delta_bytes(delta)).sum();
    let items = decision.attempt_numbers.len() + decision.lost_workers.len();
    found + deltas + resets_bytes(&decision.resets) + items_bytes(items)
}
