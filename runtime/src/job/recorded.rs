//! What a run has recorded: a fold over its events, the same live and in replay.

mod coordinators;
mod facts;

use std::sync::Arc;

pub(super) use coordinators::Coordinators;
pub(super) use facts::{CommitStage, Facts, Finish, SubtaskRecord, Termination, VertexRecord};
use regrow_protocol::{DecodeError, ExecutionVertexId, FinishRecord, JobVertexId};
use serde::{Deserialize, Serialize};

use crate::{
    InputRange, JobEvent, JobGraph, JobSubmission, Lsn, PreviousLife, RecoveryDecision, VertexPlan,
    VertexReset,
};

/// The recorded part of a job. Changes only in [`apply`](Self::apply).
pub(super) struct Recorded {
    pub(super) facts: Facts,
    pub(super) coordinators: Coordinators,
}

/// What a [`JobEvent::Snapshot`] holds.
#[derive(Serialize, Deserialize)]
struct SnapshotState {
    facts: Facts,
    coordinators: Vec<(JobVertexId, coordinators::CoordinatorState)>,
}

/// A snapshot cannot be used: treat it as damage of the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    /// It is not a snapshot.
    #[error("a snapshot in the log cannot be decoded")]
    Decode(#[from] DecodeError),
    /// A coordinator refuses its part.
    #[error("a snapshot of the coordinator of vertex {vertex} cannot be used: {reason}")]
    Coordinator { vertex: JobVertexId, reason: String },
}

impl Recorded {
    /// A run of which only the submission is known.
    pub(super) fn new(submission: JobSubmission) -> Self {
        let coordinators = Coordinators::new(&submission.graph);
        Self { facts: Facts::new(submission), coordinators }
    }

    /// The whole state, encoded; [`restore`](Self::restore) takes it back.
    pub(super) fn snapshot(&self) -> Vec<u8> {
        let state = SnapshotState {
            facts: self.facts.clone(),
            coordinators: self.coordinators.checkpoint(),
        };
        #[expect(clippy::expect_used, reason = "plain data of our own always encodes")]
        regrow_protocol::encode(&state).expect("a snapshot encodes")
    }

    /// Rebuilds the state from [`snapshot`](Self::snapshot).
    pub(super) fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let state: SnapshotState = regrow_protocol::decode(bytes)?;
        let mut coordinators = Coordinators::new(&state.facts.submission.graph);
        coordinators.restore(state.coordinators)?;
        Ok(Self { facts: state.facts, coordinators })
    }

    /// Applies one event of a log: as [`apply`](Self::apply), but a snapshot replaces the state.
    pub(super) fn replay(&mut self, event: &JobEvent) -> Result<(), SnapshotError> {
        if let JobEvent::Snapshot { state } = event {
            *self = Self::restore(state)?;
        }
        self.apply(event);
        Ok(())
    }

    /// The one place where the recorded state changes.
    pub(super) fn apply(&mut self, event: &JobEvent) {
        self.facts.lsn.0 += 1;
        let lsn = self.facts.lsn;
        match event {
            JobEvent::JobSubmitted(_)
            | JobEvent::Snapshot { .. }
            | JobEvent::ResetTakenBack { .. } => {}
            JobEvent::EpochStarted { epoch, previous, sealed: _, log_lacks } => {
                self.facts.start_epoch(*epoch, previous);
                if *log_lacks {
                    self.facts.era = *epoch;
                }
            }
            JobEvent::RecoveryDecided(decision) => self.apply_decision(decision),
            JobEvent::JobVertexInitialized { vertex, plan } => {
                self.facts.initialize(*vertex, plan.clone());
            }
            JobEvent::WorkerUsed { worker, data_directory, shuffle_service, addresses } => {
                for used in [Some(*worker), *shuffle_service].into_iter().flatten() {
                    let noted = facts::UsedWorker::new(*data_directory, addresses, lsn);
                    self.facts.workers.insert(used, noted);
                }
            }
            JobEvent::WorkerLost { worker } => self.facts.lose_worker(*worker),
            JobEvent::ExecutionVertexFinished { worker, data_directory, record } => {
                self.facts.finish(Finish {
                    record: Arc::clone(record),
                    worker: *worker,
                    data_directory: *data_directory,
                    lsn,
                });
                self.facts.note_progress();
            }
            JobEvent::ExecutionVerticesReset { resets } => self.apply_resets(resets),
            JobEvent::CoordinatorChanged { vertex, number, delta } => {
                self.coordinators.apply(*vertex, *number, delta, lsn);
            }
            JobEvent::CoordinatorSnapshot { vertex, last_delta, state } => {
                self.coordinators.reset(*vertex, *last_delta, state);
            }
            JobEvent::CommitStarted(plan) => {
                self.facts.commit = CommitStage::Started { plan: plan.clone() };
            }
            JobEvent::CommitFinished => self.facts.commit = CommitStage::Finished,
            JobEvent::CancelRequested => self.facts.cancel_requested = true,
            JobEvent::FailureDecided { error } => self.facts.failure = Some(error.clone()),
            JobEvent::JobTerminated { state, error } => {
                self.facts.terminated = Some(Termination { state: *state, error: error.clone() });
            }
        }
    }

    fn apply_decision(&mut self, decision: &RecoveryDecision) {
        let lsn = self.facts.lsn;
        for (worker, data_directory, record) in &decision.found {
            self.facts.finish(Finish {
                record: Arc::clone(record),
                worker: *worker,
                data_directory: *data_directory,
                lsn,
            });
        }
        self.apply_resets(&decision.resets);
        for (vertex, number, delta) in &decision.deltas {
            self.coordinators.apply(*vertex, *number, delta, lsn);
        }
        for (subtask, number) in &decision.attempt_numbers {
            self.facts.raise_next_attempt(*subtask, number.saturating_add(1));
        }
        for worker in &decision.lost_workers {
            self.facts.lose_worker(*worker);
        }
        self.facts.decided = Some(lsn);
    }

    fn apply_resets(&mut self, resets: &[VertexReset]) {
        for reset in resets {
            self.facts.reset(reset);
        }
    }

    /// Applies a part of a recovery decision to a copy that is thrown away.
    pub(super) fn try_out(&mut self, part: &RecoveryDecision) {
        self.apply_decision(part);
    }

    /// A copy, for trying out what a recovery would decide.
    pub(super) fn duplicate(&self) -> Self {
        #[expect(clippy::expect_used, reason = "a snapshot that was just taken restores")]
        Self::restore(&self.snapshot()).expect("a fresh snapshot restores")
    }

    /// Whether two runs have recorded the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.facts == other.facts && self.coordinators.equal(&other.coordinators)
    }

    pub(super) fn lsn(&self) -> Lsn {
        self.facts.lsn
    }

    pub(super) fn graph(&self) -> &JobGraph {
        &self.facts.submission.graph
    }

    pub(super) fn vertices(&self) -> impl Iterator<Item = JobVertexId> + use<> {
        (0..).map(JobVertexId).take(self.facts.vertices.len())
    }

    pub(super) fn vertex(&self, vertex: JobVertexId) -> &VertexRecord {
        &self.facts.vertices[vertex.0 as usize]
    }

    pub(super) fn plan(&self, vertex: JobVertexId) -> Option<&VertexPlan> {
        self.vertex(vertex).plan.as_ref()
    }

    /// The subtasks of a vertex; none before it is initialized.
    pub(super) fn subtasks(
        &self,
        vertex: JobVertexId,
    ) -> impl Iterator<Item = ExecutionVertexId> + use<> {
        let count = u32::try_from(self.vertex(vertex).subtasks.len()).unwrap_or(u32::MAX);
        (0..count).map(move |subtask| ExecutionVertexId { vertex, subtask })
    }

    /// All subtasks of all initialized vertices.
    pub(super) fn all_subtasks(&self) -> impl Iterator<Item = ExecutionVertexId> + '_ {
        self.vertices().flat_map(|vertex| self.subtasks(vertex))
    }

    /// All finished subtasks, with their accepted finish.
    pub(super) fn finishes(&self) -> impl Iterator<Item = (ExecutionVertexId, &Finish)> + '_ {
        self.all_subtasks().filter_map(|subtask| Some((subtask, self.finish(subtask)?)))
    }

    /// The record of a subtask; none if there is no such subtask (yet).
    pub(super) fn subtask(&self, subtask: ExecutionVertexId) -> Option<&SubtaskRecord> {
        let vertex = self.facts.vertices.get(subtask.vertex.0 as usize)?;
        vertex.subtasks.get(subtask.subtask as usize)
    }

    pub(super) fn finish(&self, subtask: ExecutionVertexId) -> Option<&Finish> {
        self.subtask(subtask)?.finish.as_ref()
    }

    /// The accepted record of a subtask.
    pub(super) fn accepted(&self, subtask: ExecutionVertexId) -> Option<&FinishRecord> {
        self.finish(subtask).map(|finish| &*finish.record)
    }

    /// Whether every subtask of an initialized vertex is finished.
    pub(super) fn is_complete(&self, vertex: JobVertexId) -> bool {
        let vertex = self.vertex(vertex);
        vertex.plan.as_ref().is_some_and(|plan| plan.parallelism == vertex.finished)
    }

    pub(super) fn all_complete(&self) -> bool {
        self.vertices().all(|vertex| self.is_complete(vertex))
    }

    /// Whether a vertex writes any data set.
    pub(super) fn has_outputs(&self, vertex: JobVertexId) -> bool {
        self.graph().outputs(vertex).next().is_some()
    }

    /// The range that a subtask reads of input number `input`.
    pub(super) fn input_range(
        &self,
        subtask: ExecutionVertexId,
        input: usize,
    ) -> Option<InputRange> {
        Some(self.plan(subtask.vertex)?.input_range(input, subtask.subtask))
    }

    /// The subtasks of initialized vertices that read a producer.
    pub(super) fn consumers(&self, producer: ExecutionVertexId) -> Vec<ExecutionVertexId> {
        let mut consumers = Vec::new();
        for (data_set, edge) in self.graph().outputs(producer.vertex) {
            let inputs = self.graph().inputs(edge.consumer);
            let Some(input) = inputs.into_iter().position(|(id, _)| id == data_set) else {
                continue;
            };
            let reads = |consumer: &ExecutionVertexId| {
                let range = self.input_range(*consumer, input);
                range.is_some_and(|range| range.producers().contains(&producer.subtask))
            };
            consumers.extend(self.subtasks(edge.consumer).filter(reads));
        }
        consumers
    }

    /// Whether somebody who has not finished reads, or will read, the outputs of a producer.
    pub(super) fn is_needed(&self, producer: ExecutionVertexId) -> bool {
        let undecided = |consumer| self.plan(consumer).is_none();
        self.graph().outputs(producer.vertex).any(|(_, edge)| undecided(edge.consumer))
            || self.consumers(producer).iter().any(|consumer| self.finish(*consumer).is_none())
    }
}

impl Facts {
    fn start_epoch(&mut self, epoch: regrow_protocol::Epoch, previous: &PreviousLife) {
        match previous {
            _ if self.progress => self.fruitless_panics = 0,
            PreviousLife::Panicked { .. } => self.fruitless_panics += 1,
            PreviousLife::None | PreviousLife::Unknown | PreviousLife::KilledAsPlanned => {}
        }
        self.progress = false;
        self.epoch = epoch;
        self.lives += 1;
        self.decided = None;
    }
}
