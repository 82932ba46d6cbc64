//! Publishes what the manifest lists.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use regrow_protocol::{ExecutionAttemptId, JobId, StagedFile};
use regrow_runtime::CommitPlan;
use tracing::warn;

use super::{
    OutputError,
    disk::Disk,
    hidden_directory, listing,
    manifest::{Manifest, OldFile, Owner, SinkManifest, Winner},
    prepare::boot_id,
};

pub(super) fn lost_staged_files(plan: &CommitPlan) -> Vec<ExecutionAttemptId> {
    // Staged files that are gone because a manifest moved them are not lost.
    if Manifest::path(plan.run, &plan.sinks).is_some_and(|path| path.exists()) {
        return Vec::new();
    }
    let lost: BTreeSet<ExecutionAttemptId> = plan
        .winners
        .iter()
        .filter(|(_, file)| !is_staged(plan, file))
        .map(|(attempt, _)| *attempt)
        .collect();
    lost.into_iter().collect()
}

fn is_staged(plan: &CommitPlan, file: &StagedFile) -> bool {
    let sink = usize::try_from(file.sink).ok().and_then(|index| plan.sinks.get(index));
    let Some(sink) = sink else { return false };
    let hidden = hidden_directory(sink, plan.run);
    let path = hidden.join(&file.staged_name);
    if listing::length(&path) != Some(file.bytes) {
        return false;
    }
    // Without a restart of the host, what was written and closed is what is read.
    let restarted = match Owner::read(&hidden) {
        Ok(Some(owner)) => owner.boot != boot_id(),
        Ok(None) | Err(_) => true,
    };
    let as_recorded = || matches!(listing::fingerprint(&path), Ok(Some(found)) if found == (file.bytes, file.checksum));
    !restarted || as_recorded()
}

pub(super) fn commit(disk: &Disk, job: &JobId, plan: &CommitPlan) -> Result<(), OutputError> {
    let Some(path) = Manifest::path(plan.run, &plan.sinks) else { return Ok(()) };
    let manifest = match Manifest::read(&path)? {
        Some(manifest) => manifest,
        None => decide(disk, job, plan, &path)?,
    };
    for sink in &manifest.sinks {
        publish(disk, sink)?;
    }
    Ok(())
}

fn decide(
    disk: &Disk,
    job: &JobId,
    plan: &CommitPlan,
    path: &Path,
) -> Result<Manifest, OutputError> {
    for sink in &plan.sinks {
        let hidden = hidden_directory(sink, plan.run);
        if !hidden.is_dir() {
            return Err(OutputError::HiddenDirectoryGone(hidden));
        }
    }
    let manifest = Manifest::of(job, plan)?;
    // All that can be seen to fail fails before anything is published.
    for sink in &manifest.sinks {
        for winner in &sink.winners {
            listed_target(sink, winner)?;
            check_staged(sink, winner)?;
        }
    }
    manifest.write(disk, path)?;
    Ok(manifest)
}

fn publish(disk: &Disk, sink: &SinkManifest) -> Result<(), OutputError> {
    for winner in &sink.winners {
        publish_winner(disk, sink, winner)?;
    }
    disk.sync_directory(&sink.directory)?;
    let published: BTreeSet<&str> =
        sink.winners.iter().map(|winner| winner.final_name.as_str()).collect();
    let without_successor =
        sink.old_files.iter().filter(|old| !published.contains(old.name.as_str()));
    for old in without_successor {
        remove_old(disk, &sink.directory, old)?;
    }
    disk.sync_directory(&sink.directory)
}

fn publish_winner(disk: &Disk, sink: &SinkManifest, winner: &Winner) -> Result<(), OutputError> {
    let (staged, target) = paths(sink, winner);
    if listing::length(&staged).is_none() {
        return check_published(sink, winner);
    }
    check_staged(sink, winner)?;
    check_target(sink, winner)?;
    match disk.rename("publish", &staged, &target) {
        // Somebody else followed the manifest in this moment.
        Err(OutputError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            check_published(sink, winner)
        }
        other => other,
    }
}

fn paths(sink: &SinkManifest, winner: &Winner) -> (PathBuf, PathBuf) {
    (sink.hidden.join(&winner.staged_name), sink.directory.join(&winner.final_name))
}

fn check_staged(sink: &SinkManifest, winner: &Winner) -> Result<(), OutputError> {
    let (staged, path) = paths(sink, winner);
    if listing::length(&staged) == Some(winner.bytes) {
        return Ok(());
    }
    Err(OutputError::StagedFileGone { path, staged })
}

fn check_published(sink: &SinkManifest, winner: &Winner) -> Result<(), OutputError> {
    let (staged, path) = paths(sink, winner);
    if listing::fingerprint(&path)? == Some((winner.bytes, winner.checksum)) {
        return Ok(());
    }
    Err(OutputError::StagedFileGone { path, staged })
}

/// The final name must be free, or be a listed old file as found.
fn check_target(sink: &SinkManifest, winner: &Winner) -> Result<(), OutputError> {
    let (_, path) = paths(sink, winner);
    match listed_target(sink, winner)? {
        Some(old) if !is_as_listed(&path, old)? => Err(in_the_way(path)),
        Some(_) | None => Ok(()),
    }
}

/// The old file at the final name, if there is one; what is there must be listed.
fn listed_target<'a>(
    sink: &'a SinkManifest,
    winner: &Winner,
) -> Result<Option<&'a OldFile>, OutputError> {
    let (_, path) = paths(sink, winner);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OutputError::Io { action: "look at", path, source }),
        Ok(_) => {}
    }
    let listed = sink.old_files.iter().find(|old| old.name == winner.final_name);
    listed.map(Some).ok_or_else(|| in_the_way(path))
}

fn in_the_way(path: PathBuf) -> OutputError {
    OutputError::InTheWay { found: listing::kind(&path), path }
}

fn is_as_listed(path: &Path, old: &OldFile) -> Result<bool, OutputError> {
    Ok(listing::fingerprint(path)? == Some((old.bytes, old.checksum)))
}

fn remove_old(disk: &Disk, directory: &Path, old: &OldFile) -> Result<(), OutputError> {
    let path = directory.join(&old.name);
    if listing::length(&path).is_none() {
        return Ok(());
    }
    if is_as_listed(&path, old)? {
        return disk.remove_file(&path);
    }
    warn!(path = %path.display(), "a file changed since it was to be removed; it stays");
    Ok(())
}
