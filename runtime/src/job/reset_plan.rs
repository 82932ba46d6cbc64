//! Which subtasks run again when some must: the fix-point of recovery.md 5.6 and 5.8.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regrow_protocol::{ExecutionVertexId, JobVertexId};

use super::{
    executions::Executions,
    partition_tracker::PartitionTracker,
    recorded::{Recorded, SubtaskRecord},
};
use crate::{Determinacy, ResetReason, VertexReset};

/// What a plan of resets depends on.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) tracker: &'a PartitionTracker,
    pub(super) executions: &'a Executions,
}

/// Computes all resets that follow from `seeds`, ascending by subtask.
///
/// A subtask that runs again needs the outputs of its producers: those that are finished and gone
/// run again too. One whose new output may differ takes along whoever read the old. A finished one
/// whose splits cannot be read again takes along its whole vertex.
pub(super) fn plan_resets(
    surroundings: Surroundings<'_>,
    seeds: Vec<(ExecutionVertexId, ResetReason)>,
) -> Vec<VertexReset> {
    let mut planner = Planner {
        surroundings,
        planned: BTreeMap::new(),
        open: seeds.into(),
        walked_up: BTreeSet::new(),
        voided: BTreeSet::new(),
    };
    while let Some((subtask, reason)) = planner.open.pop_front() {
        planner.visit(subtask, reason);
    }
    planner.planned.into_values().collect()
}

struct Planner<'a> {
    surroundings: Surroundings<'a>,
    planned: BTreeMap<ExecutionVertexId, VertexReset>,
    open: VecDeque<(ExecutionVertexId, ResetReason)>,
    /// Ranges of producers that were looked at.
    walked_up: BTreeSet<(JobVertexId, u32, u32)>,
    /// Vertices of which all attempts so far are void.
    voided: BTreeSet<JobVertexId>,
}

impl Planner<'_> {
    fn visit(&mut self, subtask: ExecutionVertexId, reason: ResetReason) {
        let Surroundings { recorded, executions, .. } = self.surroundings;
        let Some(record) = recorded.subtask(subtask) else { return };
        let running = executions.get(subtask).map(|execution| execution.attempt.number);
        let reason = self.void_vertex(subtask, record, reason);
        let tried = reason == ResetReason::ListingForgotten && record.next_attempt > 0;
        if record.finish.is_none() && running.is_none() && !record.had_finish && !tried {
            return;
        }
        let differs = record.had_finish && self.may_differ(subtask.vertex, &reason);
        if let Some(planned) = self.planned.get_mut(&subtask) {
            if !differs || planned.generation > record.generation {
                return;
            }
            planned.generation += 1;
        } else {
            let (charged, lost) = (reason.charged_failures(), reason.losses());
            let finished = record.finish.as_ref().map(|finish| finish.record.attempt.number);
            let highest = finished.max(running).map_or(0, |number| number.saturating_add(1));
            let reset = VertexReset {
                subtask,
                reason,
                generation: record.generation + u32::from(differs),
                next_attempt: record.next_attempt.max(highest),
                charged_failures: record.charged_failures.saturating_add(charged),
                losses: record.losses.saturating_add(lost),
            };
            self.planned.insert(subtask, reset);
            self.walk_up(subtask);
        }
        if differs {
            let consumers = recorded.consumers(subtask).into_iter();
            self.open.extend(consumers.map(|consumer| (consumer, ResetReason::InputChanged)));
        }
    }

    /// Has the whole vertex run again if a finished attempt read splits that cannot be read again;
    /// then the attempt never counts again, also if its output comes back.
    fn void_vertex(
        &mut self,
        subtask: ExecutionVertexId,
        record: &SubtaskRecord,
        reason: ResetReason,
    ) -> ResetReason {
        let recorded = self.surroundings.recorded;
        let vertex = subtask.vertex;
        if record.finish.is_none() || recorded.coordinators.can_repeat(vertex) {
            return reason;
        }
        if self.voided.insert(vertex) {
            let all = recorded.subtasks(vertex);
            self.open.extend(all.map(|subtask| (subtask, ResetReason::ListingForgotten)));
        }
        if reason.is_final() { reason } else { ResetReason::ListingForgotten }
    }

    /// Whether the output of a re-run may differ from what was read of the run before.
    fn may_differ(&self, vertex: JobVertexId, reason: &ResetReason) -> bool {
        match reason {
            ResetReason::InputChanged | ResetReason::SplitsLeft | ResetReason::ListingForgotten => {
                true
            }
            ResetReason::Failed { .. }
            | ResetReason::WorkerLost
            | ResetReason::PartitionLost { .. }
            | ResetReason::OutputMissing
            | ResetReason::InputLost
            | ResetReason::InputUnreachable { .. }
            | ResetReason::Cancelled
            | ResetReason::StagedFileLost => {
                let recorded = self.surroundings.recorded;
                let declared = recorded.graph().vertices[vertex.0 as usize].determinacy;
                declared == Determinacy::Indeterminate || !recorded.coordinators.can_repeat(vertex)
            }
        }
    }

    fn walk_up(&mut self, subtask: ExecutionVertexId) {
        let Surroundings { recorded, tracker, .. } = self.surroundings;
        for (input, (_, edge)) in recorded.graph().inputs(subtask.vertex).enumerate() {
            let Some(range) = recorded.input_range(subtask, input) else { continue };
            let key = (edge.producer, range.producers_start, range.producers_end);
            if !self.walked_up.insert(key) {
                continue;
            }
            let producers = range
                .producers()
                .map(|subtask| ExecutionVertexId { vertex: edge.producer, subtask });
            let missing = producers.filter(|producer| {
                recorded.finish(*producer).is_some() && !tracker.is_available(recorded, *producer)
            });
            self.open.extend(missing.map(|producer| (producer, ResetReason::OutputMissing)));
        }
    }
}
