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
#[path = "../job_recovery/graphs.rs"]
mod graphs;
mod network;
mod node;
#[path = "../job_recovery/rng.rs"]
mod rng;
mod world;

use world::{Faults, Seen, World};

/// Seeds that run where nobody asks for more.
const CASES: u64 = 100;

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("REGROW_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("REGROW_CASES").unwrap_or(CASES)).collect(),
    }
}

fn check(faults: Faults) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds() {
        let result = std::panic::catch_unwind(|| World::new(seed, faults).run());
        assert!(result.is_ok(), "seed {seed} fails with {faults:?}");
        seen.add(result.unwrap_or_default());
    }
    tell(faults, seen);
    seen
}

#[expect(clippy::print_stderr, reason = "who runs the test with --nocapture wants the figures")]
fn tell(faults: Faults, seen: Seen) {
    eprintln!("{faults:?}: {seen:?}");
}

#[test]
fn rule_4_7_breaks_within_the_grace_lose_nothing_and_repeat_nothing() {
    let seen = check(Faults::Flaps);
    let met = seen.lost_up > 0 && seen.lost_down > 0 && seen.unnoticed > 0 && seen.cancelled > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_masters_die_behind_a_flapping_network() {
    let seen = check(Faults::Masters);
    let met = seen.lost_up > 0 && seen.lives > 0 && seen.cancelled > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}

#[test]
fn p2_cuts_of_any_length_end_in_a_result_that_counts_all_once() {
    let seen = check(Faults::All);
    let met = seen.given_up > 0 && seen.lives > 0 && seen.unnoticed > 0 && seen.cancelled > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}
