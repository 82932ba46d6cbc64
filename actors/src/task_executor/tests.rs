mod threads;

use std::{fs, time::Duration};

use regrow_protocol::{
    Accumulator, DataDirectoryId, DataSetId, InputGate, InputId, PartitionId, PinnedSplits,
    ProducerPartition, ReportAnswer, RunStanding, Split, SplitId, SubpartitionRange,
    TaskDeployment, TaskFailure, ToJobMaster, ToShuffleService, ToTaskExecutor,
};
use tokio::time::Instant;

use crate::{
    runner::RunnerKind::LockStep,
    simulated::{pass, simulate},
    task::{NextSplit, Step, TaskContext},
    worker::bench::{Bench, Program, attempt, deployment},
};

const START: ToTaskExecutor = ToTaskExecutor::JobMasterStarted;

/// Sleeps for two seconds, then writes three records, and counts itself.
fn write(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    if context.accumulators().get("runs").is_none() {
        context.accumulators().add("runs", Accumulator::Sum(1));
        return Ok(Step::Sleep(Duration::from_secs(2)));
    }
    if context.is_cancelled() {
        return Err(TaskFailure::Cancelled);
    }
    for output in 0..context.deployment().outputs.len() {
        context.write_block(output, 0, b"one", 1)?;
        context.write_block(output, 1, b"two, three", 2)?;
    }
    Ok(Step::Finished)
}

/// Reads all of input 0 and counts its bytes.
fn read(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    let mut block = Vec::new();
    while context.read_block(0, &mut block)? {
        let length = i64::try_from(block.len()).unwrap();
        context.accumulators().add("bytes", Accumulator::Sum(length));
    }
    Ok(Step::Finished)
}

fn write_or_read(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    if context.deployment().inputs.is_empty() { write(context) } else { read(context) }
}

fn consumer(producer: regrow_protocol::ExecutionAttemptId) -> TaskDeployment {
    let partition = PartitionId { attempt: producer, data_set: DataSetId(0) };
    let data_directory = DataDirectoryId::from_bits(1);
    let gate = InputGate {
        data_set: DataSetId(0),
        input: InputId(3),
        subpartitions: SubpartitionRange { start: 0, end: 2 },
        producers: [ProducerPartition { partition, data_directory }].into(),
    };
    TaskDeployment { inputs: vec![gate], ..deployment(attempt(1, 1), 0) }
}

#[test]
fn a_task_runs_is_sealed_and_reported() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write));
        let begin = Instant::now();
        let mut task = deployment(attempt(1, 0), 2);
        task.ledger = Some(bench.ledger_path());
        bench.submit(task);
        let record = bench.hear_finish().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(2));
        assert_eq!(
            (record.attempt, record.plan),
            (attempt(1, 0), deployment(attempt(1, 0), 2).plan)
        );
        assert_eq!(record.metrics.duration_ms, 2_000);
        assert_eq!((record.metrics.records_out, record.metrics.bytes_out), (6, 26));
        assert_eq!(record.accumulators.get("runs"), Some(&Accumulator::Sum(1)));
        assert_eq!(record.outputs.len(), 2);
        assert_eq!(record.outputs[1].records, 3);
        assert_eq!(bench.files().len(), 3, "two partitions and a finish record");
        assert_eq!(bench.ledger(), ["1048577 0 0 0 start", "1048577 0 0 0 end"]);
    });
}

#[test]
fn a_consumer_reads_what_a_producer_wrote() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write_or_read));
        bench.submit(deployment(attempt(1, 0), 1));
        bench.hear_finish().await;
        bench.submit(consumer(attempt(1, 0)));
        let record = bench.hear_finish().await;
        assert_eq!(record.accumulators.get("bytes"), Some(&Accumulator::Sum(13)));
        assert_eq!((record.metrics.records_in, record.metrics.bytes_in), (3, 13));
        assert_eq!(record.inputs, [InputId(3)]);
    });
}

#[test]
fn fault_38_a_lost_or_damaged_partition_is_named() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write_or_read));
        bench.submit(deployment(attempt(1, 0), 1));
        bench.hear_finish().await;
        let name = bench.files().pop().unwrap();
        let run = super::super::worker::bench::RUN.to_string();
        let directory = DataDirectoryId::from_bits(1).to_string();
        let path = bench.root.path().join(directory).join(run).join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[9] ^= 1;
        fs::write(&path, bytes).unwrap();

        let lost = PartitionId { attempt: attempt(1, 0), data_set: DataSetId(0) };
        bench.submit(consumer(attempt(1, 0)));
        let damaged = bench.hear_failure().await;
        fs::remove_file(&path).unwrap();
        bench.submit(TaskDeployment { attempt: attempt(1, 2), ..consumer(attempt(1, 0)) });
        let gone = bench.hear_failure().await;
        for (failure, word) in [(damaged, "damaged"), (gone, "gone")] {
            let TaskFailure::InputLost { partition, reason } = failure else {
                panic!("{failure:?}");
            };
            assert_eq!(partition, lost);
            assert!(reason.contains(word), "{reason}");
        }
    });
}

#[test]
fn a_cancel_wakes_a_task_and_leaves_nothing_of_it() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write));
        let mut task = deployment(attempt(1, 0), 1);
        task.ledger = Some(bench.ledger_path());
        bench.submit(task);
        pass(Duration::from_millis(500)).await;
        let cancelled_at = Instant::now();
        bench.tell(1, ToTaskExecutor::CancelTask { attempt: attempt(1, 0) });
        assert_eq!(bench.hear_failure().await, TaskFailure::Cancelled);
        assert_eq!(cancelled_at.elapsed(), Duration::ZERO);
        assert_eq!(bench.files(), [""; 0]);
        assert_eq!(bench.ledger(), ["1048577 0 0 0 start", "1048577 0 0 0 cancelled"]);
    });
}

#[test]
fn a_panic_fails_the_attempt_with_its_text_and_place_and_harms_no_other() {
    simulate(async {
        let mut bench = Bench::new(
            LockStep,
            2,
            Program::new(|context| {
                assert_ne!(context.deployment().attempt.subtask, 0, "told to");
                write(context)
            }),
        );
        let mut task = deployment(attempt(1, 0), 1);
        task.ledger = Some(bench.ledger_path());
        bench.submit(task);
        bench.submit(deployment(attempt(1, 1), 1));
        let TaskFailure::Panicked { message, location } = bench.hear_failure().await else {
            panic!("another failure");
        };
        assert!(message.contains("told to"), "{message}");
        assert!(location.starts_with("actors/src/task_executor/tests.rs:"), "{location}");
        assert_eq!(bench.hear_finish().await.attempt, attempt(1, 1));
        assert_eq!(bench.ledger(), ["1048577 0 0 0 start", "1048577 0 0 0 failed"]);
    });
}

#[test]
fn rule_4_3_a_new_master_finds_free_slots_and_what_was_finished() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write));
        bench.tell(1, START);
        bench.hear().await;
        bench.submit(deployment(attempt(1, 0), 1));
        bench.hear_finish().await;
        bench.submit(deployment(attempt(1, 1), 1));
        pass(Duration::from_secs(1)).await;
        bench.tell(2, START);
        let ToJobMaster::Registered { inventory, worker } = bench.hear().await else {
            panic!("expected the registration");
        };
        assert_eq!(worker, bench.worker.connected.worker);
        assert_eq!(inventory.running, [attempt(1, 1)], "it is told to stop, and may still finish");
        assert_eq!(inventory.unacknowledged.len(), 1);
        assert_eq!(bench.hear_finish().await.attempt, attempt(1, 0));
        assert_eq!(bench.hear_failure().await, TaskFailure::Cancelled);
        bench.submit(deployment(attempt(2, 1), 1));
        assert_eq!(bench.hear_finish().await.attempt, attempt(2, 1));
        assert_eq!(bench.files().len(), 2, "nothing of the cancelled attempt is left");
    });
}

#[test]
fn rule_4_7_a_task_outlives_its_master_by_the_grace() {
    simulate(async {
        let endless = |context: &mut dyn TaskContext| {
            if context.is_cancelled() {
                return Err(TaskFailure::Cancelled);
            }
            Ok(Step::Sleep(Duration::from_hours(9)))
        };
        let mut bench = Bench::new(LockStep, 1, Program::new(endless));
        bench.submit(deployment(attempt(1, 0), 1));
        bench.lose_master(1);
        let begin = Instant::now();
        assert_eq!(bench.hear_failure().await, TaskFailure::Cancelled);
        assert_eq!(begin.elapsed().as_secs(), 5);
    });
}

#[test]
fn rule_4_6_a_superseded_output_is_discarded_and_an_ended_run_leaves_nothing() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 2, Program::new(write));
        for subtask in 0..2 {
            bench.submit(deployment(attempt(1, subtask), 1));
        }
        for _ in 0..2 {
            bench.hear_finish().await;
        }
        let answer = ReportAnswer::Superseded;
        bench.tell(1, ToTaskExecutor::ReportAnswered { attempt: attempt(1, 0), answer });
        pass(Duration::from_millis(1)).await;
        assert_eq!(bench.files(), ["0-1-0-1-1.0.partition"]);
        bench.tell(1, ToTaskExecutor::RunEnded { standing: RunStanding::Ended });
        pass(Duration::from_millis(1)).await;
        assert_eq!(bench.files(), [""; 0]);
        assert!(bench.hears_nothing_more());
    });
}

/// Reads splits until the end.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a task")]
fn read_splits(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    match context.take_split() {
        Some(NextSplit::End) => Ok(Step::Finished),
        Some(NextSplit::Split(_)) | None => Ok(Step::AwaitSplit),
    }
}

fn split(id: u32) -> Split {
    Split { id: SplitId(id), size_bytes: 1, payload: vec![1] }
}

#[test]
fn a_source_reads_the_splits_that_it_is_given() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(read_splits));
        let splits = PinnedSplits::OnRequest;
        bench.submit(TaskDeployment { splits, ..deployment(attempt(1, 0), 1) });
        for (number, answer) in (0..).zip([Some(split(8)), Some(split(3)), None]) {
            let ToJobMaster::SplitRequested { attempt, request, .. } = bench.hear().await else {
                panic!("expected a request");
            };
            assert_eq!(request, number);
            bench.tell(1, ToTaskExecutor::SplitAnswered { attempt, request, split: answer });
        }
        assert_eq!(bench.hear_finish().await.splits, [SplitId(8), SplitId(3)]);
    });
}

#[test]
fn rule_5_6_pinned_splits_are_read_without_a_question() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(read_splits));
        let splits = PinnedSplits::Exactly(vec![split(5), split(2)]);
        bench.submit(TaskDeployment { splits, ..deployment(attempt(1, 0), 1) });
        assert_eq!(bench.hear_finish().await.splits, [SplitId(5), SplitId(2)]);
    });
}

#[test]
fn a_ledger_that_cannot_be_written_fails_the_attempt_before_user_code() {
    simulate(async {
        let never = |_: &mut dyn TaskContext| panic!("user code ran");
        let mut bench = Bench::new(LockStep, 1, Program::new(never));
        let mut task = deployment(attempt(1, 0), 1);
        task.ledger = Some("/nonexistent/ledger.txt".to_owned());
        bench.submit(task);
        let TaskFailure::Task { message } = bench.hear_failure().await else {
            panic!("another failure");
        };
        assert!(message.contains("/nonexistent/ledger.txt"), "{message}");
        assert!(message.contains("No such file"), "{message}");
    });
}

#[test]
fn rule_1_2_whoever_leads_hears_of_commands_that_are_refused() {
    simulate(async {
        let mut bench = Bench::new(LockStep, 1, Program::new(write));
        bench.tell(2, START);
        while !matches!(bench.hear().await, ToJobMaster::Registered { .. }) {}
        bench.tell(1, START);
        assert!(matches!(bench.hear().await, ToJobMaster::CommandRefused { .. }));
        bench.tell_shuffle(1, ToShuffleService::ReleaseRun);
        assert!(matches!(bench.hear().await, ToJobMaster::CommandRefused { .. }));
    });
}
