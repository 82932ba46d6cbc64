//! How long a reader tries to reach its server.

use std::time::{Duration, Instant};

/// Wait before the second try; doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Longest wait between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Counts tries without progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    tries: u32,
}

impl Outage {
    /// There was progress.
    pub(super) fn over(&mut self) {
        *self = Self::default();
    }

    /// A try failed: how long to wait before the next, or `None` when the outage has lasted for
    /// `grace`. There is a second try at once in any case, since a server closes connections on
    /// which nothing was asked for long. `jitter` is from 0 to `u32::MAX`.
    pub(super) fn pause(&mut self, now: Instant, grace: Duration, jitter: u32) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let tries = self.tries;
        self.tries = tries.saturating_add(1);
        let Some(doublings) = tries.checked_sub(1) else { return Some(Duration::ZERO) };
        let left = grace.checked_sub(now.duration_since(since)).filter(|left| !left.is_zero())?;
        let full = PAUSE_MIN.saturating_mul(1 << doublings.min(16)).min(PAUSE_MAX);
        let pause =
            full.saturating_sub(full.mul_f64(f64::from(jitter) / f64::from(u32::MAX) / 2.0));
        Some(pause.min(left))
    }

    /// How long it has lasted.
    pub(super) fn lasted(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_cap_and_end_with_the_grace() {
        let grace = Duration::from_secs(5);
        let mut now = Instant::now();
        let (mut outage, mut pauses) = (Outage::default(), Vec::new());
        while let Some(pause) = outage.pause(now, grace, 0) {
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses[..7], [0, 20, 40, 80, 160, 320, 500]);
        assert_eq!(pauses.iter().sum::<u128>(), 5_000);
        assert_eq!(outage.lasted(now), grace);
        outage.over();
        assert_eq!(outage.pause(now, grace, 0), Some(Duration::ZERO));
        assert_eq!(outage.pause(now, grace, u32::MAX), Some(PAUSE_MIN / 2));
    }

    #[test]
    fn fault_43_without_a_grace_there_is_one_more_try() {
        let (now, mut outage) = (Instant::now(), Outage::default());
        assert_eq!(outage.pause(now, Duration::ZERO, 0), Some(Duration::ZERO));
        assert_eq!(outage.pause(now, Duration::ZERO, 0), None);
    }
}
