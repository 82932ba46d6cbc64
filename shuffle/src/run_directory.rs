//! The files of one run in a data directory.

use std::{
    fs, io, mem,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use regrow_protocol::{ExecutionAttemptId, FinishRecord, RunId, WorkerId};

use crate::{
    disk_error::{DiskError, During, unless_gone},
    finish_frame::FinishFrame,
    finish_log::FinishLog,
    run_file::RunFile,
    run_index::{Place, Proof, RunIndex},
    run_inventory::RunInventory,
    temporary::{SpillDirectory, TemporaryFile},
    write_error::WriteError,
};

/// Ends the name of a run's directory that is being removed.
pub(crate) const RELEASED: &str = ".released";

/// The files of one run in a data directory, and what they prove. Shared by all writers of the run.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    run: RunId,
    path: PathBuf,
    /// Where files are that are not sealed.
    workspace: PathBuf,
    sharing: Sharing,
    /// Tells temporary names apart, also those of writers of the same attempt.
    serial: AtomicU64,
    state: Mutex<State>,
}

/// Who else seals in the directory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody: the index of this process is in step with the directory.
    Alone,
    /// Writers of other processes: the index is read again whenever it is asked.
    WithWriters,
    /// This process is such a writer: it seals and forgets, for another one keeps the directory.
    AsWriter(WorkerId),
}

#[derive(Debug)]
enum State {
    /// Nobody has asked yet what is there.
    Unread,
    /// The index is in step with the directory.
    Open { index: RunIndex, log: Option<FinishLog> },
    /// All was given up; nothing is sealed any more.
    Released,
}

/// What an attempt seals.
pub(crate) enum Unsealed {
    /// A frame for the finish log.
    Frame(Vec<u8>),
    /// Files; the last one holds the finish record.
    Files(Vec<UnsealedFile>),
}

/// A file that is complete but for its name.
#[derive(Debug)]
pub(crate) struct UnsealedFile {
    /// Its final name.
    pub(crate) name: RunFile,
    /// Its length.
    pub(crate) bytes: u64,
    /// The file.
    pub(crate) temporary: TemporaryFile,
}

impl RunDirectory {
    /// The directory of `run` at `path`, of which this process is not a mere writer; touches no file.
    pub(crate) fn kept(run: RunId, path: PathBuf, sharing: Sharing) -> Self {
        let (state, workspace) = (Mutex::new(State::Unread), path.clone());
        Self { run, path, workspace, sharing, serial: AtomicU64::new(0), state }
    }

    /// The directory of `run` at `path`, into which `writer` moves what it has made in `workspace`.
    pub(crate) fn written(run: RunId, path: PathBuf, workspace: PathBuf, writer: WorkerId) -> Self {
        let state = Mutex::new(State::Open { index: RunIndex::default(), log: None });
        let sharing = Sharing::AsWriter(writer);
        Self { run, path, workspace, sharing, serial: AtomicU64::new(0), state }
    }

    /// Creates a file for an attempt to write.
    pub(crate) fn create_temporary(
        &self,
        attempt: ExecutionAttemptId,
    ) -> Result<TemporaryFile, WriteError> {
        let path = self.workspace.join(RunFile::Temporary(attempt, self.next_serial()).to_string());
        let created = self.in_directory(|| TemporaryFile::create(path.clone()));
        self.unless_released(created.during("create", &path))
    }

    /// Makes a directory for files of an attempt's operators.
    pub(crate) fn create_spill(
        &self,
        attempt: ExecutionAttemptId,
    ) -> Result<SpillDirectory, WriteError> {
        let path = self.workspace.join(RunFile::Spill(attempt, self.next_serial()).to_string());
        let created = self.in_directory(|| SpillDirectory::create(path.clone()));
        self.unless_released(created.during("make spill directory", &path))
    }

    fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the directory if the first try says that it is not there.
    fn in_directory<T>(&self, mut create: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        {
            // Under the lock, or a released directory would come back.
            let state = self.lock();
            if !matches!(*state, State::Released) {
                make_directory(&self.workspace)?;
            }
        }
        create()
    }

    fn unless_released<T>(&self, result: Result<T, DiskError>) -> Result<T, WriteError> {
        result.map_err(|error| match *self.lock() {
            State::Released => WriteError::Released { run: self.run },
            State::Unread | State::Open { .. } => error.into(),
        })
    }

    /// Makes a finish proven: when this returns, the record and all outputs are in the directory.
    /// If the attempt is sealed already, the first seal stays, and its record is the answer.
    pub(crate) fn seal(
        &self,
        record: FinishRecord,
        unsealed: Unsealed,
    ) -> Result<FinishRecord, WriteError> {
        let mut state = self.lock();
        self.read(&mut state)?;
        let State::Open { index, log } = &mut *state else {
            return Err(WriteError::Released { run: self.run });
        };
        if let Some(proof) = index.proof(record.attempt)
            && proof.is_intact(&self.path)?
        {
            return Ok(proof.record.clone());
        }
        let place = match unsealed {
            Unsealed::Frame(frame) => self.append(log, &frame)?,
            Unsealed::Files(files) => Place::Files(self.rename_all(files)?),
        };
        match self.sharing {
            Sharing::Alone | Sharing::WithWriters => {
                index.insert(Proof { record: record.clone(), place });
            }
            Sharing::AsWriter(_) => {}
        }
        Ok(record)
    }

    fn append(&self, log: &mut Option<FinishLog>, frame: &[u8]) -> Result<Place, DiskError> {
        let writer = match self.sharing {
            Sharing::Alone | Sharing::WithWriters => None,
            Sharing::AsWriter(writer) => Some(writer),
        };
        // A service that keeps the directory may have removed it since. Nobody else does, and a look
        // at the file costs as much as the write.
        let is_there = |open: &FinishLog| writer.is_none() || open.has_a_name();
        let open = if let Some(open) = log.take().filter(is_there) {
            open
        } else {
            make_directory(&self.path).during("make", &self.path)?;
            FinishLog::open(&self.path.join(RunFile::Log(writer).to_string()))?
        };
        let (open, end) = open.append(frame)?;
        *log = Some(open);
        Ok(Place::Log { writer, end })
    }

    fn rename_all(&self, files: Vec<UnsealedFile>) -> Result<Vec<(RunFile, u64)>, DiskError> {
        if self.workspace != self.path {
            make_directory(&self.path).during("make", &self.path)?;
        }
        let mut sealed = Vec::with_capacity(files.len());
        let result = files.into_iter().try_for_each(|mut file| {
            let path = self.path.join(file.name.to_string());
            file.temporary.rename(&path).during("seal", &path)?;
            sealed.push((file.name, file.bytes));
            Ok(())
        });
        if result.is_err() {
            // Partitions without a finish record prove nothing and would only lie about.
            let mut remains = sealed.iter().map(|(name, _)| *name).collect();
            let _ = self.remove_all(&mut remains);
        }
        result.map(|()| sealed)
    }

    /// The record of an attempt that is proven to have finished and whose files are all there.
    pub(crate) fn finish_of(
        &self,
        attempt: ExecutionAttemptId,
    ) -> Result<Option<FinishRecord>, DiskError> {
        let mut state = self.lock();
        self.read_again(&mut state)?;
        let State::Open { index, .. } = &*state else { return Ok(None) };
        match index.proof(attempt) {
            Some(proof) if proof.is_intact(&self.path)? => Ok(Some(proof.record.clone())),
            Some(_) | None => Ok(None),
        }
    }

    /// What is there now. Files that were removed or cut since they were sealed are noticed, and so
    /// are those that came back.
    pub(crate) fn inventory(&self) -> Result<RunInventory, DiskError> {
        let mut state = self.lock();
        self.read_again(&mut state)?;
        if self.sharing == Sharing::Alone
            && let State::Open { index, .. } = &mut *state
            && index.is_in_doubt()
        {
            index.look_again(&self.path, self.run)?;
        }
        let State::Open { index, log } = &mut *state else { return Ok(RunInventory::default()) };
        index.doubt_lost(&self.path)?;
        // Opened again by name, in case the log was removed.
        *log = None;
        Ok(index.inventory(&self.path))
    }

    /// Removes all of the attempts' files, the finish record first. Unknown attempts are none.
    pub(crate) fn release(&self, attempts: &[ExecutionAttemptId]) -> Result<(), DiskError> {
        let doomed = self.give_up(attempts)?;
        // Long files take long to remove, so writers are not kept waiting for the lock.
        let mut result = Ok(());
        for (attempt, mut files) in doomed {
            let Err(error) = self.remove_all(&mut files) else { continue };
            if let State::Open { index, .. } = &mut *self.lock() {
                index.insert_unproven(attempt, files, format!("not removed: {error}"));
            }
            result = Err(error);
        }
        result
    }

    /// Counts the attempts no longer, and gives the files that they have.
    fn give_up(
        &self,
        attempts: &[ExecutionAttemptId],
    ) -> Result<Vec<(ExecutionAttemptId, Vec<RunFile>)>, DiskError> {
        let mut state = self.lock();
        self.read(&mut state)?;
        let knows_all = |state: &State| match state {
            State::Open { index, .. } => attempts.iter().all(|attempt| index.knows(*attempt)),
            State::Unread | State::Released => false,
        };
        if !knows_all(&state) {
            self.read_again(&mut state)?;
        }
        let State::Open { index, log } = &mut *state else { return Ok(Vec::new()) };
        // First all that may fail: files that the index forgot would stay.
        for attempt in attempts {
            if index.is_logged(*attempt) {
                self.append(log, &FinishFrame::voided(*attempt))?;
            }
        }
        Ok(attempts.iter().map(|attempt| (*attempt, index.take_files(*attempt))).collect())
    }

    fn remove_all(&self, files: &mut Vec<RunFile>) -> Result<(), DiskError> {
        while let Some(file) = files.last() {
            self.remove(*file)?;
            files.pop();
        }
        Ok(())
    }

    fn remove(&self, file: RunFile) -> Result<(), DiskError> {
        let path = self.path.join(file.to_string());
        unless_gone(fs::remove_file(&path)).during("remove", &path)
    }

    /// Removes all files of the run; a mere writer removes only its own unsealed ones. From here on
    /// its writers get [`WriteError::Released`].
    pub(crate) fn release_all(&self) -> Result<(), DiskError> {
        let doomed = released_path(&self.workspace);
        // What an earlier try could not remove.
        unless_gone(fs::remove_dir_all(&doomed)).during("remove", &doomed)?;
        {
            let mut state = self.lock();
            // Nobody finds half of the files: they all leave their names at once.
            unless_gone(fs::rename(&self.workspace, &doomed)).during("release", &self.workspace)?;
            drop(mem::replace(&mut *state, State::Released));
        }
        unless_gone(fs::remove_dir_all(&doomed)).during("remove", &doomed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is changed in single steps, so a panic of another thread leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, state: &mut State) -> Result<(), DiskError> {
        if matches!(state, State::Unread) {
            *state = State::Open { index: RunIndex::read(&self.path, self.run)?, log: None };
        }
        Ok(())
    }

    /// Reads what is there, again where other processes may have sealed something since.
    fn read_again(&self, state: &mut State) -> Result<(), DiskError> {
        match state {
            State::Open { index, .. } if self.sharing == Sharing::WithWriters => {
                index.look_again(&self.path, self.run)
            }
            State::Unread | State::Open { .. } | State::Released => self.read(state),
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Where a run's directory is moved to before it is removed.
pub(crate) fn released_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(RELEASED);
    PathBuf::from(name)
}
