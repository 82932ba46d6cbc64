//! Workers and masters as they are, and a network between them that loses what is under way whenever
//! a connection breaks, in either direction, unnoticed for a while by either end.
//!
//! Within one connection order holds. `REGROW_CASES` sets how many seeds are run, `REGROW_SEED` runs
//! one of them alone.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test panics where a promise is broken"
)]

#[expect(dead_code, reason = "shared with another test")]
#[path = "../support/graphs.rs"]
mod graphs;
mod network;
mod node;
#[path = "../support/rng.rs"]
mod rng;
#[path = "../support/seeds.rs"]
mod seeds;
mod world;

use world::{Faults, Seen, World};

fn check(faults: Faults) -> Seen {
    seeds::check(faults, |seed, faults| World::new(seed, faults).run(), Seen::add)
}

#[test]
fn rule_4_7_breaks_within_the_grace_lose_nothing_and_repeat_nothing() {
    let seen = check(Faults::Flaps);
    let met = seen.lost_up > 0 && seen.lost_down > 0 && seen.unnoticed > 0 && seen.cancelled > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_masters_die_behind_a_flapping_network() {
    let seen = check(Faults::Masters);
    let met = seen.lost_up > 0 && seen.lives > 0 && seen.cancelled > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}

#[test]
fn p2_cuts_of_any_length_end_in_a_result_that_counts_all_once() {
    let seen = check(Faults::All);
    let met = seen.given_up > 0 && seen.lives > 0 && seen.unnoticed > 0 && seen.cancelled > 0;
    assert!(met || seeds::is_one(), "{seen:?}");
}
