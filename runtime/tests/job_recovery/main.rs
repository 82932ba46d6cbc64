//! Random graphs, failures and kills around the state machine of a job: replay equals live after
//! every input, and every promise of recovery is checked by an oracle that knows nothing of it.
//!
//! `REGROW_CASES` sets how many seeds are run, `REGROW_SEED` runs one of them alone.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test panics where a promise is broken"
)]

mod contents;
#[path = "../support/graphs.rs"]
mod graphs;
#[path = "../support/rng.rs"]
mod rng;
#[path = "../support/seeds.rs"]
mod seeds;
mod workers;
mod world;

use world::{Faults, Seen, World};

fn check(faults: Faults) -> Seen {
    seeds::check(faults, |seed, faults| World::new(seed, faults).run(), Seen::add)
}

#[test]
fn an_undisturbed_job_finishes() {
    check(Faults::None);
}

#[test]
fn no_finished_task_runs_again_when_masters_die() {
    let seen = check(Faults::Masters);
    let met = seen.lives > 0 && seen.late_seals > 0 && seen.repeated > 0 && seen.found > 0;
    let met = met && seen.kept_listings > 0 && seen.void_listings > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_whole_processes_die() {
    let seen = check(Faults::Processes);
    assert!((seen.lives > 0 && seen.found > 0) || seeds::is_one(), "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_workers_die_whose_partitions_a_service_keeps() {
    let seen = check(Faults::Services);
    let met = seen.lives > 0 && seen.found > 0 && seen.lost_writers > 0 && seen.replaced > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}

#[test]
fn workers_and_partitions_may_vanish_too() {
    let seen = check(Faults::All);
    let met = seen.lives > 0 && seen.found > 0 && seen.lost_listings > 0 && seen.lost_logs > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}
