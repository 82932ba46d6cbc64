//! What every message carries.

use serde::{Deserialize, Serialize};

use crate::{Epoch, RunId};

/// A message about one run, with the epoch in whose name it is sent.
///
/// From a `JobMaster`, the epoch is its own. From a worker, it is the highest that the worker saw
/// of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<M> {
    /// The run it is about.
    pub run: RunId,
    /// Epoch of the sender.
    pub epoch: Epoch,
    /// The message.
    pub message: M,
}
