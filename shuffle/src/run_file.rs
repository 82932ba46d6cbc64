//! The names of files within the directory of a run.

use std::fmt;

use regrow_protocol::{
    DataSetId, Epoch, ExecutionAttemptId, JobVertexId, PartitionId, RunId, WorkerId,
};

/// Name of the finish log of a run.
const LOG: &str = "finishes.log";

/// What stands before and behind the id of a writer in the name of its finish log.
const WRITER_LOG: &str = "finishes-";
const LOG_EXTENSION: &str = ".log";

/// A file or directory within the directory of a run.
///
/// An attempt is written `vertex-subtask-number-term-life`:
///
/// | name | is |
/// |---|---|
/// | `3-17-0-1-0.5.partition` | a sealed partition, for data set 5 |
/// | `3-17-0-1-0.finish` | the finish record of an attempt with several outputs |
/// | `finishes.log` | the finish records of attempts without outputs, and what voids one |
/// | `finishes-WORKER.log` | those of one of several processes that write here |
/// | `3-17-0-1-0.9.tmp` | what a writer has not sealed; 9 tells writers of an attempt apart |
/// | `3-17-0-1-0.9.spill` | a directory for files of the attempt's operators |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunFile {
    /// A sealed partition.
    Partition(PartitionId),
    /// The finish record of an attempt with several outputs.
    Finish(ExecutionAttemptId),
    /// The finish records of attempts without outputs: of whoever keeps the directory, or of one
    /// of those who write what another process keeps.
    Log(Option<WorkerId>),
    /// What a writer has not sealed.
    Temporary(ExecutionAttemptId, u64),
    /// A directory for files of an attempt's operators.
    Spill(ExecutionAttemptId, u64),
}

impl RunFile {
    /// Tells what `name` in the directory of `run` is; `None` for names that nobody here gives.
    pub(crate) fn parse(run: RunId, name: &str) -> Option<Self> {
        let file = Self::parse_loosely(run, name)?;
        // One name per file: `03-…` or `+3-…` are not ours.
        (file.to_string() == name).then_some(file)
    }

    fn parse_loosely(run: RunId, name: &str) -> Option<Self> {
        if name == LOG {
            return Some(Self::Log(None));
        }
        if let Some(writer) =
            name.strip_prefix(WRITER_LOG).and_then(|rest| rest.strip_suffix(LOG_EXTENSION))
        {
            return Some(Self::Log(Some(writer.parse().ok()?)));
        }
        let (attempt, rest) = name.split_once('.')?;
        let attempt = parse_attempt(run, attempt)?;
        if rest == "finish" {
            return Some(Self::Finish(attempt));
        }
        let (number, kind) = rest.split_once('.')?;
        match kind {
            "partition" => {
                let data_set = DataSetId(number.parse().ok()?);
                Some(Self::Partition(PartitionId { attempt, data_set }))
            }
            "tmp" => Some(Self::Temporary(attempt, number.parse().ok()?)),
            "spill" => Some(Self::Spill(attempt, number.parse().ok()?)),
            _ => None,
        }
    }
}

fn parse_attempt(run: RunId, text: &str) -> Option<ExecutionAttemptId> {
    let mut parts = text.split('-');
    let vertex = JobVertexId(parts.next()?.parse().ok()?);
    let subtask = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    let epoch = Epoch { term: parts.next()?.parse().ok()?, life: parts.next()?.parse().ok()? };
    parts.next().is_none().then_some(ExecutionAttemptId { run, vertex, subtask, epoch, number })
}

impl fmt::Display for RunFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition(PartitionId { attempt, data_set }) => {
                write!(f, "{}.{data_set}.partition", Name(attempt))
            }
            Self::Finish(attempt) => write!(f, "{}.finish", Name(attempt)),
            Self::Log(None) => f.write_str(LOG),
            Self::Log(Some(writer)) => write!(f, "{WRITER_LOG}{writer}{LOG_EXTENSION}"),
            Self::Temporary(attempt, serial) => write!(f, "{}.{serial}.tmp", Name(attempt)),
            Self::Spill(attempt, serial) => write!(f, "{}.{serial}.spill", Name(attempt)),
        }
    }
}

/// An attempt within the name of a file.
struct Name<'a>(&'a ExecutionAttemptId);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExecutionAttemptId { run: _, vertex, subtask, epoch, number } = self.0;
        write!(f, "{vertex}-{subtask}-{number}-{}-{}", epoch.term, epoch.life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bits(9);

    #[test]
    fn every_name_is_read_back() {
        let attempt = parse_attempt(RUN, "3-17-0-1-2").unwrap();
        assert_eq!((attempt.subtask, attempt.epoch), (17, Epoch::new(1, 2)));
        for (file, name) in [
            (
                RunFile::Partition(PartitionId { attempt, data_set: DataSetId(5) }),
                "3-17-0-1-2.5.partition",
            ),
            (RunFile::Finish(attempt), "3-17-0-1-2.finish"),
            (RunFile::Log(None), "finishes.log"),
            (
                RunFile::Log(Some(WorkerId::from_bits(0xa))),
                "finishes-0000000000000000000000000000000a.log",
            ),
            (RunFile::Temporary(attempt, 8), "3-17-0-1-2.8.tmp"),
            (RunFile::Spill(attempt, 8), "3-17-0-1-2.8.spill"),
        ] {
            assert_eq!(file.to_string(), name);
            assert_eq!(RunFile::parse(RUN, name), Some(file));
        }
    }

    #[test]
    fn other_names_are_nobodys() {
        for name in [
            "",
            "x",
            "3-17-0-1.finish",
            "03-17-0-1-2.finish",
            "3-17-0-1-2.5.part",
            "finishes-a.log",
        ] {
            assert_eq!(RunFile::parse(RUN, name), None, "{name}");
        }
    }
}
