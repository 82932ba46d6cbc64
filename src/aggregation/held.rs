//! A state that may take memory elsewhere.

use std::mem::needs_drop;

use serde::{Serialize, de::DeserializeOwned};

use super::footprint::footprint;
use crate::record::{Record, RecordError};

/// What a growing vector takes, against what is in it.
const GROWTH: usize = 2;

/// A state is weighed again when it was changed by one in so many more.
const WEIGHED_PER_CHANGES: u32 = 4;

/// A state that may take memory elsewhere, and how much: weighed when it is new and after each
/// fourth more of changes, which costs a few times its length in all.
pub(crate) struct Held<A> {
    /// There until it is taken.
    state: Option<A>,
    heap_bytes: usize,
    changes: u32,
    weighed_at: u32,
}

impl<A: Serialize + DeserializeOwned + Send + 'static> Held<A> {
    pub(crate) fn new(state: A) -> Self {
        let mut held = Self { state: Some(state), heap_bytes: 0, changes: 0, weighed_at: 0 };
        held.note_change(0);
        held
    }

    /// Changes the state.
    #[inline]
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut A)) {
        if let Some(state) = &mut self.state {
            change(state);
        }
        self.note_change(0);
    }

    /// Changes the state by another one.
    pub(crate) fn merge(&mut self, other: Self, merge: impl FnOnce(&mut A, A)) {
        if let (Some(state), Some(other)) = (&mut self.state, other.state) {
            merge(state, other);
        }
        // Most likely it took what the other one had.
        self.note_change(other.heap_bytes);
    }

    /// What it takes elsewhere.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Takes the state out.
    pub(crate) fn take(&mut self) -> Result<A, String> {
        self.state.take().ok_or_else(|| "a state was taken twice".to_owned())
    }

    pub(crate) fn write(&self, block: &mut Vec<u8>) -> Result<(), RecordError> {
        self.state.as_ref().map_or(Ok(()), |state| state.write(block))
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Result<Self, RecordError> {
        let mut slot = None;
        A::read(&mut bytes, &mut slot)?;
        let mut held = Self { state: slot, heap_bytes: 0, changes: 0, weighed_at: 0 };
        held.note_change(0);
        Ok(held)
    }

    #[inline]
    fn note_change(&mut self, more_bytes: usize) {
        if !needs_drop::<A>() {
            return;
        }
        self.heap_bytes = self.heap_bytes.saturating_add(more_bytes);
        self.changes = self.changes.saturating_add(1);
        if self.changes >= self.weighed_at {
            self.weigh();
        }
    }

    #[cold]
    fn weigh(&mut self) {
        self.heap_bytes = self.state.as_ref().map_or(0, footprint).saturating_mul(GROWTH);
        self.weighed_at = self.changes.saturating_add(self.changes / WEIGHED_PER_CHANGES + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_state_is_never_far_from_its_weight() {
        let mut held = Held::new(Vec::<u64>::new());
        for number in 0..10_000 {
            held.change(|numbers| numbers.push(7));
            let taken = 8 * (number + 1);
            assert!((taken..8 * taken + 200).contains(&held.heap_bytes()), "{number}");
        }
        let before = held.heap_bytes();
        held.merge(Held::new(vec![0; 5_000]), Vec::extend);
        assert!(held.heap_bytes() >= before + 40_000);
    }

    #[test]
    fn a_state_without_memory_elsewhere_weighs_nothing() {
        let mut held = Held::new([0_u64; 4]);
        held.change(|numbers| numbers[0] = u64::MAX);
        assert_eq!(held.heap_bytes(), 0);
    }
}
