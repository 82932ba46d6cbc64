//! The two small files of a hidden directory: who stages there, and what is to be published.
//!
//! Both are JSON, so that a person can read them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use regrow_protocol::{JobId, RunId, StagedFile};
use regrow_runtime::{CommitPlan, SinkSpec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{OutputError, disk::Disk, hidden_directory, listing};

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

/// Name of the manifest within the hidden directory of the first sink.
pub(super) const MANIFEST: &str = "manifest";

/// What is to be published, for all sinks of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    job: JobId,
    run: RunId,
    /// One per sink, in the order of the job.
    pub(super) sinks: Vec<SinkManifest>,
}

/// What is to be published of one sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SinkManifest {
    /// The output directory.
    pub(super) directory: PathBuf,
    /// The run's hidden directory in it.
    pub(super) hidden: PathBuf,
    /// What to publish.
    pub(super) winners: Vec<Winner>,
    /// The files that may be replaced, and are removed if nothing replaces them.
    pub(super) old_files: Vec<OldFile>,
}

/// One file to publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Winner {
    pub(super) staged_name: String,
    pub(super) final_name: String,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

/// One file that was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OldFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

/// Who stages in a hidden directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) job: JobId,
    pub(super) run: RunId,
    /// Where the run's manifest is, once there is one.
    pub(super) manifest: PathBuf,
    /// Names the start of the host; other than now means that files may have lost their contents.
    pub(super) boot: Option<String>,
    /// The topmost directory that the run made for its output: if the job fails, it goes again as
    /// far as it is empty.
    #[serde(default)]
    pub(super) made: Option<PathBuf>,
}

impl Manifest {
    /// Decides what to publish; lists the files that are there.
    pub(super) fn of(job: &JobId, plan: &CommitPlan) -> Result<Self, OutputError> {
        let sinks = (0..).zip(&plan.sinks).map(|(index, sink)| of_sink(plan, index, sink));
        Ok(Self {
            format: FORMAT,
            job: job.clone(),
            run: plan.run,
            sinks: sinks.collect::<Result<_, _>>()?,
        })
    }

    /// Where the manifest of a run is: beside what its first sink staged.
    pub(super) fn path(run: RunId, sinks: &[SinkSpec]) -> Option<PathBuf> {
        sinks.first().map(|sink| hidden_directory(sink, run).join(MANIFEST))
    }

    pub(super) fn read(path: &Path) -> Result<Option<Self>, OutputError> {
        read_json(path)
    }

    pub(super) fn write(&self, disk: &Disk, path: &Path) -> Result<(), OutputError> {
        write_json(disk, path, self)
    }
}

impl Owner {
    pub(super) fn path(hidden: &Path) -> PathBuf {
        hidden.join("owner")
    }

    pub(super) fn read(hidden: &Path) -> Result<Option<Self>, OutputError> {
        read_json(&Self::path(hidden))
    }

    pub(super) fn write(&self, disk: &Disk, hidden: &Path) -> Result<(), OutputError> {
        write_json(disk, &Self::path(hidden), self)
    }
}

fn of_sink(plan: &CommitPlan, sink: u32, spec: &SinkSpec) -> Result<SinkManifest, OutputError> {
    let mut names = BTreeSet::new();
    let mut winners = Vec::new();
    for (_, file) in plan.winners.iter().filter(|(_, file)| file.sink == sink) {
        check_names(file)?;
        if !names.insert(&file.final_name) {
            let reason = "another task staged a file of this name, too";
            return Err(OutputError::BadName { sink, name: file.final_name.clone(), reason });
        }
        winners.push(Winner {
            staged_name: file.staged_name.clone(),
            final_name: file.final_name.clone(),
            bytes: file.bytes,
            checksum: file.checksum,
        });
    }
    let directory = PathBuf::from(&spec.directory);
    let old_files = if spec.overwrite { listing::old_files(&directory)? } else { Vec::new() };
    Ok(SinkManifest { hidden: hidden_directory(spec, plan.run), directory, winners, old_files })
}

/// Names come from user code by way of workers; none may lead out of the directory.
fn check_names(file: &StagedFile) -> Result<(), OutputError> {
    for name in [&file.staged_name, &file.final_name] {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            let reason = "a name must be plain and must not begin with a dot";
            return Err(OutputError::BadName { sink: file.sink, name: name.clone(), reason });
        }
    }
    Ok(())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, OutputError> {
    match fs::read(path) {
        Ok(content) => serde_json::from_slice(&content)
            .map(Some)
            .map_err(|source| OutputError::Damaged { path: path.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OutputError::Io { action: "read", path: path.to_owned(), source }),
    }
}

fn write_json<T: Serialize>(disk: &Disk, path: &Path, value: &T) -> Result<(), OutputError> {
    let mut content = serde_json::to_vec_pretty(value)
        .map_err(|source| OutputError::Damaged { path: path.to_owned(), source })?;
    content.push(b'\n');
    disk.write_whole(path, &content)
}
