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
mod graphs;
mod rng;
mod workers;
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
fn an_undisturbed_job_finishes() {
    check(Faults::None);
}

#[test]
fn no_finished_task_runs_again_when_masters_die() {
    let seen = check(Faults::Masters);
    let met = seen.lives > 0 && seen.late_seals > 0 && seen.repeated > 0 && seen.found > 0;
    let met = met && seen.kept_listings > 0 && seen.void_listings > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_whole_processes_die() {
    let seen = check(Faults::Processes);
    assert!((seen.lives > 0 && seen.found > 0) || seeds().len() == 1, "{seen:?}");
}

#[test]
fn no_finished_task_runs_again_when_workers_die_whose_partitions_a_service_keeps() {
    let seen = check(Faults::Services);
    let met = seen.lives > 0 && seen.found > 0 && seen.lost_writers > 0 && seen.replaced > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}

#[test]
fn workers_and_partitions_may_vanish_too() {
    let seen = check(Faults::All);
    let met = seen.lives > 0 && seen.found > 0 && seen.lost_listings > 0 && seen.lost_logs > 0;
    assert!(met || seeds().len() == 1, "{seen:?}");
}
