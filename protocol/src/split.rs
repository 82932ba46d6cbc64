//! Input splits.

use serde::{Deserialize, Serialize};

/// Number of a split within its source vertex, from 0 in the order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SplitId(pub u32);

/// A piece of a source's input that one attempt reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Its number.
    pub id: SplitId,
    /// How much there is to read, in bytes; an estimate, for planning and progress.
    pub size_bytes: u64,
    /// What the source's reader makes of it; opaque to the runtime.
    #[serde(with = "serde_bytes")]
    pub payload: Vec<u8>,
}
