//! Which seeds a random world is run with.

use std::{
    fmt::Debug,
    panic::{RefUnwindSafe, catch_unwind},
};

/// Seeds that run where nobody asks for more.
const CASES: u64 = 100;

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("REGROW_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("REGROW_CASES").unwrap_or(CASES)).collect(),
    }
}

/// Whether so few seeds run that they need not meet every fault.
pub(crate) fn is_one() -> bool {
    seeds().len() == 1
}

/// Runs a world with each seed, and adds up what was seen in it; names the seed that fails.
#[expect(clippy::print_stderr, reason = "who runs the test with --nocapture wants the figures")]
pub(crate) fn check<F: Copy + Debug + RefUnwindSafe, S: Default + Debug>(
    faults: F,
    run: impl Fn(u64, F) -> S + RefUnwindSafe,
    add: impl Fn(&mut S, S),
) -> S {
    let mut seen = S::default();
    for seed in seeds() {
        let result = catch_unwind(|| run(seed, faults));
        assert!(result.is_ok(), "seed {seed} fails with {faults:?}");
        add(&mut seen, result.unwrap_or_default());
    }
    eprintln!("{faults:?}: {seen:?}");
    seen
}
