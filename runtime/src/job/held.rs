//! Actions that wait until their records are durable.

use std::collections::BTreeMap;

use regrow_protocol::{ExecutionAttemptId, JobVertexId, WorkerId};

use crate::{Action, ChunkedQueue, Lsn};

/// Something to do once a position is durable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeldAction {
    /// Carry this out.
    Act(Action),
    /// Dispatch an attempt, if this very dispatch is still wanted.
    Submit { attempt: ExecutionAttemptId, ticket: u64 },
    /// Release the outputs of a vertex, if they are still unneeded.
    ReleaseOutputs(JobVertexId),
    /// Begin to act upon the recovery decision.
    Activate,
}

/// Actions that wait, oldest position first.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: BTreeMap<(Lsn, u64), HeldAction>,
    count: u64,
    /// Reports to be accepted, by ascending position: the most frequent action by far.
    acceptances: ChunkedQueue<(Lsn, WorkerId, ExecutionAttemptId)>,
}

/// Most reports that one message answers: keeps it within a few kilobytes, a size of which there is
/// always memory at hand.
const ACCEPTANCES_MAX: usize = 100;

impl Held {
    /// Holds `action` until everything up to `lsn` is durable.
    pub(super) fn push(&mut self, lsn: Lsn, action: HeldAction) {
        self.waiting.insert((lsn, self.count), action);
        self.count += 1;
    }

    /// The next action that need not wait any longer.
    pub(super) fn pop(&mut self, durable: Lsn) -> Option<HeldAction> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= durable)?;
        Some(entry.remove())
    }

    /// Holds the answer to a report until everything up to `lsn`, the newest position so far, is
    /// durable.
    pub(super) fn push_acceptance(
        &mut self,
        lsn: Lsn,
        worker: WorkerId,
        attempt: ExecutionAttemptId,
    ) {
        self.acceptances.push_back((lsn, worker, attempt));
    }

    /// The reports whose answers need not wait any longer, oldest first, in parts of one worker.
    pub(super) fn pop_acceptances(
        &mut self,
        durable: Lsn,
    ) -> Vec<(WorkerId, Vec<ExecutionAttemptId>)> {
        let mut full = Vec::new();
        let mut parts: BTreeMap<WorkerId, Vec<ExecutionAttemptId>> = BTreeMap::new();
        while let Some((_, worker, attempt)) =
            self.acceptances.pop_front_if(|(lsn, ..)| *lsn <= durable)
        {
            let part = parts.entry(worker).or_default();
            part.push(attempt);
            if part.len() >= ACCEPTANCES_MAX {
                full.push((worker, std::mem::take(part)));
            }
        }
        parts.retain(|_, part| !part.is_empty());
        full.extend(parts);
        full
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.acceptances.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Epoch, RunId};

    use super::*;

    #[test]
    fn acceptances_wait_for_their_position_and_go_in_bounded_parts_per_worker() {
        let count = u32::try_from(ACCEPTANCES_MAX).unwrap() + 5;
        let mut held = Held::default();
        for subtask in 0..2 * count {
            let attempt = ExecutionAttemptId {
                run: RunId::from_bits(1),
                vertex: JobVertexId(0),
                subtask,
                epoch: Epoch::new(1, 0),
                number: 0,
            };
            let worker = WorkerId::from_bits(u128::from(subtask % 2));
            held.push_acceptance(Lsn(u64::from(subtask)), worker, attempt);
        }
        let mut pop = |durable: u32| -> Vec<(WorkerId, usize, u32)> {
            let parts = held.pop_acceptances(Lsn(u64::from(durable)));
            parts.into_iter().map(|(worker, part)| (worker, part.len(), part[0].subtask)).collect()
        };
        let (even, odd) = (WorkerId::from_bits(0), WorkerId::from_bits(1));
        assert_eq!(pop(0), [(even, 1, 0)]);
        assert_eq!(pop(0), []);
        let rest = pop(2 * count);
        assert_eq!(rest, [(odd, 100, 1), (even, 100, 2), (even, 4, 202), (odd, 5, 201)]);
        assert!(held.is_empty());
    }

    #[test]
    fn actions_come_out_by_position_then_age() {
        let mut held = Held::default();
        let submit = |vertex| HeldAction::ReleaseOutputs(JobVertexId(vertex));
        held.push(Lsn(2), submit(0));
        held.push(Lsn(1), submit(1));
        held.push(Lsn(1), submit(2));
        assert_eq!(held.pop(Lsn(0)), None);
        assert_eq!(held.pop(Lsn(1)), Some(submit(1)));
        assert_eq!(held.pop(Lsn(1)), Some(submit(2)));
        assert_eq!(held.pop(Lsn(1)), None);
        assert_eq!(held.pop(Lsn(9)), Some(submit(0)));
        assert!(held.is_empty());
    }
}
