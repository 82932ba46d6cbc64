use std::{fs, time::Duration};

use regrow_protocol::{
    DataDirectoryId, ReportAnswer, RunStanding, TaskFailure, ToJobMaster, ToShuffleService,
    ToTaskExecutor, WorkerId,
};

use crate::{
    runner::RunnerKind::{self, LockStep},
    simulated::{pass, simulate},
    task::{Step, TaskContext},
    task_executor::{LeaderNews, StopWorker},
    worker::bench::{Bench, Program, RUN, attempt, deployment},
};

const ASK: ToShuffleService = ToShuffleService::GetAllPartitionsWithMetrics;

fn at_once(context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
    for output in 0..context.deployment().outputs.len() {
        context.write_block(output, 1, b"some", 1)?;
    }
    Ok(Step::Finished)
}

/// A worker that finished tasks with no, one and two outputs, all acknowledged.
async fn worker_with_partitions(runner: RunnerKind) -> Bench {
    let mut bench = Bench::new(runner, 1, Program::new(at_once));
    for outputs in 0..3 {
        let attempt = attempt(1, outputs);
        bench.submit(deployment(attempt, outputs));
        bench.hear_finish().await;
        let answer = ReportAnswer::Accepted;
        bench.tell(1, ToTaskExecutor::ReportAnswered { attempt, answer });
    }
    bench
}

#[test]
fn rule_5_3_all_partitions_are_reported_with_those_that_have_no_outputs() {
    simulate(async {
        let mut bench = worker_with_partitions(LockStep).await;
        bench.tell_shuffle(2, ASK);
        let (directory, attempts) = bench.hear_partitions().await;
        assert_eq!(directory, DataDirectoryId::from_bits(1));
        assert_eq!(attempts, [attempt(1, 0), attempt(1, 1), attempt(1, 2)]);
    });
}

#[test]
fn what_is_released_by_name_goes_and_the_rest_stays() {
    actix::System::new().block_on(async {
        let mut bench = worker_with_partitions(RunnerKind::SlotThreads).await;
        let attempts = vec![attempt(1, 0), attempt(1, 1)];
        bench.tell_shuffle(1, ToShuffleService::ReleasePartitions { attempts });
        bench.tell_shuffle(1, ASK);
        assert_eq!(bench.hear_partitions().await.1, [attempt(1, 2)]);
    });
}

#[test]
fn rule_3_9_an_ended_run_leaves_nothing_and_is_not_reported() {
    simulate(async {
        let mut bench = worker_with_partitions(LockStep).await;
        bench.tell_shuffle(1, ToShuffleService::ReleaseRun);
        bench.tell_shuffle(1, ASK);
        pass(Duration::from_millis(1)).await;
        assert_eq!(bench.files(), [""; 0]);
        assert!(bench.hears_nothing_more());
    });
}

#[test]
fn rule_1_5_a_new_process_takes_the_directory_over_and_reports_it_as_its_own() {
    simulate(async {
        let mut bench = worker_with_partitions(LockStep).await;
        bench.worker.task_executor.do_send(StopWorker);
        bench.hear_of_death().await;
        pass(Duration::from_millis(1)).await;
        let Bench { root, worker, .. } = bench;
        drop(worker);
        let mut next = Bench::in_root(root, 2, LockStep, 1, Program::new(at_once));
        let own = next.worker.connected.worker.data_directory;
        assert_eq!(own, DataDirectoryId::from_bits(1), "no second directory is made");
        next.tell_shuffle(2, ASK);
        let (directory, attempts) = next.hear_partitions().await;
        assert_eq!((directory, attempts.len()), (own, 3));
    });
}

#[test]
fn rule_4_4_partitions_go_at_the_time_out_when_no_master_comes_back() {
    simulate(async {
        let mut bench = worker_with_partitions(LockStep).await;
        bench.tell(1, ToTaskExecutor::JobMasterStarted);
        bench.hear().await;
        let before = bench.files();
        bench.lose_master(1);
        pass(Duration::from_secs(299)).await;
        assert_eq!(bench.files(), before);
        pass(Duration::from_secs(2)).await;
        assert_eq!(bench.files(), [""; 0]);
    });
}

#[test]
fn promise_p5_a_worker_that_just_started_deletes_nothing() {
    simulate(async {
        let bench = worker_with_partitions(LockStep).await;
        let before = bench.files();
        bench.worker.task_executor.do_send(StopWorker);
        pass(Duration::from_millis(1)).await;
        let Bench { root, worker, .. } = bench;
        drop(worker);
        let next = Bench::in_root(root, 2, LockStep, 1, Program::new(at_once));
        pass(Duration::from_mins(4)).await;
        assert_eq!(next.files(), before);
        pass(Duration::from_mins(2)).await;
        assert_eq!(next.files(), [""; 0], "its time-out began with the process");
    });
}

#[test]
fn rule_1_2_a_stand_alone_service_answers_nobody_whose_term_it_could_not_keep() {
    simulate(async {
        let mut bench = Bench::service(tempfile::tempdir().unwrap(), 1, Program::new(at_once));
        let id = bench.worker.connected.worker.data_directory;
        let directory = bench.root.path().join(id.to_string());
        let obstacle = directory.join("term.new");
        fs::create_dir(&obstacle).unwrap();
        bench.tell_shuffle(1, ASK);
        pass(Duration::from_millis(1)).await;
        assert!(bench.hears_nothing_more());
        fs::remove_dir(obstacle).unwrap();
        // It is tried again without being asked.
        assert_eq!(bench.hear_partitions().await, (id, Vec::new()));
        assert_eq!(fs::read_to_string(directory.join("term")).unwrap(), "1\n");
        // An earlier life of it saw a later term.
        bench.worker.task_executor.do_send(StopWorker);
        pass(Duration::from_millis(1)).await;
        let Bench { root, worker, .. } = bench;
        drop(worker);
        fs::write(directory.join("term"), "2").unwrap();
        let mut next = Bench::service(root, 2, Program::new(at_once));
        assert_eq!(next.worker.connected.worker.data_directory, id);
        next.tell_shuffle(1, ASK);
        next.tell(1, ToTaskExecutor::JobMasterStarted);
        pass(Duration::from_millis(1)).await;
        assert!(next.hears_nothing_more());
    });
}

#[test]
fn fault_35_a_stand_alone_service_asks_about_runs_that_it_finds_later() {
    simulate(async {
        let mut bench = Bench::service(tempfile::tempdir().unwrap(), 1, Program::new(at_once));
        bench.worker.task_executor.do_send(LeaderNews::Connected);
        pass(Duration::from_secs(3)).await;
        assert!(bench.hears_nothing_more());
        let id = bench.worker.connected.worker.data_directory;
        let run = bench.root.path().join(id.to_string()).join(RUN.to_string());
        fs::create_dir(&run).unwrap();
        let held = bench.hear().await;
        assert_eq!(held, ToJobMaster::RunHeld { worker: WorkerId::from_bits(1) });
        bench.tell(1, ToTaskExecutor::RunEnded { standing: RunStanding::Ended });
        pass(Duration::from_millis(1)).await;
        assert!(!run.exists());
        pass(Duration::from_secs(3)).await;
        assert!(bench.hears_nothing_more());
    });
}
