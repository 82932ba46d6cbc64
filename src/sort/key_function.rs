//! How a record gives its key.

use std::marker::PhantomData;

use super::sort_key::{KeyParts, SortKey};

/// Gives the key of a record.
pub(super) trait KeyFunction<R: ?Sized>: Send + Sync + 'static {
    /// Adds the parts of the key of `record`.
    fn add_parts(&self, record: &R, key: &mut KeyParts);
}

/// A function that returns the key.
pub(super) struct ReturnedKey<F, K> {
    function: F,
    key: PhantomData<fn() -> K>,
}

impl<F, K> ReturnedKey<F, K> {
    pub(super) fn new(function: F) -> Self {
        Self { function, key: PhantomData }
    }
}

impl<R, F, K> KeyFunction<R> for ReturnedKey<F, K>
where
    R: ?Sized,
    K: SortKey + 'static,
    F: Fn(&R) -> K + Send + Sync + 'static,
{
    #[inline]
    fn add_parts(&self, record: &R, key: &mut KeyParts) {
        key.add(&(self.function)(record));
    }
}

/// A function that adds the parts of the key.
pub(super) struct AddedKey<F> {
    function: F,
}

impl<F> AddedKey<F> {
    pub(super) fn new(function: F) -> Self {
        Self { function }
    }
}

impl<R, F> KeyFunction<R> for AddedKey<F>
where
    R: ?Sized,
    F: Fn(&R, &mut KeyParts) + Send + Sync + 'static,
{
    #[inline]
    fn add_parts(&self, record: &R, key: &mut KeyParts) {
        (self.function)(record, key);
    }
}
