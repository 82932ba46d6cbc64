//! What attempts wrote, as one number each: a function of what they read.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{ExecutionAttemptId, ExecutionVertexId, FinishRecord, Split, StableHasher};
use regrow_runtime::{Determinacy, JobGraph};

use super::workers::RunningTask;

#[derive(Default)]
pub(crate) struct Contents {
    written: BTreeMap<ExecutionAttemptId, u64>,
    /// Per attempt, which attempts it read and what was in them.
    read: BTreeMap<ExecutionAttemptId, Vec<(ExecutionAttemptId, u64)>>,
    splits: BTreeMap<ExecutionAttemptId, Vec<Split>>,
    /// Attempts whose output looks whole and cannot be read.
    damaged: BTreeSet<ExecutionAttemptId>,
    /// Attempts whose output the next reader does not reach.
    hidden: BTreeSet<ExecutionAttemptId>,
}

impl Contents {
    pub(crate) fn write(&mut self, task: &RunningTask, graph: &JobGraph) {
        let attempt = task.deployment.attempt;
        let producers = task.deployment.inputs.iter().flat_map(|gate| gate.producers.iter());
        let read: Vec<_> = producers
            .map(|producer| (producer.partition.attempt, self.written[&producer.partition.attempt]))
            .collect();
        let mut hasher = StableHasher::new("content");
        hasher.number(u64::from(attempt.vertex.0));
        hasher.number(u64::from(attempt.subtask));
        for split in &task.splits {
            hasher.number(u64::from(split.id.0));
            hasher.bytes(&split.payload);
        }
        for (_, content) in &read {
            hasher.number(*content);
        }
        let vertex = &graph.vertices[attempt.vertex.0 as usize];
        if vertex.determinacy == Determinacy::Indeterminate {
            hasher.number(attempt.epoch.number());
            hasher.number(u64::from(attempt.number));
        }
        self.written.insert(attempt, hasher.finish());
        self.read.insert(attempt, read);
        self.splits.insert(attempt, task.splits.clone());
    }

    /// The splits that a sealed attempt read.
    pub(crate) fn splits(&self, attempt: &ExecutionAttemptId) -> &[Split] {
        &self.splits[attempt]
    }

    pub(crate) fn damage(&mut self, attempt: ExecutionAttemptId) {
        self.damaged.insert(attempt);
    }

    pub(crate) fn is_damaged(&self, attempt: &ExecutionAttemptId) -> bool {
        self.damaged.contains(attempt)
    }

    pub(crate) fn hide(&mut self, attempt: ExecutionAttemptId) {
        self.hidden.insert(attempt);
    }

    /// Whether a reader reaches an output; the one after it does.
    pub(crate) fn is_reached(&mut self, attempt: &ExecutionAttemptId) -> bool {
        !self.hidden.remove(attempt)
    }

    /// Every accepted attempt read just what the accepted producers wrote.
    pub(crate) fn check(&self, accepted: &BTreeMap<ExecutionVertexId, FinishRecord>) {
        for record in accepted.values() {
            for (producer, content) in &self.read[&record.attempt] {
                let counted = accepted[&producer.execution_vertex()].attempt;
                assert_eq!(
                    self.written[&counted], *content,
                    "{} read {producer}, but {counted} counts, and differs",
                    record.attempt
                );
            }
        }
    }
}
