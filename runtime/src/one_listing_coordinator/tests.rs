use regrow_protocol::{JobVertexId, RunId};

use super::*;
use crate::NO_CHECKPOINT;

/// Attempt `number` of `subtask` in life `life`.
fn attempt(life: u32, subtask: u32, number: u32) -> ExecutionAttemptId {
    let (run, vertex) = (RunId::from_bits(1), JobVertexId(0));
    ExecutionAttemptId { run, vertex, subtask, epoch: Epoch::new(1, life), number }
}

fn ids(ids: &[u32]) -> Vec<SplitId> {
    ids.iter().copied().map(SplitId).collect()
}

fn apply(coordinator: &mut OneListingCoordinator, delta: Option<CoordinatorDelta>) {
    coordinator.apply_delta(&delta.expect("a change"));
}

/// Has `count` splits listed in life `life`.
fn list(coordinator: &mut OneListingCoordinator, life: u32, count: u32) {
    let split = |id| Split { id: SplitId(id), size_bytes: 10, payload: vec![7] };
    let splits = (0..count).map(split).collect();
    let delta = coordinator.splits_discovered(Epoch::new(1, life), splits);
    apply(coordinator, delta.ok());
}

fn listed(count: u32) -> OneListingCoordinator {
    let mut coordinator = OneListingCoordinator::new();
    list(&mut coordinator, 0, count);
    coordinator
}

/// Asks for a split, and records the answer.
fn ask(
    coordinator: &mut OneListingCoordinator,
    attempt: ExecutionAttemptId,
    request: u64,
) -> Option<u32> {
    let Reply { delta, split } = coordinator.handle_event(attempt, request);
    if let Some(delta) = delta {
        coordinator.apply_delta(&delta);
    }
    split.map(|split| split.id.0)
}

#[test]
fn splits_of_a_failed_attempt_go_back_while_the_listing_lives() {
    let mut coordinator = listed(2);
    assert_eq!(ask(&mut coordinator, attempt(0, 0, 0), 0), Some(0));
    let returned = coordinator.subtask_failed(attempt(0, 0, 0));
    apply(&mut coordinator, returned);
    let read: Vec<_> = (0..3).map(|n| ask(&mut coordinator, attempt(0, 1, 0), n)).collect();
    assert_eq!(read, [Some(0), Some(1), None]);
    assert!(coordinator.is_exhausted());
    assert!(coordinator.holds(attempt(0, 1, 0), &ids(&[0, 1])));
}

#[test]
fn rule_5_6_a_lost_output_forgets_the_listing_and_pins_nothing() {
    let mut coordinator = listed(1);
    ask(&mut coordinator, attempt(0, 0, 0), 0);
    let reset = coordinator.subtask_reset(0, NO_CHECKPOINT, Some(attempt(0, 0, 0)));
    assert_eq!(reset, Some(CoordinatorDelta::ListingForgotten { listing: 1 }));
    apply(&mut coordinator, reset);
    assert!(coordinator.start(), "it must be listed again");
    assert_eq!((coordinator.pinned(0), coordinator.discovered_bytes()), (None, None));
    assert_eq!(coordinator.subtask_reset(1, NO_CHECKPOINT, Some(attempt(0, 1, 0))), None);
    assert_eq!(coordinator.forget(), None);
    list(&mut coordinator, 0, 3);
    assert_eq!(coordinator.forget(), Some(CoordinatorDelta::ListingForgotten { listing: 2 }));
}

#[test]
fn rule_5_6_an_attempt_of_another_life_gets_and_claims_nothing() {
    let mut coordinator = listed(2);
    let forget = coordinator.forget();
    apply(&mut coordinator, forget);
    list(&mut coordinator, 1, 2);
    let old = attempt(0, 0, 0);
    assert_eq!(coordinator.handle_event(old, 0), Reply { delta: None, split: None });
    assert_eq!(coordinator.claim(old, &ids(&[0])), None);
    assert_eq!(coordinator.claim(old, &[]), None);
    assert!(!coordinator.holds(old, &[]), "not even that it read nothing");
    assert!(coordinator.holds(attempt(1, 0, 1), &[]));
    assert!(coordinator.claim(attempt(1, 0, 1), &ids(&[0])).is_some());
}

#[test]
fn a_forgotten_listing_holds_nothing() {
    let mut coordinator = listed(0);
    assert!(coordinator.holds(attempt(0, 0, 0), &[]) && coordinator.is_exhausted());
    let forget = coordinator.forget();
    apply(&mut coordinator, forget);
    assert!(!coordinator.holds(attempt(0, 0, 0), &[]) && !coordinator.is_exhausted());
    assert_eq!(ask(&mut coordinator, attempt(0, 0, 0), 0), None);
}

#[test]
fn what_depends_on_a_listing_is_not_older() {
    let mut coordinator = OneListingCoordinator::new();
    assert!(!coordinator.may_have_been_read_in(Epoch::new(1, 1)));
    list(&mut coordinator, 1, 1);
    let may = |life| coordinator.may_have_been_read_in(Epoch::new(1, life));
    assert_eq!([may(0), may(1), may(2)], [false, true, true]);
}

#[test]
fn splits_that_are_not_numbered_from_0_are_refused() {
    let wrong = vec![Split { id: SplitId(1), size_bytes: 0, payload: vec![] }];
    let error = OneListingCoordinator::new().splits_discovered(Epoch::new(1, 0), wrong);
    assert_eq!(error.unwrap_err(), "the source numbers split 0 as 1: splits are numbered from 0");
}

#[test]
fn the_whole_state_is_part_of_a_snapshot_of_the_job() {
    let mut coordinator = listed(3);
    ask(&mut coordinator, attempt(0, 0, 0), 0);
    let forgotten = {
        let mut forgotten = coordinator.clone();
        let delta = forgotten.forget();
        apply(&mut forgotten, delta);
        forgotten
    };
    for whole in [OneListingCoordinator::new(), coordinator, forgotten] {
        let state = whole.checkpoint_coordinator(NO_CHECKPOINT);
        let mut restored = OneListingCoordinator::new();
        restored.reset_to_checkpoint(NO_CHECKPOINT, &state).unwrap();
        assert_eq!(restored, whole);
        let error = restored.reset_to_checkpoint(5, &state).unwrap_err();
        assert_eq!(error, "a snapshot of checkpoint -1, not 5");
        assert!(restored.reset_to_checkpoint(NO_CHECKPOINT, &state[1..]).is_err());
    }
}
