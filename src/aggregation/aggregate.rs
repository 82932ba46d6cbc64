//! What aggregations have in common.

use serde::{Serialize, de::DeserializeOwned};

use crate::record::RecordError;

/// States of keys: what the records of a key have become so far.
pub(crate) trait Combining: Send + Sync + 'static {
    /// What the records of a key have become.
    type State: Send + 'static;

    /// Puts a later state of the same key into `state`.
    fn merge(&self, state: &mut Self::State, other: Self::State);

    /// Appends a state to a block.
    fn write(&self, state: &Self::State, block: &mut Vec<u8>) -> Result<(), RecordError>;

    /// Reads a state, which fills `bytes`.
    fn read(&self, bytes: &[u8]) -> Result<Self::State, RecordError>;

    /// What a state takes in memory beside itself, as far as it is known.
    #[inline]
    fn heap_bytes(&self, state: &Self::State) -> usize {
        let _ = state;
        0
    }
}

/// How records become a result per key.
pub(crate) trait Aggregate<R: ?Sized>: Combining {
    /// What comes out.
    type Result: Serialize + DeserializeOwned + Send + 'static;

    /// The state of a key with a single record.
    fn first(&self, record: &R) -> Self::State;

    /// Puts one more record into a state.
    fn add(&self, state: &mut Self::State, record: &R);

    /// Takes the result out of a state, which is not used again.
    ///
    /// # Errors
    /// When there is none, with the reason.
    fn result(&self, state: &mut Self::State) -> Result<Self::Result, String>;
}
