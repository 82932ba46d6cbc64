//! Positions in the log, as the decisions count them.

use serde::{Deserialize, Serialize};

/// Number of events recorded by a run so far, over all its lives: the position after the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lsn(pub u64);
