//! The splits of a source and which of them are left (Flink: `SplitEnumerator`).

use std::collections::BTreeSet;

use regrow_protocol::{Split, SplitId};

/// The splits of a source, each left to hand out or owned by one subtask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitEnumerator {
    splits: Vec<Split>,
    /// Per split, the subtask that owns it.
    owners: Vec<Option<u32>>,
    /// Those without an owner.
    left: BTreeSet<SplitId>,
    total_bytes: u64,
}

impl SplitEnumerator {
    /// Begins with all `splits` left. A split's number is its place, whatever it says.
    pub(crate) fn new(mut splits: Vec<Split>) -> Self {
        let mut total_bytes = 0_u64;
        for (id, split) in (0..).map(SplitId).zip(&mut splits) {
            split.id = id;
            total_bytes = total_bytes.saturating_add(split.size_bytes);
        }
        let left = splits.iter().map(|split| split.id).collect();
        Self { owners: vec![None; splits.len()], splits, left, total_bytes }
    }

    /// The one to hand out next: the lowest that is left.
    pub(crate) fn first_left(&self) -> Option<&Split> {
        self.get(*self.left.first()?)
    }

    /// Whether none is left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.is_empty()
    }

    /// A split by number.
    pub(crate) fn get(&self, id: SplitId) -> Option<&Split> {
        self.splits.get(id.0 as usize)
    }

    /// All of them, by number.
    pub(crate) fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Bytes of all of them; saturates.
    pub(crate) const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether `id` is left to hand out.
    pub(crate) fn is_left(&self, id: SplitId) -> bool {
        self.left.contains(&id)
    }

    /// Whether `id` is owned by `subtask`.
    pub(crate) fn is_owned_by(&self, id: SplitId, subtask: u32) -> bool {
        self.owners.get(id.0 as usize).is_some_and(|owner| *owner == Some(subtask))
    }

    /// Gives a split that is left to `subtask`; says whether it was left.
    pub(crate) fn take(&mut self, id: SplitId, subtask: u32) -> bool {
        if !self.left.remove(&id) {
            return false;
        }
        self.owners[id.0 as usize] = Some(subtask);
        true
    }

    /// Takes a split back from its owner; it is the next to go out if it is the lowest.
    pub(crate) fn give_back(&mut self, id: SplitId) {
        if let Some(owner) = self.owners.get_mut(id.0 as usize) {
            *owner = None;
            self.left.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enumerator() -> SplitEnumerator {
        let split = |id| Split { id: SplitId(id), size_bytes: 5, payload: vec![] };
        SplitEnumerator::new((0..3).map(split).collect())
    }

    #[test]
    fn a_split_that_came_back_goes_out_before_higher_ones() {
        let mut enumerator = enumerator();
        assert!(enumerator.take(SplitId(0), 7));
        assert!(enumerator.take(SplitId(1), 8));
        enumerator.give_back(SplitId(0));
        assert_eq!(enumerator.first_left().map(|split| split.id), Some(SplitId(0)));
        assert!(!enumerator.is_owned_by(SplitId(0), 7));
    }

    #[test]
    fn a_split_has_one_owner() {
        let mut enumerator = enumerator();
        assert!(enumerator.take(SplitId(1), 7));
        assert!(!enumerator.take(SplitId(1), 8));
        assert!(!enumerator.take(SplitId(3), 8));
        assert!(enumerator.is_owned_by(SplitId(1), 7));
    }
}
