//! Proofs of finishes that the log does not hold: reports and finish records of workers.

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, ExecutionAttemptId, ExecutionVertexId, FinishRecord, WorkerId,
};

/// Proofs that have not been judged, by subtask, newest attempt last.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    by_subtask: BTreeMap<ExecutionVertexId, BTreeMap<ExecutionAttemptId, Proof>>,
}

/// A finish record and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proof {
    pub(super) worker: WorkerId,
    pub(super) data_directory: DataDirectoryId,
    pub(super) record: Arc<FinishRecord>,
    pub(super) source: ProofSource,
}

/// Who brought a proof, and so who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProofSource {
    /// An inventory of files: nobody waits; an orphan is released by name.
    FinishFile,
    /// A report of a `TaskExecutor`, which repeats it until it is answered.
    Report,
}

impl Proofs {
    /// Notes a proof; a report outranks a file, because it wants an answer.
    pub(super) fn add(&mut self, proof: Proof) {
        let attempt = proof.record.attempt;
        let proofs = self.by_subtask.entry(attempt.execution_vertex()).or_default();
        match proofs.get_mut(&attempt) {
            Some(known) if known.source >= proof.source => {}
            Some(known) => *known = proof,
            None => {
                proofs.insert(attempt, proof);
            }
        }
    }

    /// The proofs for a subtask, newest attempt first.
    pub(super) fn of(&self, subtask: ExecutionVertexId) -> impl Iterator<Item = &Proof> {
        let proofs = self.by_subtask.get(&subtask);
        let newest = |attempt: &ExecutionAttemptId| (attempt.epoch, attempt.number);
        let mut proofs: Vec<&Proof> = proofs.into_iter().flat_map(BTreeMap::values).collect();
        proofs.sort_by_key(|proof| std::cmp::Reverse(newest(&proof.record.attempt)));
        proofs.into_iter()
    }

    /// Takes all proofs for subtasks that `wanted` chooses.
    pub(super) fn take(&mut self, wanted: impl Fn(ExecutionVertexId) -> bool) -> Vec<Proof> {
        let (taken, kept) =
            std::mem::take(&mut self.by_subtask).into_iter().partition(|(id, _)| wanted(*id));
        self.by_subtask = kept;
        let taken: BTreeMap<ExecutionVertexId, BTreeMap<ExecutionAttemptId, Proof>> = taken;
        taken.into_values().flat_map(BTreeMap::into_values).collect()
    }

    /// The highest attempt number that a proof shows, per subtask.
    pub(super) fn highest_numbers(&self) -> BTreeMap<ExecutionVertexId, u32> {
        let highest = |proofs: &BTreeMap<ExecutionAttemptId, Proof>| {
            proofs.keys().map(|attempt| attempt.number).max().unwrap_or(0)
        };
        self.by_subtask.iter().map(|(subtask, proofs)| (*subtask, highest(proofs))).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_subtask.is_empty()
    }
}
