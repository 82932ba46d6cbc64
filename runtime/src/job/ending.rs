//! How a job ends: committed, failed or cancelled.

use regrow_protocol::{Accumulators, ExecutionAttemptId, ExecutionVertexId};

use super::{
    Job, Output, Phase, TASK_CANCELLATION_TIMEOUT,
    recorded::{CommitStage, Termination},
};
use crate::{
    Action, CommitPlan, Decision, Flush, JobEvent, JobOutcome, JobState, Lsn, ResetReason,
};

impl Job {
    /// Whether the job is to end without its output.
    pub(super) fn is_ending(&self) -> bool {
        self.recorded.facts.cancel_requested || self.recorded.facts.failure.is_some()
    }

    /// Begins to fail the job.
    pub(super) fn fail(&mut self, error: String, out: &mut Decision) {
        if !self.is_ending() {
            self.record(JobEvent::FailureDecided { error }, out);
        }
    }

    pub(super) fn cancel_requested(&mut self, out: &mut Decision) {
        let facts = &self.recorded.facts;
        let refused = match (&facts.commit, &facts.failure) {
            (CommitStage::Started { .. } | CommitStage::Finished, _) => {
                Some("the job is finishing: its output is being published".to_owned())
            }
            (CommitStage::None, Some(error)) => Some(format!("the job is failing: {error}")),
            (CommitStage::None, None) => None,
        };
        if refused.is_some() {
            out.actions.push(Action::AcknowledgeCancel { refused });
            return;
        }
        if !facts.cancel_requested {
            self.record(JobEvent::CancelRequested, out);
        }
        let lsn = self.recorded.lsn();
        self.hold_action(lsn, Flush::Now, Action::AcknowledgeCancel { refused: None }, out);
    }

    /// Carries the end of the job on; false while it is not about to end.
    pub(super) fn advance_end(&mut self, out: &mut Decision) -> bool {
        if self.is_ending() {
            self.stop_all(out);
            return true;
        }
        match &self.recorded.facts.commit {
            CommitStage::None => self.begin_commit_if_complete(out),
            CommitStage::Started { plan } => {
                if self.output != Output::Committing {
                    let plan = plan.clone();
                    self.output = Output::Committing;
                    let lsn = self.recorded.lsn();
                    self.hold_action(lsn, Flush::Now, Action::Commit(plan), out);
                }
                true
            }
            CommitStage::Finished => {
                self.terminate(JobState::Finished, None, out);
                true
            }
        }
    }

    /// Stops all tasks of a job that fails or is cancelled, and ends it when they have ended.
    fn stop_all(&mut self, out: &mut Decision) {
        if self.ending_since.is_none() {
            self.ending_since = Some(self.now);
            self.ready.clear();
            self.delayed.clear();
            for subtask in self.executions.subtasks() {
                self.stop(subtask, out);
            }
            self.declare_demand(out);
        }
        let waited = self.ending_since.map_or(self.now, |since| since);
        let overdue = self.now.since(waited) >= TASK_CANCELLATION_TIMEOUT;
        if !self.executions.is_quiet() && !overdue {
            return;
        }
        match self.recorded.facts.failure.clone() {
            Some(error) => self.terminate(JobState::Failed, Some(error), out),
            None => self.terminate(JobState::Canceled, None, out),
        }
    }

    fn begin_commit_if_complete(&mut self, out: &mut Decision) -> bool {
        if !self.recorded.all_complete() {
            return false;
        }
        if self.recorded.graph().sinks.is_empty() {
            self.terminate(JobState::Finished, None, out);
            return true;
        }
        self.prepare_output(out);
        if let Output::Prepared(directories) = &mut self.output {
            self.output = Output::Verifying(std::mem::take(directories));
            let plan = Box::new(self.commit_plan());
            out.actions.push(Action::VerifyStagedFiles(plan));
        }
        true
    }

    /// The winners: the staged files of the accepted attempt of each subtask.
    fn commit_plan(&self) -> CommitPlan {
        let submission = &self.recorded.facts.submission;
        let mut winners = Vec::new();
        for (_, finish) in self.recorded.finishes() {
            let files = finish.record.staged_files.iter().cloned();
            winners.extend(files.map(|file| (finish.record.attempt, file)));
        }
        winners.sort_by(|(_, left), (_, right)| {
            (left.sink, &left.final_name).cmp(&(right.sink, &right.final_name))
        });
        CommitPlan { run: submission.run, sinks: submission.graph.sinks.clone(), winners }
    }

    pub(super) fn output_prepared(
        &mut self,
        result: Result<Vec<String>, String>,
        out: &mut Decision,
    ) {
        if self.output != Output::Preparing {
            return;
        }
        match result {
            Ok(directories) => self.output = Output::Prepared(directories),
            Err(error) => self.fail(error, out),
        }
    }

    pub(super) fn staged_files_verified(
        &mut self,
        result: Result<Vec<ExecutionAttemptId>, String>,
        out: &mut Decision,
    ) {
        let Output::Verifying(directories) = &mut self.output else { return };
        self.output = Output::Prepared(std::mem::take(directories));
        if self.is_ending() || !self.recorded.all_complete() {
            return;
        }
        let lost = match result {
            Ok(lost) => lost,
            Err(error) => return self.fail(error, out),
        };
        if lost.is_empty() {
            let plan = Box::new(self.commit_plan());
            self.record(JobEvent::CommitStarted(plan), out);
            return;
        }
        let subtasks: std::collections::BTreeSet<ExecutionVertexId> =
            lost.iter().map(ExecutionAttemptId::execution_vertex).collect();
        let seeds = subtasks.into_iter().map(|it| (it, ResetReason::StagedFileLost)).collect();
        self.reset(seeds, out);
    }

    pub(super) fn commit_ended(&mut self, result: Result<(), String>, out: &mut Decision) {
        if !matches!(self.recorded.facts.commit, CommitStage::Started { .. }) {
            return;
        }
        match result {
            Ok(()) => {
                self.record(JobEvent::CommitFinished, out);
            }
            Err(error) => self.terminate(JobState::Failed, Some(error), out),
        }
    }

    fn terminate(&mut self, state: JobState, error: Option<String>, out: &mut Decision) {
        let lsn = self.record(JobEvent::JobTerminated { state, error }, out);
        self.conclude(lsn, out);
    }

    /// Ends this life once the terminal state is durable.
    pub(super) fn conclude(&mut self, lsn: Lsn, out: &mut Decision) {
        let Some(Termination { state, error }) = self.recorded.facts.terminated.clone() else {
            return;
        };
        let submission = &self.recorded.facts.submission;
        let outcome = JobOutcome {
            job: submission.job.clone(),
            run: submission.run,
            state,
            recoveries: self.recorded.facts.lives.saturating_sub(1),
            error,
            accumulators: self.accumulators(),
        };
        self.phase = Phase::Over;
        self.hold_action(lsn, Flush::Now, Action::Conclude(Box::new(outcome)), out);
    }

    /// A fold over the accepted attempts, one per subtask.
    fn accumulators(&self) -> Accumulators {
        let mut total = Accumulators::default();
        for (_, finish) in self.recorded.finishes() {
            total.merge(&finish.record.accumulators);
        }
        total
    }

    /// Gives up when an end, a commit, a recovery, or all that could run has waited for the log for
    /// too long.
    pub(super) fn step_down_if_due(&mut self, out: &mut Decision) {
        let commits = self.recorded.facts.commit != CommitStage::None;
        let ends = commits || self.is_ending() || !matches!(self.phase, Phase::Active);
        let waits = (ends || !self.executions.any_sent()) && !self.held.is_empty();
        let timeout = self.options.store_unavailable_timeout;
        let Some(degraded) = self.degraded.as_mut().filter(|it| !it.stepped_down) else { return };
        if waits && self.now.since(degraded.since) >= timeout {
            degraded.stepped_down = true;
            out.actions.push(Action::StepDown { reason: degraded.reason.clone() });
        }
    }
}
