//! Whether a job id belongs to a run of one process, for a cluster of the same data directory.

use std::path::Path;

use regrow_protocol::JobId;
use regrow_runtime::with_causes;

use super::{
    RunDirectory, RunFile,
    lock::{is_locked, owner},
};

/// Why a cluster may not begin `job`: a process runs it under `data_directory`, or was interrupted
/// while it did. None if no run has that id.
pub(crate) fn held_by_run(data_directory: &Path, job: &JobId) -> Option<String> {
    let path = RunDirectory::of(data_directory, job);
    let shown = data_directory.display();
    // Looked at first: a run that ends meanwhile must not look as if it could be resumed.
    if is_locked(&path) {
        let process = owner(&path);
        return Some(format!(
            "job {job} belongs to a `regrow run` of the data directory {shown}, which {process} \
             runs; wait until it has ended, or choose another --job-id"
        ));
    }
    match RunFile::read(&path) {
        Ok(Some(file)) if file.survives_its_process() => Some(format!(
            "job {job} belongs to a `regrow run` of the data directory {shown}, which was \
             interrupted; go on with it with `regrow run --resume --job-id {job} --data-dir {shown}`, \
             or choose another --job-id; to give it up, with all that it finished, remove {}",
            path.display()
        )),
        Ok(_) => None,
        Err(error) => Some(format!(
            "job {job} belongs to a `regrow run` of the data directory {shown}: {}; or choose \
             another --job-id",
            with_causes(&error)
        )),
    }
}
