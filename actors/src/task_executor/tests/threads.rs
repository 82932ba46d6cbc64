//! The same with real threads, whose time is real.

use actix::System;
use tokio::sync::mpsc::unbounded_channel;

use super::{read_splits, split, *};
use crate::{runner::RunnerKind::SlotThreads, task_executor::StopWorker};

/// Longer than any healthy thread needs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Sleeps until it is cancelled.
fn endless(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    if context.is_cancelled() {
        return Err(TaskFailure::Cancelled);
    }
    Ok(Step::Sleep(Duration::from_hours(9)))
}

#[test]
fn a_cancel_wakes_a_sleeping_thread() {
    System::new().block_on(async {
        let mut bench = Bench::new(SlotThreads, 1, Program::new(endless));
        bench.submit(deployment(attempt(1, 0), 1));
        bench.tell(1, ToTaskExecutor::CancelTask { attempt: attempt(1, 0) });
        assert_eq!(bench.hear_failure().await, TaskFailure::Cancelled);
    });
}

#[test]
fn a_source_on_a_thread_reads_the_splits_that_it_is_given() {
    System::new().block_on(async {
        let mut bench = Bench::new(SlotThreads, 1, Program::new(read_splits));
        let splits = PinnedSplits::OnRequest;
        bench.submit(TaskDeployment { splits, ..deployment(attempt(1, 0), 1) });
        for split in [Some(split(8)), None] {
            let ToJobMaster::SplitRequested { attempt, request, .. } = bench.hear().await else {
                panic!("expected a request");
            };
            bench.tell(1, ToTaskExecutor::SplitAnswered { attempt, request, split });
        }
        assert_eq!(bench.hear_finish().await.splits, [SplitId(8)]);
    });
}

#[test]
fn a_panic_on_a_thread_fails_the_attempt_and_the_thread_goes_on() {
    System::new().block_on(async {
        let program = Program::new(|context: &mut dyn TaskContext| {
            assert_ne!(context.deployment().attempt.subtask, 0, "told to");
            Ok(Step::Finished)
        });
        let mut bench = Bench::new(SlotThreads, 1, program);
        bench.submit(deployment(attempt(1, 0), 1));
        bench.submit(deployment(attempt(1, 1), 1));
        assert!(matches!(bench.hear_failure().await, TaskFailure::Panicked { .. }));
        assert_eq!(bench.hear_finish().await.attempt, attempt(1, 1));
    });
}

#[test]
fn as_many_tasks_run_at_a_time_as_there_are_slots() {
    // Each of three tasks waits for the other two.
    let barrier = std::sync::Barrier::new(3);
    System::new().block_on(async {
        let program = Program::new(move |_: &mut dyn TaskContext| {
            barrier.wait();
            Ok(Step::Finished)
        });
        let mut bench = Bench::new(SlotThreads, 3, program);
        for subtask in 0..9 {
            bench.submit(deployment(attempt(1, subtask), 0));
        }
        for _ in 0..9 {
            bench.hear_finish().await;
        }
    });
}

#[test]
fn threads_end_when_the_executor_is_gone() {
    System::new().block_on(async {
        let (running, mut begun) = unbounded_channel();
        let program = Program::new(move |context: &mut dyn TaskContext| {
            running.send(()).unwrap();
            endless(context)
        });
        let mut bench = Bench::new(SlotThreads, 2, program);
        for subtask in 0..2 {
            bench.submit(deployment(attempt(1, subtask), 1));
            begun.recv().await.unwrap();
        }
        bench.worker.task_executor.do_send(StopWorker);
        assert_eq!(bench.hear_of_death().await, bench.worker.connected.worker.worker);
        let ended = bench.worker.threads_ended.clone().unwrap();
        assert!(ended.wait(PATIENCE));
        assert_eq!(bench.files(), [""; 0]);
    });
}
