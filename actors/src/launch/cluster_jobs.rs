//! Whether a job id belongs to the cluster of a data directory, for a run of one process.

use std::{error::Error, fs, path::Path};

use regrow_protocol::JobId;
use regrow_runtime::JobState;
use regrow_store::open_existing;

use super::LaunchError;
use crate::{archive::Archive, cluster::ClusterPlace, dispatcher::is_held};

/// Checks that `job` may begin here, as far as the cluster of `data_directory` goes. A job of which
/// the archive knows the end is held by nobody: who begins it gets that.
///
/// # Errors
/// When the cluster holds it, or nobody can tell.
pub(super) fn check_free(data_directory: &Path, job: &JobId) -> Result<(), LaunchError> {
    let directory = data_directory.to_owned();
    let unclear = |source: Box<dyn Error + Send + Sync>| LaunchError::ClusterUnclear {
        job: job.clone(),
        directory: directory.clone(),
        source,
    };
    if is_archived(data_directory, job) {
        return Ok(());
    }
    match ClusterPlace::of(data_directory).map_err(|error| unclear(error.into()))? {
        ClusterPlace::Led => Err(LaunchError::ClusterLed { job: job.clone(), directory }),
        ClusterPlace::Free(_unled) if holds(data_directory, job).map_err(unclear)? => {
            Err(LaunchError::OfCluster { job: job.clone(), directory })
        }
        ClusterPlace::NoCluster | ClusterPlace::Free(_) => Ok(()),
    }
}

/// Whether the store of a cluster that nobody leads holds `job`.
fn holds(data_directory: &Path, job: &JobId) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let path = data_directory.join("store");
    if !path.is_dir() || fs::read_dir(&path)?.next().is_none() {
        return Ok(false);
    }
    let store = open_existing(&path)?;
    let mut store = store.ok_or_else(|| format!("{} is no event store", path.display()))?;
    Ok(is_held(&mut *store, job)?)
}

/// Whether `job` finished, as the archive says.
fn is_archived(data_directory: &Path, job: &JobId) -> bool {
    let archived = Archive::new(data_directory).read(job).ok().flatten();
    archived.is_some_and(|archived| archived.outcome.state == JobState::Finished)
}
