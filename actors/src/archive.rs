//! What stays of jobs that ended: result, recovery reports, events.
//!
//! One file per job, `archive/<job id>.job`, of its newest run:
//! ```text
//! a line of JSON           [`ArchivedJob`]
//! per batch of the log:
//!   4 bytes                length of the batch, little-endian
//!   4 bytes                its CRC32C, little-endian
//!   length bytes           the batch, as the log held it
//! ```

mod batch_reader;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use regrow_protocol::{JobId, RunId, SubmissionId};
use regrow_runtime::{JobOutcome, RecoveryReport};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::batch_reader::BatchReader;
use crate::durable_file;

/// How many ended jobs an archive keeps, newest first.
pub const ARCHIVED_JOBS_MAX: usize = 100;

/// Longest first line that is read: the arguments and reports of one job, whatever a damaged file
/// says.
const HEADER_BYTES_MAX: u64 = 1 << 30;

const FORMAT: u32 = 1;

/// The jobs that ended under a data directory.
#[derive(Clone, Debug)]
pub struct Archive {
    directory: PathBuf,
}

/// An ended job, without its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedJob {
    /// How it ended.
    pub outcome: JobOutcome,
    /// Name under which the program registered it.
    pub job_name: String,
    /// Its arguments, as its builder reads them.
    pub arguments: Vec<u8>,
    /// Who began the run; older programs did not note it.
    #[serde(default)]
    pub submission: Option<SubmissionId>,
    /// Each recovery, oldest first.
    pub reports: Vec<RecoveryReport>,
}

/// Where reading of an archived job's events begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArchivePlace {
    /// With the first.
    Beginning,
    /// At an offset in the file, which an [`ArchivedPart`] named.
    At(u64),
    /// Behind the batch with this CRC32C.
    Behind(u32),
}

/// Some of the events of an ended job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedPart {
    /// The run whose they are.
    pub(crate) run: RunId,
    /// As the log held them. A damage ends them.
    pub(crate) batches: Vec<Vec<u8>>,
    /// Where the next ones are; none at the end.
    pub(crate) next: Option<u64>,
    /// Whether the batch behind which they were to begin is not there: they are the first then.
    pub(crate) missed: bool,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    #[serde(flatten)]
    job: ArchivedJob,
}

/// Why an archive cannot be used.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The disk refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is damaged, or written by another version.
    #[error("archived job {path} cannot be read: {reason}; remove it to forget the job")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
}

impl Archive {
    /// The archive under a data directory; it need not exist yet.
    pub fn new(data_directory: &Path) -> Self {
        Self { directory: data_directory.join("archive") }
    }

    /// Keeps an ended job, durable, in place of an earlier run of it; forgets the oldest jobs above
    /// [`ARCHIVED_JOBS_MAX`].
    ///
    /// # Errors
    /// When the disk refuses; nothing changed then, and it can be tried again.
    pub fn write(&self, job: &ArchivedJob, batches: &[Vec<u8>]) -> Result<(), ArchiveError> {
        let path = self.path(&job.outcome.job);
        fs::create_dir_all(&self.directory)
            .map_err(|source| failed("make directory", &self.directory, source))?;
        let header = Header { format: FORMAT, job: job.clone() };
        let mut line = serde_json::to_vec(&header).map_err(|error| ArchiveError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        line.push(b'\n');
        let mut content = vec![line];
        for batch in batches {
            let length = u32::try_from(batch.len()).unwrap_or(u32::MAX).to_le_bytes();
            content.push([length, crc32c::crc32c(batch).to_le_bytes()].concat());
            content.push(batch.clone());
        }
        let parts: Vec<&[u8]> = content.iter().map(Vec::as_slice).collect();
        durable_file::replace(&path, &parts).map_err(|source| failed("write", &path, source))?;
        self.forget_oldest()
    }

    /// An ended job, if it is known.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn read(&self, job: &JobId) -> Result<Option<ArchivedJob>, ArchiveError> {
        let path = self.path(job);
        let Some(mut file) = open(&path)? else { return Ok(None) };
        read_header(&path, &mut file).map(Some)
    }

    /// The events of an ended job, as batches, if it is known. A damage ends them.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn read_batches(&self, job: &JobId) -> Result<Option<Vec<Vec<u8>>>, ArchiveError> {
        let path = self.path(job);
        let Some(mut file) = open(&path)? else { return Ok(None) };
        read_header(&path, &mut file)?;
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).map_err(|source| failed("read", &path, source))?;
        Ok(Some(split_batches(&rest)))
    }

    /// The events of an ended job from `place` on, until they have `bytes_max` bytes together, one
    /// batch at least; none if the job is not known.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(crate) fn read_part(
        &self,
        job: &JobId,
        place: ArchivePlace,
        bytes_max: usize,
    ) -> Result<Option<ArchivedPart>, ArchiveError> {
        let path = self.path(job);
        let Some(mut file) = open(&path)? else { return Ok(None) };
        let run = read_header(&path, &mut file)?.outcome.run;
        let part = BatchReader::new(file).and_then(|mut reader| {
            let missed = !go_to(&mut reader, place)?;
            let (batches, next) = take_batches(&mut reader, bytes_max)?;
            Ok(ArchivedPart { run, batches, next, missed })
        });
        part.map(Some).map_err(|source| failed("read", &path, source))
    }

    /// How long ago a job ended, as far as its file tells.
    pub fn age(&self, job: &JobId) -> Option<Duration> {
        fs::metadata(self.path(job)).ok()?.modified().ok()?.elapsed().ok()
    }

    /// The jobs it holds, the one that ended last first.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn jobs(&self) -> Result<Vec<JobId>, ArchiveError> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed("list", &self.directory, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| failed("list", &self.directory, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let job = name.strip_suffix(".job").and_then(|job| job.parse::<JobId>().ok());
            // A file that another process just removed has no age.
            let age = entry.metadata().and_then(|metadata| metadata.modified());
            if let (Some(job), Ok(modified)) = (job, age) {
                found.push((modified, job));
            }
        }
        found.sort_unstable();
        found.reverse();
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }

    fn forget_oldest(&self) -> Result<(), ArchiveError> {
        for job in self.jobs()?.into_iter().skip(ARCHIVED_JOBS_MAX) {
            let path = self.path(&job);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &path, source));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn path(&self, job: &JobId) -> PathBuf {
        self.directory.join(format!("{job}.job"))
    }
}

fn open(path: &Path) -> Result<Option<BufReader<File>>, ArchiveError> {
    match File::open(path) {
        Ok(file) => Ok(Some(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("open", path, source)),
    }
}

fn read_header(path: &Path, file: &mut BufReader<File>) -> Result<ArchivedJob, ArchiveError> {
    let damaged = |reason: String| ArchiveError::Damaged { path: path.to_owned(), reason };
    let mut line = Vec::new();
    file.by_ref()
        .take(HEADER_BYTES_MAX)
        .read_until(b'\n', &mut line)
        .map_err(|source| failed("read", path, source))?;
    let header: Header =
        serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
    if header.format != FORMAT {
        let reason = format!("it has format {}, this program reads {FORMAT}", header.format);
        return Err(damaged(reason));
    }
    Ok(header.job)
}

/// Goes to `place`, or, if it is not there, stays at the beginning and says so.
fn go_to(reader: &mut BatchReader, place: ArchivePlace) -> io::Result<bool> {
    let begin = reader.at();
    match place {
        ArchivePlace::Beginning => {}
        ArchivePlace::At(offset) => reader.go_to(offset.max(begin))?,
        ArchivePlace::Behind(checksum) => {
            if !reader.go_behind(checksum)? {
                reader.go_to(begin)?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Some batches, and the offset of the one behind them.
fn take_batches(
    reader: &mut BatchReader,
    bytes_max: usize,
) -> io::Result<(Vec<Vec<u8>>, Option<u64>)> {
    let (mut batches, mut room) = (Vec::new(), bytes_max);
    loop {
        let at = reader.at();
        let Some(head) = reader.head()? else { return Ok((batches, None)) };
        if head.length > room && !batches.is_empty() {
            return Ok((batches, Some(at)));
        }
        let Some(batch) = reader.batch(head)? else { return Ok((batches, None)) };
        room = room.saturating_sub(batch.len());
        batches.push(batch);
    }
}

fn split_batches(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    while let Some((batch, after)) = first_batch(rest) {
        batches.push(batch.to_vec());
        rest = after;
    }
    batches
}

fn first_batch(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, bytes) = bytes.split_first_chunk::<4>()?;
    let (checksum, bytes) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (batch, rest) = bytes.split_at_checked(length)?;
    (crc32c::crc32c(batch) == u32::from_le_bytes(*checksum)).then_some((batch, rest))
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Io { action, path: path.to_owned(), source }
}
