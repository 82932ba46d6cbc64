//! A worker: its `TaskExecutor` and `ShuffleService` as they are, around tasks that pretend to work.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use regrow_protocol::{
    Accumulators, DataDirectoryId, Envelope, ExecutionAttemptId, ExecutionVertexId, FinishRecord,
    PartitionId, PartitionKeeper, PartitionMetrics, PinnedSplits, Split, StagedFile,
    SubpartitionBytes, TaskDeployment, TaskFailure, TaskMetrics, ToJobMaster, WorkerDescription,
    WorkerId,
};
use regrow_runtime::{
    JobGraph, ShuffleService, ShuffleServiceAction, ShuffleServiceInput, TaskExecutor,
    TaskExecutorAction, TaskExecutorInput, Timestamp, WorkerTimeouts,
};

use super::network::Down;

/// What lies in data directories.
pub(crate) type Disks = BTreeMap<DataDirectoryId, BTreeMap<ExecutionAttemptId, FinishRecord>>;

type Reports = Vec<Envelope<ToJobMaster>>;

pub(crate) struct Node {
    pub(crate) description: WorkerDescription,
    pub(crate) executor: TaskExecutor,
    service: ShuffleService,
    pub(crate) tasks: BTreeMap<ExecutionAttemptId, Task>,
    /// The connection that it takes for open, and since which step there is none.
    pub(crate) connection: Option<u64>,
    pub(crate) alone_since: u64,
    /// Before this step it reaches nobody.
    pub(crate) away_until: u64,
    /// Commands that it refused.
    pub(crate) refused: u64,
    /// What it started, ever.
    started: BTreeSet<ExecutionAttemptId>,
    /// What was started and not looked at.
    pub(crate) new_starts: Vec<ExecutionAttemptId>,
}

pub(crate) struct Task {
    deployment: Box<TaskDeployment>,
    splits: Vec<Split>,
    all_splits: bool,
    requests: u64,
    asked: bool,
    pub(crate) stopping: bool,
}

impl Node {
    pub(crate) fn new(bits: u128, slots: u32, grace: Duration) -> Self {
        let description = WorkerDescription {
            worker: WorkerId::from_bits(bits),
            data_directory: DataDirectoryId::from_bits(bits),
            slots,
            shuffle_address: None,
            keeper: PartitionKeeper::Worker,
        };
        let timeouts = WorkerTimeouts { reconnect_grace: grace, registration_timeout: None };
        Self {
            description,
            executor: TaskExecutor::new(description, timeouts),
            service: ShuffleService::new(timeouts),
            tasks: BTreeMap::new(),
            connection: None,
            alone_since: 0,
            away_until: 0,
            refused: 0,
            started: BTreeSet::new(),
            new_starts: Vec::new(),
        }
    }

    pub(crate) fn hear(&mut self, now: Timestamp, said: Down, disks: &mut Disks) -> Reports {
        match said {
            Down::Executor(envelope) => self.feed(now, TaskExecutorInput::Command(envelope), disks),
            Down::Service(envelope) => {
                self.feed_service(now, ShuffleServiceInput::Command(envelope), disks)
            }
        }
    }

    /// The connection to the leader opened or closed.
    pub(crate) fn leader(&mut self, now: Timestamp, is_there: bool, disks: &mut Disks) -> Reports {
        let (input, told) = if is_there {
            (TaskExecutorInput::LeaderConnected, ShuffleServiceInput::LeaderConnected)
        } else {
            (TaskExecutorInput::LeaderLost, ShuffleServiceInput::LeaderLost)
        };
        let mut said = self.feed_service(now, told, disks);
        said.extend(self.feed(now, input, disks));
        said
    }

    pub(crate) fn feed(
        &mut self,
        now: Timestamp,
        input: TaskExecutorInput,
        disks: &mut Disks,
    ) -> Reports {
        let mut said = Vec::new();
        for action in self.executor.handle(now, input) {
            match action {
                TaskExecutorAction::Start(deployment) => self.start(deployment),
                TaskExecutorAction::Cancel { attempt } => {
                    self.tasks.entry(attempt).and_modify(|task| task.stopping = true);
                }
                TaskExecutorAction::DeliverSplit { attempt, split } => {
                    self.tasks.entry(attempt).and_modify(|task| task.take(split));
                }
                TaskExecutorAction::Post(envelope) => said.push(envelope),
                TaskExecutorAction::TellRefusal { .. } => self.refused += 1,
                TaskExecutorAction::FollowMaster { run, epoch } => {
                    let told = ShuffleServiceInput::MasterRegistered { run, epoch };
                    said.extend(self.feed_service(now, told, disks));
                }
                TaskExecutorAction::Discard { attempt } => {
                    let told = ShuffleServiceInput::Discard { attempt };
                    said.extend(self.feed_service(now, told, disks));
                }
                TaskExecutorAction::ReleaseRun { run } => {
                    let told = ShuffleServiceInput::RunEnded { run };
                    said.extend(self.feed_service(now, told, disks));
                }
                TaskExecutorAction::WakeAt(_) | TaskExecutorAction::Left => {}
            }
        }
        said
    }

    fn start(&mut self, deployment: Box<TaskDeployment>) {
        let attempt = deployment.attempt;
        assert!(self.started.insert(attempt), "{attempt} starts twice");
        self.new_starts.push(attempt);
        let splits = match &deployment.splits {
            PinnedSplits::Exactly(splits) => splits.clone(),
            PinnedSplits::None | PinnedSplits::OnRequest => Vec::new(),
        };
        let all_splits = deployment.splits != PinnedSplits::OnRequest;
        let (requests, asked, stopping) = (0, false, false);
        let task = Task { deployment, splits, all_splits, requests, asked, stopping };
        self.tasks.insert(attempt, task);
        let most = usize::try_from(self.description.slots).unwrap();
        assert!(self.tasks.len() <= most, "no more tasks than slots");
    }

    fn feed_service(
        &mut self,
        now: Timestamp,
        input: ShuffleServiceInput,
        disks: &mut Disks,
    ) -> Reports {
        let WorkerDescription { worker, data_directory, .. } = self.description;
        let mut said = Vec::new();
        for action in self.service.handle(now, input) {
            let disk = disks.entry(data_directory).or_default();
            match action {
                ShuffleServiceAction::ReportHeldRun { run, epoch } => {
                    let message = ToJobMaster::RunHeld { worker };
                    said.push(Envelope { run, epoch, message });
                }
                ShuffleServiceAction::ReportPartitions { run, epoch } => {
                    let finished = disk.values().cloned().collect();
                    let message =
                        ToJobMaster::AllPartitionsWithMetrics { worker, data_directory, finished };
                    said.push(Envelope { run, epoch, message });
                }
                ShuffleServiceAction::ReleasePartitions { attempts } => {
                    disk.retain(|attempt, _| !attempts.contains(attempt));
                }
                ShuffleServiceAction::ReleaseRun { .. } => disk.clear(),
                ShuffleServiceAction::WakeAt(_)
                | ShuffleServiceAction::KeepTerm { .. }
                | ShuffleServiceAction::TellRefusal { .. } => {}
            }
        }
        said
    }

    /// A task goes on: it asks for a split, cannot read an input, or ends. `Some` is a finish.
    pub(crate) fn work(
        &mut self,
        attempt: ExecutionAttemptId,
        graph: &JobGraph,
        disks: &mut Disks,
    ) -> Option<TaskExecutorInput> {
        let task = self.tasks.get_mut(&attempt)?;
        let failed = |failure| Some(TaskExecutorInput::AttemptFailed { attempt, failure });
        if task.stopping && (task.asked || !task.all_splits || attempt.subtask.is_multiple_of(2)) {
            self.tasks.remove(&attempt);
            return failed(TaskFailure::Cancelled);
        }
        if task.asked {
            return None;
        }
        if !task.all_splits {
            task.asked = true;
            let request = task.requests;
            task.requests += 1;
            return Some(TaskExecutorInput::SplitWanted { attempt, request });
        }
        let task = self.tasks.remove(&attempt)?;
        if let Some(partition) = task.lost_input(disks) {
            let reason = "gone".to_owned();
            return failed(TaskFailure::InputLost { partition, reason });
        }
        let record = task.finish(graph);
        disks.entry(self.description.data_directory).or_default().insert(attempt, record.clone());
        Some(TaskExecutorInput::AttemptFinished(Arc::new(record)))
    }

    pub(crate) fn subtasks(&self) -> impl Iterator<Item = ExecutionVertexId> + '_ {
        self.tasks.keys().map(ExecutionAttemptId::execution_vertex)
    }
}

impl Task {
    fn take(&mut self, split: Option<Split>) {
        self.asked = false;
        match split {
            Some(split) => self.splits.push(split),
            None => self.all_splits = true,
        }
    }

    fn lost_input(&self, disks: &Disks) -> Option<PartitionId> {
        let mut producers = self.deployment.inputs.iter().flat_map(|gate| gate.producers.iter());
        let lost = producers.find(|producer| {
            let disk = disks.get(&producer.data_directory);
            disk.is_none_or(|disk| !disk.contains_key(&producer.partition.attempt))
        });
        lost.map(|producer| producer.partition)
    }

    fn finish(&self, graph: &JobGraph) -> FinishRecord {
        let attempt = self.deployment.attempt;
        let outputs = self.deployment.outputs.iter().map(|output| PartitionMetrics {
            data_set: output.data_set,
            subpartition_bytes: SubpartitionBytes::new(&vec![
                4 << 20;
                output.subpartitions as usize
            ]),
            records: 1,
            checksum: 0,
        });
        let sinks = (0..).zip(&graph.sinks).filter(|(_, sink)| sink.vertex == attempt.vertex);
        let staged_files = sinks.map(|(sink, _)| StagedFile {
            sink,
            staged_name: format!("{attempt}"),
            final_name: format!("part-{:05}", attempt.subtask),
            bytes: 1,
            checksum: 0,
        });
        FinishRecord {
            attempt,
            plan: self.deployment.plan,
            inputs: self.deployment.inputs.iter().map(|gate| gate.input).collect(),
            outputs: outputs.collect(),
            metrics: TaskMetrics::default(),
            accumulators: Accumulators::default(),
            splits: self.splits.iter().map(|split| split.id).collect(),
            staged_files: staged_files.collect(),
        }
    }
}
