//! Which runs have ended, for workers that still hold something of them.

use std::collections::{BTreeSet, VecDeque};

use regrow_protocol::RunId;

/// Ended runs that are remembered.
const ENDED_RUNS_MAX: usize = 1_000;

/// The runs that ended last.
#[derive(Default)]
pub(super) struct EndedRuns {
    runs: BTreeSet<RunId>,
    order: VecDeque<RunId>,
}

impl EndedRuns {
    pub(super) fn add(&mut self, run: RunId) {
        if !self.runs.insert(run) {
            return;
        }
        self.order.push_back(run);
        if self.order.len() > ENDED_RUNS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.runs.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, run: RunId) -> bool {
        self.runs.contains(&run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut ended = EndedRuns::default();
        for bits in 0..=ENDED_RUNS_MAX {
            ended.add(RunId::from_bits(bits as u128));
        }
        assert!(!ended.contains(RunId::from_bits(0)) && ended.contains(RunId::from_bits(1)));
        assert_eq!(ended.runs.len(), ended.order.len());
    }
}
