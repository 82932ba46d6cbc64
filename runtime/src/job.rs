//! The decisions of a `JobMaster`: one job from submission to its end, over any number of lives.
//!
//! The recorded part of the state changes in [`Recorded::apply`] alone. What is volatile (workers,
//! slots, attempts under way, what waits) lives beside it and is rebuilt by a new life from what
//! the workers report.

mod deployment;
mod ending;
mod executions;
mod held;
mod input_ids;
mod keepers;
mod partition_tracker;
mod proofs;
mod reconciliation;
mod recorded;
mod recovery;
mod replay;
mod reports;
mod reset_plan;
mod resets;
mod resync;
mod scheduling;
mod settling;
mod status;
mod verdict;
mod workers;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use regrow_protocol::{
    DataDirectoryId, DataSetId, Epoch, ExecutionAttemptId, ExecutionVertexId, JobVertexId, WorkerId,
};

use self::{
    deployment::ProducerTable,
    executions::Executions,
    held::{Held, HeldAction},
    input_ids::InputIds,
    partition_tracker::PartitionTracker,
    proofs::Proofs,
    recorded::Recorded,
    recovery::Recovering,
    workers::Workers,
};
pub use self::{
    recovery::{LifeStart, RecoveryError},
    replay::Replay,
};
use crate::{
    Action, Decision, Flush, Input, JobEvent, JobGraph, JobSubmission, KillPoint, Lsn, Options,
    OutputPreparation, Timestamp,
};

/// How long an ending job waits for its tasks to stop before it ends without them.
pub const TASK_CANCELLATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a new life waits for attempts of former lives that were told to stop.
pub const FORMER_ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(5);

/// How many workers and outputs a subtask may lose before the job fails.
pub const LOSSES_MAX: u32 = 10;

/// How many lives in a row may panic without accepting a finish before the job fails.
pub const FRUITLESS_PANICS_MAX: u32 = 3;

/// The state machine of one job.
pub struct Job {
    options: Options,
    recorded: Recorded,
    graph_hash: u64,
    phase: Phase,
    now: Timestamp,
    /// Everything up to here is on stable storage.
    persisted: Lsn,
    held: Held,
    workers: Workers,
    executions: Executions,
    tracker: PartitionTracker,
    proofs: Proofs,
    input_ids: InputIds,
    /// Attempts of former lives that were told to stop and have not ended: they may still finish.
    former: BTreeMap<ExecutionAttemptId, WorkerId>,
    /// Subtasks that can run and wait for a slot.
    ready: BTreeSet<ExecutionVertexId>,
    /// Subtasks that wait for their restart.
    delayed: BTreeSet<(Timestamp, ExecutionVertexId)>,
    /// Where attempts of unfinished subtasks failed in this life, the last one last: others are
    /// preferred for the next.
    failed_on: BTreeMap<ExecutionVertexId, Vec<WorkerId>>,
    /// Whether a vertex may be ready to be initialized.
    look_for_plans: bool,
    output: Output,
    discovering: BTreeSet<JobVertexId>,
    /// When each coordinator was last snapshotted.
    snapshots: BTreeMap<JobVertexId, Timestamp>,
    /// Shared tables of producers, with the newest finish of their vertex that they know.
    producers: BTreeMap<(DataSetId, u32, u32), ProducerTable>,
    /// Finishes of tasks without partitions that are not shown before they are durable.
    unshown: BTreeMap<Lsn, JobVertexId>,
    /// Data directories whose content was asked for, with the log's position at that time.
    asked: BTreeMap<DataDirectoryId, Lsn>,
    /// Planned kills that have not fired, lowest percentage first.
    kills: Vec<KillPoint>,
    declared_demand: (u32, Vec<WorkerId>),
    next_wake: Option<Timestamp>,
    degraded: Option<Degraded>,
    /// When the tasks of an ending job were told to stop.
    ending_since: Option<Timestamp>,
    /// Commands of former masters that workers refused, as far as this life heard.
    refused_commands: u64,
}

/// What a life is doing.
enum Phase {
    /// It asks and listens.
    Reconciling(Box<Recovering>),
    /// Its recovery decision is not durable yet.
    Deciding(Box<Recovering>),
    /// It runs the job.
    Active,
    /// The job is terminal, or this life is over.
    Over,
}

/// How far the output directories are.
#[derive(Clone, Debug, PartialEq)]
enum Output {
    /// Not asked for.
    Unprepared,
    /// Asked for.
    Preparing,
    /// The staging directory of each sink.
    Prepared(Vec<String>),
    /// The staged files of the winners are being looked at.
    Verifying(Vec<String>),
    /// The commit is under way.
    Committing,
}

/// A log that cannot be written.
struct Degraded {
    reason: String,
    since: Timestamp,
    stepped_down: bool,
}

impl Job {
    fn begin(now: Timestamp, recorded: Recorded, life: &LifeStart, phase: Phase) -> Self {
        let mut kills = life.kills.clone();
        kills.sort_by_key(|point| point.percent());
        Self {
            graph_hash: recorded.graph().hash(),
            options: life.options.clone(),
            persisted: recorded.lsn(),
            recorded,
            phase,
            now,
            held: Held::default(),
            workers: Workers::default(),
            executions: Executions::default(),
            tracker: PartitionTracker::default(),
            proofs: Proofs::default(),
            input_ids: InputIds::default(),
            former: BTreeMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            failed_on: BTreeMap::new(),
            look_for_plans: true,
            output: Output::Unprepared,
            discovering: BTreeSet::new(),
            snapshots: BTreeMap::new(),
            producers: BTreeMap::new(),
            unshown: BTreeMap::new(),
            asked: BTreeMap::new(),
            kills,
            declared_demand: (0, Vec::new()),
            next_wake: None,
            degraded: None,
            ending_since: None,
            refused_commands: 0,
        }
    }

    /// Handles one input. The state already reflects the returned events.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Decision {
        self.now = self.now.max(now);
        let mut out = Decision::default();
        if matches!(self.phase, Phase::Over) && !self.still_hears(&input) {
            return out;
        }
        self.take_in(input, &mut out);
        self.advance(&mut out);
        self.ask_for_wake(&mut out);
        out
    }

    /// Whether a life that is over cares: only while something waits for the log.
    fn still_hears(&self, input: &Input) -> bool {
        let of_the_log = matches!(
            input,
            Input::Persisted { .. } | Input::LogDegraded { .. } | Input::LogReopened | Input::Woken
        );
        of_the_log && !self.held.is_empty()
    }

    /// What was submitted, as the events of a log say that begin with a submission or a snapshot.
    pub fn submission_in(log: &[JobEvent]) -> Option<JobSubmission> {
        let first = log.first()?;
        if let JobEvent::JobSubmitted(submission) = first {
            return Some((**submission).clone());
        }
        let JobEvent::Snapshot { state } = first else { return None };
        Some(Recorded::restore(state).ok()?.facts.submission)
    }

    /// Number of events recorded so far: the position after those of the newest decision.
    pub fn recorded_lsn(&self) -> Lsn {
        self.recorded.lsn()
    }

    /// The epoch of this life.
    pub fn epoch(&self) -> Epoch {
        self.recorded.facts.epoch
    }

    /// The graph of the job.
    pub fn graph(&self) -> &JobGraph {
        self.recorded.graph()
    }

    /// Whether an input is the word of a worker that is not there: one that comes back says it again.
    fn is_of_a_stranger(&self, input: &Input) -> bool {
        match input {
            Input::WorkerRegistered { worker, .. } => !self.workers.knows(worker.worker),
            Input::PartitionsReported { worker, .. }
            | Input::TaskFinished { worker, .. }
            | Input::TaskFailed { worker, .. }
            | Input::SplitRequested { worker, .. } => !self.workers.knows(*worker),
            Input::WorkerConnected { .. }
            | Input::CommandRefused { .. }
            | Input::WorkerDisconnected { .. }
            | Input::WorkerLeaving { .. }
            | Input::WorkerLost { .. }
            | Input::WorkerReplaced { .. }
            | Input::SlotsGranted { .. }
            | Input::SplitsDiscovered { .. }
            | Input::OutputPrepared { .. }
            | Input::StagedFilesVerified { .. }
            | Input::CommitEnded { .. }
            | Input::CancelRequested
            | Input::Persisted { .. }
            | Input::LogDegraded { .. }
            | Input::LogReopened
            | Input::SnapshotWanted
            | Input::Woken => false,
        }
    }

    fn take_in(&mut self, input: Input, out: &mut Decision) {
        if self.is_of_a_stranger(&input) {
            return;
        }
        match input {
            Input::WorkerConnected { worker } => self.worker_connected(worker, out),
            Input::WorkerRegistered { worker, inventory } => {
                self.worker_registered(worker, inventory, out);
            }
            Input::PartitionsReported { worker, data_directory, finished } => {
                self.partitions_reported(worker, data_directory, finished, out);
            }
            Input::WorkerDisconnected { worker } => {
                self.workers.disconnect(worker, self.now);
            }
            Input::WorkerLeaving { worker } => self.worker_leaving(worker),
            Input::WorkerLost { worker } => self.worker_lost(worker, out),
            Input::WorkerReplaced { worker, data_directory, by } => {
                self.worker_replaced(worker, data_directory, by, out);
            }
            Input::SlotsGranted { worker, count } => self.workers.add_free(worker, count),
            Input::TaskFinished { worker, data_directory, record } => {
                self.task_finished(worker, data_directory, record, out);
            }
            Input::TaskFailed { worker: _, attempt, failure } => {
                self.task_failed(attempt, &failure, out);
            }
            Input::SplitRequested { worker, attempt, request } => {
                self.split_requested(worker, attempt, request, out);
            }
            Input::CommandRefused { worker: _ } => {
                self.refused_commands = self.refused_commands.saturating_add(1);
            }
            Input::SplitsDiscovered { vertex, result } => {
                self.splits_discovered(vertex, result, out);
            }
            Input::OutputPrepared { result } => self.output_prepared(result, out),
            Input::StagedFilesVerified { result } => self.staged_files_verified(result, out),
            Input::CommitEnded { result } => self.commit_ended(result, out),
            Input::CancelRequested => self.cancel_requested(out),
            Input::Persisted { upto } => self.persisted(upto, out),
            Input::LogDegraded { reason } => {
                let since = self.degraded.as_ref().map_or(self.now, |degraded| degraded.since);
                self.degraded = Some(Degraded { reason, since, stepped_down: false });
            }
            Input::LogReopened | Input::SnapshotWanted => self.record_snapshot(out),
            Input::Woken => self.next_wake = None,
        }
    }

    fn advance(&mut self, out: &mut Decision) {
        self.step_down_if_due(out);
        match self.phase {
            Phase::Reconciling(_) => self.decide_if_due(out),
            Phase::Deciding(_) | Phase::Over => {}
            Phase::Active => self.advance_active(out),
        }
    }

    fn advance_active(&mut self, out: &mut Decision) {
        self.lose_workers_after_grace(out);
        if self.die_if_planned(out) || self.advance_end(out) {
            return;
        }
        self.prepare_output(out);
        self.discover_splits(out);
        self.initialize_vertices(out);
        self.wake_delayed();
        self.dispatch(out);
        self.declare_demand(out);
    }

    /// Records a fact: the state changes and the event is stored.
    fn record(&mut self, event: JobEvent, out: &mut Decision) -> Lsn {
        self.recorded.apply(&event);
        out.events.push(event);
        self.recorded.lsn()
    }

    /// Carries out `action` once everything up to `lsn` is durable.
    fn hold(&mut self, lsn: Lsn, flush: Flush, action: HeldAction, out: &mut Decision) {
        if lsn <= self.persisted {
            self.perform_held(action, out);
        } else {
            out.flush = out.flush.max(flush);
            self.held.push(lsn, action);
        }
    }

    fn hold_action(&mut self, lsn: Lsn, flush: Flush, action: Action, out: &mut Decision) {
        self.hold(lsn, flush, HeldAction::Act(action), out);
    }

    /// Answers a report once its finish is durable. Asks for no flush: the answer goes with the next.
    fn hold_acceptance(
        &mut self,
        lsn: Lsn,
        worker: WorkerId,
        attempt: ExecutionAttemptId,
        out: &mut Decision,
    ) {
        if lsn <= self.persisted {
            out.actions.push(Action::AcceptReports { worker, attempts: vec![attempt] });
        } else {
            self.held.push_acceptance(lsn, worker, attempt);
        }
    }

    fn persisted(&mut self, upto: Lsn, out: &mut Decision) {
        self.persisted = self.persisted.max(upto);
        self.degraded = None;
        self.unshown = self.unshown.split_off(&Lsn(self.persisted.0 + 1));
        while let Some(action) = self.held.pop(self.persisted) {
            self.perform_held(action, out);
        }
        for (worker, attempts) in self.held.pop_acceptances(self.persisted) {
            out.actions.push(Action::AcceptReports { worker, attempts });
        }
    }

    fn perform_held(&mut self, action: HeldAction, out: &mut Decision) {
        match action {
            HeldAction::Act(action) => out.actions.push(action),
            HeldAction::Submit { attempt, ticket } => self.send(&attempt, ticket, out),
            HeldAction::ReleaseOutputs(vertex) => self.release_outputs(vertex, out),
            HeldAction::Activate => self.activate(out),
        }
    }

    fn record_snapshot(&mut self, out: &mut Decision) {
        let state = self.recorded.snapshot();
        self.record(JobEvent::Snapshot { state }, out);
        out.flush = Flush::Now;
    }

    fn die_if_planned(&mut self, out: &mut Decision) -> bool {
        let Some(point) = self.kills.first().copied() else { return false };
        let (finished, known) = self.progress();
        let due = point.percent().is_some_and(|percent| {
            u64::from(finished) * 100 >= u64::from(percent) * u64::from(known)
        });
        if due {
            self.phase = Phase::Over;
            self.held = Held::default();
            out.actions.push(Action::Die(point.how));
        }
        due
    }

    /// Subtasks finished, and subtasks known; an undecided vertex counts one.
    fn progress(&self) -> (u32, u32) {
        self.recorded.facts.vertices.iter().fold((0, 0), |(finished, known), vertex| {
            let parallelism = vertex.plan.as_ref().map_or(1, |plan| plan.parallelism);
            (finished + vertex.finished, known + parallelism)
        })
    }

    fn prepare_output(&mut self, out: &mut Decision) {
        let submission = &self.recorded.facts.submission;
        if self.output != Output::Unprepared {
            return;
        }
        let sinks = submission.graph.sinks.clone();
        if sinks.is_empty() {
            self.output = Output::Prepared(Vec::new());
            return;
        }
        self.output = Output::Preparing;
        let run = submission.run;
        out.actions.push(Action::PrepareOutput(OutputPreparation { run, sinks }));
    }

    fn ask_for_wake(&mut self, out: &mut Decision) {
        let deadlines = [
            self.delayed.first().map(|(at, _)| *at),
            self.workers.first_disconnect().map(|at| at.after(self.options.reconnect_grace)),
            self.ending_since.map(|since| since.after(TASK_CANCELLATION_TIMEOUT)),
            self.degraded
                .as_ref()
                .filter(|degraded| !degraded.stepped_down)
                .map(|degraded| degraded.since.after(self.options.store_unavailable_timeout)),
            self.recovery_deadline(),
        ];
        // One that has passed was acted upon, or waits for something that is an input itself.
        let future = deadlines.into_iter().flatten().filter(|at| *at > self.now);
        let Some(next) = future.min() else { return };
        if self.next_wake.is_some_and(|wake| wake <= next) {
            return;
        }
        self.next_wake = Some(next);
        out.actions.push(Action::WakeAt(next));
    }
}

#[cfg(test)]
mod tests;
