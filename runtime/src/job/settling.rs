//! What becomes of proofs once a life acts: counted, released, or kept until one can tell.

use std::{collections::BTreeSet, sync::Arc};

use regrow_protocol::{DataDirectoryId, ExecutionAttemptId, FinishRecord, ReportAnswer};

use super::{
    Job, Phase,
    executions::ExecutionStage,
    proofs::{Proof, ProofSource},
    verdict::{Verdict, judge},
};
use crate::{Action, Decision, Flush, JobEvent, Lsn, ResetReason};

impl Job {
    /// Judges all proofs that can be judged.
    pub(super) fn settle_proofs(&mut self, out: &mut Decision) {
        if !matches!(self.phase, Phase::Active) || self.proofs.is_empty() {
            return;
        }
        let recorded = &self.recorded;
        let known = recorded.facts.vertices.len();
        let proofs = self.proofs.take(|subtask| {
            subtask.vertex.0 as usize >= known || recorded.plan(subtask.vertex).is_some()
        });
        for proof in proofs {
            self.settle(proof, out);
        }
    }

    fn settle(&mut self, proof: Proof, out: &mut Decision) {
        let attempt = proof.record.attempt;
        let subtask = attempt.execution_vertex();
        if let Some(finish) = self.recorded.finish(subtask)
            && finish.record.attempt == attempt
        {
            let lsn = finish.lsn;
            self.settle_accepted(&proof, lsn, out);
            return;
        }
        if self.executions.of_attempt(&attempt).is_some() {
            // It runs here; a file alone says nothing that its report will not say.
            if proof.source == ProofSource::Report {
                self.task_finished(proof.worker, proof.data_directory, proof.record, out);
            }
            return;
        }
        let successor = self.executions.get(subtask).map(|execution| execution.stage);
        let allowed = self.options.recovery_enabled
            && !self.is_ending()
            && successor != Some(ExecutionStage::Sent);
        let verdict = judge(&self.recorded, &self.tracker, &self.input_ids, &proof);
        match verdict {
            Verdict::Counts { claim } if allowed => {
                self.withdraw(subtask);
                if self.recorded.subtask(subtask).is_some_and(|record| record.barrier > Lsn(0)) {
                    self.record(JobEvent::ResetTakenBack { attempts: vec![attempt] }, out);
                }
                if let Some(delta) = claim {
                    self.record_delta(subtask.vertex, delta, out);
                }
                let record = Arc::clone(&proof.record);
                let lsn = self.accept(proof.worker, proof.data_directory, record, out);
                self.settle_accepted(&proof, lsn, out);
            }
            Verdict::Counts { .. } | Verdict::Refused | Verdict::TooEarly => {
                self.settle_refused(&proof, out);
            }
        }
    }

    fn settle_accepted(&mut self, proof: &Proof, lsn: Lsn, out: &mut Decision) {
        let attempt = proof.record.attempt;
        let subtask = attempt.execution_vertex();
        match proof.source {
            ProofSource::Report => {
                self.hold_acceptance(lsn, proof.worker, attempt, out);
            }
            ProofSource::FinishFile => {
                let consumed =
                    self.recorded.has_outputs(subtask.vertex) && !self.recorded.is_needed(subtask);
                if consumed {
                    self.release(proof.data_directory, vec![attempt], self.recorded.lsn(), out);
                }
            }
        }
    }

    fn settle_refused(&mut self, proof: &Proof, out: &mut Decision) {
        let attempt = proof.record.attempt;
        match proof.source {
            ProofSource::Report => {
                let (worker, answer) = (proof.worker, ReportAnswer::Superseded);
                out.actions.push(Action::AnswerReport { worker, attempt, answer });
                // The worker discards only what it keeps itself.
                if self.workers.server(proof.data_directory) != Some(worker) {
                    self.release(proof.data_directory, vec![attempt], self.recorded.lsn(), out);
                }
            }
            ProofSource::FinishFile => {
                self.release(proof.data_directory, vec![attempt], self.recorded.lsn(), out);
            }
        }
    }

    /// Has outputs released by name, once `lsn` is durable.
    pub(super) fn release(
        &mut self,
        data_directory: DataDirectoryId,
        attempts: Vec<ExecutionAttemptId>,
        lsn: Lsn,
        out: &mut Decision,
    ) {
        for attempt in &attempts {
            self.tracker.remove(data_directory, attempt);
        }
        // Nobody serves the directory: whoever takes it over reports it, and then it is released.
        let Some(worker) = self.workers.server(data_directory) else { return };
        let action = Action::ReleasePartitions { worker, data_directory, attempts };
        self.hold_action(lsn, Flush::Whenever, action, out);
    }

    /// The counted outputs that a full report of their directory lacks; `asked` is the log's
    /// position when the report was asked for, after which a finish may be missing from it.
    pub(super) fn missing_from(
        &self,
        data_directory: DataDirectoryId,
        asked: Option<Lsn>,
        reported: &[FinishRecord],
    ) -> Vec<ExecutionAttemptId> {
        let Some(asked) = asked else { return Vec::new() };
        let there: BTreeSet<ExecutionAttemptId> =
            reported.iter().map(|record| record.attempt).collect();
        let missing = self.recorded.finishes().filter(|(subtask, finish)| {
            finish.data_directory == data_directory
                && finish.lsn <= asked
                && self.recorded.has_outputs(subtask.vertex)
                && self.tracker.holds(data_directory, &finish.record.attempt)
                && !there.contains(&finish.record.attempt)
        });
        missing.map(|(_, finish)| finish.record.attempt).collect()
    }

    /// Runs again what was counted on and is missing (recovery.md 5.15).
    pub(super) fn reset_missing(
        &mut self,
        data_directory: DataDirectoryId,
        missing: Vec<ExecutionAttemptId>,
        out: &mut Decision,
    ) {
        let mut seeds = Vec::new();
        for attempt in missing {
            self.tracker.remove(data_directory, &attempt);
            let subtask = attempt.execution_vertex();
            if self.recorded.is_needed(subtask) {
                let message = "its file is gone from the data directory".to_owned();
                seeds.push((subtask, ResetReason::PartitionLost { message }));
            }
        }
        self.reset(seeds, out);
    }

    /// Asks for the content of a directory of which an output was found missing.
    pub(super) fn check_directory(&mut self, data_directory: DataDirectoryId, out: &mut Decision) {
        let Some(worker) = self.workers.server(data_directory) else { return };
        if self.asked.contains_key(&data_directory) {
            return;
        }
        self.asked.insert(data_directory, self.recorded.lsn());
        out.actions.push(Action::GetAllPartitionsWithMetrics { worker });
    }
}
