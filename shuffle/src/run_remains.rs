//! What lies of a run under a root, as one can tell without taking anything over.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regrow_protocol::{DataDirectoryId, Epoch, RunId};

use crate::{
    disk_error::{DiskError, During},
    finish_frame::{FinishFrame, FrameScan},
    run_file::RunFile,
};

/// What lies of a run in all data directories under a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRemains {
    /// Whether any worker made a directory for the run.
    pub any: bool,
    /// How many finish records there may be: files that end with one, and frames that hold one.
    pub finish_records: usize,
    /// The highest epoch that a name or a finish record shows.
    pub highest: Epoch,
}

impl RunRemains {
    /// Looks at the names under `root`, and into finish logs. Takes no lock and changes nothing.
    ///
    /// # Errors
    /// When a directory or finish log is there but cannot be read.
    pub fn look(root: &Path, run: RunId) -> Result<Self, DiskError> {
        let mut remains = Self::default();
        for directory in entries(root)? {
            let name = directory.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.parse::<DataDirectoryId>().is_ok()) {
                remains.look_into(&directory.join(run.to_string()), run)?;
            }
        }
        Ok(remains)
    }

    fn look_into(&mut self, path: &Path, run: RunId) -> Result<(), DiskError> {
        self.any |= path.is_dir();
        for file in entries(path)? {
            let name = file.file_name().and_then(|name| name.to_str());
            match name.and_then(|name| RunFile::parse(run, name)) {
                Some(RunFile::Partition(partition)) => {
                    self.finish_records += 1;
                    self.highest = self.highest.max(partition.attempt.epoch);
                }
                Some(
                    RunFile::Finish(attempt)
                    | RunFile::Temporary(attempt, _)
                    | RunFile::Spill(attempt, _),
                ) => self.highest = self.highest.max(attempt.epoch),
                Some(RunFile::Log(_)) => self.look_into_log(&file)?,
                None => {}
            }
        }
        Ok(())
    }

    fn look_into_log(&mut self, path: &Path) -> Result<(), DiskError> {
        let bytes = fs::read(path).during("read", path)?;
        for (frame, _) in FrameScan::of(&bytes).frames {
            let attempt = match frame {
                FinishFrame::Finished(record) => {
                    self.finish_records += 1;
                    record.attempt
                }
                FinishFrame::Voided(attempt) => attempt,
            };
            self.highest = self.highest.max(attempt.epoch);
        }
        Ok(())
    }
}

/// What a directory holds; nothing if there is none.
fn entries(path: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let entries = match fs::read_dir(path) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        entries => entries.during("list", path)?,
    };
    entries.map(|entry| Ok(entry.during("list", path)?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(9);

    fn directory(root: &Path, id: u128) -> PathBuf {
        let path = root.join(DataDirectoryId::from_bits(id).to_string()).join(RUN.to_string());
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn the_highest_epoch_is_found_in_names_of_all_directories() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(RunRemains::look(root.path(), RUN).unwrap(), RunRemains::default());
        let (one, other) = (directory(root.path(), 1), directory(root.path(), 2));
        for (directory, name) in [
            (&one, "0-0-0-1-0.0.partition"),
            (&one, "0-1-0-2-3.0.partition"),
            (&one, "strange"),
            (&other, "0-2-0-4-1.7.tmp"),
            (&other, "0-2-0-3-0.finish"),
        ] {
            fs::write(directory.join(name), "").unwrap();
        }
        let remains = RunRemains::look(root.path(), RUN).unwrap();
        let expected =
            RunRemains { any: true, finish_records: 2, highest: Epoch { term: 4, life: 1 } };
        assert_eq!(remains, expected);
        let another = RunRemains::look(root.path(), RunId::from_bits(8)).unwrap();
        assert_eq!(another, RunRemains::default());
    }

    #[test]
    fn a_finish_log_counts_frame_by_frame() {
        let root = tempfile::tempdir().unwrap();
        let attempt = regrow_protocol::ExecutionAttemptId {
            run: RUN,
            vertex: regrow_protocol::JobVertexId(1),
            subtask: 0,
            epoch: Epoch::new(6, 0),
            number: 0,
        };
        let path = directory(root.path(), 1).join(RunFile::Log(None).to_string());
        fs::write(path, [b"torn".as_slice(), &FinishFrame::voided(attempt)].concat()).unwrap();
        let remains = RunRemains::look(root.path(), RUN).unwrap();
        assert_eq!((remains.finish_records, remains.highest), (0, attempt.epoch));
    }
}
