//! What a `TaskExecutor` decides: which attempts run, what it reports, how long it waits for a
//! master. It obeys one epoch per run, and a finish stays with it until a master answered.

mod executor_run;
mod leave;
mod messages;
mod slots;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{
    Envelope, Epoch, ExecutionAttemptId, FinishRecord, Inventory, ReportAnswer, RunId, RunStanding,
    TaskDeployment, TaskFailure, ToJobMaster, ToTaskExecutor, WorkerDescription,
};

pub use leave::FAREWELL_TIMEOUT;
pub use messages::{TaskExecutorAction, TaskExecutorInput};

use crate::{
    Timestamp, WorkerTimeouts,
    alarm::Alarm,
    epoch_fence::{Admission, EpochFence},
};
use executor_run::{ExecutorRun, Known};
use slots::Slots;

/// Runs attempts for the masters of any number of runs.
///
/// Invariants: at most as many attempts occupy slots as there are slots; no attempt starts twice; a
/// finish is reported to each new master until one answered, the run ended, or the retention
/// time-out passed.
#[derive(Debug)]
pub struct TaskExecutor {
    identity: WorkerDescription,
    timeouts: WorkerTimeouts,
    fence: EpochFence,
    runs: BTreeMap<RunId, ExecutorRun>,
    slots: Slots,
    /// There once it was told to stop.
    leave: Option<leave::Leave>,
    alarm: Alarm,
}

type Actions = Vec<TaskExecutorAction>;

impl TaskExecutor {
    /// A worker that has not heard of any run.
    pub fn new(identity: WorkerDescription, timeouts: WorkerTimeouts) -> Self {
        Self {
            identity,
            timeouts,
            fence: EpochFence::default(),
            runs: BTreeMap::new(),
            slots: Slots::new(identity.slots),
            leave: None,
            alarm: Alarm::default(),
        }
    }

    /// The same, having seen `term` in an earlier life.
    #[must_use]
    pub fn above(self, term: u64) -> Self {
        Self { fence: EpochFence::above(term), ..self }
    }

    /// How many finishes wait for a master's answer. Not bounded here: a master bounds what it has
    /// in flight.
    pub fn unacknowledged_reports(&self) -> usize {
        self.runs.values().map(|run| run.unacknowledged.len()).sum()
    }

    /// How many attempts occupy slots, those included that were told to stop and have not yet.
    pub fn occupied_slots(&self) -> usize {
        self.slots.occupied()
    }

    /// Handles one input; the actions are to be carried out in order.
    pub fn handle(&mut self, now: Timestamp, input: TaskExecutorInput) -> Actions {
        let mut actions = Vec::new();
        match input {
            TaskExecutorInput::Command(envelope) => self.command(envelope, &mut actions),
            TaskExecutorInput::AttemptFinished(record) => self.finish(record, &mut actions),
            TaskExecutorInput::AttemptFailed { attempt, failure } => {
                self.fail(attempt, failure, &mut actions);
            }
            TaskExecutorInput::SplitWanted { attempt, request } => {
                if self.slots.await_split(attempt, request) {
                    self.request_split(attempt, request, &mut actions);
                }
            }
            TaskExecutorInput::MasterLost { run, epoch } => self.lose_master(now, run, epoch),
            TaskExecutorInput::LeaderLost => {
                for run in self.runs.values_mut() {
                    run.lost_at.get_or_insert(now);
                }
            }
            TaskExecutorInput::LeaderConnected => {
                let runs: Vec<RunId> = self.runs.keys().copied().collect();
                for run in runs {
                    self.register(run, &mut actions);
                }
            }
            TaskExecutorInput::LeaveWanted { drain } => self.leave(now, drain, &mut actions),
            TaskExecutorInput::Woken => self.alarm.rang(now),
        }
        self.expire(now, &mut actions);
        self.go_on_leaving(now, &mut actions);
        while let Some(deployment) = self.slots.start_next() {
            if let Some(run) = self.runs.get_mut(&deployment.attempt.run) {
                run.note(deployment.attempt, Known::Started);
            }
            actions.push(TaskExecutorAction::Start(deployment));
        }
        if let Some(moment) = self.alarm.set(self.next_deadline(now)) {
            actions.push(TaskExecutorAction::WakeAt(moment));
        }
        actions
    }

    fn command(&mut self, envelope: Envelope<ToTaskExecutor>, actions: &mut Actions) {
        let Envelope { run, epoch, message } = envelope;
        let admission = self.fence.admit(run, epoch);
        match admission {
            Admission::Refused => return self.refuse(run, actions),
            Admission::Ended => {
                // The run can only be ended again; its release is repeated, should it have failed.
                match message {
                    ToTaskExecutor::RunEnded { standing: RunStanding::Ended } => {
                        actions.push(TaskExecutorAction::ReleaseRun { run });
                    }
                    ToTaskExecutor::JobMasterStarted
                    | ToTaskExecutor::SubmitTask(_)
                    | ToTaskExecutor::CancelTask { .. }
                    | ToTaskExecutor::SplitAnswered { .. }
                    | ToTaskExecutor::ReportAnswered { .. }
                    | ToTaskExecutor::ReportsAccepted { .. }
                    | ToTaskExecutor::RunEnded { .. } => self.refuse(run, actions),
                }
                return;
            }
            Admission::Current => {}
            Admission::Raised => self.abandon_older(run, epoch, actions),
        }
        if admission == Admission::Raised || message == ToTaskExecutor::JobMasterStarted {
            self.follow(run, epoch, actions);
        }
        self.obey(run, epoch, message, actions);
    }

    /// A higher epoch leads the run: what older ones had dispatched is over.
    fn abandon_older(&mut self, run: RunId, epoch: Epoch, actions: &mut Actions) {
        self.runs.entry(run).or_default().known.clear();
        self.slots.drop_waiting(|attempt| attempt.run == run && attempt.epoch < epoch);
        self.stop_running(|attempt| attempt.run == run && attempt.epoch < epoch, actions);
    }

    /// A master is there: the outage is over.
    fn follow(&mut self, run: RunId, epoch: Epoch, actions: &mut Actions) {
        self.runs.entry(run).or_default().lost_at = None;
        actions.push(TaskExecutorAction::FollowMaster { run, epoch });
    }

    fn obey(&mut self, run: RunId, epoch: Epoch, message: ToTaskExecutor, actions: &mut Actions) {
        match message {
            ToTaskExecutor::JobMasterStarted => self.register(run, actions),
            ToTaskExecutor::SubmitTask(deployment) => self.submit(run, epoch, deployment, actions),
            ToTaskExecutor::CancelTask { attempt } => self.cancel(run, attempt, actions),
            ToTaskExecutor::SplitAnswered { attempt, request, split } => {
                if attempt.run == run && self.slots.take_answer(attempt, request) {
                    actions.push(TaskExecutorAction::DeliverSplit { attempt, split });
                }
            }
            ToTaskExecutor::ReportAnswered { attempt, answer } => {
                self.settle(run, attempt, answer, actions);
            }
            ToTaskExecutor::ReportsAccepted { attempts } => {
                for attempt in attempts {
                    self.settle(run, attempt, ReportAnswer::Accepted, actions);
                }
            }
            ToTaskExecutor::RunEnded { standing } => match standing {
                RunStanding::Ended => {
                    self.end_run(run, actions);
                    self.fence.end(run);
                }
                RunStanding::Running => self.follow(run, epoch, actions),
                RunStanding::Unknown => {}
            },
        }
    }

    fn register(&mut self, run: RunId, actions: &mut Actions) {
        let state = self.runs.entry(run).or_default();
        let inventory = Inventory {
            running: self.slots.of_run(run),
            unacknowledged: state.unacknowledged.values().cloned().collect(),
        };
        let unacknowledged = inventory.unacknowledged.clone();
        self.post(run, ToJobMaster::Registered { worker: self.identity, inventory }, actions);
        for record in unacknowledged {
            self.report_finish(record, actions);
        }
        for (attempt, request) in self.slots.awaited_splits(run) {
            self.request_split(attempt, request, actions);
        }
    }

    fn submit(
        &mut self,
        run: RunId,
        epoch: Epoch,
        deployment: Box<TaskDeployment>,
        actions: &mut Actions,
    ) {
        let attempt = deployment.attempt;
        if attempt.run != run || attempt.epoch != epoch {
            return self.refuse(run, actions);
        }
        let state = self.runs.entry(run).or_default();
        if let Some(record) = state.unacknowledged.get(&attempt) {
            let record = Arc::clone(record);
            self.report_finish(record, actions);
            return;
        }
        if self.slots.holds(attempt) {
            return;
        }
        match state.knowledge(attempt) {
            Some(Known::Started) => {}
            Some(Known::Failed(failure)) => self.report_failure(attempt, failure, actions),
            Some(Known::NeverStarts) => {
                self.report_failure(attempt, TaskFailure::Cancelled, actions);
            }
            None if self.leave.is_some() => {
                state.note(attempt, Known::NeverStarts);
                self.report_failure(attempt, TaskFailure::Cancelled, actions);
            }
            None => {
                if let Err(failure) = self.slots.enqueue(deployment) {
                    state.note(attempt, Known::NeverStarts);
                    self.report_failure(attempt, failure, actions);
                }
            }
        }
    }

    fn cancel(&mut self, run: RunId, attempt: ExecutionAttemptId, actions: &mut Actions) {
        if attempt.run != run {
            return self.refuse(run, actions);
        }
        if self.slots.stop(attempt) {
            actions.push(TaskExecutorAction::Cancel { attempt });
            return;
        }
        let dropped = self.slots.drop_waiting(|waiting| waiting == attempt);
        let state = self.runs.entry(run).or_default();
        if attempt.epoch == self.fence.epoch(run) && state.knowledge(attempt).is_none() {
            state.note(attempt, Known::NeverStarts);
        }
        if dropped {
            self.report_failure(attempt, TaskFailure::Cancelled, actions);
        }
    }

    fn settle(
        &mut self,
        run: RunId,
        attempt: ExecutionAttemptId,
        answer: ReportAnswer,
        actions: &mut Actions,
    ) {
        let held = self
            .runs
            .get_mut(&run)
            .and_then(|state| state.unacknowledged.remove(&attempt))
            .is_some();
        match answer {
            ReportAnswer::Superseded if held => {
                actions.push(TaskExecutorAction::Discard { attempt });
            }
            ReportAnswer::Superseded | ReportAnswer::Accepted => {}
        }
    }

    /// An attempt is sealed: nothing but an answer, an end of the run or a time-out removes it.
    fn finish(&mut self, record: Arc<FinishRecord>, actions: &mut Actions) {
        let attempt = record.attempt;
        if !self.slots.free(attempt) {
            return;
        }
        let Some(state) = self.runs.get_mut(&attempt.run) else {
            // The run ended or was given up while the attempt was being sealed.
            actions.push(TaskExecutorAction::Discard { attempt });
            return;
        };
        state.unacknowledged.insert(attempt, Arc::clone(&record));
        self.report_finish(record, actions);
    }

    fn fail(&mut self, attempt: ExecutionAttemptId, failure: TaskFailure, actions: &mut Actions) {
        if !self.slots.free(attempt) {
            return;
        }
        let followed = self.fence.epoch(attempt.run);
        let Some(run) = self.runs.get_mut(&attempt.run) else { return };
        if attempt.epoch == followed {
            run.note(attempt, Known::Failed(failure.clone()));
        }
        // Whatever its epoch: a new master waits for the attempts of older ones to end.
        self.report_failure(attempt, failure, actions);
    }

    fn lose_master(&mut self, now: Timestamp, run: RunId, epoch: Epoch) {
        if epoch < self.fence.epoch(run) {
            return;
        }
        if let Some(state) = self.runs.get_mut(&run) {
            state.lost_at.get_or_insert(now);
        }
    }

    /// Applies the grace and the retention time-out to the runs whose master is lost.
    fn expire(&mut self, now: Timestamp, actions: &mut Actions) {
        let lost: Vec<(RunId, Timestamp)> = self
            .runs
            .iter()
            .filter_map(|(run, state)| state.lost_at.map(|lost_at| (*run, lost_at)))
            .collect();
        for (run, lost_at) in lost {
            let abandoned = lost_at.after(self.timeouts.reconnect_grace) <= now;
            if abandoned {
                self.slots.drop_waiting(|attempt| attempt.run == run);
                self.stop_running(|attempt| attempt.run == run, actions);
            }
            let expired = self
                .timeouts
                .registration_timeout
                .is_some_and(|timeout| lost_at.after(timeout) <= now);
            if expired {
                self.end_run(run, actions);
                self.fence.forget(run);
            } else if abandoned && self.is_empty(run) {
                self.runs.remove(&run);
                self.fence.forget(run);
            }
        }
    }

    /// Whether nothing of a run is to be kept: also not that attempts of it started, since a master
    /// whose grace is not over may send what it was not told of again.
    fn is_empty(&self, run: RunId) -> bool {
        let nothing =
            |state: &ExecutorRun| state.unacknowledged.is_empty() && state.known.is_empty();
        self.runs.get(&run).is_none_or(nothing) && !self.slots.serves(run)
    }

    fn end_run(&mut self, run: RunId, actions: &mut Actions) {
        self.runs.remove(&run);
        self.slots.drop_waiting(|attempt| attempt.run == run);
        self.stop_running(|attempt| attempt.run == run, actions);
        actions.push(TaskExecutorAction::ReleaseRun { run });
    }

    fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let waits = [Some(self.timeouts.reconnect_grace), self.timeouts.registration_timeout];
        let lost = self.runs.values().filter_map(|state| state.lost_at);
        lost.flat_map(|lost_at| waits.into_iter().flatten().map(move |wait| lost_at.after(wait)))
            .chain(self.leave_deadlines())
            .filter(|deadline| *deadline > now)
            .min()
    }

    fn stop_running(&mut self, which: impl Fn(ExecutionAttemptId) -> bool, actions: &mut Actions) {
        for attempt in self.slots.live_running(which) {
            self.slots.stop(attempt);
            actions.push(TaskExecutorAction::Cancel { attempt });
        }
    }

    fn report_finish(&self, record: Arc<FinishRecord>, actions: &mut Actions) {
        let WorkerDescription { worker, data_directory, .. } = self.identity;
        let run = record.attempt.run;
        let report = ToJobMaster::TaskFinished { worker, data_directory, record };
        self.post(run, report, actions);
    }

    fn report_failure(
        &self,
        attempt: ExecutionAttemptId,
        failure: TaskFailure,
        actions: &mut Actions,
    ) {
        let worker = self.identity.worker;
        self.post(attempt.run, ToJobMaster::TaskFailed { worker, attempt, failure }, actions);
    }

    fn request_split(&self, attempt: ExecutionAttemptId, request: u64, actions: &mut Actions) {
        let worker = self.identity.worker;
        self.post(attempt.run, ToJobMaster::SplitRequested { worker, attempt, request }, actions);
    }

    fn refuse(&self, run: RunId, actions: &mut Actions) {
        let highest_term = self.fence.term();
        actions.push(TaskExecutorAction::TellRefusal { run, highest_term });
    }

    fn post(&self, run: RunId, message: ToJobMaster, actions: &mut Actions) {
        let epoch = self.fence.epoch(run);
        actions.push(TaskExecutorAction::Post(Envelope { run, epoch, message }));
    }
}
