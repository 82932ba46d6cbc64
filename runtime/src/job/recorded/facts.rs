//! The recorded facts of a run, as plain data.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, Epoch, ExecutionAttemptId, ExecutionVertexId, FinishRecord, JobVertexId,
    WorkerId,
};
use serde::{Deserialize, Serialize};

use crate::{CommitPlan, JobState, JobSubmission, Lsn, VertexPlan, VertexReset};

/// All that the events of a run say, apart from its coordinators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct Facts {
    /// Number of events so far.
    pub(in crate::job) lsn: Lsn,
    pub(in crate::job) submission: JobSubmission,
    /// The newest epoch.
    pub(in crate::job) epoch: Epoch,
    /// Number of epochs so far.
    pub(in crate::job) lives: u32,
    /// The first epoch of which the log tells all: of attempts before it, nobody knows which others
    /// they had read.
    #[serde(default)]
    pub(in crate::job) era: Epoch,
    /// Position after the `RecoveryDecided` of the newest epoch.
    pub(in crate::job) decided: Option<Lsn>,
    pub(in crate::job) vertices: Vec<VertexRecord>,
    pub(in crate::job) workers: BTreeMap<WorkerId, UsedWorker>,
    pub(in crate::job) commit: CommitStage,
    pub(in crate::job) cancel_requested: bool,
    pub(in crate::job) failure: Option<String>,
    pub(in crate::job) terminated: Option<Termination>,
    /// Lives in a row that panicked without accepting a finish.
    pub(in crate::job) fruitless_panics: u32,
    /// Whether the newest epoch accepted a finish.
    pub(in crate::job) progress: bool,
}

/// One vertex.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct VertexRecord {
    pub(in crate::job) plan: Option<VertexPlan>,
    /// Position after its `JobVertexInitialized`.
    pub(in crate::job) initialized: Lsn,
    pub(in crate::job) subtasks: Vec<SubtaskRecord>,
    /// How many subtasks are finished.
    pub(in crate::job) finished: u32,
    /// Position after the newest finish of a subtask.
    pub(in crate::job) last_finish: Lsn,
    /// Sum of the generations of all subtasks: changes whenever one does.
    pub(in crate::job) generations: u64,
}

/// One subtask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct SubtaskRecord {
    pub(in crate::job) finish: Option<Finish>,
    /// Grows iff a re-run may give other output.
    pub(in crate::job) generation: u32,
    /// Whether an attempt of this generation was accepted once.
    pub(in crate::job) had_finish: bool,
    /// Above every attempt number that the log shows.
    pub(in crate::job) next_attempt: u32,
    pub(in crate::job) charged_failures: u32,
    /// Workers lost while it ran, and outputs lost.
    pub(in crate::job) losses: u32,
    /// Attempts up to this (epoch, number) never count again.
    pub(in crate::job) refused: Option<(Epoch, u32)>,
    /// Position after its newest reset: what its next dispatch waits for.
    pub(in crate::job) barrier: Lsn,
}

/// An accepted finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct Finish {
    pub(in crate::job) record: Arc<FinishRecord>,
    pub(in crate::job) worker: WorkerId,
    pub(in crate::job) data_directory: DataDirectoryId,
    /// Position after its event.
    pub(in crate::job) lsn: Lsn,
}

/// A worker that got an attempt, or keeps what others wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct UsedWorker {
    pub(in crate::job) data_directory: DataDirectoryId,
    /// Where it listens, and whoever keeps its directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::job) addresses: Vec<SocketAddr>,
    pub(in crate::job) lost: bool,
    /// Position after its `WorkerUsed`.
    pub(in crate::job) lsn: Lsn,
}

/// How far the commit of the output is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::job) enum CommitStage {
    None,
    Started { plan: Box<CommitPlan> },
    Finished,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::job) struct Termination {
    pub(in crate::job) state: JobState,
    pub(in crate::job) error: Option<String>,
}

impl UsedWorker {
    pub(super) fn new(data_directory: DataDirectoryId, addresses: &[SocketAddr], lsn: Lsn) -> Self {
        Self { data_directory, addresses: addresses.to_vec(), lost: false, lsn }
    }
}

impl SubtaskRecord {
    /// Whether a reset has made this attempt void for good.
    pub(in crate::job) fn refuses(&self, attempt: &ExecutionAttemptId) -> bool {
        self.refused.is_some_and(|refused| (attempt.epoch, attempt.number) <= refused)
    }
}

impl Facts {
    pub(super) fn new(submission: JobSubmission) -> Self {
        let vertices = vec![VertexRecord::default(); submission.graph.vertices.len()];
        Self {
            lsn: Lsn(0),
            submission,
            epoch: Epoch::default(),
            lives: 0,
            era: Epoch::default(),
            decided: None,
            vertices,
            workers: BTreeMap::new(),
            commit: CommitStage::None,
            cancel_requested: false,
            failure: None,
            terminated: None,
            fruitless_panics: 0,
            progress: false,
        }
    }

    pub(super) fn initialize(&mut self, vertex: JobVertexId, plan: VertexPlan) {
        let initialized = self.lsn;
        let Some(record) = self.vertices.get_mut(vertex.0 as usize) else { return };
        record.subtasks = vec![SubtaskRecord::default(); plan.parallelism as usize];
        record.initialized = initialized;
        record.plan = Some(plan);
    }

    pub(super) fn finish(&mut self, finish: Finish) {
        let attempt = finish.record.attempt;
        let Some(vertex) = self.vertices.get_mut(attempt.vertex.0 as usize) else { return };
        let Some(subtask) = vertex.subtasks.get_mut(attempt.subtask as usize) else { return };
        subtask.next_attempt = subtask.next_attempt.max(attempt.number.saturating_add(1));
        subtask.had_finish = true;
        vertex.last_finish = vertex.last_finish.max(finish.lsn);
        if subtask.finish.replace(finish).is_none() {
            vertex.finished += 1;
        }
    }

    pub(super) fn note_progress(&mut self) {
        self.progress = true;
    }

    pub(super) fn reset(&mut self, reset: &VertexReset) {
        let (epoch, lsn) = (self.epoch, self.lsn);
        let Some(vertex) = self.vertices.get_mut(reset.subtask.vertex.0 as usize) else { return };
        let Some(subtask) = vertex.subtasks.get_mut(reset.subtask.subtask as usize) else { return };
        if subtask.finish.take().is_some() {
            vertex.finished -= 1;
        }
        vertex.generations +=
            u64::from(reset.generation - subtask.generation.min(reset.generation));
        if reset.generation != subtask.generation {
            subtask.had_finish = false;
        }
        subtask.generation = reset.generation;
        subtask.next_attempt = subtask.next_attempt.max(reset.next_attempt);
        subtask.charged_failures = reset.charged_failures;
        subtask.losses = reset.losses;
        subtask.barrier = lsn;
        if reset.reason.is_final() && subtask.next_attempt > 0 {
            subtask.refused = Some((epoch, subtask.next_attempt - 1));
        }
    }

    pub(in crate::job) fn raise_next_attempt(&mut self, subtask: ExecutionVertexId, next: u32) {
        let Some(vertex) = self.vertices.get_mut(subtask.vertex.0 as usize) else { return };
        let Some(record) = vertex.subtasks.get_mut(subtask.subtask as usize) else { return };
        record.next_attempt = record.next_attempt.max(next);
    }

    pub(super) fn lose_worker(&mut self, worker: WorkerId) {
        if let Some(used) = self.workers.get_mut(&worker) {
            used.lost = true;
        }
    }
}
