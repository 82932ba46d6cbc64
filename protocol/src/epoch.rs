//! The fencing token.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Fencing token of one life of a `JobMaster`: the term of its leadership, then its life within it.
///
/// Ordered by term, then life. A receiver refuses commands of an epoch below the highest it saw.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch {
    /// Claimed once per leadership, never used twice.
    pub term: u64,
    /// 0 for the first `JobMaster` of a run within the term, one more after each loss of it.
    pub life: u32,
}

impl Epoch {
    /// Lives that fit into one term of [`Epoch::number`].
    pub const LIVES_PER_TERM: u64 = 1 << 20;

    /// Names the `life`th `JobMaster` of leadership `term`.
    pub const fn new(term: u64, life: u32) -> Self {
        Self { term, life }
    }

    /// The epoch as one growing number, for ledgers and screens.
    pub const fn number(self) -> u64 {
        self.term.saturating_mul(Self::LIVES_PER_TERM).saturating_add(self.life as u64)
    }

    /// The next life within the same term.
    #[must_use]
    pub const fn next_life(self) -> Self {
        Self { term: self.term, life: self.life.saturating_add(1) }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_term_outranks_any_life() {
        assert!(Epoch::new(2, 0) > Epoch::new(1, 900));
        assert!(Epoch::new(2, 0).number() > Epoch::new(1, 900).number());
        assert_eq!(Epoch::new(1, 0).next_life().number(), 1_048_577);
    }
}
