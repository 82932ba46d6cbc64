//! How records are given keys.

use std::marker::PhantomData;

use crate::record::{Record, RecordError};

/// How records are given keys: what [`key_by`](crate::DataSet::key_by) and its kin make of a
/// function.
pub trait KeyOf<R: ?Sized>: Send + Sync + 'static {
    /// The type of the keys.
    type Key: Record + ?Sized;

    /// The key of a record in the form of a block; `scratch` is for that form.
    ///
    /// # Errors
    /// When the key cannot be written.
    fn key<'a>(&self, record: &'a R, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], RecordError>;
}

/// A function that makes the key of a record.
pub(crate) struct ComputedKey<K, F> {
    function: F,
    key_type: PhantomData<fn() -> K>,
}

/// A function that finds the key in a record.
pub(crate) struct BorrowedKey<K: ?Sized, F> {
    function: F,
    key_type: PhantomData<fn() -> Box<K>>,
}

/// The text of a record, without its length.
pub(crate) struct TextKey;

/// The record is its key.
pub(crate) struct WholeRecord;

impl<K, F> ComputedKey<K, F> {
    pub(crate) const fn new(function: F) -> Self {
        Self { function, key_type: PhantomData }
    }
}

impl<K: ?Sized, F> BorrowedKey<K, F> {
    pub(crate) const fn new(function: F) -> Self {
        Self { function, key_type: PhantomData }
    }
}

impl<R, K, F> KeyOf<R> for ComputedKey<K, F>
where
    R: ?Sized,
    K: Record,
    F: Fn(&R) -> K + Send + Sync + 'static,
{
    type Key = K;

    #[inline]
    fn key<'a>(&self, record: &'a R, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], RecordError> {
        written(&(self.function)(record), scratch)
    }
}

impl<R, K, F> KeyOf<R> for BorrowedKey<K, F>
where
    R: ?Sized,
    K: Record + ?Sized,
    F: for<'a> Fn(&'a R) -> &'a K + Send + Sync + 'static,
{
    type Key = K;

    #[inline]
    fn key<'a>(&self, record: &'a R, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], RecordError> {
        written((self.function)(record), scratch)
    }
}

impl<R: AsRef<str> + ?Sized> KeyOf<R> for TextKey {
    type Key = str;

    #[inline]
    fn key<'a>(&self, record: &'a R, _scratch: &'a mut Vec<u8>) -> Result<&'a [u8], RecordError> {
        Ok(record.as_ref().as_bytes())
    }
}

impl<R: Record + ?Sized> KeyOf<R> for WholeRecord {
    type Key = R;

    #[inline]
    fn key<'a>(&self, record: &'a R, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], RecordError> {
        written(record, scratch)
    }
}

#[inline]
fn written<'a, K: Record + ?Sized>(
    key: &K,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], RecordError> {
    scratch.clear();
    key.write(scratch)?;
    Ok(scratch)
}
