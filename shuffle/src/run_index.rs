//! Which attempts of a run are proven to have finished.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io, mem,
    path::{Path, PathBuf},
};

use regrow_protocol::{DataSetId, ExecutionAttemptId, FinishRecord, PartitionId, RunId, WorkerId};

use crate::{
    disk_error::{DiskError, During},
    finish_frame::{FINISH_RECORD_BYTES_MAX, FinishFrame, FrameScan},
    run_file::RunFile,
    run_inventory::{Damage, RunInventory},
    trailer::{Trailer, TrailerError},
};

/// What the directory of a run holds, kept in step with it by [`RunDirectory`].
///
/// [`RunDirectory`]: crate::run_directory::RunDirectory
#[derive(Debug, Default)]
pub(crate) struct RunIndex {
    proofs: BTreeMap<ExecutionAttemptId, Proof>,
    unproven: BTreeMap<ExecutionAttemptId, Unproven>,
    /// Files that belong to no attempt.
    strange: Vec<Damage>,
}

/// A finish and where it is proven.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    /// The proof itself.
    pub(crate) record: FinishRecord,
    /// Where it lies.
    pub(crate) place: Place,
}

/// Where a finish record and its outputs lie.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In files of the attempt, with their lengths; the last one holds the record.
    Files(Vec<(RunFile, u64)>),
    /// In a finish log.
    Log {
        /// Whose it is, see [`RunFile::Log`].
        writer: Option<WorkerId>,
        /// The record ends before this offset.
        end: u64,
    },
}

/// Files of an attempt that prove nothing.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// All of them; the one to remove first is the last.
    pub(crate) files: Vec<RunFile>,
    culprit: RunFile,
    reason: String,
}

impl RunIndex {
    /// Reads the directory of `run` at `path`; one that is not there is empty if the directory that
    /// it would be in is there.
    ///
    /// # Errors
    /// When the directory cannot be listed. A file that cannot be read is damage.
    pub(crate) fn read(path: &Path, run: RunId) -> Result<Self, DiskError> {
        if let Some(parent) = path.parent() {
            fs::metadata(parent).during("list", parent)?;
        }
        let mut index = Self::default();
        index.look_again(path, run)?;
        Ok(index)
    }

    /// What the directory holds now. Files of known proofs are not opened again, and nothing that is
    /// known is forgotten because it is not there at this moment: it may have been moved away, and
    /// come back.
    ///
    /// # Errors
    /// As [`read`](Self::read); then what was known stays known.
    pub(crate) fn look_again(&mut self, path: &Path, run: RunId) -> Result<(), DiskError> {
        if let Some(names) = names(path)? {
            *self = mem::take(self).read_again(path, run, names);
        }
        Ok(())
    }

    fn read_again(mut self, path: &Path, run: RunId, names: Vec<OsString>) -> Self {
        let mut index = Self::default();
        let mut found: BTreeMap<ExecutionAttemptId, Found> = BTreeMap::new();
        let mut logs = Vec::new();
        for name in names {
            let file = name.to_str().and_then(|name| RunFile::parse(run, name));
            match file {
                Some(
                    RunFile::Partition(PartitionId { attempt, .. }) | RunFile::Finish(attempt),
                ) if index.takes_from(&mut self, attempt) => {}
                Some(RunFile::Partition(partition)) => {
                    let trailer = read_trailer(&path.join(name), partition);
                    let of = found.entry(partition.attempt).or_default();
                    of.partitions.insert(partition.data_set, trailer);
                }
                Some(RunFile::Finish(attempt)) => {
                    let record = read_finish_file(&path.join(name), attempt);
                    found.entry(attempt).or_default().finish = Some(record);
                }
                Some(RunFile::Log(writer)) => logs.push(writer),
                // Writers of this life may be at work on them.
                Some(RunFile::Temporary(..) | RunFile::Spill(..)) => {}
                None => index.add_strange(path.join(name), "nobody here gives such a name"),
            }
        }
        // Who keeps the directory voids in its own log what it releases, so that one comes last.
        logs.sort_unstable_by_key(|writer| (writer.is_none(), *writer));
        for writer in &logs {
            index.read_log(&path.join(RunFile::Log(*writer).to_string()), run, *writer);
        }
        for (attempt, found) in found {
            let files = found.files(attempt);
            match found.find_proof(attempt) {
                Ok(proof) => index.insert(proof),
                Err((culprit, reason)) => {
                    index.unproven.insert(attempt, Unproven { files, culprit, reason });
                }
            }
        }
        index.doubt_rest(self, &logs);
        index
    }

    /// Takes over what is known of attempts of which nothing was found. What was proven by one of
    /// `logs`, which were read, and is no longer, was voided.
    fn doubt_rest(&mut self, known: Self, logs: &[Option<WorkerId>]) {
        let is_unread = |proof: &Proof| match &proof.place {
            Place::Files(_) => true,
            Place::Log { writer, .. } => !logs.contains(writer),
        };
        for (attempt, proof) in known.proofs {
            if !self.knows(attempt) && is_unread(&proof) {
                self.proofs.insert(attempt, proof);
            }
        }
        for (attempt, unproven) in known.unproven {
            if !self.knows(attempt) {
                self.unproven.insert(attempt, unproven);
            }
        }
    }

    /// Whether something was missing or unreadable when it was last looked at: it may be there now.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.unproven.is_empty() || !self.strange.is_empty()
    }

    /// Whether an attempt is proven by files as far as is known; then the proof is taken over.
    fn takes_from(&mut self, known: &mut Self, attempt: ExecutionAttemptId) -> bool {
        if known.proofs.get(&attempt).is_some_and(Proof::is_by_files)
            && let Some(proof) = known.proofs.remove(&attempt)
        {
            self.proofs.insert(attempt, proof);
        }
        self.proofs.contains_key(&attempt)
    }

    fn read_log(&mut self, path: &Path, run: RunId, writer: Option<WorkerId>) {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => return self.add_strange(path.to_owned(), format!("unreadable: {error}")),
        };
        let scan = FrameScan::of(&bytes);
        for (frame, end) in scan.frames {
            match frame {
                FinishFrame::Finished(record) if record.attempt.run == run => {
                    self.insert(Proof { record: *record, place: Place::Log { writer, end } });
                }
                FinishFrame::Finished(record) => {
                    let reason =
                        format!("it holds {} of run {}", record.attempt, record.attempt.run);
                    self.add_strange(path.to_owned(), reason);
                }
                FinishFrame::Voided(attempt) => drop(self.proofs.remove(&attempt)),
            }
        }
        for range in scan.damaged {
            let reason = format!("bytes {} to {} hold no finish record", range.start, range.end);
            self.add_strange(path.to_owned(), reason);
        }
    }

    fn add_strange(&mut self, path: PathBuf, reason: impl Into<String>) {
        self.strange.push(Damage { attempt: None, path, reason: reason.into() });
    }

    /// Notes a finish.
    pub(crate) fn insert(&mut self, proof: Proof) {
        self.unproven.remove(&proof.record.attempt);
        self.proofs.insert(proof.record.attempt, proof);
    }

    /// Notes files of an attempt that prove nothing.
    pub(crate) fn insert_unproven(
        &mut self,
        attempt: ExecutionAttemptId,
        files: Vec<RunFile>,
        reason: String,
    ) {
        let culprit = files.last().copied().unwrap_or(RunFile::Log(None));
        self.unproven.insert(attempt, Unproven { files, culprit, reason });
    }

    /// The proof that `attempt` finished.
    pub(crate) fn proof(&self, attempt: ExecutionAttemptId) -> Option<&Proof> {
        self.proofs.get(&attempt)
    }

    /// Whether anything is known of an attempt.
    pub(crate) fn knows(&self, attempt: ExecutionAttemptId) -> bool {
        self.proofs.contains_key(&attempt) || self.unproven.contains_key(&attempt)
    }

    /// Whether the finish of `attempt` is proven by the log, or was by one that is lost.
    pub(crate) fn is_logged(&self, attempt: ExecutionAttemptId) -> bool {
        let in_log = |proof: &Proof| !proof.is_by_files();
        let was_in_log = |unproven: &Unproven| matches!(unproven.culprit, RunFile::Log(_));
        self.proofs.get(&attempt).is_some_and(in_log)
            || self.unproven.get(&attempt).is_some_and(was_in_log)
    }

    /// Forgets an attempt and gives its files; the one to remove first is the last.
    pub(crate) fn take_files(&mut self, attempt: ExecutionAttemptId) -> Vec<RunFile> {
        if let Some(Proof { record: _, place: Place::Files(files) }) = self.proofs.remove(&attempt)
        {
            return files.into_iter().map(|(file, _)| file).collect();
        }
        self.unproven.remove(&attempt).map(|unproven| unproven.files).unwrap_or_default()
    }

    /// Finds proofs whose files are not there in full, and does not count them until they are found
    /// again.
    ///
    /// # Errors
    /// When a file cannot be looked at: that does not tell whether it is there.
    pub(crate) fn doubt_lost(&mut self, path: &Path) -> Result<(), DiskError> {
        let mut logs = LogLengths::default();
        let mut lost = Vec::new();
        for (attempt, proof) in &self.proofs {
            lost.extend(proof.find_loss(path, &mut logs)?.map(|loss| (*attempt, loss)));
        }
        for (attempt, (culprit, reason)) in lost {
            let files = self.take_files(attempt);
            self.unproven.insert(attempt, Unproven { files, culprit, reason });
        }
        Ok(())
    }

    /// All that is known.
    pub(crate) fn inventory(&self, path: &Path) -> RunInventory {
        let finished = self.proofs.values().map(|proof| proof.record.clone()).collect();
        let unproven = self.unproven.iter().map(|(attempt, unproven)| Damage {
            attempt: Some(*attempt),
            path: path.join(unproven.culprit.to_string()),
            reason: unproven.reason.clone(),
        });
        RunInventory { finished, damaged: unproven.chain(self.strange.iter().cloned()).collect() }
    }
}

impl Proof {
    fn is_by_files(&self) -> bool {
        matches!(self.place, Place::Files(_))
    }

    /// Whether all files are there, with the length they were sealed with.
    ///
    /// # Errors
    /// When a file cannot be looked at.
    pub(crate) fn is_intact(&self, path: &Path) -> Result<bool, DiskError> {
        Ok(self.find_loss(path, &mut LogLengths::default())?.is_none())
    }

    fn find_loss(
        &self,
        path: &Path,
        logs: &mut LogLengths,
    ) -> Result<Option<(RunFile, String)>, DiskError> {
        match &self.place {
            Place::Log { writer, end } => {
                let found = logs.length(path, *writer)?;
                Ok((found < Some(*end)).then(|| (RunFile::Log(*writer), loss(*end, found))))
            }
            Place::Files(files) => {
                let mut looked = files.iter().map(|(file, bytes)| {
                    let found = length(&path.join(file.to_string()))?;
                    Ok((found != Some(*bytes)).then(|| (*file, loss(*bytes, found))))
                });
                looked.find_map(Result::transpose).transpose()
            }
        }
    }
}

/// How long finish logs are, each looked at once.
#[derive(Debug, Default)]
struct LogLengths(BTreeMap<Option<WorkerId>, Option<u64>>);

impl LogLengths {
    fn length(&mut self, path: &Path, writer: Option<WorkerId>) -> Result<Option<u64>, DiskError> {
        if let Some(known) = self.0.get(&writer) {
            return Ok(*known);
        }
        let found = length(&path.join(RunFile::Log(writer).to_string()))?;
        self.0.insert(writer, found);
        Ok(found)
    }
}

/// The length of a file; none if it is not there.
fn length(path: &Path) -> Result<Option<u64>, DiskError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).during("look at", path),
    }
}

/// The names in a directory; none if it is not there.
fn names(path: &Path) -> Result<Option<Vec<OsString>>, DiskError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.during("list", path)?,
    };
    let names: io::Result<_> = entries.map(|entry| Ok(entry?.file_name())).collect();
    names.during("list", path).map(Some)
}

fn loss(sealed: u64, found: Option<u64>) -> String {
    match found {
        Some(found) => format!("it was sealed with {sealed} bytes and has {found}"),
        None => "it was sealed and is gone".to_owned(),
    }
}

/// What a directory holds of one attempt with outputs.
#[derive(Debug, Default)]
struct Found {
    partitions: BTreeMap<DataSetId, Result<Trailer, String>>,
    finish: Option<Result<(FinishRecord, u64), String>>,
}

impl Found {
    /// All of them; the one to remove first is the last.
    fn files(&self, attempt: ExecutionAttemptId) -> Vec<RunFile> {
        let name =
            |data_set: &DataSetId| RunFile::Partition(PartitionId { attempt, data_set: *data_set });
        let finish = self.finish.is_some().then_some(RunFile::Finish(attempt));
        self.partitions.keys().map(name).chain(finish).collect()
    }

    fn find_proof(mut self, attempt: ExecutionAttemptId) -> Result<Proof, (RunFile, String)> {
        let name = |data_set| RunFile::Partition(PartitionId { attempt, data_set });
        for (data_set, trailer) in &self.partitions {
            if let Err(reason) = trailer {
                return Err((name(*data_set), reason.clone()));
            }
        }
        let (record, finish_bytes) = match self.finish.take() {
            Some(Ok((record, bytes))) => (record, Some(bytes)),
            Some(Err(reason)) => return Err((RunFile::Finish(attempt), reason)),
            None => (self.take_trailing_record(attempt)?, None),
        };
        let mut files = Vec::new();
        for output in &record.outputs {
            let name = name(output.data_set);
            match self.partitions.remove(&output.data_set) {
                Some(Ok(trailer)) if trailer.index_checksum == output.checksum => {
                    files.push((name, trailer.file_bytes));
                }
                Some(_) => return Err((name, "it is not the one its record tells of".to_owned())),
                None => {
                    return Err((name, "its finish record is there, but not the file".to_owned()));
                }
            }
        }
        if let Some((data_set, _)) = self.partitions.pop_first() {
            return Err((name(data_set), "its finish record does not tell of it".to_owned()));
        }
        files.extend(finish_bytes.map(|bytes| (RunFile::Finish(attempt), bytes)));
        Ok(Proof { record, place: Place::Files(files) })
    }

    fn take_trailing_record(
        &mut self,
        attempt: ExecutionAttemptId,
    ) -> Result<FinishRecord, (RunFile, String)> {
        let mut name = RunFile::Finish(attempt);
        for (data_set, trailer) in &mut self.partitions {
            name = RunFile::Partition(PartitionId { attempt, data_set: *data_set });
            let record = trailer.as_mut().ok().and_then(|trailer| trailer.record.take());
            match record {
                Some(record) if record.attempt == attempt => return Ok(record),
                Some(record) => {
                    return Err((name, format!("its finish record is of {}", record.attempt)));
                }
                None => {}
            }
        }
        Err((name, "its attempt has no finish record".to_owned()))
    }
}

fn read_trailer(path: &Path, partition: PartitionId) -> Result<Trailer, String> {
    Trailer::read(path, partition).map_err(|error| match error {
        TrailerError::Damaged(reason) => reason,
        TrailerError::Unreadable(error) => format!("it cannot be read: {error}"),
    })
}

fn read_finish_file(
    path: &Path,
    attempt: ExecutionAttemptId,
) -> Result<(FinishRecord, u64), String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let bytes = fs::metadata(path).map_err(unreadable)?.len();
    // A frame has less than 64 bytes besides its body.
    if bytes > FINISH_RECORD_BYTES_MAX as u64 + 64 {
        return Err(format!("it has {bytes} bytes, more than a finish record can have"));
    }
    let content = fs::read(path).map_err(unreadable)?;
    match FinishFrame::read(&content) {
        Some((FinishFrame::Finished(record), length))
            if length == content.len() && record.attempt == attempt =>
        {
            Ok((*record, bytes))
        }
        Some(_) => Err("it holds something else than the attempt's finish record".to_owned()),
        None => Err("it holds no finish record that can be read".to_owned()),
    }
}
