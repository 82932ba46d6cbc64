//! The ledger: one line per start and end of an attempt, for tests and people that look from
//! outside.
//!
//! A line is `unix_ms epoch stage subtask attempt start|end|failed|cancelled`, with single spaces,
//! appended in one write. A planned kill is `unix_ms epoch - - - kill`.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use regrow_protocol::{Epoch, ExecutionAttemptId};
use thiserror::Error;

/// Ledgers that stay open: one per job that runs here; more are closed and opened again.
const OPEN_LEDGERS_MAX: usize = 16;

/// A file to which lines are appended. Clones share it; lines of several processes do not mix.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    path: Arc<Path>,
    file: Arc<File>,
}

/// What happened to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerMark {
    /// It starts; user code has not run yet.
    Start,
    /// It is sealed.
    End,
    /// It ended without a result.
    Failed,
    /// It was told to stop, and did.
    Cancelled,
}

/// The ledger cannot be written.
#[derive(Debug, Error)]
#[error("cannot append to the ledger {}; give another path or make it writable", .path.display())]
pub(crate) struct LedgerError {
    /// Which file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Ledger {
    /// Opens a ledger for appending; makes the file if it is not there.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|source| LedgerError { path: path.to_owned(), source })?;
        Ok(Self { path: path.into(), file: Arc::new(file) })
    }

    /// Appends the line of an attempt.
    ///
    /// # Errors
    /// When the line is not written whole.
    pub(crate) fn mark(
        &self,
        attempt: &ExecutionAttemptId,
        mark: LedgerMark,
    ) -> Result<(), LedgerError> {
        let ExecutionAttemptId { run: _, vertex, subtask, epoch, number } = attempt;
        self.append(&format!("{} {epoch} {vertex} {subtask} {number} {mark}\n", unix_ms()))
    }

    /// Appends a line that ends with a line break.
    ///
    /// # Errors
    /// When the line is not written whole.
    pub(crate) fn append(&self, line: &str) -> Result<(), LedgerError> {
        write_at_once(&self.file, line.as_bytes())
            .map_err(|source| LedgerError { path: self.path.to_path_buf(), source })
    }
}

/// One call, so that lines of several writers never mix; the rest of a short write is not tried.
fn write_at_once(mut file: &File, line: &[u8]) -> io::Result<()> {
    loop {
        match file.write(line) {
            Ok(written) if written == line.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The line of a planned kill of the `JobMaster` of `epoch`, with its line break.
pub(crate) fn kill_line(epoch: Epoch) -> String {
    format!("{} {epoch} - - - kill\n", unix_ms())
}

fn unix_ms() -> u128 {
    #[expect(clippy::disallowed_types, reason = "the ledger tells people wall time")]
    let now = std::time::SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis()
}

impl fmt::Display for LedgerMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// The ledgers that a worker writes, kept open.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    open: Mutex<BTreeMap<String, Ledger>>,
}

impl Ledgers {
    /// The ledger at `path`, opened if it was not yet.
    pub(crate) fn get(&self, path: &str) -> Result<Ledger, LedgerError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ledger) = open.get(path) {
            return Ok(ledger.clone());
        }
        let ledger = Ledger::open(Path::new(path))?;
        if open.len() >= OPEN_LEDGERS_MAX {
            open.clear();
        }
        open.insert(path.to_owned(), ledger.clone());
        Ok(ledger)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use regrow_protocol::{JobVertexId, RunId};

    use super::*;

    fn attempt(subtask: u32) -> ExecutionAttemptId {
        ExecutionAttemptId {
            run: RunId::from_bits(1),
            vertex: JobVertexId(3),
            subtask,
            epoch: Epoch::new(1, 2),
            number: 4,
        }
    }

    #[test]
    fn a_line_has_the_fixed_form() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        let ledger = Ledger::open(&path).unwrap();
        ledger.mark(&attempt(17), LedgerMark::Start).unwrap();
        ledger.append(&kill_line(Epoch::new(1, 2))).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (time, rest) = lines[0].split_once(' ').unwrap();
        assert!(time.parse::<u64>().unwrap() > 1_600_000_000_000);
        assert_eq!(rest, "1048578 3 17 4 start");
        assert_eq!(lines[1].split_once(' ').unwrap().1, "1048578 - - - kill");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn lines_of_several_writers_do_not_mix() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        thread::scope(|scope| {
            for subtask in 0..4 {
                let ledger = Ledger::open(&path).unwrap();
                let mark = move || ledger.mark(&attempt(subtask), LedgerMark::End).unwrap();
                scope.spawn(move || (0..200).for_each(|_| mark()));
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 800);
        assert!(text.lines().all(|line| line.ends_with(" 4 end") && line.split(' ').count() == 6));
    }

    #[test]
    fn a_ledger_that_cannot_be_opened_is_named() {
        let ledgers = Ledgers::default();
        let error = ledgers.get("/nonexistent/ledger").unwrap_err();
        assert!(error.to_string().contains("/nonexistent/ledger"), "{error}");
    }

    #[test]
    fn ledgers_stay_open_but_not_without_bound() {
        let directory = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::default();
        for number in 0..2 * OPEN_LEDGERS_MAX {
            ledgers.get(directory.path().join(number.to_string()).to_str().unwrap()).unwrap();
        }
        assert!(ledgers.open.lock().unwrap().len() <= OPEN_LEDGERS_MAX);
    }
}
