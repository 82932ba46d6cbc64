use proptest::prelude::*;
use regrow_protocol::{DataDirectoryId, PartitionKeeper};

use super::*;

const fn run(id: u128) -> RunId {
    RunId::from_bits(id)
}

const fn worker(id: u128) -> WorkerId {
    WorkerId::from_bits(id)
}

fn registered(id: u128, slots: u32) -> ResourceInput {
    let data_directory = DataDirectoryId::from_bits(id);
    ResourceInput::WorkerRegistered(WorkerDescription {
        worker: worker(id),
        data_directory,
        slots,
        shuffle_address: None,
        keeper: PartitionKeeper::Worker,
    })
}

fn demand(id: u128, slots: u32) -> ResourceInput {
    ResourceInput::DemandDeclared { run: run(id), slots, avoid: Vec::new() }
}

fn returned(id: u128, of: u128, count: u32) -> ResourceInput {
    ResourceInput::SlotsReturned { run: run(id), worker: worker(of), count }
}

/// As (run, worker, count).
fn grants(actions: &[ResourceAction]) -> Vec<(u128, u128, u32)> {
    let grant = |ResourceAction::Grant { run, worker, count }: &ResourceAction| {
        (run.bits(), worker.bits(), *count)
    };
    actions.iter().map(grant).collect()
}

/// A manager with workers 1, 2, ... of these slots, and what the last of `inputs` led to.
fn after(slots: &[u32], inputs: &[ResourceInput]) -> Vec<(u128, u128, u32)> {
    let mut manager = ResourceManager::new();
    for (id, slots) in (1..).zip(slots) {
        assert_eq!(manager.handle(registered(id, *slots)), []);
    }
    let actions = inputs.iter().map(|input| manager.handle(input.clone())).last();
    grants(&actions.unwrap_or_default())
}

fn started(ids: &[u128]) -> Vec<ResourceInput> {
    ids.iter().map(|id| ResourceInput::RunStarted(run(*id))).collect()
}

#[test]
fn a_run_gets_one_slot_of_each_worker_before_a_second_of_any() {
    let inputs = [started(&[7]), vec![demand(7, 4)]].concat();
    assert_eq!(after(&[2, 2, 2], &inputs), [(7, 1, 2), (7, 2, 1), (7, 3, 1)]);
}

#[test]
fn a_run_gets_no_slots_of_workers_that_it_avoids_and_others_do() {
    let avoid = vec![worker(1), worker(2)];
    let declared = ResourceInput::DemandDeclared { run: run(7), slots: 3, avoid };
    let inputs = [started(&[7, 8]), vec![declared]].concat();
    assert_eq!(after(&[2, 1, 1], &inputs), [(7, 3, 1)]);
    assert_eq!(after(&[2, 1, 1], &[inputs, vec![demand(8, 4)]].concat()), [(8, 1, 2), (8, 2, 1)]);
}

#[test]
fn a_run_gets_no_more_than_it_wants() {
    let inputs = [started(&[7]), vec![demand(7, 1), demand(7, 1)]].concat();
    assert_eq!(after(&[2], &inputs[..2]), [(7, 1, 1)]);
    assert_eq!(after(&[2], &inputs), []);
}

#[test]
fn a_demand_is_met_when_workers_come() {
    let mut manager = ResourceManager::new();
    for input in started(&[7]).into_iter().chain([demand(7, 3)]) {
        assert_eq!(manager.handle(input), []);
    }
    assert_eq!(grants(&manager.handle(registered(1, 2))), [(7, 1, 2)]);
    assert_eq!(grants(&manager.handle(registered(2, 2))), [(7, 2, 1)]);
    assert_eq!((manager.workers(), manager.free_slots(), manager.slots_of(run(7))), (2, 1, 3));
    assert_eq!(manager.handle(registered(2, 2)), []);
}

#[test]
fn runs_share_new_slots_evenly() {
    let mut manager = ResourceManager::new();
    for input in started(&[7, 8]).into_iter().chain([demand(7, 9), demand(8, 9)]) {
        manager.handle(input);
    }
    assert_eq!(grants(&manager.handle(registered(1, 4))), [(7, 1, 2), (8, 1, 2)]);
}

#[test]
fn a_returned_slot_goes_to_the_run_that_holds_fewest() {
    let mut manager = ResourceManager::new();
    manager.handle(registered(1, 4));
    for input in started(&[7, 8]) {
        manager.handle(input);
    }
    assert_eq!(grants(&manager.handle(demand(7, 9))), [(7, 1, 4)]);
    assert_eq!(manager.handle(demand(8, 2)), []);
    assert_eq!(grants(&manager.handle(returned(7, 1, 1))), [(8, 1, 1)]);
    assert_eq!(grants(&manager.handle(returned(7, 1, 1))), [(8, 1, 1)]);
    assert_eq!(grants(&manager.handle(returned(7, 1, 1))), [(7, 1, 1)]);
}

#[test]
fn a_new_life_of_a_run_holds_nothing() {
    let again = [started(&[7]), vec![demand(7, 2)], started(&[7])].concat();
    assert_eq!(after(&[2], &again), []);
    let inputs = [again, vec![demand(7, 2)]].concat();
    assert_eq!(after(&[2], &inputs), [(7, 1, 2)]);
}

#[test]
fn the_slots_of_an_ended_run_go_to_others_and_its_late_demand_counts_no_more() {
    let mut manager = ResourceManager::new();
    manager.handle(registered(1, 2));
    let inputs = [started(&[7, 8]), vec![demand(7, 2), demand(8, 1)]].concat();
    for input in inputs {
        manager.handle(input);
    }
    assert_eq!(grants(&manager.handle(ResourceInput::RunEnded(run(7)))), [(8, 1, 1)]);
    assert_eq!(manager.handle(demand(7, 2)), []);
    assert_eq!(manager.handle(returned(7, 1, 2)), []);
    assert_eq!((manager.free_slots(), manager.slots_of(run(8))), (1, 1));
}

#[test]
fn slots_of_a_lost_worker_are_wanted_anew() {
    let mut manager = ResourceManager::new();
    manager.handle(registered(1, 2));
    for input in [started(&[7]), vec![demand(7, 2)]].concat() {
        manager.handle(input);
    }
    manager.handle(registered(2, 2));
    let lost = manager.handle(ResourceInput::WorkerLost(worker(1)));
    assert_eq!(grants(&lost), [(7, 2, 2)]);
    assert_eq!(manager.handle(returned(7, 1, 2)), []);
    assert_eq!(manager.slots_of(run(7)), 2);
}

fn inputs() -> impl Strategy<Value = Vec<ResourceInput>> {
    let (runs, workers) = (1_u128..4, 1_u128..4);
    let input = prop_oneof![
        (workers.clone(), 0_u32..4).prop_map(|(id, slots)| registered(id, slots)),
        workers.clone().prop_map(|id| ResourceInput::WorkerLost(worker(id))),
        runs.clone().prop_map(|id| ResourceInput::RunStarted(run(id))),
        (runs.clone(), 0_u32..9).prop_map(|(id, slots)| demand(id, slots)),
        (runs.clone(), workers, 0_u32..3).prop_map(|(id, of, count)| returned(id, of, count)),
        runs.prop_map(|id| ResourceInput::RunEnded(run(id))),
    ];
    proptest::collection::vec(input, 0..60)
}

proptest! {
    /// What runs believe to hold, from grants alone, is what the manager counts; that it never
    /// exceeds what is there, the manager asserts by itself.
    #[test]
    fn runs_hold_what_they_were_granted(inputs in inputs()) {
        let mut manager = ResourceManager::new();
        let mut believed: BTreeMap<(RunId, WorkerId), u32> = BTreeMap::new();
        for input in inputs {
            match input {
                ResourceInput::WorkerLost(lost) => believed.retain(|(_, of), _| *of != lost),
                ResourceInput::RunStarted(id) | ResourceInput::RunEnded(id) => {
                    believed.retain(|(run, _), _| *run != id);
                }
                ResourceInput::SlotsReturned { run, worker, count } => {
                    let held = believed.entry((run, worker)).or_default();
                    *held = held.saturating_sub(count);
                }
                ResourceInput::WorkerRegistered(_) | ResourceInput::DemandDeclared { .. } => {}
            }
            for ResourceAction::Grant { run, worker, count } in manager.handle(input) {
                *believed.entry((run, worker)).or_default() += count;
            }
            for id in (1..4).map(run) {
                let held = believed.iter().filter(|((run, _), _)| *run == id);
                prop_assert_eq!(manager.slots_of(id), held.map(|(_, count)| count).sum::<u32>());
            }
        }
    }

    #[test]
    fn no_run_is_two_slots_ahead_of_one_that_wants_more(
        slots in proptest::collection::vec(0_u32..5, 1..5),
        demands in proptest::collection::vec(0_u32..12, 1..5),
    ) {
        let mut manager = ResourceManager::new();
        for (id, slots) in (1..).zip(&demands) {
            manager.handle(ResourceInput::RunStarted(run(id)));
            manager.handle(demand(id, *slots));
        }
        for (id, slots) in (1..).zip(slots) {
            manager.handle(registered(id, slots));
        }
        let held: Vec<u32> = (1..).zip(&demands).map(|(id, _)| manager.slots_of(run(id))).collect();
        let most = held.iter().max().copied().unwrap_or(0);
        for (held, demand) in held.iter().zip(&demands) {
            prop_assert!(held == demand || most <= held + 1, "{held} of {demand}, most {most}");
        }
    }
}
