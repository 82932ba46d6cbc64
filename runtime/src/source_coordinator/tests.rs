mod histories;

use regrow_protocol::{Epoch, JobVertexId, RunId};

use super::*;
use crate::NO_CHECKPOINT;

/// Attempt `number` of `subtask`.
fn attempt(subtask: u32, number: u32) -> ExecutionAttemptId {
    let (run, vertex) = (RunId::from_bits(1), JobVertexId(0));
    ExecutionAttemptId { run, vertex, subtask, epoch: Epoch::new(1, 0), number }
}

fn splits(count: u32) -> Vec<Split> {
    let split = |id| Split { id: SplitId(id), size_bytes: 10, payload: vec![7] };
    (0..count).map(split).collect()
}

fn ids(ids: &[u32]) -> Vec<SplitId> {
    ids.iter().copied().map(SplitId).collect()
}

/// A coordinator that discovered `count` splits.
fn coordinator(count: u32) -> SourceCoordinator {
    let mut coordinator = SourceCoordinator::new();
    let delta = coordinator.splits_discovered(Epoch::new(1, 0), splits(count)).unwrap();
    coordinator.apply_delta(&delta);
    coordinator
}

/// Asks for a split, and records the answer.
fn ask(
    coordinator: &mut SourceCoordinator,
    attempt: ExecutionAttemptId,
    request: u64,
) -> Option<u32> {
    let Reply { delta, split } = coordinator.handle_event(attempt, request);
    if let Some(delta) = delta {
        coordinator.apply_delta(&delta);
    }
    split.map(|split| split.id.0)
}

fn apply(coordinator: &mut SourceCoordinator, delta: Option<CoordinatorDelta>) {
    coordinator.apply_delta(&delta.expect("a change"));
}

/// Reads splits with attempt 0 of subtask 0 until none is left.
fn read_all(coordinator: &mut SourceCoordinator) {
    let first = attempt(0, 0);
    let end = (0..100).find(|request| ask(coordinator, first, *request).is_none());
    assert!(end.is_some());
}

#[test]
fn splits_are_discovered_once_and_counted_in_bytes() {
    let mut coordinator = SourceCoordinator::new();
    assert!(coordinator.start());
    assert_eq!(coordinator.discovered_bytes(), None);
    assert!(!coordinator.is_exhausted());
    for count in [3, 9] {
        coordinator.apply_delta(&CoordinatorDelta::SplitsDiscovered { splits: splits(count) });
    }
    assert!(!coordinator.start());
    assert_eq!(coordinator.discovered_bytes(), Some(30));
}

#[test]
fn splits_that_are_not_numbered_from_0_are_refused() {
    let mut wrong = splits(3);
    wrong.remove(1);
    let error = SourceCoordinator::new().splits_discovered(Epoch::new(1, 0), wrong).unwrap_err();
    assert_eq!(error, "the source numbers split 1 as 2: splits are numbered from 0");
}

#[test]
fn a_source_without_splits_is_exhausted_at_once() {
    let mut coordinator = coordinator(0);
    assert!(coordinator.is_exhausted());
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 0), None);
    assert!(coordinator.holds(attempt(0, 0), &[]));
}

#[test]
fn splits_go_out_in_order_one_per_request() {
    let mut coordinator = coordinator(3);
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 0), Some(0));
    assert_eq!(ask(&mut coordinator, attempt(1, 0), 0), Some(1));
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 1), Some(2));
    assert!(coordinator.is_exhausted());
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 2), None);
    assert!(coordinator.holds(attempt(0, 0), &ids(&[0, 2])));
    assert!(!coordinator.holds(attempt(0, 0), &ids(&[0])));
    assert!(coordinator.holds(attempt(1, 0), &ids(&[1])));
}

#[test]
fn a_repeated_request_gets_the_same_split_and_changes_nothing() {
    let mut coordinator = coordinator(3);
    ask(&mut coordinator, attempt(0, 0), 0);
    ask(&mut coordinator, attempt(0, 0), 1);
    let reply = coordinator.handle_event(attempt(0, 0), 0);
    assert_eq!(reply, Reply { delta: None, split: splits(1).pop() });
}

#[test]
fn who_was_told_the_end_gets_no_split_that_comes_back() {
    let mut coordinator = coordinator(1);
    ask(&mut coordinator, attempt(0, 0), 0);
    assert_eq!(ask(&mut coordinator, attempt(1, 0), 0), None);
    let returned = coordinator.subtask_failed(attempt(0, 0));
    apply(&mut coordinator, returned);
    for request in [0, 1] {
        let reply = coordinator.handle_event(attempt(1, 0), request);
        assert_eq!(reply, Reply { delta: None, split: None });
    }
    assert!(coordinator.holds(attempt(1, 0), &[]));
    assert_eq!(ask(&mut coordinator, attempt(0, 1), 0), Some(0));
}

#[test]
fn splits_of_a_failed_attempt_go_out_again_lowest_first() {
    let mut coordinator = coordinator(4);
    for request in 0..2 {
        ask(&mut coordinator, attempt(0, 0), request);
    }
    ask(&mut coordinator, attempt(1, 0), 0);
    let returned = coordinator.subtask_failed(attempt(0, 0));
    apply(&mut coordinator, returned);
    assert!(!coordinator.holds(attempt(0, 0), &ids(&[0, 1])));
    let next: Vec<_> = (1..5).map(|n| ask(&mut coordinator, attempt(1, 0), n)).collect();
    assert_eq!(next, [Some(0), Some(1), Some(3), None]);
}

#[test]
fn an_attempt_that_holds_nothing_changes_nothing_when_it_fails() {
    assert_eq!(coordinator(2).subtask_failed(attempt(0, 0)), None);
    assert_eq!(coordinator(2).subtask_reset(0, NO_CHECKPOINT, None), None);
    assert_eq!(coordinator(2).subtask_ready(attempt(0, 0)), None);
}

#[test]
fn rule_5_6_splits_of_a_lost_finished_attempt_stay_pinned() {
    let mut coordinator = coordinator(2);
    read_all(&mut coordinator);
    let reset = coordinator.subtask_reset(0, NO_CHECKPOINT, Some(attempt(0, 0)));
    apply(&mut coordinator, reset);
    assert_eq!(coordinator.pinned(0), Some(splits(2)));
    assert!(coordinator.is_exhausted());
    assert_eq!(ask(&mut coordinator, attempt(1, 0), 0), None);

    for number in [1, 2] {
        let ready = coordinator.subtask_ready(attempt(0, number));
        apply(&mut coordinator, ready);
        assert!(coordinator.holds(attempt(0, number), &ids(&[0, 1])));
        let failed = coordinator.subtask_failed(attempt(0, number));
        apply(&mut coordinator, failed);
    }
    assert_eq!(coordinator.pinned(0), Some(splits(2)));
    assert!(!coordinator.holds(attempt(0, 3), &[]));
}

#[test]
fn rule_5_6_who_had_read_nothing_reads_nothing_again() {
    let mut coordinator = coordinator(1);
    let reset = coordinator.subtask_reset(1, NO_CHECKPOINT, Some(attempt(1, 0)));
    apply(&mut coordinator, reset);
    assert_eq!(coordinator.pinned(1), Some(vec![]));
    assert_eq!(ask(&mut coordinator, attempt(1, 1), 0), None);
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 0), Some(0));
}

#[test]
fn rule_5_6_a_reset_returns_what_unaccepted_attempts_hold() {
    let mut coordinator = coordinator(3);
    ask(&mut coordinator, attempt(0, 0), 0);
    ask(&mut coordinator, attempt(0, 1), 0);
    let reset = coordinator.subtask_reset(0, NO_CHECKPOINT, Some(attempt(0, 1)));
    apply(&mut coordinator, reset);
    assert_eq!(coordinator.pinned(0), Some(vec![splits(2).remove(1)]));
    assert_eq!(ask(&mut coordinator, attempt(1, 0), 0), Some(0));
}

#[test]
fn rule_5_5_a_claim_counts_iff_no_other_attempt_holds_the_splits() {
    let mut coordinator = coordinator(4);
    ask(&mut coordinator, attempt(0, 0), 0);
    assert_eq!(coordinator.claim(attempt(1, 0), &ids(&[0])), None);
    assert_eq!(coordinator.claim(attempt(0, 1), &ids(&[0])), None);
    assert_eq!(coordinator.claim(attempt(1, 0), &ids(&[4])), None);
    assert_eq!(coordinator.claim(attempt(1, 0), &ids(&[2, 2])), None);
    assert_eq!(SourceCoordinator::new().claim(attempt(1, 0), &[]), None);

    let claim = coordinator.claim(attempt(0, 0), &ids(&[0, 3]));
    apply(&mut coordinator, claim);
    assert!(coordinator.holds(attempt(0, 0), &ids(&[0, 3])));
    assert_eq!(ask(&mut coordinator, attempt(0, 0), 7), None);
    let left: Vec<_> = (0..3).map(|n| ask(&mut coordinator, attempt(1, 0), n)).collect();
    assert_eq!(left, [Some(1), Some(2), None]);
}

#[test]
fn what_a_claim_leaves_out_goes_back() {
    let mut coordinator = coordinator(2);
    read_all(&mut coordinator);
    let claim = coordinator.claim(attempt(0, 0), &ids(&[1]));
    apply(&mut coordinator, claim);
    assert_eq!(ask(&mut coordinator, attempt(1, 0), 0), Some(0));
}

#[test]
fn a_claim_on_pinned_splits_is_for_all_of_them_by_their_subtask() {
    let mut coordinator = coordinator(2);
    read_all(&mut coordinator);
    let reset = coordinator.subtask_reset(0, NO_CHECKPOINT, Some(attempt(0, 0)));
    apply(&mut coordinator, reset);
    assert_eq!(coordinator.claim(attempt(1, 0), &ids(&[0, 1])), None);
    assert_eq!(coordinator.claim(attempt(0, 1), &ids(&[0])), None);
    let claim = coordinator.claim(attempt(0, 1), &ids(&[0, 1]));
    apply(&mut coordinator, claim);
    assert_eq!(coordinator.claim(attempt(0, 2), &ids(&[0, 1])), None);
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let mut twice = coordinator(2);
    ask(&mut twice, attempt(0, 0), 0);
    let mut other = SubtaskSplits::default();
    other.attempts.insert(attempt(1, 0), HeldSplits::exactly(ids(&[0])));
    twice.subtasks.insert(1, other);
    let state = twice.checkpoint_coordinator(NO_CHECKPOINT);
    let mut restored = SourceCoordinator::new();
    let error = restored.reset_to_checkpoint(NO_CHECKPOINT, &state).unwrap_err();
    assert_eq!(error, "split 0 of subtask 1 is not known or has another owner");
    assert_eq!(restored, SourceCoordinator::new());
}

#[test]
fn a_snapshot_of_another_checkpoint_or_of_something_else_is_refused() {
    let mut coordinator = coordinator(2);
    let state = coordinator.checkpoint_coordinator(5);
    let error = coordinator.reset_to_checkpoint(NO_CHECKPOINT, &state).unwrap_err();
    assert_eq!(error, "a snapshot of checkpoint 5, not -1");
    assert!(coordinator.reset_to_checkpoint(NO_CHECKPOINT, &state[1..]).is_err());
}

#[test]
fn a_hundred_thousand_splits_go_to_ten_thousand_attempts() {
    let mut source = coordinator(100_000);
    for request in 0..10 {
        for subtask in 0..10_000 {
            assert!(ask(&mut source, attempt(subtask, 0), request).is_some());
        }
    }
    assert!(source.is_exhausted());
    let state = source.checkpoint_coordinator(NO_CHECKPOINT);
    let mut restored = SourceCoordinator::new();
    restored.reset_to_checkpoint(NO_CHECKPOINT, &state).unwrap();
    assert_eq!(restored, source);
    for subtask in 0..10_000 {
        let returned = source.subtask_failed(attempt(subtask, 0));
        apply(&mut source, returned);
    }
    assert_eq!(source, coordinator(100_000));
}
