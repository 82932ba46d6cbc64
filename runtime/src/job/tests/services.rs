//! Stand-alone shuffle services: what workers wrote into a directory of theirs outlives the workers.

use std::time::Duration;

use regrow_protocol::{
    FinishRecord, JobVertexId, PartitionKeeper, ReportAnswer, WorkerDescription,
};

use super::{
    bench::{Bench, description, stages},
    *,
};
use crate::{PreviousLife, ResetReason};

/// Number of the directory that the service keeps, and of its first life.
const SERVICE: u128 = 9;

const DIRECTORY: DataDirectoryId = DataDirectoryId::from_bits(SERVICE);

/// A life of the service registers and tells what it holds.
fn start_service(bench: &mut Bench, life: u128, finished: Vec<FinishRecord>) {
    let worker = WorkerDescription { data_directory: DIRECTORY, ..description(life, 0) };
    bench.connect(worker, Vec::new());
    let (worker, data_directory) = (worker.worker, DIRECTORY);
    bench.feed(Input::PartitionsReported { worker, data_directory, finished });
}

/// A worker that writes into the directory of the service.
fn start_writer(bench: &mut Bench, id: u128, slots: u32) {
    let (data_directory, keeper) = (DIRECTORY, PartitionKeeper::ShuffleService);
    let worker = WorkerDescription { data_directory, keeper, ..description(id, slots) };
    bench.connect(worker, Vec::new());
    bench.grant(id, slots);
}

fn finish(bench: &mut Bench, id: u128, attempt: ExecutionAttemptId) {
    let record = Arc::new(bench.sealed(attempt));
    let worker = WorkerId::from_bits(id);
    bench.feed(Input::TaskFinished { worker, data_directory: DIRECTORY, record });
}

fn replace_service(bench: &mut Bench, life: u128) {
    let (worker, by) = (WorkerId::from_bits(SERVICE), WorkerId::from_bits(life));
    bench.feed(Input::WorkerReplaced { worker, data_directory: DIRECTORY, by });
}

/// Producers that have finished, and their consumer, which runs on worker 1.
fn consuming(producers: u32) -> (Bench, Vec<ExecutionAttemptId>, ExecutionAttemptId) {
    let mut bench = Bench::new(stages(&[producers, 1]));
    bench.persist();
    start_service(&mut bench, SERVICE, Vec::new());
    start_writer(&mut bench, 1, producers);
    bench.persist();
    let attempts = bench.submitted();
    for attempt in &attempts {
        finish(&mut bench, 1, *attempt);
    }
    bench.persist();
    let consumer = bench.submitted()[0];
    (bench, attempts, consumer)
}

fn sealed(bench: &Bench, attempts: &[ExecutionAttemptId]) -> Vec<FinishRecord> {
    attempts.iter().map(|attempt| bench.sealed(*attempt)).collect()
}

/// The vertices of which anything was reset, with the reasons.
fn resets(bench: &Bench) -> Vec<(u32, ResetReason)> {
    let mut found = Vec::new();
    for event in bench.recorded() {
        if let JobEvent::ExecutionVerticesReset { resets } = event {
            found.extend(resets.iter().map(|it| (it.subtask.vertex.0, it.reason.clone())));
        }
    }
    found
}

fn takes_back(bench: &Bench) -> bool {
    bench.recorded().iter().any(|event| matches!(event, JobEvent::ResetTakenBack { .. }))
}

#[test]
fn rule_5_3_a_used_worker_has_reported_when_its_shuffle_service_has() {
    let (mut bench, producers, consumer) = consuming(2);
    let held = sealed(&bench, &producers);
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    start_writer(&mut bench, 2, 1);
    assert!(!bench.decided(), "the service has not reported");
    start_service(&mut bench, SERVICE, held);
    assert!(bench.decided(), "nobody waits for worker 1");
    bench.persist();
    bench.persist();
    let again = bench.submitted();
    assert_eq!((again.len(), again[0].vertex), (1, consumer.vertex));
}

#[test]
fn a_lost_writer_takes_its_running_attempts_along_and_nothing_else() {
    let (mut bench, producers, consumer) = consuming(2);
    bench.lose_worker(1);
    assert_eq!(resets(&bench), [(1, ResetReason::WorkerLost)]);
    start_writer(&mut bench, 2, 2);
    bench.persist();
    let again = bench.submitted();
    assert_eq!((again.len(), again[0].vertex), (1, consumer.vertex));
    // The next life still waits for the service, although the log says that worker 1 is lost.
    let held = sealed(&bench, &producers);
    bench.lose_worker(2);
    bench.persist();
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    start_writer(&mut bench, 3, 1);
    assert!(!bench.decided());
    start_service(&mut bench, SERVICE, held);
    bench.persist();
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, consumer.vertex);
}

#[test]
fn what_a_lost_writer_did_not_live_to_tell_is_asked_of_its_service() {
    let (mut bench, mut attempts, consumer) = consuming(1);
    attempts.push(consumer);
    let held = sealed(&bench, &attempts);
    let worker = WorkerId::from_bits(1);
    let decision = bench.feed(Input::WorkerLost { worker });
    let worker = WorkerId::from_bits(SERVICE);
    assert!(decision.actions.contains(&Action::GetAllPartitionsWithMetrics { worker }));
    bench.feed(Input::PartitionsReported { worker, data_directory: DIRECTORY, finished: held });
    assert!(takes_back(&bench));
    bench.persist();
    bench.persist();
    assert!(bench.outcome.is_some(), "nothing was left to run");
}

#[test]
fn rule_4_7_what_a_lost_service_holds_is_lost_until_it_registers_again() {
    let (mut bench, producers, consumer) = consuming(1);
    let held = sealed(&bench, &producers);
    bench.fail(consumer, TaskFailure::task("it cannot read"));
    bench.lose_worker(SERVICE);
    bench.pass(Duration::from_secs(1));
    assert_eq!(resets(&bench)[1..], [(0, ResetReason::OutputMissing)]);
    bench.grant(1, 1);
    bench.persist();
    assert_eq!(bench.submitted(), [], "worker 1 has nobody who keeps what it writes");
    let status = bench.job.status();
    assert_eq!(status.waiting_for.as_deref(), Some("shuffle service"));
    start_service(&mut bench, 10, held);
    assert!(takes_back(&bench));
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, consumer.vertex);
    // It is the new process that the next life waits for.
    let held = sealed(&bench, &producers);
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    start_writer(&mut bench, 3, 1);
    assert!(!bench.decided());
    start_service(&mut bench, 11, held);
    assert!(bench.decided());
}

#[test]
fn rule_5_3_a_service_that_is_logged_as_lost_is_not_waited_for() {
    let (mut bench, _, _) = consuming(1);
    bench.lose_worker(SERVICE);
    bench.lose_worker(1);
    bench.persist();
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    start_writer(&mut bench, 2, 1);
    assert!(bench.decided(), "what it held runs again");
}

#[test]
fn rule_4_7_a_new_process_of_a_service_goes_on_with_what_the_old_one_held() {
    let (mut bench, producers, _) = consuming(2);
    let held = sealed(&bench, &producers);
    replace_service(&mut bench, 10);
    start_service(&mut bench, 10, held);
    bench.persist();
    assert_eq!((resets(&bench), bench.submitted()), (Vec::new(), Vec::new()));
    let life_10 = WorkerId::from_bits(10);
    let noted = bench
        .recorded()
        .iter()
        .any(|event| matches!(event, JobEvent::WorkerUsed { worker, .. } if *worker == life_10));
    assert!(noted, "the next life waits for it");
}

#[test]
fn rule_5_15_what_the_old_process_had_lost_is_noticed_by_the_report_of_the_new_one() {
    let (mut bench, producers, _) = consuming(2);
    let held = sealed(&bench, &producers[..1]);
    replace_service(&mut bench, 10);
    start_service(&mut bench, 10, held);
    let lost = resets(&bench);
    assert!(matches!(lost[..], [(0, ResetReason::PartitionLost { .. }), ..]), "{lost:?}");
}

#[test]
fn rule_4_6_a_superseded_output_is_released_by_who_keeps_it() {
    let (mut bench, producers, _) = consuming(1);
    let late = bench.sealed(producers[0]);
    bench.lose_worker(SERVICE);
    start_service(&mut bench, 10, Vec::new());
    bench.grant(1, 1);
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(0), "it runs again");
    let (worker, data_directory) = (WorkerId::from_bits(1), DIRECTORY);
    let record = Arc::new(late);
    let decision = bench.feed(Input::TaskFinished { worker, data_directory, record });
    let attempt = producers[0];
    let answer = ReportAnswer::Superseded;
    assert!(decision.actions.contains(&Action::AnswerReport { worker, attempt, answer }));
    let attempts = vec![attempt];
    bench.persist();
    let worker = WorkerId::from_bits(10);
    let release = Action::ReleasePartitions { worker, data_directory, attempts };
    assert!(decision.actions.contains(&release), "{:?}", decision.actions);
}
