//! Combines records by functions of the user.

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

use super::{
    aggregate::{Aggregate, Combining},
    held::Held,
};
use crate::record::RecordError;

/// Puts records into a state by one function, and states together by another.
pub(crate) struct Fold<A, F, M> {
    pub(crate) initial: A,
    pub(crate) add: F,
    pub(crate) merge: M,
}

/// Puts records of one key together by a function.
pub(crate) struct Reduce<R, F> {
    function: F,
    record_type: PhantomData<fn() -> R>,
}

impl<R, F> Reduce<R, F> {
    pub(crate) const fn new(function: F) -> Self {
        Self { function, record_type: PhantomData }
    }
}

impl<A, F, M> Combining for Fold<A, F, M>
where
    A: Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Send + Sync + 'static,
    M: Fn(&mut A, A) + Send + Sync + 'static,
{
    type State = Held<A>;

    fn merge(&self, state: &mut Held<A>, other: Held<A>) {
        state.merge(other, &self.merge);
    }

    fn write(&self, state: &Held<A>, block: &mut Vec<u8>) -> Result<(), RecordError> {
        state.write(block)
    }

    fn read(&self, bytes: &[u8]) -> Result<Held<A>, RecordError> {
        Held::read(bytes)
    }

    #[inline]
    fn heap_bytes(&self, state: &Held<A>) -> usize {
        state.heap_bytes()
    }
}

impl<R, A, F, M> Aggregate<R> for Fold<A, F, M>
where
    R: ?Sized,
    A: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Fn(&mut A, &R) + Send + Sync + 'static,
    M: Fn(&mut A, A) + Send + Sync + 'static,
{
    type Result = A;

    fn first(&self, record: &R) -> Held<A> {
        let mut state = self.initial.clone();
        (self.add)(&mut state, record);
        Held::new(state)
    }

    #[inline]
    fn add(&self, state: &mut Held<A>, record: &R) {
        state.change(|state| (self.add)(state, record));
    }

    fn result(&self, state: &mut Held<A>) -> Result<A, String> {
        state.take()
    }
}

impl<R, F> Combining for Reduce<R, F>
where
    R: Serialize + DeserializeOwned + Send + 'static,
    F: Fn(&mut R, &R) + Send + Sync + 'static,
{
    type State = Held<R>;

    fn merge(&self, state: &mut Held<R>, other: Held<R>) {
        state.merge(other, |state, other| (self.function)(state, &other));
    }

    fn write(&self, state: &Held<R>, block: &mut Vec<u8>) -> Result<(), RecordError> {
        state.write(block)
    }

    fn read(&self, bytes: &[u8]) -> Result<Held<R>, RecordError> {
        Held::read(bytes)
    }

    #[inline]
    fn heap_bytes(&self, state: &Held<R>) -> usize {
        state.heap_bytes()
    }
}

impl<R, F> Aggregate<R> for Reduce<R, F>
where
    R: Clone + Serialize + DeserializeOwned + Send + 'static,
    F: Fn(&mut R, &R) + Send + Sync + 'static,
{
    type Result = R;

    fn first(&self, record: &R) -> Held<R> {
        Held::new(record.clone())
    }

    #[inline]
    fn add(&self, state: &mut Held<R>, record: &R) {
        state.change(|state| (self.function)(state, record));
    }

    fn result(&self, state: &mut Held<R>) -> Result<R, String> {
        state.take()
    }
}
