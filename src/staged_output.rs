//! A file that a sink stages: it stands in the hidden directory of the run until a commit
//! publishes it.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
};

use regrow_protocol::{SinkTarget, StagedFile, TaskDeployment, TaskFailure};

/// A staged file that is being written. Removed when dropped before it was sealed.
pub(crate) struct StagedOutput {
    file: File,
    path: PathBuf,
    staged: StagedFile,
    sealed: bool,
}

impl StagedOutput {
    /// Makes the file of an attempt in the staging directory of `target`, which must exist.
    pub(crate) fn create(
        deployment: &TaskDeployment,
        target: &SinkTarget,
        extension: &str,
    ) -> Result<Self, TaskFailure> {
        let attempt = deployment.attempt;
        let staged_name = format!(
            "sink-{}-part-{:05}-run-{}-epoch-{}-attempt-{}.{extension}",
            target.sink, attempt.subtask, attempt.run, attempt.epoch, attempt.number,
        );
        let path = PathBuf::from(&target.staging_directory).join(&staged_name);
        let file = File::create_new(&path).map_err(|error| {
            TaskFailure::task(format!("cannot stage the file {}: {error}", path.display()))
        })?;
        let staged = StagedFile {
            sink: target.sink,
            staged_name,
            final_name: format!("part-{:05}.{extension}", attempt.subtask),
            bytes: 0,
            checksum: 0,
        };
        Ok(Self { file, path, staged, sealed: false })
    }

    /// Makes the file durable, with its name.
    pub(crate) fn seal(mut self) -> Result<StagedFile, TaskFailure> {
        let synced = self.file.sync_all().and_then(|()| match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        });
        synced.map_err(|error| write_failure(&self.path, &error))?;
        self.sealed = true;
        Ok(self.staged.clone())
    }
}

/// A failure to write the file at `path`.
fn write_failure(path: &std::path::Path, error: &io::Error) -> TaskFailure {
    TaskFailure::task(format!("cannot write the staged file {}: {error}", path.display()))
}

impl Write for StagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes).map_err(|error| {
            io::Error::new(error.kind(), write_failure(&self.path, &error).to_string())
        })?;
        self.staged.checksum = crc32c::crc32c_append(self.staged.checksum, &bytes[..written]);
        self.staged.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for StagedOutput {
    fn drop(&mut self) {
        if !self.sealed {
            // Nothing more can be done: the hidden directory goes with the run.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
