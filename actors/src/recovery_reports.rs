//! The recovery reports of a job that is not over: one file of JSON per life that recovered.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regrow_protocol::JobId;
use regrow_runtime::RecoveryReport;

use crate::{durable_file, run_directory::RunDirectory};

/// The recovery reports of a job that runs or was interrupted, oldest first; none if there is no
/// such job under the data directory. Those of an ended job are in its
/// [archive](crate::archive::Archive::read). Opens no store, so the job may be running.
///
/// # Errors
/// When a report cannot be read.
pub fn of_unfinished(
    data_directory: &Path,
    job: &JobId,
) -> io::Result<Option<Vec<RecoveryReport>>> {
    let directory = RunDirectory::of(data_directory, job);
    if !directory.is_dir() {
        return Ok(None);
    }
    read_all(&reports_directory(data_directory, job)).map(Some)
}

/// Where the reports of a job are while it is not over.
pub(crate) fn reports_directory(data_directory: &Path, job: &JobId) -> PathBuf {
    RunDirectory::of(data_directory, job).join("reports")
}

/// Keeps `report` in `directory`, which is made if it is not there.
pub(crate) fn write(directory: &Path, report: &RecoveryReport) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    // Padded, so that names sort as epochs do.
    let path = directory.join(format!("{:020}.json", report.epoch.number()));
    let content = serde_json::to_vec_pretty(report).map_err(io::Error::other)?;
    durable_file::replace(&path, &[&content])
}

/// The reports in `directory`, oldest first; none if there is no such directory.
pub(crate) fn read_all(directory: &Path) -> io::Result<Vec<RecoveryReport>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    paths.iter().map(|path| Ok(serde_json::from_slice(&fs::read(path)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use regrow_protocol::Epoch;
    use regrow_runtime::RecoveryPhases;

    use super::*;

    #[test]
    fn reports_are_read_in_the_order_of_their_epochs() {
        let data = tempfile::tempdir().unwrap();
        let job = "nightly".parse().unwrap();
        assert_eq!(of_unfinished(data.path(), &job).unwrap(), None);
        let directory = reports_directory(data.path(), &job);
        assert_eq!(read_all(&directory).unwrap(), []);
        let report = |term, life| RecoveryReport {
            epoch: Epoch::new(term, life),
            previous_end: "killed as planned".to_owned(),
            lines: Vec::new(),
            log_damage: None,
            phases: RecoveryPhases::default(),
        };
        for report in [report(2, 0), report(1, 9), report(1, 10)] {
            write(&directory, &report).unwrap();
        }
        let kept = of_unfinished(data.path(), &job).unwrap().unwrap();
        assert_eq!(kept, [report(1, 9), report(1, 10), report(2, 0)]);
    }
}
