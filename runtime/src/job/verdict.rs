//! Whether a proof from outside the log counts (recovery.md 5.5).

use regrow_protocol::{ExecutionVertexId, FinishRecord};

use super::{
    input_ids::InputIds,
    partition_tracker::PartitionTracker,
    proofs::Proof,
    recorded::{Finish, Recorded, SubtaskRecord},
};
use crate::CoordinatorDelta;

/// What becomes of a proof.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It counts, once the coordinator of its vertex has noted the splits it read.
    Counts { claim: Option<CoordinatorDelta> },
    /// It never counts.
    Refused,
    /// Its vertex is not initialized: nobody can tell yet.
    TooEarly,
}

/// Judges a proof for a subtask that is not finished.
pub(super) fn judge(
    recorded: &Recorded,
    tracker: &PartitionTracker,
    input_ids: &InputIds,
    proof: &Proof,
) -> Verdict {
    let record = &proof.record;
    let subtask = record.attempt.execution_vertex();
    if record.attempt.run != recorded.facts.submission.run
        || subtask.vertex.0 as usize >= recorded.facts.vertices.len()
    {
        return Verdict::Refused;
    }
    let Some(plan) = recorded.plan(subtask.vertex) else { return Verdict::TooEarly };
    let Some(known) = recorded.subtask(subtask) else { return Verdict::Refused };
    let counts = known.finish.is_none()
        && !known.refuses(&record.attempt)
        && record.plan == plan.id
        && has_read_what_counts(recorded, input_ids, subtask, record)
        && outputs_are_there(recorded, tracker, subtask, proof);
    if !counts {
        return Verdict::Refused;
    }
    let Some(coordinator) = recorded.coordinators.get(subtask.vertex) else {
        return Verdict::Counts { claim: None };
    };
    if coordinator.holds(record.attempt, &record.splits) {
        return Verdict::Counts { claim: None };
    }
    match coordinator.claim(record.attempt, &record.splits) {
        Some(delta) => Verdict::Counts { claim: Some(delta) },
        None => Verdict::Refused,
    }
}

fn has_read_what_counts(
    recorded: &Recorded,
    input_ids: &InputIds,
    subtask: ExecutionVertexId,
    record: &FinishRecord,
) -> bool {
    let epoch = record.attempt.epoch;
    if record.inputs != input_ids.of(recorded, subtask)
        || !recorded.coordinators.may_depend(subtask.vertex, epoch)
    {
        return false;
    }
    // Input ids tell re-runs apart only as far back as the log does. What is older than the log has
    // not read what is accepted if that began in a later life.
    let era = recorded.facts.era;
    let may_be_read = |finish: &Finish| finish.record.attempt.epoch <= epoch;
    let counted = |record: &SubtaskRecord| {
        record.had_finish && (epoch >= era || record.finish.as_ref().is_some_and(may_be_read))
    };
    recorded.graph().inputs(subtask.vertex).enumerate().all(|(input, (_, edge))| {
        let producer = recorded.vertex(edge.producer);
        let Some(range) = recorded.input_range(subtask, input) else { return false };
        (epoch >= era && recorded.is_complete(edge.producer))
            || range
                .producers()
                .all(|index| producer.subtasks.get(index as usize).is_some_and(counted))
    })
}

fn outputs_are_there(
    recorded: &Recorded,
    tracker: &PartitionTracker,
    subtask: ExecutionVertexId,
    proof: &Proof,
) -> bool {
    let outputs = recorded.graph().outputs(subtask.vertex).map(|(data_set, _)| data_set);
    let produced = proof.record.outputs.iter().map(|output| output.data_set);
    if !outputs.eq(produced) {
        return false;
    }
    proof.record.outputs.is_empty()
        || tracker.holds(proof.data_directory, &proof.record.attempt)
        || !recorded.is_needed(subtask)
}
