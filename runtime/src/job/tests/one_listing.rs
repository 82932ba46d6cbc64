//! The last sentence of rule 5.6: sources whose splits are good for one listing only.

use regrow_protocol::{PartitionId, SplitId};

use super::*;
use crate::{CoordinatorDelta, CoordinatorKind, RecoveryDecision, ResetReason, VertexReset};

const SOURCE: JobVertexId = JobVertexId(0);

/// A source of two tasks, and who reads it; two splits are listed, and a worker with two slots runs.
fn running() -> (Bench, ExecutionAttemptId, ExecutionAttemptId) {
    let mut bench = Bench::new(graph());
    bench.persist();
    bench.list(SOURCE, 2);
    bench.run_worker(1, 2);
    let both = bench.submitted();
    (bench, both[0], both[1])
}

fn graph() -> JobGraph {
    let mut graph = stages(&[2, 1]);
    graph.vertices[0].coordinator = Some(CoordinatorKind::OneListingSource);
    graph
}

/// Each attempt reads a split to the end, and finishes on worker 1.
fn finish_both(bench: &mut Bench, first: ExecutionAttemptId, second: ExecutionAttemptId) {
    bench.ask(1, first, 0..1);
    bench.ask(1, second, 0..2);
    bench.ask(1, first, 1..2);
    bench.finish(first);
    bench.finish(second);
}

/// Each task on a worker of its own, which has read a split to the end.
fn on_two_workers() -> (Bench, ExecutionAttemptId, ExecutionAttemptId) {
    let mut bench = Bench::new(graph());
    bench.persist();
    bench.list(SOURCE, 2);
    bench.run_worker(1, 1);
    bench.run_worker(2, 1);
    let (first, second) = (bench.sent(0), bench.sent(1));
    bench.ask(1, first, 0..1);
    bench.ask(2, second, 0..2);
    bench.ask(1, first, 1..2);
    (bench, first, second)
}

/// Per subtask of the source, why it was reset and its generation.
fn resets(resets: &[VertexReset]) -> Vec<(u32, &'static str, u32)> {
    let of_source = resets.iter().filter(|reset| reset.subtask.vertex == SOURCE);
    let line =
        |reset: &VertexReset| (reset.subtask.subtask, reset.reason.describe(), reset.generation);
    of_source.map(line).collect()
}

fn live_resets(bench: &Bench) -> Vec<(u32, &'static str, u32)> {
    let mut all = Vec::new();
    for event in bench.recorded() {
        if let JobEvent::ExecutionVerticesReset { resets: these } = event {
            all.extend(resets(these));
        }
    }
    all
}

fn decision(bench: &Bench) -> RecoveryDecision {
    for event in bench.recorded() {
        if let JobEvent::RecoveryDecided(decision) = event {
            return (**decision).clone();
        }
    }
    panic!("the life has not decided");
}

#[test]
fn rule_5_6_in_one_life_splits_of_a_failed_attempt_go_back() {
    let (mut bench, first, second) = running();
    bench.ask(1, first, 0..1);
    bench.fail(first, TaskFailure::Cancelled);
    bench.ask(1, second, 0..3);
    let all = [SplitId(0), SplitId(1)];
    bench.persist();
    assert_eq!(bench.sealed(second).splits, all);
    assert_eq!(bench.discovering, [SOURCE], "listed once");
}

#[test]
fn rule_5_6_an_incomplete_source_is_listed_again_by_the_next_master() {
    let (mut bench, first, second) = running();
    bench.ask(1, first, 0..3);
    bench.ask(1, second, 0..1);
    bench.finish(first);
    bench.kill(PreviousLife::Unknown);
    bench.discovering.clear();
    bench.persist();
    let file = bench.sealed(first);
    bench.add_worker_with(1, 2, vec![file]);
    let RecoveryDecision { resets: all, deltas, .. } = decision(&bench);
    assert_eq!(resets(&all), [(0, "its source is listed again", 1)]);
    assert_eq!(deltas.last().unwrap().2, CoordinatorDelta::ListingForgotten { listing: 1 });
    bench.persist();
    assert_eq!((bench.submitted(), bench.discovering.len()), (vec![], 1));

    bench.list(SOURCE, 1);
    bench.grant(1, 2);
    assert_eq!(bench.submitted(), [], "the listing is not durable");
    bench.persist();
    let again = bench.submitted();
    assert_eq!(again.iter().map(|it| it.subtask).collect::<Vec<_>>(), [0, 1]);
    bench.ask(1, again[0], 0..2);
    assert_eq!(bench.sealed(again[0]).splits, [SplitId(0)], "of the new listing");
}

#[test]
fn rule_5_6_a_source_whose_finishes_files_prove_is_completely_finished_and_kept() {
    let (mut bench, first, second) = running();
    finish_both(&mut bench, first, second);
    // The plan of the consumer stands in the log already: only the second finish is lost.
    bench.lose_tail(1);
    bench.kill(PreviousLife::Unknown);
    bench.discovering.clear();
    bench.persist();
    let files = [first, second].map(|attempt| bench.sealed(attempt)).to_vec();
    bench.add_worker_with(1, 2, files);
    let RecoveryDecision { found, resets, deltas, .. } = decision(&bench);
    assert_eq!((found.len(), resets, deltas), (1, vec![], vec![]));
    bench.persist();
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(1));
    assert_eq!(bench.discovering, []);
}

#[test]
fn rule_5_6_a_kept_source_runs_again_as_a_whole_once_one_output_is_lost() {
    let (mut bench, first, second) = running();
    finish_both(&mut bench, first, second);
    bench.kill(PreviousLife::Unknown);
    bench.discovering.clear();
    bench.persist();
    let files = [first, second].map(|attempt| bench.sealed(attempt)).to_vec();
    bench.add_worker_with(1, 2, files);
    bench.persist();
    bench.persist();
    let consumer = bench.submitted()[0];
    let partition = PartitionId { attempt: second, data_set: DataSetId(0) };
    let reason = "damaged".to_owned();
    bench.fail(consumer, TaskFailure::InputLost { partition, reason });
    let expected = [(0, "its source is listed again", 1), (1, "its output is damaged or gone", 1)];
    assert_eq!(live_resets(&bench), expected);
    assert_eq!(bench.discovering, [SOURCE]);
}

#[test]
fn rule_5_6_what_an_older_listing_says_changes_nothing() {
    let (mut bench, first, second) = on_two_workers();
    bench.finish(first);
    bench.lose_worker(1);
    assert_eq!(bench.cancelled, [second], "it read of the listing that is forgotten");
    bench.list(SOURCE, 2);
    let before = bench.job.recorded_lsn();
    bench.ask(2, second, 0..3);
    bench.finish_on(2, second);
    assert_eq!(bench.job.recorded_lsn(), before);
    assert_eq!(bench.answers(), [(second, ReportAnswer::Superseded)]);
    let file = bench.sealed(first);
    bench.add_worker_with(1, 0, vec![file]);
    assert_eq!(bench.job.recorded_lsn(), before);
}

#[test]
fn rule_5_6_an_attempt_that_was_lost_before_its_listing_was_counts_no_more() {
    let (mut bench, first, second) = on_two_workers();
    bench.lose_worker(2);
    bench.finish(first);
    bench.lose_worker(1);
    bench.list(SOURCE, 2);
    let before = bench.job.recorded_lsn();
    let file = bench.sealed(second);
    bench.add_worker_with(2, 0, vec![file]);
    assert_eq!(bench.job.recorded_lsn(), before);
}

#[test]
fn rule_5_6_a_lost_output_that_nobody_needs_leaves_the_listing_alone() {
    let (mut bench, first, second) = running();
    finish_both(&mut bench, first, second);
    bench.persist();
    let consumer = bench.submitted()[0];
    bench.finish(consumer);
    bench.lose_worker(1);
    assert_eq!(live_resets(&bench), []);
    assert!(matches!(bench.discovering.as_slice(), [SOURCE]), "listed once");
}

#[test]
fn rule_5_6_nothing_is_kept_of_a_listing_whose_log_is_gone() {
    let (mut bench, first, second) = running();
    finish_both(&mut bench, first, second);
    bench.persist();
    let consumer = bench.submitted()[0];
    bench.finish(consumer);
    let all = bench.recorded().len() + 1;
    bench.lose_tail(all);
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    let files = [first, second, consumer].map(|attempt| bench.sealed(attempt)).to_vec();
    bench.add_worker_with(1, 2, files);
    bench.persist();
    bench.list(SOURCE, 2);
    bench.grant(1, 2);
    bench.persist();
    let again = bench.submitted();
    assert_eq!(again.len(), 2, "the source reads what it is now");
    finish_both(&mut bench, again[0], again[1]);
    bench.persist();
    assert_eq!(bench.submitted()[0].vertex, JobVertexId(1), "what read an older one is void");
}

#[test]
fn a_reason_that_forgets_a_listing_is_final_and_charges_nobody() {
    let reason = ResetReason::ListingForgotten;
    assert!(reason.is_final());
    assert_eq!((reason.charged_failures(), reason.losses()), (0, 0));
}
