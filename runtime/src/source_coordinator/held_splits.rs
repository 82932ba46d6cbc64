//! What one attempt holds.

use regrow_protocol::SplitId;
use serde::{Deserialize, Serialize};

/// The splits of one attempt, in the order it got them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldSplits {
    splits: Vec<SplitId>,
    /// Per split, the number of the request that it answered, ascending; empty for an attempt that
    /// got all of them at once.
    requests: Vec<u64>,
    /// Whether the attempt gets no more: it was told so, or got exactly what it must read.
    closed: bool,
}

impl HeldSplits {
    /// Exactly these and no more.
    pub(super) const fn exactly(splits: Vec<SplitId>) -> Self {
        Self { splits, requests: Vec::new(), closed: true }
    }

    /// In the order the attempt got them.
    pub(super) fn splits(&self) -> &[SplitId] {
        &self.splits
    }

    /// Whether the attempt gets no more.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// What a request was answered with, if it was answered with a split.
    pub(super) fn answer(&self, request: u64) -> Option<SplitId> {
        let index = self.requests.binary_search(&request).ok()?;
        self.splits.get(index).copied()
    }

    /// Notes the answer to a request.
    pub(super) fn hand_out(&mut self, request: u64, split: SplitId) {
        let index = self.requests.partition_point(|earlier| *earlier <= request);
        self.requests.insert(index, request);
        self.splits.insert(index, split);
    }

    /// Notes that the attempt was told that nothing is left.
    pub(super) const fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the fields agree with each other; what came from a disk may not.
    pub(super) fn is_sound(&self) -> bool {
        let exact = self.requests.is_empty() && (self.closed || self.splits.is_empty());
        exact || (self.requests.len() == self.splits.len() && self.requests.is_sorted())
    }
}
