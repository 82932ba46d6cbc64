//! What a local run runs, as a later process reads it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regrow_protocol::{JobId, RunId, SubmissionId};
use regrow_runtime::StoreKind;
use serde::{Deserialize, Serialize};

use crate::{
    durable_file,
    launch::{InterruptedRun, LaunchError},
    output::{self, OutputError},
};

const FORMAT: u32 = 1;

/// What a local run runs. It is written before the job is accepted: where it is missing, nothing ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFile {
    format: u32,
    job: JobId,
    job_name: String,
    arguments: Vec<u8>,
    settings: Vec<(String, String)>,
    ledger: Option<PathBuf>,
    store: StoreName,
    /// None if a program wrote it that went on with a run by its store alone.
    #[serde(default)]
    identity: Option<RunIdentity>,
}

/// What it takes, beyond the job, to go on with a run whose store is gone (rule 5.13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunIdentity {
    /// Which run.
    pub(crate) run: RunId,
    /// The submission that it was accepted for.
    pub(crate) submission: SubmissionId,
    /// Hash of its graph.
    pub(crate) graph_hash: u64,
    /// Its hidden directories in the output directories; the manifest will be in the first.
    pub(crate) staging: Vec<PathBuf>,
    /// No process has led the run in a higher term.
    pub(crate) term: u64,
}

/// The part of a [`RunFile`] that all versions have.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// [`StoreKind`], as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoreName {
    Sled,
    File,
    Memory,
}

impl RunFile {
    pub(crate) fn new(run: InterruptedRun, store: StoreKind, identity: RunIdentity) -> Self {
        let store = match store {
            StoreKind::Sled => StoreName::Sled,
            StoreKind::File => StoreName::File,
            StoreKind::Memory => StoreName::Memory,
        };
        let InterruptedRun { job, job_name, arguments, settings, ledger } = run;
        let identity = Some(identity);
        Self { format: FORMAT, job, job_name, arguments, settings, ledger, store, identity }
    }

    pub(crate) fn identity(&self) -> Option<&RunIdentity> {
        self.identity.as_ref()
    }

    pub(super) fn job(&self) -> &JobId {
        &self.job
    }

    /// The same job in the same store, as another run or in another term.
    pub(super) fn with(&self, identity: RunIdentity) -> Self {
        Self { identity: Some(identity), ..self.clone() }
    }

    /// Whether it was accepted under this name and with these arguments.
    pub(crate) fn is_of(&self, job_name: &str, arguments: &[u8]) -> bool {
        self.job_name == job_name && self.arguments == arguments
    }

    pub(super) fn path(directory: &Path) -> PathBuf {
        directory.join("run.json")
    }

    /// Reads the file in the run directory `directory`, if there is one.
    ///
    /// # Errors
    /// When it cannot be read or understood: the run may hold finished work, so nobody may take it
    /// for a run that never was.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, LaunchError> {
        let path = Self::path(directory);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LaunchError::Directory { action: "read", path, source }),
        };
        let unreadable =
            |reason| LaunchError::RunFile { path, directory: directory.to_owned(), reason };
        match serde_json::from_slice(&content) {
            Ok(Version { format: FORMAT }) => {}
            Ok(Version { format }) => {
                return Err(unreadable(format!(
                    "it has format {format}, and this program reads format {FORMAT}"
                )));
            }
            Err(error) => return Err(unreadable(error.to_string())),
        }
        serde_json::from_slice(&content).map(Some).map_err(|error| unreadable(error.to_string()))
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), LaunchError> {
        let path = Self::path(directory);
        let content = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        content
            .and_then(|content| durable_file::replace(&path, &[&content]))
            .map_err(|source| LaunchError::Directory { action: "write", path, source })
    }

    /// Whether another process can go on with the run: its store outlives a process, or it had begun
    /// to publish, which whoever comes must end.
    pub(crate) fn survives_its_process(&self) -> bool {
        let is_publishing =
            || self.identity().is_some_and(|identity| output::is_publishing(&identity.staging));
        self.store != StoreName::Memory || is_publishing()
    }

    /// Removes what the run staged: nobody goes on with it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn remove_staging(&self) -> Result<(), OutputError> {
        let Some(identity) = self.identity() else { return Ok(()) };
        output::remove_staging(&self.job, identity.run, &identity.staging)
    }

    pub(crate) fn store_kind(&self) -> StoreKind {
        match self.store {
            StoreName::Sled => StoreKind::Sled,
            StoreName::File => StoreKind::File,
            StoreName::Memory => StoreKind::Memory,
        }
    }

    pub(crate) fn into_run(self) -> InterruptedRun {
        let Self { job, job_name, arguments, settings, ledger, .. } = self;
        InterruptedRun { job, job_name, arguments, settings, ledger }
    }
}
