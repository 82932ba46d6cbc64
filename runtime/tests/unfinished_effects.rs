//! An effect that could not be carried out is told, and ends the job instead of leaving it waiting.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails"
)]

use std::sync::Arc;

use regrow_protocol::{
    Accumulators, DataDirectoryId, Epoch, FinishRecord, Inventory, JobVertexId, PartitionKeeper,
    RunId, SubmissionId, TaskDeployment, TaskMetrics, WorkerDescription, WorkerId,
};
use regrow_runtime::{
    Action, Decision, Determinacy, Input, Job, JobGraph, JobOutcome, JobState, JobSubmission,
    JobVertex, LifeStart, Options, Parallelism, PreviousLife, SinkSpec, Timestamp,
};

const WORKER: WorkerDescription = WorkerDescription {
    worker: WorkerId::from_bits(1),
    data_directory: DataDirectoryId::from_bits(2),
    slots: 1,
    shuffle_address: None,
    keeper: PartitionKeeper::Worker,
};

/// A job of one task that writes one file, whose log and worker do all that they are told.
struct Bench {
    job: Job,
    actions: Vec<Action>,
}

impl Bench {
    fn new() -> Self {
        let vertex = JobVertex {
            name: "write".to_owned(),
            parallelism: Parallelism::Fixed(1),
            coordinator: None,
            determinacy: Determinacy::Determinate,
        };
        let directory = "/out".to_owned();
        let sink = SinkSpec { vertex: JobVertexId(0), directory, overwrite: false };
        let submission = JobSubmission {
            job: "nightly".parse().unwrap(),
            run: RunId::from_bits(3),
            submission: SubmissionId::from_bits(4),
            job_name: "write".to_owned(),
            arguments: Vec::new(),
            graph: JobGraph { vertices: vec![vertex], edges: Vec::new(), sinks: vec![sink] },
            ledger: None,
            settings: Vec::new(),
        };
        let life = LifeStart {
            epoch: Epoch::new(1, 0),
            previous: PreviousLife::None,
            sealed: None,
            kills: Vec::new(),
            read_log_ms: 0,
            log_damage: None,
            options: Options::default(),
        };
        let (job, decision) = Job::submit(Timestamp(0), submission, life);
        let mut bench = Self { job, actions: Vec::new() };
        bench.note(decision);
        bench
    }

    fn hear(&mut self, input: Input) {
        let decision = self.job.handle(Timestamp(1), input);
        self.note(decision);
    }

    /// Stores all events at once.
    fn note(&mut self, decision: Decision) {
        self.actions.extend(decision.actions);
        if !decision.events.is_empty() {
            self.hear(Input::Persisted { upto: self.job.recorded_lsn() });
        }
    }

    /// Brings the worker in, and gives what it is to run once the output is prepared.
    fn dispatched(&mut self) -> TaskDeployment {
        let WorkerDescription { worker, data_directory, slots, .. } = WORKER;
        self.hear(Input::WorkerConnected { worker });
        let inventory = Inventory::default();
        self.hear(Input::WorkerRegistered { worker: WORKER, inventory });
        let finished = Vec::new();
        self.hear(Input::PartitionsReported { worker, data_directory, finished });
        self.hear(Input::SlotsGranted { worker, count: slots });
        self.hear(Input::OutputPrepared { result: Ok(vec!["/out/.regrow".to_owned()]) });
        let submitted = self.actions.iter().find_map(|action| match action {
            Action::SubmitTask { deployment, .. } => Some((**deployment).clone()),
            _ => None,
        });
        submitted.unwrap_or_else(|| panic!("no task is dispatched: {:?}", self.actions))
    }

    fn finish(&mut self, deployment: &TaskDeployment) {
        let record = FinishRecord {
            attempt: deployment.attempt,
            plan: deployment.plan,
            inputs: Vec::new(),
            outputs: Vec::new(),
            metrics: TaskMetrics::default(),
            accumulators: Accumulators::default(),
            splits: Vec::new(),
            staged_files: Vec::new(),
        };
        let WorkerDescription { worker, data_directory, .. } = WORKER;
        let record = Arc::new(record);
        self.hear(Input::TaskFinished { worker, data_directory, record });
    }

    fn outcome(&self) -> Option<&JobOutcome> {
        self.actions.iter().find_map(|action| match action {
            Action::Conclude(outcome) => Some(&**outcome),
            _ => None,
        })
    }
}

fn failed(bench: &Bench, text: &str) {
    let outcome = bench.outcome().unwrap_or_else(|| panic!("it waits: {:?}", bench.actions));
    assert_eq!((outcome.state, outcome.error.as_deref()), (JobState::Failed, Some(text)));
}

#[test]
fn output_that_cannot_be_prepared_fails_the_job() {
    let mut bench = Bench::new();
    bench.hear(Input::OutputPrepared { result: Err("no thread".to_owned()) });
    failed(&bench, "no thread");
}

#[test]
fn staged_files_that_cannot_be_looked_at_fail_the_job() {
    let mut bench = Bench::new();
    let deployment = bench.dispatched();
    bench.finish(&deployment);
    assert!(bench.actions.iter().any(|it| matches!(it, Action::VerifyStagedFiles(_))));
    bench.hear(Input::StagedFilesVerified { result: Err("no thread".to_owned()) });
    failed(&bench, "no thread");
}

#[test]
fn a_commit_that_cannot_be_carried_out_fails_the_job() {
    let mut bench = Bench::new();
    let deployment = bench.dispatched();
    bench.finish(&deployment);
    bench.hear(Input::StagedFilesVerified { result: Ok(Vec::new()) });
    assert!(bench.actions.iter().any(|it| matches!(it, Action::Commit(_))));
    bench.hear(Input::CommitEnded { result: Err("no thread".to_owned()) });
    failed(&bench, "no thread");
}
