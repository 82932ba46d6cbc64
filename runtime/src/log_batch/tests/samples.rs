//! One event of each kind, with all that it can hold.

use std::sync::Arc;

use regrow_protocol::{
    Accumulator, Accumulators, DataDirectoryId, DataSetId, ExecutionAttemptId, ExecutionVertexId,
    FinishRecord, InputId, JobVertexId, PartitionMetrics, PlanId, RunId, Split, SplitId,
    StagedFile, SubmissionId, SubpartitionBytes, SubpartitionRange, TaskMetrics, WorkerId,
};

use super::*;
use crate::{
    CommitPlan, CoordinatorDelta, CoordinatorKind, Determinacy, Distribution, InputRange, JobEdge,
    JobGraph, JobState, JobSubmission, JobVertex, LogPosition, Parallelism, PreviousLife,
    RecoveryDecision, ResetReason, SinkSpec, VertexPlan, VertexReset,
};

/// Events of each kind; a new kind does not compile before it has its place here.
pub(super) fn one_of_each_event() -> Vec<JobEvent> {
    let mut events = vec![
        submitted(),
        epoch_started(PreviousLife::None),
        epoch_started(PreviousLife::Unknown),
        epoch_started(PreviousLife::Panicked { message: "index out of bounds".to_owned() }),
        epoch_started(PreviousLife::KilledAsPlanned),
        recovery_decided(),
        JobEvent::JobVertexInitialized { vertex: JobVertexId(1), plan: plan() },
        worker_used(None),
        JobEvent::WorkerLost { worker: worker() },
        JobEvent::ExecutionVertexFinished {
            worker: worker(),
            data_directory: directory(),
            record: Arc::new(finish_record()),
        },
        JobEvent::ExecutionVerticesReset { resets: resets() },
        JobEvent::ResetTakenBack { attempts: vec![attempt()] },
        JobEvent::CoordinatorSnapshot {
            vertex: JobVertexId(0),
            last_delta: 4,
            state: vec![1, 2, 3],
        },
        JobEvent::CommitStarted(Box::new(commit_plan())),
        JobEvent::CommitFinished,
        JobEvent::CancelRequested,
        JobEvent::FailureDecided { error: "vertex 1 failed 4 times".to_owned() },
        JobEvent::JobTerminated { state: JobState::Failed, error: Some("why".to_owned()) },
        JobEvent::JobTerminated { state: JobState::Finished, error: None },
        JobEvent::Snapshot { state: vec![4, 5, 6] },
    ];
    for (number, delta) in (1..).zip(deltas()) {
        let vertex = JobVertexId(0);
        events.push(JobEvent::CoordinatorChanged { vertex, number, delta });
    }
    assert_eq!(kinds(&events), (0..KINDS).collect::<Vec<_>>(), "a kind of event has no sample");
    events
}

/// A worker is used whose partitions a shuffle service may keep.
pub(super) fn worker_used(shuffle_service: Option<WorkerId>) -> JobEvent {
    let addresses = Vec::new();
    JobEvent::WorkerUsed {
        worker: worker(),
        data_directory: directory(),
        shuffle_service,
        addresses,
    }
}

/// Events of sources that are listed again; their bytes stand in a file of their own.
pub(super) fn events_of_listings() -> Vec<JobEvent> {
    let JobEvent::JobSubmitted(mut submission) = submitted() else { return Vec::new() };
    submission.graph.vertices[0].coordinator = Some(CoordinatorKind::OneListingSource);
    let vertex = JobVertexId(0);
    let split = Split { id: SplitId(0), size_bytes: 1000, payload: vec![9, 9] };
    let made = CoordinatorDelta::ListingMade { listing: 2, epoch: EPOCH, splits: vec![split] };
    let forgotten = CoordinatorDelta::ListingForgotten { listing: 1 };
    let reset = VertexReset { reason: ResetReason::ListingForgotten, ..resets().remove(0) };
    vec![
        JobEvent::JobSubmitted(submission),
        JobEvent::CoordinatorChanged { vertex, number: 6, delta: forgotten },
        JobEvent::CoordinatorChanged { vertex, number: 7, delta: made },
        JobEvent::ExecutionVerticesReset { resets: vec![reset] },
    ]
}

/// How many kinds of events there are.
const KINDS: u32 = 17;

fn kinds(events: &[JobEvent]) -> Vec<u32> {
    let mut kinds: Vec<u32> = events.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

const fn kind(event: &JobEvent) -> u32 {
    match event {
        JobEvent::JobSubmitted(_) => 0,
        JobEvent::EpochStarted { .. } => 1,
        JobEvent::RecoveryDecided(_) => 2,
        JobEvent::JobVertexInitialized { .. } => 3,
        JobEvent::WorkerUsed { .. } => 4,
        JobEvent::WorkerLost { .. } => 5,
        JobEvent::ExecutionVertexFinished { .. } => 6,
        JobEvent::ExecutionVerticesReset { .. } => 7,
        JobEvent::ResetTakenBack { .. } => 8,
        JobEvent::CoordinatorChanged { .. } => 9,
        JobEvent::CoordinatorSnapshot { .. } => 10,
        JobEvent::CommitStarted(_) => 11,
        JobEvent::CommitFinished => 12,
        JobEvent::CancelRequested => 13,
        JobEvent::FailureDecided { .. } => 14,
        JobEvent::JobTerminated { .. } => 15,
        JobEvent::Snapshot { .. } => 16,
    }
}

fn submitted() -> JobEvent {
    let vertex = |name: &str, parallelism, coordinator, determinacy| JobVertex {
        name: name.to_owned(),
        parallelism,
        coordinator,
        determinacy,
    };
    let edge =
        |distribution| JobEdge { producer: JobVertexId(0), consumer: JobVertexId(1), distribution };
    let source = Some(CoordinatorKind::Source);
    JobEvent::JobSubmitted(Box::new(JobSubmission {
        job: "nightly".parse().unwrap(),
        run: run(),
        submission: SubmissionId::from_bits(2),
        job_name: "wordcount".to_owned(),
        arguments: vec![0x80],
        graph: JobGraph {
            vertices: vec![
                vertex("read", Parallelism::Decided, source, Determinacy::Determinate),
                vertex("count", Parallelism::Fixed(4), None, Determinacy::Indeterminate),
            ],
            edges: vec![
                edge(Distribution::AllToAll),
                edge(Distribution::Pointwise),
                edge(Distribution::Broadcast),
            ],
            sinks: vec![sink()],
        },
        ledger: Some("/tmp/ledger".to_owned()),
        settings: vec![("restart-strategy.type".to_owned(), "none".to_owned())],
    }))
}

fn epoch_started(previous: PreviousLife) -> JobEvent {
    let sealed = LogPosition { segment: 1, sequence: 70, checksum: 0xdead_beef };
    JobEvent::EpochStarted { epoch: EPOCH, previous, sealed: Some(sealed), log_lacks: false }
}

fn recovery_decided() -> JobEvent {
    let subtask = ExecutionVertexId { vertex: JobVertexId(1), subtask: 3 };
    JobEvent::RecoveryDecided(Box::new(RecoveryDecision {
        found: vec![(worker(), directory(), Arc::new(finish_record()))],
        resets: resets(),
        deltas: vec![(JobVertexId(0), 5, deltas().remove(3))],
        attempt_numbers: vec![(subtask, 6)],
        lost_workers: vec![worker()],
    }))
}

fn resets() -> Vec<VertexReset> {
    let reasons = [
        ResetReason::Failed { message: "divided by zero".to_owned() },
        ResetReason::WorkerLost,
        ResetReason::PartitionLost { message: "no such file".to_owned() },
        ResetReason::OutputMissing,
        ResetReason::InputChanged,
        ResetReason::InputLost,
        ResetReason::Cancelled,
        ResetReason::SplitsLeft,
        ResetReason::StagedFileLost,
    ];
    let reset = |(subtask, reason)| VertexReset {
        subtask: ExecutionVertexId { vertex: JobVertexId(1), subtask },
        reason,
        generation: 1,
        next_attempt: 4,
        charged_failures: 2,
        losses: 3,
    };
    (0..).zip(reasons).map(reset).collect()
}

fn deltas() -> Vec<CoordinatorDelta> {
    let splits = vec![SplitId(0), SplitId(2)];
    let split = Split { id: SplitId(0), size_bytes: 1000, payload: vec![9, 9] };
    vec![
        CoordinatorDelta::SplitsDiscovered { splits: vec![split] },
        CoordinatorDelta::SplitsAssigned {
            attempt: attempt(),
            splits: splits.clone(),
            request: Some(3),
        },
        CoordinatorDelta::SplitsAssigned { attempt: attempt(), splits, request: None },
        CoordinatorDelta::SplitsReturned { attempts: vec![attempt()] },
        CoordinatorDelta::SubtaskReset { subtask: 3, pinned_from: Some(attempt()) },
    ]
}

fn plan() -> VertexPlan {
    let subpartitions = SubpartitionRange { start: 5, end: 300 };
    let range = InputRange { producers_start: 0, producers_end: 70_000, subpartitions };
    let (inputs, output_subpartitions) = (vec![vec![range, range], vec![range]], vec![1, 128]);
    VertexPlan { id: PlanId(77), parallelism: 2, inputs, output_subpartitions }
}

fn finish_record() -> FinishRecord {
    let mut accumulators = Accumulators::default();
    accumulators.add("lines", Accumulator::Sum(-3));
    accumulators.add("least", Accumulator::Min(1));
    accumulators.add("most", Accumulator::Max(2));
    FinishRecord {
        attempt: attempt(),
        plan: PlanId(77),
        inputs: vec![InputId(88)],
        outputs: vec![PartitionMetrics {
            data_set: DataSetId(2),
            subpartition_bytes: SubpartitionBytes::new(&[0, 300, 0, 1]),
            records: 12,
            checksum: 0x0102_0304,
        }],
        metrics: TaskMetrics {
            records_in: 1,
            bytes_in: 2,
            records_out: 3,
            bytes_out: 4,
            duration_ms: 5,
        },
        accumulators,
        splits: vec![SplitId(0)],
        staged_files: vec![staged_file()],
    }
}

fn commit_plan() -> CommitPlan {
    CommitPlan { run: run(), sinks: vec![sink()], winners: vec![(attempt(), staged_file())] }
}

fn staged_file() -> StagedFile {
    StagedFile {
        sink: 0,
        staged_name: "3-1-1-3-2".to_owned(),
        final_name: "part-00003.csv".to_owned(),
        bytes: 400,
        checksum: 7,
    }
}

fn sink() -> SinkSpec {
    SinkSpec { vertex: JobVertexId(1), directory: "/out".to_owned(), overwrite: true }
}

fn attempt() -> ExecutionAttemptId {
    let (run, vertex) = (run(), JobVertexId(1));
    ExecutionAttemptId { run, vertex, subtask: 3, epoch: EPOCH, number: 2 }
}

const fn run() -> RunId {
    RunId::from_bits(1)
}

const fn worker() -> WorkerId {
    WorkerId::from_bits(3)
}

const fn directory() -> DataDirectoryId {
    DataDirectoryId::from_bits(4)
}
