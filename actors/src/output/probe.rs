//! Whether a worker sees an output directory as the `JobManager` does.
//!
//! The owner file that the `JobManager` wrote into the hidden directory of a run is the probe: who
//! finds another one there, or none, looks at another disk.

use std::path::Path;

use regrow_protocol::{RunId, SinkTarget, TaskFailure};
use regrow_runtime::with_causes;

use super::manifest::Owner;

/// Checks that what `run` stages in `sinks` lies where the `JobManager` will look for it.
///
/// # Errors
/// When it does not. Another try may be made where it does, or later: some file systems of several
/// hosts show a new directory after a while.
pub(crate) fn check_seen(run: RunId, sinks: &[SinkTarget]) -> Result<(), TaskFailure> {
    for sink in sinks {
        let hidden = Path::new(&sink.staging_directory);
        let found = match Owner::read(hidden) {
            Ok(Some(owner)) if owner.run == run => continue,
            Ok(Some(owner)) => format!("names run {} of job {}", owner.run, owner.job),
            Ok(None) => "is not there".to_owned(),
            Err(error) => format!("cannot be read: {}", with_causes(&error)),
        };
        return Err(TaskFailure::task(format!(
            "the output directory {} is not seen here as the JobManager sees it: the file {}, which \
             it wrote there, {found}; let the output be a path that is the same file system on all \
             hosts of the cluster",
            hidden.parent().unwrap_or(hidden).display(),
            Owner::path(hidden).display(),
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use regrow_protocol::JobVertexId;
    use regrow_runtime::{OutputPreparation, SinkSpec};

    use super::*;
    use crate::output::OutputCommitter;

    const RUN: RunId = RunId::from_bits(7);

    #[test]
    fn what_the_job_manager_prepared_is_seen_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("out").to_string_lossy().into_owned();
        let sinks = vec![SinkSpec { vertex: JobVertexId(0), directory, overwrite: false }];
        let committer = OutputCommitter::new("job".parse().unwrap());
        let hidden = committer.prepare(&OutputPreparation { run: RUN, sinks }).unwrap().remove(0);
        let sinks = [SinkTarget { sink: 0, staging_directory: hidden.clone() }];
        assert_eq!(check_seen(RUN, &sinks), Ok(()));
        assert_eq!(check_seen(RUN, &[]), Ok(()));
        let said = |result: Result<(), TaskFailure>| result.unwrap_err().to_string();
        let other = said(check_seen(RunId::from_bits(8), &sinks));
        assert!(other.contains("names run") && other.contains("of job job"), "{other}");
        std::fs::write(Owner::path(Path::new(&hidden)), "{").unwrap();
        assert!(said(check_seen(RUN, &sinks)).contains("cannot be read"));
        std::fs::remove_dir_all(&hidden).unwrap();
        let missing = said(check_seen(RUN, &sinks));
        assert!(missing.contains("is not there") && missing.contains(&hidden), "{missing}");
        assert!(!Path::new(&hidden).exists(), "it is never made by a worker");
    }
}
