//! The rules of recovery.md at the state machine of a job, one by one.

mod bad_workers;
mod bench;
mod former_workers;
mod lost_inputs;
mod one_listing;
mod services;

use std::{sync::Arc, time::Duration};

use regrow_protocol::{JobVertexId, ReportAnswer, TaskFailure, WorkerId};

use self::bench::{Bench, stages};
use super::*;
use crate::{JobState, KillHow, PreviousLife};

#[test]
fn rule_3_6_nothing_is_dispatched_before_its_records_are_durable() {
    let mut bench = Bench::new(stages(&[1]));
    bench.persist();
    bench.add_worker(1, 2);
    assert_eq!(bench.submitted(), [], "its WorkerUsed is not durable");
    bench.persist();
    assert_eq!(bench.submitted().len(), 1);
}

#[test]
fn rule_3_6_a_further_task_of_a_running_stage_waits_for_nothing() {
    let mut bench = Bench::new(stages(&[3]));
    bench.persist();
    bench.add_worker(1, 1);
    bench.persist();
    let first = bench.submitted()[0];
    bench.finish(first);
    assert_eq!(bench.submitted().len(), 1, "although no finish is durable");
}

#[test]
fn rule_3_6_a_consumer_waits_until_the_finishes_of_its_producers_are_durable() {
    let mut bench = Bench::new(stages(&[1, 1]));
    bench.run_worker(1, 1);
    let producer = bench.submitted()[0];
    bench.finish(producer);
    assert_eq!(bench.submitted(), []);
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(1));
}

#[test]
fn rule_3_6_a_report_is_acknowledged_once_it_is_durable() {
    let mut bench = Bench::new(stages(&[2]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    assert_eq!(bench.answers(), []);
    bench.persist();
    assert_eq!(bench.answers(), [(attempt, ReportAnswer::Accepted)]);
}

#[test]
fn a_finish_of_a_task_without_partitions_shows_once_it_is_durable() {
    let mut bench = Bench::new(stages(&[2]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    assert_eq!(bench.job.status().vertices[0].finished, 0);
    bench.persist();
    assert_eq!(bench.job.status().vertices[0].finished, 1);
}

#[test]
fn a_report_of_an_attempt_that_is_not_current_changes_nothing() {
    let mut bench = Bench::new(stages(&[1, 1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.fail(attempt, TaskFailure::task("no"));
    let before = bench.job.recorded_lsn();
    bench.finish(attempt);
    assert_eq!(bench.job.recorded_lsn(), before);
    assert_eq!(bench.answers(), [(attempt, ReportAnswer::Superseded)]);
}

#[test]
fn a_failed_task_waits_for_its_restart_and_the_fourth_failure_fails_the_job() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    for _ in 0..3 {
        let attempt = bench.submitted()[0];
        bench.fail(attempt, TaskFailure::task("boom"));
        bench.persist();
        assert_eq!(bench.submitted(), []);
        bench.pass(Duration::from_secs(1));
        bench.grant(1, 1);
    }
    let last = bench.submitted()[0];
    assert_eq!(last.number, 3);
    bench.fail(last, TaskFailure::task("boom"));
    bench.persist();
    let outcome = bench.outcome.clone().expect("the job ended");
    assert_eq!(outcome.state, JobState::Failed);
    assert!(outcome.error.is_some_and(|error| error.contains("failed 4 times; the last: boom")));
}

#[test]
fn a_cancel_is_answered_when_durable_and_ends_the_job_when_its_tasks_have_ended() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.feed(Input::CancelRequested);
    assert_eq!(bench.cancelled, [attempt]);
    bench.persist();
    assert_eq!((bench.cancel_answers, bench.outcome.is_some()), (1, false));
    bench.fail(attempt, TaskFailure::Cancelled);
    bench.persist();
    assert_eq!(bench.outcome.as_ref().map(|outcome| outcome.state), Some(JobState::Canceled));
}

#[test]
fn a_job_ends_without_a_task_that_does_not_stop() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    bench.feed(Input::CancelRequested);
    bench.pass(TASK_CANCELLATION_TIMEOUT);
    bench.persist();
    assert!(bench.outcome.is_some());
}

#[test]
fn rule_5_1_a_cancel_ends_the_wait_for_former_workers_and_starts_nothing() {
    let mut bench = Bench::new(stages(&[2]));
    bench.run_worker(1, 1);
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    assert_eq!(bench.job.status().state, JobState::Reconciling);
    bench.feed(Input::CancelRequested);
    bench.persist();
    bench.persist();
    assert_eq!(bench.submitted(), []);
    assert_eq!(bench.outcome.as_ref().map(|outcome| outcome.state), Some(JobState::Canceled));
}

#[test]
fn rule_5_3_the_wait_ends_at_its_time_out_and_the_lost_run_again() {
    let mut bench = Bench::new(stages(&[1, 1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    bench.persist();
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    bench.pass(Duration::from_secs(29));
    assert!(!bench.decided());
    bench.pass(Duration::from_secs(1));
    assert!(bench.decided());
    bench.persist();
    bench.run_worker(2, 1);
    let again = bench.submitted()[0];
    assert_eq!((again.vertex, again.number), (JobVertexId(0), 1), "its output was needed");
}

#[test]
fn rule_4_7_a_worker_that_comes_back_hears_again_what_it_missed() {
    let mut bench = Bench::new(stages(&[2]));
    bench.run_worker(1, 2);
    let [first, second] = bench.submitted()[..] else { panic!("two slots, two tasks") };
    bench.resume(1, 2, vec![first]);
    assert_eq!(bench.submitted(), [second], "its dispatch was lost with the connection");
    assert_eq!(bench.cancelled, []);
    bench.finish(first);
    bench.resume(1, 2, vec![first, second]);
    assert_eq!(bench.submitted(), []);
    assert_eq!(bench.cancelled, [first], "another attempt counts");
}

#[test]
fn rule_5_3_a_lost_worker_gets_nothing_before_it_told_what_it_brings_back() {
    let mut bench = Bench::new(stages(&[1, 1]));
    bench.run_worker(1, 1);
    let producer = bench.submitted()[0];
    let finished = vec![bench.sealed(producer)];
    bench.finish(producer);
    bench.persist();
    let consumer = bench.submitted()[0];
    bench.lose_worker(1);
    bench.reconnect(1, Vec::new());
    bench.grant(1, 1);
    bench.persist();
    assert_eq!(bench.submitted(), []);
    let (worker, data_directory) = (WorkerId::from_bits(1), DataDirectoryId::from_bits(1));
    bench.feed(Input::PartitionsReported { worker, data_directory, finished });
    bench.persist();
    let again = bench.submitted();
    assert_eq!((again.len(), again[0].vertex), (1, consumer.vertex), "only what had not finished");
}

#[test]
fn rule_4_7_a_slot_is_free_when_the_report_of_its_end_was_lost() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.feed(Input::CancelRequested);
    assert_eq!(bench.cancelled, [attempt]);
    bench.resume(1, 1, Vec::new());
    bench.persist();
    assert_eq!(bench.outcome.as_ref().map(|outcome| outcome.state), Some(JobState::Canceled));
}

#[test]
fn a_worker_that_is_about_to_stop_gets_nothing_new_and_keeps_what_it_has() {
    let mut bench = Bench::new(stages(&[3, 1]));
    bench.run_worker(1, 2);
    let [first, second] = bench.submitted()[..] else { panic!("two slots, two tasks") };
    bench.feed(Input::WorkerLeaving { worker: WorkerId::from_bits(1) });
    bench.finish(first);
    let failure = TaskFailure::Cancelled;
    bench.feed(Input::TaskFailed { worker: WorkerId::from_bits(1), attempt: second, failure });
    bench.persist();
    assert_eq!(bench.submitted(), [], "it takes nothing");
    bench.run_worker(2, 2);
    bench.persist();
    let again = bench.submitted();
    assert_eq!(again.iter().map(|attempt| attempt.subtask).collect::<Vec<_>>(), [1, 2]);
    for attempt in again {
        bench.finish_on(2, attempt);
    }
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(1), "what the first sealed counts");
}

#[test]
fn rule_5_14_three_lives_that_panic_without_progress_fail_the_job() {
    let mut bench = Bench::new(stages(&[1]));
    for _ in 0..FRUITLESS_PANICS_MAX {
        bench.persist();
        assert!(bench.outcome.is_none());
        bench.kill(PreviousLife::Panicked { message: "a defect".to_owned() });
    }
    bench.persist();
    bench.persist();
    bench.persist();
    let outcome = bench.outcome.expect("the job ended");
    assert_eq!(outcome.state, JobState::Failed);
    assert!(outcome.error.is_some_and(|error| error.contains("a defect")));
}

#[test]
fn a_planned_kill_fires_before_the_job_ends_even_at_its_last_task() {
    let mut bench = Bench::with_kills(stages(&[1]), &["100%"]);
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    assert_eq!(bench.died, Some(KillHow::Stop));
    bench.persist();
    assert!(bench.outcome.is_none());
}

#[test]
fn rule_3_7_a_log_that_stays_sick_makes_a_waiting_end_step_down_once() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    bench.feed(Input::LogDegraded { reason: "no space left".to_owned() });
    assert_eq!(bench.job.status().waiting_for.as_deref(), Some("log"));
    bench.pass(Duration::from_mins(10));
    bench.pass(Duration::from_mins(10));
    assert_eq!((bench.stepped_down, bench.outcome.is_some()), (1, false));
}

#[test]
fn rule_3_7_a_reopened_log_begins_with_a_full_snapshot() {
    let mut bench = Bench::new(stages(&[1]));
    bench.persist();
    let decision = bench.feed(Input::LogReopened);
    assert!(matches!(decision.events.as_slice(), [JobEvent::Snapshot { .. }]));
    assert_eq!(decision.flush, Flush::Now);
}

/// One indeterminate producer and one consumer, which had sealed what it read of the first attempt
/// of the producer when its worker was lost; the producer has run again since.
fn consumer_of_an_older_input() -> (Bench, ExecutionAttemptId) {
    let mut graph = stages(&[1, 1]);
    graph.vertices[0].determinacy = crate::Determinacy::Indeterminate;
    let mut bench = Bench::new(graph);
    bench.run_worker(1, 1);
    bench.add_worker(2, 0);
    let producer = bench.submitted()[0];
    bench.finish_on(2, producer);
    bench.persist();
    let consumer = bench.submitted()[0];
    bench.lose_worker(1);
    bench.lose_worker(2);
    bench.run_worker(3, 1);
    let again = bench.submitted()[0];
    assert_eq!(again.vertex, JobVertexId(0));
    bench.finish_on(3, again);
    (bench, consumer)
}

#[test]
fn rule_5_5_a_proof_counts_only_with_the_inputs_that_count() {
    let (mut bench, consumer) = consumer_of_an_older_input();
    let report = bench.sealed(consumer);
    bench.reconnect(1, vec![report]);
    bench.persist();
    assert!(bench.answers().contains(&(consumer, ReportAnswer::Superseded)));
    let successor = bench.submitted()[0];
    assert_eq!((successor.vertex, successor.number), (JobVertexId(1), 1));
}

#[test]
fn rule_5_13_a_proof_older_than_the_log_has_not_read_what_ran_after_it() {
    let mut bench = Bench::new(stages(&[1, 1]));
    bench.run_worker(1, 1);
    let producer = bench.submitted()[0];
    bench.finish(producer);
    bench.persist();
    let consumer = bench.submitted()[0];
    let report = bench.sealed(consumer);
    bench.kill_and_damage(0);
    bench.persist();
    bench.run_worker(3, 1);
    bench.pass(Duration::from_secs(30));
    bench.persist();
    bench.persist();
    let again = bench.submitted()[0];
    assert_eq!(again.vertex, JobVertexId(0));
    bench.finish_on(3, again);
    bench.reconnect(1, vec![report]);
    bench.persist();
    let answers = bench.answers();
    assert!(answers.contains(&(consumer, ReportAnswer::Superseded)), "{answers:?}");
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(1));
}

#[test]
fn rule_5_12_a_life_whose_log_lost_its_workers_waits_for_what_one_holds() {
    let mut bench = Bench::new(stages(&[2, 1]));
    bench.run_worker(1, 2);
    let attempts = bench.submitted();
    let sealed = attempts.iter().map(|attempt| bench.sealed(*attempt)).collect();
    bench.kill_and_damage(3);
    bench.persist();
    bench.reconnect(1, Vec::new());
    bench.grant(1, 2);
    bench.persist();
    assert_eq!(bench.submitted(), []);
    let (worker, data_directory) = (WorkerId::from_bits(1), DataDirectoryId::from_bits(1));
    bench.feed(Input::PartitionsReported { worker, data_directory, finished: sealed });
    bench.persist();
    bench.persist();
    let again = bench.submitted();
    assert_eq!(again.iter().map(|attempt| attempt.vertex.0).collect::<Vec<_>>(), [1]);
}

#[test]
fn rule_1_2_refused_commands_of_former_masters_are_shown() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    for _ in 0..2 {
        bench.feed(Input::CommandRefused { worker: WorkerId::from_bits(1) });
    }
    assert_eq!(bench.job.status().refused_commands, 2);
}
