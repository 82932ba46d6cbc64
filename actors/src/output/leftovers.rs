//! What a run that was interrupted left in its hidden directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regrow_protocol::{Epoch, ExecutionAttemptId, JobId, JobVertexId, RunId, StagedFile};
use regrow_runtime::{CommitPlan, SinkSpec};

use super::{
    OutputError,
    disk::Disk,
    hidden_directory,
    manifest::{MANIFEST, Manifest, Owner, SinkManifest},
};

/// Stands before the epoch in the name of a staged file (rule 6.1).
const EPOCH_MARK: &str = "epoch-";

/// The hidden directories of a run, one per sink; the first is where its manifest will be.
pub(crate) fn staging_directories(run: RunId, sinks: &[SinkSpec]) -> Vec<PathBuf> {
    sinks.iter().map(|sink| hidden_directory(sink, run)).collect()
}

/// Whether it is decided what the run that stages in `staging` publishes: then whoever comes must
/// go on with it.
pub(crate) fn is_publishing(staging: &[PathBuf]) -> bool {
    staging.first().is_some_and(|first| first.join(MANIFEST).exists())
}

/// The highest epoch that the names of staged files show; none where there is no directory.
pub(crate) fn highest_staged(staging: &[PathBuf]) -> Option<Epoch> {
    let there: Vec<&PathBuf> = staging.iter().filter(|path| path.is_dir()).collect();
    if there.is_empty() {
        return None;
    }
    let entries = there.into_iter().flat_map(fs::read_dir).flatten().flatten();
    let epochs = entries.filter_map(|entry| epoch_of(&entry.file_name().to_string_lossy()));
    Some(epochs.max().unwrap_or_default())
}

fn epoch_of(name: &str) -> Option<Epoch> {
    let (_, rest) = name.split_once(EPOCH_MARK)?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    let number: u64 = digits.parse().ok()?;
    let life = u32::try_from(number % Epoch::LIVES_PER_TERM).unwrap_or(u32::MAX);
    Some(Epoch::new(number / Epoch::LIVES_PER_TERM, life))
}

/// Removes what `run` of `job` staged, of which nobody can make use any more. Directories that name
/// another owner stay.
pub(crate) fn remove_staging(
    job: &JobId,
    run: RunId,
    staging: &[PathBuf],
) -> Result<(), OutputError> {
    let disk = Disk::default();
    for hidden in staging.iter().rev() {
        // One without an owner was just being made: its name says whose it is.
        let owner = Owner::read(hidden)?;
        let is_its_own = owner.as_ref().is_none_or(|owner| owner.run == run && owner.job == *job);
        if is_its_own && names_run(hidden, run) {
            disk.remove_directory(hidden)?;
            let made = owner.and_then(|owner| owner.made);
            if let (Some(directory), Some(topmost)) = (hidden.parent(), made) {
                disk.remove_empty(directory, &topmost);
            }
        }
    }
    Ok(())
}

fn names_run(hidden: &Path, run: RunId) -> bool {
    let name = hidden.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(super::HIDDEN_PREFIX)) == Some(&*run.to_string())
}

/// What the manifest of `run` says is to be published, if there is one.
///
/// A manifest names no attempts, so its files are given in the name of attempts that never were:
/// whoever publishes goes by the manifest. Of one that cannot be read no files are known.
pub(super) fn decided(run: RunId, sinks: &[SinkSpec]) -> Option<CommitPlan> {
    let of_sinks = match Manifest::read(&Manifest::path(run, sinks)?) {
        Ok(manifest) => manifest?.sinks,
        Err(_) => Vec::new(),
    };
    let winners = (0..).zip(&of_sinks).flat_map(|(sink, of_sink)| winners(run, sink, of_sink));
    Some(CommitPlan { run, sinks: sinks.to_vec(), winners: winners.collect() })
}

fn winners(
    run: RunId,
    sink: u32,
    manifest: &SinkManifest,
) -> impl Iterator<Item = (ExecutionAttemptId, StagedFile)> + '_ {
    (0..).zip(&manifest.winners).map(move |(subtask, winner)| {
        let (vertex, epoch) = (JobVertexId(u32::MAX), Epoch::default());
        let attempt = ExecutionAttemptId { run, vertex, subtask, epoch, number: 0 };
        let file = StagedFile {
            sink,
            staged_name: winner.staged_name.clone(),
            final_name: winner.final_name.clone(),
            bytes: winner.bytes,
            checksum: winner.checksum,
        };
        (attempt, file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_found_in_the_name_of_a_staged_file() {
        let name = format!("sink-0-part-00000-run-9-epoch-{}-attempt-0.csv", Epoch::new(3, 2));
        assert_eq!(epoch_of(&name), Some(Epoch::new(3, 2)));
        for other in ["owner", "manifest", "epoch-", "epoch-x", "epoch-99999999999999999999"] {
            assert_eq!(epoch_of(other), None, "{other}");
        }
    }
}
