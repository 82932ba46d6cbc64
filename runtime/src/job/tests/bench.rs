//! A job with hand-fed inputs, and what it wanted so far.

use std::{collections::BTreeMap, net::SocketAddr, ops::Range, time::Duration};

use regrow_protocol::{
    DataDirectoryId, Epoch, ExecutionAttemptId, FinishRecord, Inventory, PartitionKeeper,
    PartitionMetrics, ReportAnswer, RunId, Split, SplitId, SubmissionId, SubpartitionBytes,
    TaskDeployment, TaskFailure, TaskMetrics, WorkerDescription, WorkerId,
};

use super::*;
use crate::{
    Determinacy, Distribution, JobEdge, JobGraph, JobOutcome, JobSubmission, JobVertex,
    Parallelism, Timestamp,
};

/// A job under test.
pub(super) struct Bench {
    pub(super) job: Job,
    log: Vec<JobEvent>,
    now: Timestamp,
    deployments: Vec<TaskDeployment>,
    answers: Vec<(ExecutionAttemptId, ReportAnswer)>,
    pub(super) cancelled: Vec<ExecutionAttemptId>,
    pub(super) cancel_answers: u32,
    pub(super) outcome: Option<JobOutcome>,
    pub(super) died: Option<KillHow>,
    pub(super) stepped_down: u32,
    sent: Vec<TaskDeployment>,
    /// Sources that wait for their splits.
    pub(super) discovering: Vec<JobVertexId>,
    splits: BTreeMap<ExecutionAttemptId, Vec<SplitId>>,
}

/// A chain of stages with these numbers of tasks, all-to-all.
pub(super) fn stages(tasks: &[u32]) -> JobGraph {
    let vertex = |tasks: &u32| JobVertex {
        name: "stage".to_owned(),
        parallelism: Parallelism::Fixed(*tasks),
        coordinator: None,
        determinacy: Determinacy::Determinate,
    };
    let edge = |consumer: u32| JobEdge {
        producer: JobVertexId(consumer - 1),
        consumer: JobVertexId(consumer),
        distribution: Distribution::AllToAll,
    };
    let count = u32::try_from(tasks.len()).unwrap();
    JobGraph {
        vertices: tasks.iter().map(vertex).collect(),
        edges: (1..count).map(edge).collect(),
        sinks: Vec::new(),
    }
}

fn submission(graph: JobGraph) -> JobSubmission {
    JobSubmission {
        job: "job".parse().unwrap(),
        run: RunId::from_bits(1),
        submission: SubmissionId::from_bits(1),
        job_name: "job".to_owned(),
        arguments: Vec::new(),
        graph,
        ledger: None,
        settings: Vec::new(),
    }
}

fn life(epoch: Epoch, previous: PreviousLife, kills: &[&str]) -> LifeStart {
    LifeStart {
        epoch,
        previous,
        sealed: None,
        kills: kills.iter().map(|kill| kill.parse().unwrap()).collect(),
        read_log_ms: 0,
        log_damage: None,
        options: Options::default(),
    }
}

impl Bench {
    pub(super) fn new(graph: JobGraph) -> Self {
        Self::with_kills(graph, &[])
    }

    pub(super) fn with_kills(graph: JobGraph, kills: &[&str]) -> Self {
        let life = life(Epoch::new(1, 0), PreviousLife::None, kills);
        let (job, decision) = Job::submit(Timestamp(0), submission(graph), life);
        let mut bench = Self {
            job,
            log: Vec::new(),
            now: Timestamp(0),
            deployments: Vec::new(),
            answers: Vec::new(),
            cancelled: Vec::new(),
            cancel_answers: 0,
            outcome: None,
            died: None,
            stepped_down: 0,
            sent: Vec::new(),
            discovering: Vec::new(),
            splits: BTreeMap::new(),
        };
        bench.note(&decision);
        bench
    }

    pub(super) fn feed(&mut self, input: Input) -> Decision {
        let decision = self.job.handle(self.now, input);
        self.note(&decision);
        decision
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only what tests ask for is noted")]
    fn note(&mut self, decision: &Decision) {
        self.log.extend(decision.events.iter().cloned());
        for action in &decision.actions {
            match action {
                Action::SubmitTask { deployment, .. } => {
                    self.deployments.push((**deployment).clone());
                    self.sent.push((**deployment).clone());
                }
                Action::AnswerReport { attempt, answer, .. } => {
                    self.answers.push((*attempt, *answer));
                }
                Action::DiscoverSplits { vertex } => self.discovering.push(*vertex),
                Action::AnswerSplitRequest { attempt, split, .. } => {
                    let split = split.iter().map(|split| split.id);
                    self.splits.entry(*attempt).or_default().extend(split);
                }
                Action::AcceptReports { attempts, .. } => {
                    let accepted = |attempt: &_| (*attempt, ReportAnswer::Accepted);
                    self.answers.extend(attempts.iter().map(accepted));
                }
                Action::CancelTask { attempt, .. } => self.cancelled.push(*attempt),
                Action::AcknowledgeCancel { .. } => self.cancel_answers += 1,
                Action::Conclude(outcome) => self.outcome = Some((**outcome).clone()),
                Action::Die(how) => self.died = Some(*how),
                Action::StepDown { .. } => self.stepped_down += 1,
                _ => {}
            }
        }
    }

    /// Attempts sent since the last look.
    pub(super) fn submitted(&mut self) -> Vec<ExecutionAttemptId> {
        self.deployments.drain(..).map(|deployment| deployment.attempt).collect()
    }

    /// The attempt that was sent as number `index`, of all.
    pub(super) fn sent(&self, index: usize) -> ExecutionAttemptId {
        self.sent[index].attempt
    }

    /// What was sent last.
    pub(super) fn last_sent(&self) -> &TaskDeployment {
        self.sent.last().expect("something was sent")
    }

    /// Answers to reports since the last look.
    pub(super) fn answers(&mut self) -> Vec<(ExecutionAttemptId, ReportAnswer)> {
        std::mem::take(&mut self.answers)
    }

    /// Everything recorded so far is on stable storage.
    pub(super) fn persist(&mut self) {
        let upto = self.job.recorded_lsn();
        self.feed(Input::Persisted { upto });
    }

    pub(super) fn pass(&mut self, time: Duration) -> Decision {
        self.now = self.now.after(time);
        self.feed(Input::Woken)
    }

    /// A worker with `slots` slots, all granted, connects and registers.
    pub(super) fn add_worker(&mut self, id: u128, slots: u32) {
        self.add_worker_with(id, slots, Vec::new());
    }

    /// As [`add_worker`](Self::add_worker), with finish files in its directory.
    pub(super) fn add_worker_with(&mut self, id: u128, slots: u32, finished: Vec<FinishRecord>) {
        let worker = WorkerId::from_bits(id);
        let data_directory = DataDirectoryId::from_bits(id);
        self.connect(description(id, slots), Vec::new());
        self.feed(Input::PartitionsReported { worker, data_directory, finished });
        self.grant(id, slots);
    }

    /// A worker says anew what it is and what it runs, and where it serves its directory.
    pub(super) fn serve_at(
        &mut self,
        id: u128,
        address: SocketAddr,
        running: &[ExecutionAttemptId],
    ) {
        let shuffle_address = Some(address);
        let worker = WorkerDescription { shuffle_address, ..description(id, 2) };
        let inventory = Inventory { running: running.to_vec(), unacknowledged: Vec::new() };
        self.feed(Input::WorkerRegistered { worker, inventory });
    }

    /// A worker that was lost is there all the same, with reports that nobody answered.
    pub(super) fn reconnect(&mut self, id: u128, unacknowledged: Vec<FinishRecord>) {
        self.connect(description(id, 0), unacknowledged);
    }

    /// A worker connects and registers, with reports that nobody answered.
    pub(super) fn connect(&mut self, worker: WorkerDescription, unacknowledged: Vec<FinishRecord>) {
        self.feed(Input::WorkerConnected { worker: worker.worker });
        let unacknowledged = unacknowledged.into_iter().map(Arc::new).collect();
        let inventory = Inventory { unacknowledged, ..Inventory::default() };
        self.feed(Input::WorkerRegistered { worker, inventory });
    }

    /// The connection to a worker broke, and is open again; it says what it runs.
    pub(super) fn resume(&mut self, id: u128, slots: u32, running: Vec<ExecutionAttemptId>) {
        let worker = description(id, slots);
        self.feed(Input::WorkerDisconnected { worker: worker.worker });
        self.feed(Input::WorkerConnected { worker: worker.worker });
        let inventory = Inventory { running, unacknowledged: Vec::new() };
        self.feed(Input::WorkerRegistered { worker, inventory });
    }

    /// As [`add_worker`](Self::add_worker), with all that is recorded made durable.
    pub(super) fn run_worker(&mut self, id: u128, slots: u32) {
        self.persist();
        self.add_worker(id, slots);
        self.persist();
    }

    pub(super) fn grant(&mut self, id: u128, count: u32) {
        self.feed(Input::SlotsGranted { worker: WorkerId::from_bits(id), count });
    }

    /// The input of a source was listed.
    pub(super) fn list(&mut self, vertex: JobVertexId, count: u32) {
        let split = |id| Split { id: SplitId(id), size_bytes: 1, payload: vec![] };
        let result = Ok((0..count).map(split).collect());
        self.feed(Input::SplitsDiscovered { vertex, result });
    }

    /// An attempt on a worker asks for splits.
    pub(super) fn ask(&mut self, worker: u128, attempt: ExecutionAttemptId, requests: Range<u64>) {
        for request in requests {
            let worker = WorkerId::from_bits(worker);
            self.feed(Input::SplitRequested { worker, attempt, request });
        }
    }

    pub(super) fn finish(&mut self, attempt: ExecutionAttemptId) {
        self.finish_on(1, attempt);
    }

    pub(super) fn finish_on(&mut self, id: u128, attempt: ExecutionAttemptId) {
        let record = Arc::new(self.sealed(attempt));
        let (worker, data_directory) = (WorkerId::from_bits(id), DataDirectoryId::from_bits(id));
        self.feed(Input::TaskFinished { worker, data_directory, record });
    }

    /// The finish record that an attempt which was sent seals.
    pub(super) fn sealed(&self, attempt: ExecutionAttemptId) -> FinishRecord {
        let sent = self.sent.iter().find(|it| it.attempt == attempt).expect("it was sent");
        let metrics = |output: &regrow_protocol::OutputSpec| PartitionMetrics {
            data_set: output.data_set,
            subpartition_bytes: SubpartitionBytes::new(&[1]),
            records: 1,
            checksum: 0,
        };
        FinishRecord {
            attempt,
            plan: sent.plan,
            inputs: sent.inputs.iter().map(|gate| gate.input).collect(),
            outputs: sent.outputs.iter().map(metrics).collect(),
            metrics: TaskMetrics::default(),
            accumulators: regrow_protocol::Accumulators::default(),
            splits: self.splits.get(&attempt).cloned().unwrap_or_default(),
            staged_files: Vec::new(),
        }
    }

    pub(super) fn fail(&mut self, attempt: ExecutionAttemptId, failure: TaskFailure) {
        self.feed(Input::TaskFailed { worker: WorkerId::from_bits(1), attempt, failure });
    }

    pub(super) fn lose_worker(&mut self, id: u128) {
        self.feed(Input::WorkerLost { worker: WorkerId::from_bits(id) });
    }

    /// What the newest life has recorded.
    pub(super) fn recorded(&self) -> &[JobEvent] {
        let begins = |event: &JobEvent| matches!(event, JobEvent::EpochStarted { .. });
        &self.log[self.log.iter().rposition(begins).unwrap_or(0)..]
    }

    /// The newest `count` records are lost.
    pub(super) fn lose_tail(&mut self, count: usize) {
        self.log.truncate(self.log.len() - count);
    }

    /// The life ends with nothing but what is recorded, and the next one begins.
    pub(super) fn kill(&mut self, previous: PreviousLife) {
        self.begin(life(self.job.epoch().next_life(), previous, &[]));
    }

    /// As [`kill`](Self::kill), with all but the oldest `count` records damaged.
    pub(super) fn kill_and_damage(&mut self, count: usize) {
        self.log.truncate(count);
        let life = life(self.job.epoch().next_life(), PreviousLife::Unknown, &[]);
        self.begin(LifeStart { log_damage: Some("a wrong checksum".to_owned()), ..life });
    }

    fn begin(&mut self, life: LifeStart) {
        let submission = submission(self.job.graph().clone());
        let recovered = Job::recover(self.now, submission, &self.log, life);
        let (job, decision) = recovered.expect("the log replays");
        self.job = job;
        self.deployments.clear();
        self.note(&decision);
    }

    /// Whether the newest life has recorded its decision.
    pub(super) fn decided(&self) -> bool {
        let of_life = |event: &&JobEvent| !matches!(event, JobEvent::EpochStarted { .. });
        let mut events = self.log.iter().rev().take_while(of_life);
        events.any(|event| matches!(event, JobEvent::RecoveryDecided(_)))
    }
}

/// A worker that keeps its own partitions; its directory has the same number.
pub(super) fn description(id: u128, slots: u32) -> WorkerDescription {
    WorkerDescription {
        worker: WorkerId::from_bits(id),
        data_directory: DataDirectoryId::from_bits(id),
        slots,
        shuffle_address: None,
        keeper: PartitionKeeper::Worker,
    }
}
