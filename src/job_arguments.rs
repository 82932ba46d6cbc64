//! The arguments of a job as they are recorded.

use std::path::PathBuf;

use regrow_protocol::{decode, encode};
use serde::{Deserialize, Serialize};

/// The arguments of a job and what else its builder depends on.
///
/// The formats only grow: a job that was interrupted under an older version is built from these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobArguments {
    /// Directory from which relative paths are taken; none if the job has none, so that the same
    /// job is the same wherever it was started.
    #[serde(default)]
    pub(crate) working_directory: Option<PathBuf>,
    /// Whether the job may replace output that is there.
    #[serde(default)]
    pub(crate) overwrite: bool,
    /// The job's own arguments, encoded.
    #[serde(with = "serde_bytes")]
    pub(crate) arguments: Vec<u8>,
}

impl JobArguments {
    /// Encodes all.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        encode(self).map_err(|error| format!("cannot record the arguments of the job: {error}"))
    }

    /// Decodes what [`to_bytes`](Self::to_bytes) made.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        decode(bytes).map_err(|error| {
            format!("the recorded arguments are none that this program can read: {error}")
        })
    }
}
