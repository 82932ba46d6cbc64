//! What becomes of attempts that cannot read their input, one by one as they report it.

use std::net::SocketAddr;

use regrow_protocol::{DataDirectoryId, DirectoryLocation, PartitionId};

use super::{
    bench::{Bench, stages},
    *,
};
use crate::ResetReason;

/// A job whose producers are finished on worker 1, with one consumer under way.
fn reading(producers: u32) -> (Bench, ExecutionAttemptId, ExecutionAttemptId) {
    let mut bench = Bench::new(stages(&[producers, 1]));
    bench.run_worker(1, producers);
    let first = bench.submitted();
    for producer in &first {
        bench.finish(*producer);
    }
    bench.persist();
    bench.grant(1, 1);
    let consumer = bench.submitted()[0];
    (bench, first[0], consumer)
}

fn partition(producer: ExecutionAttemptId) -> PartitionId {
    PartitionId { attempt: producer, data_set: DataSetId(0) }
}

fn unreachable(producer: ExecutionAttemptId) -> TaskFailure {
    let reason = "nobody answers at 10.0.0.7:4711".to_owned();
    TaskFailure::InputUnreachable { partition: partition(producer), reason }
}

fn gone(producer: ExecutionAttemptId) -> TaskFailure {
    TaskFailure::InputLost { partition: partition(producer), reason: "no such file".to_owned() }
}

/// Vertex, charged failures and reason of each reset so far.
fn resets(bench: &Bench) -> Vec<(u32, u32, &'static str)> {
    let mut all = Vec::new();
    for event in bench.recorded() {
        if let JobEvent::ExecutionVerticesReset { resets } = event {
            all.extend(resets.iter().map(|reset| {
                (reset.subtask.vertex.0, reset.charged_failures, reset.reason.describe())
            }));
        }
    }
    all
}

fn questions(decision: &Decision) -> usize {
    let asks = |action: &&Action| matches!(action, Action::GetAllPartitionsWithMetrics { .. });
    decision.actions.iter().filter(asks).count()
}

fn report(bench: &mut Bench, attempt: ExecutionAttemptId, failure: TaskFailure) -> Decision {
    let worker = WorkerId::from_bits(1);
    bench.feed(Input::TaskFailed { worker, attempt, failure })
}

#[test]
fn fault_39_a_gone_or_damaged_partition_runs_its_producer_again_and_charges_nobody() {
    let (mut bench, producer, consumer) = reading(2);
    let decision = report(&mut bench, consumer, gone(producer));
    let expected = [(1, 0, "its input was lost"), (0, 0, "its output is damaged or gone")];
    assert_eq!((resets(&bench), questions(&decision)), (expected.to_vec(), 1));
    bench.persist();
    let again: Vec<_> = bench.submitted().iter().map(|it| (it.vertex.0, it.number)).collect();
    assert_eq!(again, [(0, 1)], "the other producer is kept");
}

#[test]
fn rule_4_7_an_unreachable_partition_is_kept_and_its_reader_waits_uncharged() {
    let (mut bench, producer, consumer) = reading(2);
    let decision = report(&mut bench, consumer, unreachable(producer));
    assert_eq!(resets(&bench), [(1, 0, "its input could not be reached")]);
    assert_eq!(questions(&decision), 1, "its holder is asked what it has");
    bench.persist();
    assert_eq!(bench.submitted(), [], "it waits");
    bench.pass(Duration::from_secs(1));
    bench.grant(1, 1);
    let next = bench.submitted()[0];
    assert_eq!((next.vertex, next.number), (JobVertexId(1), 1));
    assert_eq!(bench.last_sent().inputs[0].producers[0].partition, partition(producer));
}

#[test]
fn rule_5_15_an_unreachable_partition_that_its_holder_lacks_is_lost() {
    let (mut bench, producer, consumer) = reading(2);
    report(&mut bench, consumer, unreachable(producer));
    let (worker, data_directory) = (WorkerId::from_bits(1), DataDirectoryId::from_bits(1));
    bench.feed(Input::PartitionsReported { worker, data_directory, finished: Vec::new() });
    let lost = "its output is damaged or gone";
    assert_eq!(resets(&bench)[1..], [(0, 0, lost), (0, 0, lost)], "both, at once");
}

#[test]
fn an_unreachable_partition_runs_again_once_its_holder_is_lost() {
    let (mut bench, producer, consumer) = reading(1);
    report(&mut bench, consumer, unreachable(producer));
    bench.lose_worker(1);
    let missing = "its output is needed and was reported by nobody";
    assert_eq!(resets(&bench)[1..], [(0, 0, missing)]);
    bench.run_worker(2, 1);
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(0));
}

#[test]
fn fault_43_pauses_grow_and_the_tenth_unreachable_input_fails_the_job_with_its_cause() {
    let (mut bench, producer, mut consumer) = reading(1);
    bench.job.options.restart_delay = Duration::ZERO;
    for doubling in 0..LOSSES_MAX - 1 {
        report(&mut bench, consumer, unreachable(producer));
        bench.persist();
        bench.grant(1, 1);
        let pause = (Duration::from_millis(100) * 2_u32.pow(doubling)).min(Duration::from_secs(10));
        bench.pass(pause.saturating_sub(Duration::from_millis(1)));
        assert_eq!(bench.submitted(), [], "it waits {pause:?}");
        bench.pass(Duration::from_millis(1));
        bench.grant(1, 1);
        consumer = bench.submitted()[0];
    }
    report(&mut bench, consumer, unreachable(producer));
    bench.persist();
    let error = bench.outcome.as_ref().and_then(|outcome| outcome.error.clone()).unwrap();
    assert!(error.contains("10 times") && error.contains("10.0.0.7:4711"), "{error}");
}

#[test]
fn a_reset_for_an_unreachable_input_never_lets_the_attempt_count_again() {
    let reason = ResetReason::InputUnreachable { message: String::new() };
    assert!(reason.is_final());
    let (mut bench, producer, consumer) = reading(1);
    report(&mut bench, consumer, unreachable(producer));
    let before = bench.job.recorded_lsn();
    bench.finish(consumer);
    assert_eq!(bench.job.recorded_lsn(), before);
}

#[test]
fn a_deployment_names_where_each_directory_is_served_and_once() {
    let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let located = |id, port| DirectoryLocation {
        data_directory: DataDirectoryId::from_bits(id),
        address: at(port),
    };
    let mut bench = Bench::new(stages(&[4, 1]));
    let mut producers = Vec::new();
    for (id, port) in [(1, 1_001), (2, 1_002)] {
        bench.run_worker(id, 2);
        let running = bench.submitted();
        bench.serve_at(id, at(port), &running);
        producers.extend(running);
    }
    assert_eq!(bench.last_sent().locations, [], "a source reads of no directory");
    for (index, producer) in producers.iter().enumerate() {
        bench.finish_on(index as u128 / 2 + 1, *producer);
    }
    bench.persist();
    bench.grant(1, 1);
    let consumer = bench.submitted()[0];
    assert_eq!(bench.last_sent().locations, [located(1, 1_001), located(2, 1_002)]);
    bench.serve_at(2, at(1_003), &[]);
    report(&mut bench, consumer, unreachable(producers[3]));
    bench.persist();
    bench.pass(Duration::from_secs(1));
    bench.grant(1, 1);
    assert_eq!(bench.last_sent().locations, [located(1, 1_001), located(2, 1_003)]);
}
