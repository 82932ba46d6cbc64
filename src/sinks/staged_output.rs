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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::TestContext;

    fn create(context: &TestContext) -> Result<StagedOutput, TaskFailure> {
        StagedOutput::create(&context.deployment, &context.deployment.sinks[0], "csv")
    }

    #[test]
    fn a_sealed_file_stays_and_one_that_was_given_up_goes() {
        let mut context = TestContext::new(3);
        let mut sealed = create(&context).unwrap();
        sealed.write_all(b"a,1\n").unwrap();
        let sealed = sealed.seal().unwrap();
        assert_eq!(sealed.final_name, "part-00003.csv");
        context.staged.push(sealed);
        assert_eq!(context.staged_text().as_deref(), Some("a,1\n"));

        context.deployment.attempt.number = 1;
        let given_up = create(&context).unwrap();
        let path = given_up.path.clone();
        assert!(path.exists());
        drop(given_up);
        assert!(!path.exists());
    }

    #[test]
    fn a_staging_directory_that_is_gone_is_never_made_again() {
        let mut context = TestContext::new(0);
        let gone = format!("{}/gone", context.deployment.sinks[0].staging_directory);
        context.deployment.sinks[0].staging_directory.clone_from(&gone);
        assert!(matches!(create(&context), Err(TaskFailure::Task { .. })));
        assert!(!std::path::Path::new(&gone).exists());
    }
}
