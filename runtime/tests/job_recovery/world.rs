//! A master, its workers, disks and log, one step at a time in random order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regrow_protocol::{
    DataDirectoryId, Epoch, ExecutionAttemptId, ExecutionVertexId, FinishRecord, Split, SplitId,
    TaskFailure, WorkerId,
};
use regrow_runtime::{
    Action, Decision, Input, Job, JobEvent, JobOutcome, JobState, JobSubmission, LifeStart, Lsn,
    Options, PreviousLife, Replay, Timestamp,
};

use super::{
    contents::Contents,
    graphs,
    rng::Rng,
    workers::{Disks, Worker},
};

/// Which faults the world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    /// Masters die, their buffer with them.
    Masters,
    /// The whole process dies; directories stay.
    Processes,
    /// Workers and partitions vanish, and tasks fail.
    All,
}

const FAULTY_STEPS: usize = 300;
const HEALING_STEPS: usize = 20_000;
const STEP_MS: u64 = 50;

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    submission: JobSubmission,
    job: Job,
    /// What the events give without the job.
    replay: Replay,
    epoch: Epoch,
    now: Timestamp,
    /// Events on stable storage, and those in the writer's buffer.
    stored: Vec<JobEvent>,
    buffer: VecDeque<JobEvent>,
    acknowledged: Lsn,
    workers: BTreeMap<WorkerId, Worker>,
    disks: Disks,
    contents: Contents,
    granted: BTreeMap<WorkerId, u32>,
    demand: u32,
    /// Messages to the master, in order per sender.
    mail: Vec<VecDeque<Input>>,
    outcome: Option<JobOutcome>,
    sealed: BTreeSet<ExecutionVertexId>,
    next_id: u128,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed);
        let submission = graphs::submission(&mut rng);
        let epoch = Epoch::new(1, 0);
        let (job, decision) =
            Job::submit(Timestamp(0), submission.clone(), life(epoch, faults, PreviousLife::None));
        let mut world = Self {
            rng,
            faults,
            replay: Replay::new(submission.clone()),
            submission,
            job,
            epoch,
            now: Timestamp(0),
            stored: Vec::new(),
            buffer: VecDeque::new(),
            acknowledged: Lsn(0),
            workers: BTreeMap::new(),
            disks: Disks::new(),
            contents: Contents::default(),
            granted: BTreeMap::new(),
            demand: 0,
            mail: vec![VecDeque::new(); 8],
            outcome: None,
            sealed: BTreeSet::new(),
            next_id: 100,
        };
        world.carry_out(decision);
        for directory in 0..1 + world.rng.below(3) as u128 {
            world.start_worker(DataDirectoryId::from_bits(directory));
        }
        world
    }

    /// Disturbs the job for a while, then lets it heal; panics where a promise is broken.
    pub(crate) fn run(mut self) {
        for _ in 0..FAULTY_STEPS {
            self.disturb();
            self.step();
        }
        if self.workers.is_empty() {
            self.start_worker(DataDirectoryId::from_bits(50));
        }
        for _ in 0..HEALING_STEPS {
            if self.outcome.is_some() {
                break;
            }
            self.step();
        }
        let Some(outcome) = self.outcome.clone() else {
            panic!("the job never ends: {:?}", self.job.status());
        };
        self.check_end(&outcome);
    }

    fn start_worker(&mut self, directory: DataDirectoryId) {
        self.next_id += 1;
        let slots = 1 + u32::try_from(self.rng.below(2)).unwrap();
        let worker = Worker::new(self.next_id, directory, slots);
        self.disks.entry(directory).or_default();
        self.post(worker.id, Input::WorkerConnected { worker: worker.id });
        self.workers.insert(worker.id, worker);
    }

    fn post(&mut self, from: WorkerId, input: Input) {
        let lane = usize::try_from(from.bits()).unwrap() % (self.mail.len() - 1);
        self.mail[lane].push_back(input);
    }

    /// Posts what does not come from a worker.
    fn post_local(&mut self, input: Input) {
        self.mail.last_mut().unwrap().push_back(input);
    }

    fn step(&mut self) {
        self.now.0 += STEP_MS;
        match self.rng.below(10) {
            0 => self.flush(),
            1..=3 => self.work(),
            4 => self.grant(),
            5 => self.feed(Input::Woken),
            _ => self.deliver(),
        }
    }

    fn deliver(&mut self) {
        let lane = self.rng.below(self.mail.len());
        if let Some(input) = self.mail[lane].pop_front() {
            self.feed(input);
        }
    }

    fn flush(&mut self) {
        self.stored.extend(self.buffer.drain(..));
        self.acknowledged = Lsn(self.stored.len() as u64);
        self.feed(Input::Persisted { upto: self.acknowledged });
    }

    fn work(&mut self) {
        let running: Vec<(WorkerId, ExecutionAttemptId)> = self
            .workers
            .values()
            .flat_map(|worker| worker.running.keys().map(|attempt| (worker.id, *attempt)))
            .collect();
        if running.is_empty() {
            return;
        }
        let (id, attempt) = running[self.rng.below(running.len())];
        let worker = self.workers.get_mut(&id).unwrap();
        let graph = &self.submission.graph;
        let said = worker.work(attempt, graph, &mut self.disks, &mut self.contents);
        let Some(input) = said else { return };
        if matches!(input, Input::TaskFinished { .. }) {
            self.sealed.insert(attempt.execution_vertex());
        }
        self.post(id, input);
    }

    fn grant(&mut self) {
        let total: u32 = self.granted.values().sum();
        let free =
            |worker: &&Worker| self.granted.get(&worker.id).copied().unwrap_or(0) < worker.slots;
        let Some(worker) = self.workers.values().find(free).map(|worker| worker.id) else { return };
        if total < self.demand {
            *self.granted.entry(worker).or_default() += 1;
            self.post_local(Input::SlotsGranted { worker, count: 1 });
        }
    }

    fn feed(&mut self, input: Input) {
        if self.outcome.is_some() {
            return;
        }
        let decision = self.job.handle(self.now, input);
        self.carry_out(decision);
        self.check_replay();
    }

    fn carry_out(&mut self, decision: Decision) {
        for event in decision.events {
            self.replay.apply(&event).unwrap();
            self.buffer.push_back(event);
        }
        for action in decision.actions {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::AnnounceMaster { worker } => {
                let epoch = self.epoch;
                let Some(there) = self.workers.get_mut(&worker) else { return };
                for input in there.announced(epoch) {
                    self.post(worker, input);
                }
            }
            Action::GetAllPartitionsWithMetrics { worker } => self.report_partitions(worker),
            Action::SubmitTask { worker, deployment } => {
                self.check_dispatch(deployment.attempt);
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.submitted(*deployment);
                }
            }
            Action::CancelTask { worker, attempt } => {
                let Some(there) = self.workers.get_mut(&worker) else { return };
                for input in there.cancelled(attempt) {
                    self.post(worker, input);
                }
            }
            Action::AnswerSplitRequest { worker, attempt, request, split } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.split_answered(attempt, request, split);
                }
            }
            Action::AnswerReport { worker, attempt, answer } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.report_answered(attempt, answer, &mut self.disks);
                }
            }
            Action::ReleasePartitions { data_directory, attempts, .. } => {
                let disk = self.disks.entry(data_directory).or_default();
                for attempt in attempts {
                    disk.remove(&attempt);
                }
            }
            Action::DeclareDemand { slots } => self.demand = slots,
            Action::ReturnSlots { worker, count } => {
                if let Some(granted) = self.granted.get_mut(&worker) {
                    *granted -= count;
                }
            }
            Action::DiscoverSplits { vertex } => {
                let split = |id| Split { id: SplitId(id), size_bytes: 9 << 20, payload: vec![] };
                let splits = (0..u32::try_from(self.submission.graph.edges.len()).unwrap() * 2)
                    .map(split)
                    .collect();
                self.post_local(Input::SplitsDiscovered { vertex, result: Ok(splits) });
            }
            Action::PrepareOutput(preparation) => {
                let result = Ok(preparation.sinks.iter().map(|_| "/staging".to_owned()).collect());
                self.post_local(Input::OutputPrepared { result });
            }
            Action::VerifyStagedFiles(_) => {
                self.post_local(Input::StagedFilesVerified { lost: Vec::new() });
            }
            Action::Commit(_) => self.post_local(Input::CommitEnded { result: Ok(()) }),
            Action::Conclude(outcome) => self.outcome = Some(*outcome),
            Action::WakeAt(_)
            | Action::AcknowledgeSubmission
            | Action::AcknowledgeCancel { .. }
            | Action::ReportRecovery(_) => {}
            Action::Die(_) | Action::StepDown { .. } => panic!("nobody asked for it"),
        }
    }

    fn report_partitions(&mut self, worker: WorkerId) {
        let Some(there) = self.workers.get(&worker) else { return };
        let data_directory = there.data_directory;
        let finished = self.disks[&data_directory].values().cloned().collect();
        self.post(worker, Input::PartitionsReported { worker, data_directory, finished });
    }

    fn disturb(&mut self) {
        match (self.faults, self.rng.below(100)) {
            (Faults::None, _) | (_, 9..) => {}
            (Faults::Masters, 0..3) | (Faults::All, 0..2) => self.kill_master(),
            (Faults::Processes, 0..3) | (Faults::All, 2) => self.kill_process(),
            (Faults::All, 3) => self.kill_worker(),
            (Faults::All, 4 | 5) => self.lose_partition(),
            (Faults::All, 6) => self.fail_task(),
            _ => {}
        }
    }

    fn kill_master(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        let survives = self.rng.below(self.buffer.len() + 1);
        self.stored.extend(self.buffer.drain(..survives));
        self.buffer.clear();
        self.mail.iter_mut().for_each(VecDeque::clear);
        (self.demand, self.granted) = (0, BTreeMap::new());
        self.epoch = self.epoch.next_life();
        self.acknowledged = Lsn(self.stored.len() as u64);
        let life = life(self.epoch, self.faults, PreviousLife::Unknown);
        let (job, decision) =
            Job::recover(self.now, self.submission.clone(), &self.stored, life).unwrap();
        self.job = job;
        self.replay = Replay::new(self.submission.clone());
        for event in &self.stored {
            self.replay.apply(event).unwrap();
        }
        self.carry_out(decision);
        for id in self.workers.keys().copied().collect::<Vec<_>>() {
            self.post(id, Input::WorkerConnected { worker: id });
        }
    }

    fn kill_process(&mut self) {
        let directories: Vec<DataDirectoryId> =
            self.workers.values().map(|worker| worker.data_directory).collect();
        self.workers.clear();
        self.kill_master();
        for directory in directories {
            self.start_worker(directory);
        }
    }

    fn kill_worker(&mut self) {
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        if ids.len() < 2 {
            return;
        }
        let id = ids[self.rng.below(ids.len())];
        let gone = self.workers.remove(&id).unwrap();
        self.granted.remove(&id);
        self.post(id, Input::WorkerLost { worker: id });
        match self.rng.below(3) {
            0 => self.start_worker(gone.data_directory),
            1 => {
                self.disks.remove(&gone.data_directory);
                let fresh = DataDirectoryId::from_bits(self.next_id + 1000);
                self.start_worker(fresh);
            }
            _ => {}
        }
    }

    fn lose_partition(&mut self) {
        let ids: Vec<DataDirectoryId> = self.disks.keys().copied().collect();
        let id = ids[self.rng.below(ids.len())];
        let attempts: Vec<ExecutionAttemptId> = self.disks[&id].keys().copied().collect();
        if !attempts.is_empty() {
            let attempt = attempts[self.rng.below(attempts.len())];
            self.disks.get_mut(&id).unwrap().remove(&attempt);
        }
    }

    fn fail_task(&mut self) {
        let chosen = self
            .workers
            .values()
            .find_map(|worker| worker.running.keys().next().map(|attempt| (worker.id, *attempt)));
        let Some((id, attempt)) = chosen else { return };
        let worker = self.workers.get_mut(&id).unwrap();
        worker.running.remove(&attempt);
        let input = worker.failed(attempt, TaskFailure::task("told to"));
        self.post(id, input);
    }

    /// The recorded part of the live state is what a replay of all events gives.
    fn check_replay(&self) {
        assert!(self.replay.agrees_with(&self.job), "replay differs from live");
    }

    fn check_dispatch(&self, attempt: ExecutionAttemptId) {
        assert_eq!(attempt.epoch, self.epoch);
        let decided = self.stored[..usize::try_from(self.acknowledged.0).unwrap()]
            .iter()
            .rev()
            .take_while(|event| !matches!(event, JobEvent::EpochStarted { .. }))
            .any(|event| matches!(event, JobEvent::RecoveryDecided(_)));
        assert!(decided, "5.10: nothing but questions before the decision is durable");
        let again = self.sealed.contains(&attempt.execution_vertex());
        assert!(
            self.faults == Faults::All || !again,
            "P1: {attempt} runs although it had finished"
        );
    }

    fn check_end(&self, outcome: &JobOutcome) {
        if outcome.state != JobState::Finished {
            assert_eq!(self.faults, Faults::All, "{outcome:?}");
            assert!(outcome.error.is_some());
            return;
        }
        let accepted = accepted(&self.stored);
        let mut splits = BTreeMap::<_, BTreeSet<SplitId>>::new();
        for record in accepted.values() {
            let read = splits.entry(record.attempt.vertex).or_default();
            for split in &record.splits {
                assert!(read.insert(*split), "P2: split {split:?} counts twice");
            }
        }
        let discovered = self.submission.graph.edges.len() * 2;
        for (id, vertex) in (0..).zip(&self.submission.graph.vertices) {
            if vertex.coordinator.is_some() {
                let read = splits.get(&regrow_protocol::JobVertexId(id)).map_or(0, BTreeSet::len);
                assert_eq!(read, discovered, "P2: every split counts");
            }
        }
        self.contents.check(&accepted);
    }
}

/// The accepted finishes of a log, folded by rules of this test's own.
fn accepted(events: &[JobEvent]) -> BTreeMap<ExecutionVertexId, FinishRecord> {
    let mut accepted = BTreeMap::new();
    for event in events {
        match event {
            JobEvent::ExecutionVertexFinished { record, .. } => {
                accepted.insert(record.attempt.execution_vertex(), (**record).clone());
            }
            JobEvent::ExecutionVerticesReset { resets } => {
                accepted.retain(|id, _| resets.iter().all(|reset| reset.subtask != *id));
            }
            JobEvent::RecoveryDecided(decision) => {
                for (_, _, record) in &decision.found {
                    accepted.insert(record.attempt.execution_vertex(), record.clone());
                }
                accepted.retain(|id, _| decision.resets.iter().all(|reset| reset.subtask != *id));
            }
            _ => {}
        }
    }
    accepted
}

fn life(epoch: Epoch, faults: Faults, previous: PreviousLife) -> LifeStart {
    // Where nobody vanishes, whoever is slow is waited for.
    let patience = if faults == Faults::All { 5 } else { 100_000 };
    LifeStart {
        epoch,
        previous,
        sealed: None,
        kills: Vec::new(),
        read_log_ms: 0,
        log_damage: None,
        options: Options {
            previous_worker_timeout: std::time::Duration::from_secs(patience),
            ..Options::default()
        },
    }
}
