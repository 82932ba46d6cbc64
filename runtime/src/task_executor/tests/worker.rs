//! A worker under test and its vocabulary.

use std::{sync::Arc, time::Duration};

use regrow_protocol::{
    Accumulators, DataDirectoryId, Envelope, Epoch, ExecutionAttemptId, FinishRecord, JobVertexId,
    PartitionKeeper, PinnedSplits, PlanId, ReportAnswer, RunId, TaskDeployment, TaskFailure,
    TaskMetrics, ToJobMaster, ToTaskExecutor, WorkerDescription, WorkerId,
};

use crate::{
    TaskExecutor, TaskExecutorAction as Action, TaskExecutorInput as Input, Timestamp,
    WorkerTimeouts,
};

pub(super) const RUN: RunId = RunId::from_bits(9);

pub(super) struct Worker {
    pub(super) core: TaskExecutor,
    pub(super) now: u64,
}

impl Worker {
    pub(super) fn new(slots: u32) -> Self {
        Self::with_retention(slots, Some(Duration::from_mins(5)))
    }

    pub(super) fn with_retention(slots: u32, registration_timeout: Option<Duration>) -> Self {
        let identity = WorkerDescription {
            worker: WorkerId::from_bits(1),
            data_directory: DataDirectoryId::from_bits(2),
            slots,
            shuffle_address: None,
            keeper: PartitionKeeper::Worker,
        };
        let grace = Duration::from_secs(5);
        let reconnect_grace = registration_timeout.map_or(grace, |timeout| timeout.min(grace));
        let timeouts = WorkerTimeouts { reconnect_grace, registration_timeout };
        Self { core: TaskExecutor::new(identity, timeouts), now: 0 }
    }

    pub(super) fn time(milliseconds: u64) -> Timestamp {
        Timestamp(milliseconds)
    }

    pub(super) fn feed(&mut self, input: Input) -> Vec<Action> {
        self.core.handle(Timestamp(self.now), input)
    }

    pub(super) fn tell(&mut self, life: u32, message: ToTaskExecutor) -> Vec<Action> {
        self.feed(Input::Command(Envelope { run: RUN, epoch: epoch(life), message }))
    }

    pub(super) fn answer(
        &mut self,
        life: u32,
        attempt: ExecutionAttemptId,
        answer: ReportAnswer,
    ) -> Vec<Action> {
        self.tell(life, ToTaskExecutor::ReportAnswered { attempt, answer })
    }

    pub(super) fn finish(&mut self, attempt: ExecutionAttemptId) -> Vec<Action> {
        self.feed(Input::AttemptFinished(Arc::new(record(attempt))))
    }

    pub(super) fn fail(
        &mut self,
        attempt: ExecutionAttemptId,
        failure: TaskFailure,
    ) -> Vec<Action> {
        self.feed(Input::AttemptFailed { attempt, failure })
    }

    pub(super) fn want_split(&mut self, attempt: ExecutionAttemptId, request: u64) -> Vec<Action> {
        self.feed(Input::SplitWanted { attempt, request })
    }

    pub(super) fn lose(&mut self, life: u32) -> Vec<Action> {
        self.feed(Input::MasterLost { run: RUN, epoch: epoch(life) })
    }

    /// Moves time on and wakes; wishes for further wake-ups are left out.
    pub(super) fn wake(&mut self, now: u64) -> Vec<Action> {
        self.now = now;
        let mut actions = self.feed(Input::Woken);
        actions.retain(|action| !matches!(action, Action::WakeAt(_)));
        actions
    }

    pub(super) fn started(actions: &[Action]) -> Vec<ExecutionAttemptId> {
        let started = |action: &Action| {
            let Action::Start(deployment) = action else { return None };
            Some(deployment.attempt)
        };
        actions.iter().filter_map(started).collect()
    }

    pub(super) fn cancelled(actions: &[Action]) -> Vec<ExecutionAttemptId> {
        let cancelled = |action: &Action| {
            let Action::Cancel { attempt } = action else { return None };
            Some(*attempt)
        };
        actions.iter().filter_map(cancelled).collect()
    }

    pub(super) fn posts(actions: &[Action]) -> Vec<Envelope<ToJobMaster>> {
        let post = |action: &Action| {
            let Action::Post(envelope) = action else { return None };
            Some(envelope.clone())
        };
        actions.iter().filter_map(post).collect()
    }

    pub(super) fn finishes(actions: &[Action]) -> Vec<ExecutionAttemptId> {
        let finish = |post: Envelope<ToJobMaster>| {
            let ToJobMaster::TaskFinished { record, .. } = post.message else { return None };
            Some(record.attempt)
        };
        Self::posts(actions).into_iter().filter_map(finish).collect()
    }

    pub(super) fn failures(actions: &[Action]) -> Vec<(ExecutionAttemptId, TaskFailure)> {
        let failure = |post: Envelope<ToJobMaster>| {
            let ToJobMaster::TaskFailed { attempt, failure, .. } = post.message else {
                return None;
            };
            Some((attempt, failure))
        };
        Self::posts(actions).into_iter().filter_map(failure).collect()
    }

    /// The one inventory among the actions: what runs, and whose report is not acknowledged.
    pub(super) fn inventory(
        actions: &[Action],
    ) -> (Vec<ExecutionAttemptId>, Vec<ExecutionAttemptId>) {
        let posts = Self::posts(actions);
        let mut inventories = posts.into_iter().filter_map(|post| {
            let ToJobMaster::Registered { inventory, .. } = post.message else { return None };
            Some(inventory)
        });
        let inventory = inventories.next().unwrap();
        assert_eq!(inventories.count(), 0);
        let unacknowledged = inventory.unacknowledged.iter().map(|record| record.attempt).collect();
        (inventory.running, unacknowledged)
    }
}

pub(super) fn epoch(life: u32) -> Epoch {
    Epoch::new(1, life)
}

pub(super) fn attempt(life: u32, subtask: u32, number: u32) -> ExecutionAttemptId {
    let vertex = JobVertexId(0);
    ExecutionAttemptId { run: RUN, vertex, subtask, epoch: epoch(life), number }
}

pub(super) fn record(attempt: ExecutionAttemptId) -> FinishRecord {
    FinishRecord {
        attempt,
        plan: PlanId(0),
        inputs: Vec::new(),
        outputs: Vec::new(),
        metrics: TaskMetrics::default(),
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    }
}

pub(super) fn submit(attempt: ExecutionAttemptId) -> ToTaskExecutor {
    ToTaskExecutor::SubmitTask(Box::new(TaskDeployment {
        attempt,
        job: "job".parse().unwrap(),
        job_name: "job".to_owned(),
        arguments: Vec::new(),
        graph_hash: 0,
        parallelism: 1,
        plan: PlanId(0),
        inputs: Vec::new(),
        outputs: Vec::new(),
        sinks: Vec::new(),
        splits: PinnedSplits::OnRequest,
        ledger: None,
        memory_bytes: 0,
        locations: Vec::new(),
    }))
}

pub(super) fn cancel(attempt: ExecutionAttemptId) -> ToTaskExecutor {
    ToTaskExecutor::CancelTask { attempt }
}
