//! The contract of operator coordinators (Flink: `OperatorCoordinator`).

use regrow_protocol::{Epoch, ExecutionAttemptId, Split, SplitId};
use serde::{Deserialize, Serialize};

/// The checkpoint id of a batch job's snapshots (FLIP-383).
pub const NO_CHECKPOINT: i64 = -1;

/// Coordinates the tasks of one vertex: hands out input splits, for example.
///
/// State changes only in [`apply_delta`](Self::apply_delta); the other methods decide and return
/// the delta, which the caller records, applies and then acts upon.
pub trait OperatorCoordinator: Send {
    /// Begins the work of a coordinator that was never started, or forgot its splits; says whether
    /// they must be discovered. No attempt runs before they are.
    fn start(&self) -> bool;

    /// The input was listed in `epoch`: the delta that notes it.
    ///
    /// # Errors
    /// When these are no splits to work with (too many, or not numbered from 0): fail the job.
    fn splits_discovered(
        &self,
        epoch: Epoch,
        splits: Vec<Split>,
    ) -> Result<CoordinatorDelta, String>;

    /// Decides how to answer request number `request` of `attempt` for a split. Repeating a request
    /// gives the same answer, also when the answer was that nothing is left: splits that came back
    /// since then go to others.
    ///
    /// # Panics
    /// Before discovery: no attempt runs by then, and any answer would be wrong.
    fn handle_event(&self, attempt: ExecutionAttemptId, request: u64) -> Reply;

    /// An attempt is about to run: the delta that gives it the splits [`pinned`](Self::pinned) to its
    /// subtask, if there are any.
    fn subtask_ready(&self, attempt: ExecutionAttemptId) -> Option<CoordinatorDelta>;

    /// An attempt ended without a result: what it holds goes back, to its subtask if it was pinned.
    fn subtask_failed(&self, attempt: ExecutionAttemptId) -> Option<CoordinatorDelta>;

    /// A subtask is reset to `checkpoint` ([`NO_CHECKPOINT`]): what its unaccepted attempts hold
    /// goes back; what `finished`, the accepted attempt whose output is lost, had read stays pinned
    /// to the subtask. A coordinator that cannot pin forgets all its splits if there is `finished`.
    fn subtask_reset(
        &self,
        subtask: u32,
        checkpoint: i64,
        finished: Option<ExecutionAttemptId>,
    ) -> Option<CoordinatorDelta>;

    /// The splits that the next attempt of `subtask` must read, exactly, if any are pinned to it.
    fn pinned(&self, subtask: u32) -> Option<Vec<Split>>;

    /// An attempt that the log does not know as finished claims to have read `splits`: each must be
    /// known and held by no other attempt, and if splits are pinned to the subtask, it must be
    /// those. The delta that notes it, or none if the claim is refused. What the attempt held beside
    /// them goes back.
    fn claim(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> Option<CoordinatorDelta>;

    /// Whether `attempt` holds exactly `splits`, in this order: a finish counts only if its coordinator knows the
    /// splits that it names.
    fn holds(&self, attempt: ExecutionAttemptId, splits: &[SplitId]) -> bool;

    /// Whether nothing is left to hand out: a vertex is complete only then.
    fn is_exhausted(&self) -> bool;

    /// How many bytes there are to read; none before discovery.
    fn discovered_bytes(&self) -> Option<u64>;

    /// The whole state, encoded, for checkpoint `checkpoint` ([`NO_CHECKPOINT`]).
    fn checkpoint_coordinator(&self, checkpoint: i64) -> Vec<u8>;

    /// Replaces the whole state with a snapshot.
    ///
    /// # Errors
    /// When the bytes are no snapshot of this coordinator.
    fn reset_to_checkpoint(&mut self, checkpoint: i64, state: &[u8]) -> Result<(), String>;

    /// Whether a later master may go on with the splits of this one, and lost output be made again
    /// from the very splits that it was made from. A coordinator without is indeterminate (recovery.md
    /// 5.6): there are no snapshots of it, nothing is pinned, its vertex runs again as a whole, and
    /// [`forget`](Self::forget) goes with that.
    fn supports_batch_snapshot(&self) -> bool;

    /// The delta that forgets all splits, so that they are discovered anew; none where that is
    /// never wanted, or nothing was discovered.
    fn forget(&self) -> Option<CoordinatorDelta>;

    /// Whether what is discovered now may have been read in `epoch`, by tasks of the vertex or by
    /// those that depend on its output.
    fn may_have_been_read_in(&self, epoch: Epoch) -> bool;

    /// The one place where the state changes.
    fn apply_delta(&mut self, delta: &CoordinatorDelta);
}

/// How a coordinator answers a split request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What changes, to be recorded before the answer leaves; none for a repeated request.
    pub delta: Option<CoordinatorDelta>,
    /// The split, or none when nothing is left.
    pub split: Option<Split>,
}

/// A change of a coordinator's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinatorDelta {
    /// The input was listed.
    SplitsDiscovered {
        /// All splits, ascending by id from 0.
        splits: Vec<Split>,
    },
    /// Splits were handed out, or a claim on them was accepted.
    SplitsAssigned {
        /// To whom.
        attempt: ExecutionAttemptId,
        /// Which, in order; none when the attempt was told that nothing is left.
        splits: Vec<SplitId>,
        /// Number of the request that was answered; none for a claim or pinned splits.
        request: Option<u64>,
    },
    /// Splits of ended attempts went back.
    SplitsReturned {
        /// Who held them.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// A subtask was reset: what its unaccepted attempts held went back, what the accepted attempt
    /// had read is pinned to it.
    SubtaskReset {
        /// Which one.
        subtask: u32,
        /// The accepted attempt whose output is lost.
        pinned_from: Option<ExecutionAttemptId>,
    },
    /// The input was listed, for the splits of this listing alone.
    ListingMade {
        /// Number of the listing, from 1 per coordinator.
        listing: u32,
        /// The life that made it: tasks of no other read its splits.
        epoch: Epoch,
        /// All splits, ascending by id from 0.
        splits: Vec<Split>,
    },
    /// A listing is void, and with it all that is known of its splits.
    ListingForgotten {
        /// Which one.
        listing: u32,
    },
}
