//! Merges sorted runs.

use regrow_protocol::TaskFailure;

use super::{entry::Entry, run_reader::RunReader};
use crate::spill::SpillFile;

/// Runs that are being merged, by a tree of losers (Knuth, volume 3, 5.4.1): each inner node keeps
/// the run that lost there, so that the next entry costs one comparison a level.
#[derive(Debug)]
pub(crate) struct Merge {
    runs: Vec<RunReader>,
    /// Losers by node; the root is node 1, and run `i` stands below node `(i + runs) / 2`.
    losers: Vec<usize>,
    winner: usize,
}

impl Merge {
    /// Begins to merge runs, of which there is at least one. Their disk space
    /// is free when the merge is gone.
    pub(super) fn open(runs: Vec<SpillFile>) -> Result<Self, TaskFailure> {
        let runs = runs.into_iter().map(RunReader::open).collect::<Result<Vec<_>, _>>()?;
        let count = runs.len();
        let mut merge = Self { runs, losers: vec![0; count], winner: 0 };
        // Winners by node; the runs themselves are nodes `count` to `2 * count`.
        let mut winners: Vec<usize> = (0..count).chain(0..count).collect();
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = merge.is_before(left, right);
            winners[node] = if left_wins { left } else { right };
            merge.losers[node] = if left_wins { right } else { left };
        }
        merge.winner = winners.get(1).copied().filter(|_| count > 1).unwrap_or(0);
        Ok(merge)
    }

    /// The least entry that was not yet passed; none when all were.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let run = &self.runs[self.winner];
        run.prefix().map(|_| run.entry())
    }

    /// Passes the current entry.
    pub(crate) fn advance(&mut self) -> Result<(), TaskFailure> {
        let mut winner = self.winner;
        self.runs[winner].advance()?;
        let mut node = usize::midpoint(winner, self.runs.len());
        while node > 0 {
            let loser = self.losers[node];
            if self.is_before(loser, winner) {
                self.losers[node] = winner;
                winner = loser;
            }
            node /= 2;
        }
        self.winner = winner;
        Ok(())
    }

    /// Whether the current entry of run `a` comes before that of run `b`; runs that have ended come
    /// last.
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (run_a, run_b) = (&self.runs[a], &self.runs[b]);
        match (run_a.prefix(), run_b.prefix()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(first), Some(second)) if first != second => first < second,
            (Some(_), Some(_)) => run_a.entry() < run_b.entry(),
        }
    }
}
