//! Model workers: they run tasks, seal finishes in directories, and report.

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, Epoch, ExecutionAttemptId, FinishRecord, Inventory, PartitionKeeper,
    PartitionMetrics, PinnedSplits, ReportAnswer, Split, StagedFile, SubpartitionBytes,
    TaskDeployment, TaskFailure, TaskMetrics, WorkerDescription, WorkerId,
};
use regrow_runtime::{Input, JobGraph};

use super::contents::Contents;

/// What lies in data directories: sealed attempts.
pub(crate) type Disks = BTreeMap<DataDirectoryId, BTreeMap<ExecutionAttemptId, FinishRecord>>;

/// What a process does with its data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It writes and keeps.
    Worker,
    /// It keeps what others write.
    Service,
    /// It writes what a service keeps.
    Writer,
}

/// A process and its directory: what is started again under another id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) data_directory: DataDirectoryId,
    pub(crate) kind: Kind,
}

pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) data_directory: DataDirectoryId,
    pub(crate) kind: Kind,
    pub(crate) slots: u32,
    pub(crate) epoch: Epoch,
    pub(crate) running: BTreeMap<ExecutionAttemptId, RunningTask>,
    pub(crate) unacknowledged: BTreeMap<ExecutionAttemptId, Arc<FinishRecord>>,
    /// Whether attempts that were told to stop are about to be sealed all the same.
    pub(crate) seals_late: bool,
}

pub(crate) struct RunningTask {
    pub(crate) deployment: TaskDeployment,
    pub(crate) splits: Vec<Split>,
    pub(crate) all_splits: bool,
    pub(crate) requests: u64,
    pub(crate) asked: bool,
    pub(crate) stopping: bool,
}

impl Worker {
    pub(crate) fn new(id: u128, seat: Seat, slots: u32) -> Self {
        let Seat { data_directory, kind } = seat;
        Self {
            id: WorkerId::from_bits(id),
            data_directory,
            kind,
            slots: if kind == Kind::Service { 0 } else { slots },
            epoch: Epoch::default(),
            running: BTreeMap::new(),
            unacknowledged: BTreeMap::new(),
            seals_late: id.is_multiple_of(2),
        }
    }

    pub(crate) fn seat(&self) -> Seat {
        Seat { data_directory: self.data_directory, kind: self.kind }
    }

    /// A master announced itself: older attempts end, and the worker registers.
    pub(crate) fn announced(&mut self, epoch: Epoch) -> Vec<Input> {
        for task in self.running.values_mut() {
            task.stopping |= task.deployment.attempt.epoch < epoch;
        }
        if epoch > self.epoch {
            self.epoch = epoch;
        }
        let worker = WorkerDescription {
            worker: self.id,
            data_directory: self.data_directory,
            slots: self.slots,
            shuffle_address: None,
            keeper: match self.kind {
                Kind::Worker | Kind::Service => PartitionKeeper::Worker,
                Kind::Writer => PartitionKeeper::ShuffleService,
            },
        };
        let inventory = Inventory {
            running: self.running.keys().copied().collect(),
            unacknowledged: self.unacknowledged.values().cloned().collect(),
        };
        vec![Input::WorkerRegistered { worker, inventory }]
    }

    pub(crate) fn submitted(&mut self, deployment: TaskDeployment) {
        assert_eq!(deployment.attempt.epoch, self.epoch, "a dispatch of the newest epoch");
        let splits = match &deployment.splits {
            PinnedSplits::Exactly(splits) => splits.clone(),
            PinnedSplits::None | PinnedSplits::OnRequest => Vec::new(),
        };
        let all_splits = deployment.splits != PinnedSplits::OnRequest;
        let task = RunningTask {
            splits,
            all_splits,
            requests: 0,
            asked: false,
            stopping: false,
            deployment,
        };
        let attempt = task.deployment.attempt;
        assert!(self.running.insert(attempt, task).is_none(), "an attempt is dispatched once");
        let live = self.running.values().filter(|task| !task.stopping).count();
        assert!(live <= self.slots as usize, "no more tasks than slots");
    }

    pub(crate) fn cancelled(&mut self, attempt: ExecutionAttemptId) -> Vec<Input> {
        if self.running.remove(&attempt).is_none() {
            return Vec::new();
        }
        vec![self.failed(attempt, TaskFailure::Cancelled)]
    }

    pub(crate) fn failed(&self, attempt: ExecutionAttemptId, failure: TaskFailure) -> Input {
        Input::TaskFailed { worker: self.id, attempt, failure }
    }

    pub(crate) fn split_answered(
        &mut self,
        attempt: ExecutionAttemptId,
        request: u64,
        split: Option<Split>,
    ) {
        let Some(task) = self.running.get_mut(&attempt) else { return };
        if !task.asked || request + 1 != task.requests {
            return;
        }
        task.asked = false;
        match split {
            Some(split) => task.splits.push(split),
            None => task.all_splits = true,
        }
    }

    pub(crate) fn report_answered(
        &mut self,
        attempt: ExecutionAttemptId,
        answer: ReportAnswer,
        disks: &mut Disks,
    ) {
        self.unacknowledged.remove(&attempt);
        if answer == ReportAnswer::Superseded
            && self.kind == Kind::Worker
            && let Some(disk) = disks.get_mut(&self.data_directory)
        {
            disk.remove(&attempt);
        }
    }

    /// A task goes on: it asks for a split, cannot read an input, or finishes.
    pub(crate) fn work(
        &mut self,
        attempt: ExecutionAttemptId,
        graph: &JobGraph,
        disks: &mut Disks,
        contents: &mut Contents,
    ) -> Option<Input> {
        let worker = self.id;
        let task = self.running.get_mut(&attempt)?;
        if task.stopping && (task.asked || !task.all_splits || !self.seals_late) {
            self.running.remove(&attempt);
            return Some(self.failed(attempt, TaskFailure::Cancelled));
        }
        if task.asked {
            return None;
        }
        if !task.all_splits {
            task.asked = true;
            let request = task.requests;
            task.requests += 1;
            return Some(Input::SplitRequested { worker, attempt, request });
        }
        let task = self.running.remove(&attempt)?;
        let mut producers = task.deployment.inputs.iter().flat_map(|gate| gate.producers.iter());
        let hidden = producers.find(|it| !contents.is_reached(&it.partition.attempt));
        if let Some(hidden) = hidden {
            let (partition, reason) = (hidden.partition, "nobody answers".to_owned());
            return Some(self.failed(attempt, TaskFailure::InputUnreachable { partition, reason }));
        }
        let mut producers = task.deployment.inputs.iter().flat_map(|gate| gate.producers.iter());
        let lost = producers.find(|producer| {
            let disk = disks.get(&producer.data_directory);
            let attempt = &producer.partition.attempt;
            disk.is_none_or(|disk| !disk.contains_key(attempt)) || contents.is_damaged(attempt)
        });
        if let Some(lost) = lost {
            let (partition, reason) = (lost.partition, "gone or damaged".to_owned());
            return Some(self.failed(attempt, TaskFailure::InputLost { partition, reason }));
        }
        contents.write(&task, graph);
        let record = finish(&task, graph);
        disks.entry(self.data_directory).or_default().insert(attempt, record.clone());
        let record = Arc::new(record);
        self.unacknowledged.insert(attempt, Arc::clone(&record));
        Some(Input::TaskFinished { worker, data_directory: self.data_directory, record })
    }
}

fn finish(task: &RunningTask, graph: &JobGraph) -> FinishRecord {
    let deployment = &task.deployment;
    let attempt = deployment.attempt;
    let outputs = deployment.outputs.iter().map(|output| {
        let bytes: Vec<u64> = (0..u64::from(output.subpartitions))
            .map(|index| (index + u64::from(attempt.subtask)) % 3 * (4 << 20))
            .collect();
        PartitionMetrics {
            data_set: output.data_set,
            subpartition_bytes: SubpartitionBytes::new(&bytes),
            records: 1,
            checksum: 0,
        }
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
        plan: deployment.plan,
        inputs: deployment.inputs.iter().map(|gate| gate.input).collect(),
        outputs: outputs.collect(),
        metrics: TaskMetrics::default(),
        accumulators: regrow_protocol::Accumulators::default(),
        splits: task.splits.iter().map(|split| split.id).collect(),
        staged_files: staged_files.collect(),
    }
}
