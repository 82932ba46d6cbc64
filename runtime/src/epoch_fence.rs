//! What a worker remembers of epochs, so that it obeys one master.

use std::collections::{BTreeMap, VecDeque};

use regrow_protocol::{Epoch, RunId};

/// Runs that are over here and whose epoch is still remembered, against late commands.
const RETIRED_RUNS_MAX: usize = 1_024;

/// Refuses commands of older epochs: it keeps the highest term over all runs and the highest epoch
/// of each, and raises them before anything is answered.
#[derive(Debug, Default)]
pub(crate) struct EpochFence {
    term: u64,
    runs: BTreeMap<RunId, Mark>,
    /// Oldest first; each is in `runs`.
    retired: VecDeque<RunId>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    epoch: Epoch,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Live,
    Forgotten,
    Ended,
}

/// What a command of an epoch may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Nothing: a higher epoch was seen.
    Refused,
    /// Nothing new: the run ended.
    Ended,
    /// All; it is of the epoch that was seen last.
    Current,
    /// All, and the epochs before it are over.
    Raised,
}

impl EpochFence {
    /// A fence that has seen `term`, and refuses the ones before it.
    pub(crate) fn above(term: u64) -> Self {
        Self { term, ..Self::default() }
    }

    /// The highest term that was seen.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Judges a command and notes its epoch.
    pub(crate) fn admit(&mut self, run: RunId, epoch: Epoch) -> Admission {
        let seen = self.runs.get(&run).copied();
        if epoch.term < self.term || seen.is_some_and(|mark| epoch < mark.epoch) {
            return Admission::Refused;
        }
        self.term = epoch.term;
        match seen.map(|mark| mark.standing) {
            Some(Standing::Ended) => return Admission::Ended,
            Some(Standing::Forgotten) => self.retired.retain(|retired| *retired != run),
            Some(Standing::Live) | None => {}
        }
        self.runs.insert(run, Mark { epoch, standing: Standing::Live });
        match seen {
            Some(mark) if mark.epoch == epoch => Admission::Current,
            Some(_) | None => Admission::Raised,
        }
    }

    /// The highest epoch seen of a run; the lowest of all for an unknown one.
    pub(crate) fn epoch(&self, run: RunId) -> Epoch {
        self.runs.get(&run).map(|mark| mark.epoch).unwrap_or_default()
    }

    /// Nothing of the run is left here, but it may come back.
    pub(crate) fn forget(&mut self, run: RunId) {
        self.retire(run, Standing::Forgotten);
    }

    /// The run is over for good.
    pub(crate) fn end(&mut self, run: RunId) {
        self.retire(run, Standing::Ended);
    }

    fn retire(&mut self, run: RunId, standing: Standing) {
        let before = self.runs.get(&run).copied();
        match before.map(|mark| mark.standing) {
            Some(Standing::Ended) => return,
            Some(Standing::Live) | None => self.retired.push_back(run),
            Some(Standing::Forgotten) => {}
        }
        let epoch = before.map(|mark| mark.epoch).unwrap_or_default();
        self.runs.insert(run, Mark { epoch, standing });
        if self.retired.len() > RETIRED_RUNS_MAX
            && let Some(oldest) = self.retired.pop_front()
        {
            self.runs.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(1);
    const OTHER: RunId = RunId::from_bits(2);

    #[test]
    fn rule_1_2_an_older_life_or_an_older_term_is_refused() {
        let mut fence = EpochFence::default();
        assert_eq!(fence.admit(RUN, Epoch::new(2, 1)), Admission::Raised);
        assert_eq!(fence.admit(RUN, Epoch::new(2, 1)), Admission::Current);
        assert_eq!(fence.admit(RUN, Epoch::new(2, 0)), Admission::Refused);
        assert_eq!(fence.admit(OTHER, Epoch::new(1, 9)), Admission::Refused, "the term is over");
        assert_eq!(fence.admit(OTHER, Epoch::new(2, 0)), Admission::Raised);
        assert_eq!((fence.term(), fence.epoch(RUN)), (2, Epoch::new(2, 1)));
    }

    #[test]
    fn an_ended_run_stays_ended_and_a_forgotten_one_keeps_its_epoch() {
        let mut fence = EpochFence::default();
        fence.admit(RUN, Epoch::new(1, 3));
        fence.forget(RUN);
        assert_eq!(fence.admit(RUN, Epoch::new(1, 2)), Admission::Refused);
        assert_eq!(fence.admit(RUN, Epoch::new(1, 3)), Admission::Current);
        fence.end(RUN);
        assert_eq!(fence.admit(RUN, Epoch::new(1, 4)), Admission::Ended);
    }

    #[test]
    fn the_memory_of_past_runs_is_bounded() {
        let mut fence = EpochFence::default();
        for run in 0..2 * RETIRED_RUNS_MAX as u128 {
            fence.admit(RunId::from_bits(run), Epoch::new(1, 0));
            fence.end(RunId::from_bits(run));
        }
        assert_eq!((fence.runs.len(), fence.retired.len()), (RETIRED_RUNS_MAX, RETIRED_RUNS_MAX));
    }
}
