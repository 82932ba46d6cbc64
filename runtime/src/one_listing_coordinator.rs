//! Hands out the splits of a source that must be listed again by each master.

use regrow_protocol::{Epoch, ExecutionAttemptId, Split, SplitId, decode, encode};
use serde::{Deserialize, Serialize};

use crate::{CoordinatorDelta, OperatorCoordinator, Reply, SourceCoordinator};

/// The coordinator of a source whose splits are good only for the listing that named them (signed
/// links, cursors of a query), and that only for the master that made it.
///
/// While its listing lives it works as a [`SourceCoordinator`]. Nothing is pinned, and no later
/// master goes on with a listing: it is forgotten as a whole, and made anew.
///
/// Invariant: an attempt holds splits of the present listing only, and is of its epoch. Attempts of
/// an older listing of the same epoch are refused by the resets that go with the forgetting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OneListingCoordinator {
    /// How many listings were made so far.
    listings: u32,
    /// The newest, until it is forgotten.
    listing: Option<Listing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Listing {
    /// The life that made it: no attempt of another one can have read its splits.
    epoch: Epoch,
    splits: SourceCoordinator,
}

/// The stored form. Only grows, as all that is stored.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    checkpoint: i64,
    listings: u32,
    listing: Option<ListingSnapshot>,
}

#[derive(Serialize, Deserialize)]
struct ListingSnapshot {
    epoch: Epoch,
    #[serde(with = "serde_bytes")]
    splits: Vec<u8>,
}

impl OneListingCoordinator {
    /// A coordinator that was never started.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The splits that `attempt` can have read of.
    fn splits_for(&self, attempt: ExecutionAttemptId) -> Option<&SourceCoordinator> {
        let listing = self.listing.as_ref()?;
        (listing.epoch == attempt.epoch).then_some(&listing.splits)
    }

    fn make_listing(&mut self, number: u32, epoch: Epoch, splits: &[Split]) {
        // Made twice, the first one counts: splits of it may be out.
        if self.listing.is_some() {
            return;
        }
        let mut coordinator = SourceCoordinator::new();
        let splits = splits.to_vec();
        coordinator.apply_delta(&CoordinatorDelta::SplitsDiscovered { splits });
        self.listings = number;
        self.listing = Some(Listing { epoch, splits: coordinator });
    }
}

impl OperatorCoordinator for OneListingCoordinator {
    fn start(&self) -> bool {
        self.listing.is_none()
    }

    fn splits_discovered(
        &self,
        epoch: Epoch,
        splits: Vec<Split>,
    ) -> Result<CoordinatorDelta, String> {
        SourceCoordinator::check(&splits)?;
        let listing = self.listings.saturating_add(1);
        Ok(CoordinatorDelta::ListingMade { listing, epoch, splits })
    }

    fn handle_event(&self, attempt: ExecutionAttemptId, request: u64) -> Reply {
        match self.splits_for(attempt) {
            Some(splits) => splits.handle_event(attempt, request),
            // Of an older listing: it gets nothing more, and what it says will not count.
            None => Reply { delta: None, split: None },
        }
    }

    fn subtask_ready(&self, _attempt: ExecutionAttemptId) -> Option<CoordinatorDelta> {
        None
    }

    fn subtask_failed(&self, attempt: ExecutionAttemptId) -> Option<CoordinatorDelta> {
        self.splits_for(attempt)?.subtask_failed(attempt)
    }

    fn subtask_reset(
        &self,
        subtask: u32,
        checkpoint: i64,
        finished: Option<ExecutionAttemptId>,
    ) -> Option<CoordinatorDelta> {
        match finished {
            Some(_) => self.forget(),
            None => self.listing.as_ref()?.splits.subtask_reset(subtask, checkpoint, None),
        }
    }

    fn pinned(&self, _subtask: u32) -> Option<Vec<Split>> {
        None
    }

    fn claim(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> Option<CoordinatorDelta> {
        self.splits_for(attempt)?.claim(attempt, splits)
    }

    fn holds(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> bool {
        self.splits_for(attempt).is_some_and(|listed| listed.holds(attempt, splits))
    }

    fn is_exhausted(&self) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.splits.is_exhausted())
    }

    fn discovered_bytes(&self) -> Option<u64> {
        self.listing.as_ref()?.splits.discovered_bytes()
    }

    #[expect(clippy::expect_used, reason = "plain structs of numbers and bytes always encode")]
    fn checkpoint_coordinator(&self, checkpoint: i64) -> Vec<u8> {
        let listing = self.listing.as_ref().map(|listing| ListingSnapshot {
            epoch: listing.epoch,
            splits: listing.splits.checkpoint_coordinator(checkpoint),
        });
        let snapshot = Snapshot { checkpoint, listings: self.listings, listing };
        encode(&snapshot).expect("a snapshot holds numbers and bytes only")
    }

    fn reset_to_checkpoint(&mut self, checkpoint: i64, state: &[u8]) -> Result<(), String> {
        let snapshot: Snapshot = decode(state)
            .map_err(|error| format!("no snapshot of a source of one listing: {error}"))?;
        if snapshot.checkpoint != checkpoint {
            let found = snapshot.checkpoint;
            return Err(format!("a snapshot of checkpoint {found}, not {checkpoint}"));
        }
        let mut listing = None;
        if let Some(ListingSnapshot { epoch, splits }) = snapshot.listing {
            let mut coordinator = SourceCoordinator::new();
            coordinator.reset_to_checkpoint(checkpoint, &splits)?;
            listing = Some(Listing { epoch, splits: coordinator });
        }
        *self = Self { listings: snapshot.listings, listing };
        Ok(())
    }

    fn supports_batch_snapshot(&self) -> bool {
        false
    }

    fn forget(&self) -> Option<CoordinatorDelta> {
        self.listing.as_ref()?;
        Some(CoordinatorDelta::ListingForgotten { listing: self.listings })
    }

    fn may_have_been_read_in(&self, epoch: Epoch) -> bool {
        self.listing.as_ref().is_some_and(|listing| epoch >= listing.epoch)
    }

    fn apply_delta(&mut self, delta: &CoordinatorDelta) {
        match delta {
            CoordinatorDelta::ListingMade { listing, epoch, splits } => {
                self.make_listing(*listing, *epoch, splits);
            }
            CoordinatorDelta::ListingForgotten { .. } => self.listing = None,
            CoordinatorDelta::SplitsDiscovered { .. }
            | CoordinatorDelta::SplitsAssigned { .. }
            | CoordinatorDelta::SplitsReturned { .. }
            | CoordinatorDelta::SubtaskReset { .. } => {
                if let Some(listing) = &mut self.listing {
                    listing.splits.apply_delta(delta);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
