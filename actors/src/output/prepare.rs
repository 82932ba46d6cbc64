//! Makes output directories ready before the first task runs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use regrow_protocol::{JobId, RunId};
use regrow_runtime::{OutputPreparation, SinkSpec};

use super::{
    HIDDEN_PREFIX, OutputError,
    disk::Disk,
    hidden_directory,
    listing::{Listing, kind},
    manifest::{Manifest, Owner},
};

pub(super) fn prepare(
    disk: &Disk,
    job: &JobId,
    preparation: &OutputPreparation,
) -> Result<Vec<String>, OutputError> {
    let OutputPreparation { run, sinks } = preparation;
    let Some(manifest) = Manifest::path(*run, sinks) else { return Ok(Vec::new()) };
    let owner = Owner { job: job.clone(), run: *run, manifest, boot: boot_id(), made: None };
    let mut made = BTreeMap::new();
    if let Err(error) = make_directories(disk, &owner, sinks, &mut made) {
        for (directory, topmost) in made.iter().rev() {
            disk.remove_empty(directory, topmost);
        }
        return Err(error);
    }
    Ok(sinks
        .iter()
        .map(|sink| hidden_directory(sink, *run).to_string_lossy().into_owned())
        .collect())
}

/// Makes the directories of `sinks`; `made` has each output directory that was made, and the topmost
/// that was made for it.
fn make_directories<'a>(
    disk: &Disk,
    owner: &Owner,
    sinks: &'a [SinkSpec],
    made: &mut BTreeMap<&'a Path, PathBuf>,
) -> Result<(), OutputError> {
    for sink in sinks {
        let directory = Path::new(&sink.directory);
        if let Some(topmost) = disk.create_output_directory(directory)? {
            made.insert(directory, topmost);
        }
    }
    check_apart(sinks)?;
    for sink in missing_hidden_directories(owner.run, sinks)? {
        let directory = Path::new(&sink.directory);
        let hidden = hidden_directory(sink, owner.run);
        disk.create_directory(&hidden)?;
        let owner = Owner { made: made.get(directory).cloned(), ..owner.clone() };
        owner.write(disk, &hidden)?;
        disk.sync_directory(directory)?;
    }
    Ok(())
}

/// Names this start of the host, where the system tells.
pub(super) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Sinks whose hidden directory is still to be made; all others were made, whole, by an earlier
/// call. Changes nothing, so that a refusal leaves nothing behind.
fn missing_hidden_directories(
    run: RunId,
    sinks: &[SinkSpec],
) -> Result<Vec<&SinkSpec>, OutputError> {
    let mut missing = Vec::new();
    for sink in sinks {
        if Owner::read(&hidden_directory(sink, run))?.is_none() {
            check_free(Some(run), sink)?;
            missing.push(sink);
        }
    }
    Ok(missing)
}

fn check_apart(sinks: &[SinkSpec]) -> Result<(), OutputError> {
    let mut real: Vec<PathBuf> = Vec::new();
    for sink in sinks {
        let path = Path::new(&sink.directory);
        let resolved = fs::canonicalize(path).map_err(|source| OutputError::Io {
            action: "resolve output directory",
            path: path.to_owned(),
            source,
        })?;
        for other in &real {
            let (first, second) =
                if resolved.starts_with(other) { (other, &resolved) } else { (&resolved, other) };
            if second.starts_with(first) {
                return Err(OutputError::SharedDirectory {
                    first: first.clone(),
                    second: second.clone(),
                });
            }
        }
        real.push(resolved);
    }
    Ok(())
}

/// Whether a run that has not begun may publish to the directory of `sink`.
pub(super) fn check_free_for_new(sink: &SinkSpec) -> Result<(), OutputError> {
    if !leads_to_directory(sink)? {
        return Ok(());
    }
    check_free(None, sink)
}

/// Whether the directory of `sink` can be its output, as far as what is there goes that no job may
/// replace.
pub(crate) fn check_place(sink: &SinkSpec) -> Result<(), OutputError> {
    if !leads_to_directory(sink)? || !sink.overwrite {
        return Ok(());
    }
    let directory = Path::new(&sink.directory);
    check_replaceable(directory, &Listing::read(directory)?)
}

/// Whether the directory of `sink` is there; fails if something else is there or on the way to it.
fn leads_to_directory(sink: &SinkSpec) -> Result<bool, OutputError> {
    let directory = Path::new(&sink.directory);
    // What else is wrong with the path is found by who makes it.
    let there = directory.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
    match there {
        Some(path) if !path.is_dir() => {
            Err(OutputError::NoDirectory { path: path.to_owned(), found: kind(path) })
        }
        Some(path) => Ok(path == directory),
        None => Ok(false),
    }
}

fn check_replaceable(directory: &Path, listing: &Listing) -> Result<(), OutputError> {
    let Some(name) = listing.no_part_file() else { return Ok(()) };
    let path = directory.join(name);
    Err(OutputError::NoPartFile { found: kind(&path), path })
}

/// Whether `run`, or one that has not begun, may publish to the directory of `sink`.
fn check_free(run: Option<RunId>, sink: &SinkSpec) -> Result<(), OutputError> {
    let directory = Path::new(&sink.directory);
    let listing = Listing::read(directory)?;
    let own = run.map(|run| format!("{HIDDEN_PREFIX}{run}")).unwrap_or_default();
    for name in listing.hidden.iter().filter(|name| **name != own) {
        check_other_run(directory, name, sink.overwrite)?;
    }
    if sink.overwrite {
        return check_replaceable(directory, &listing);
    }
    match listing.parts.first().or_else(|| listing.others.first()) {
        Some(found) => {
            Err(OutputError::NotEmpty { directory: directory.to_owned(), found: found.clone() })
        }
        None => Ok(()),
    }
}

/// A run that is publishing must never be disturbed. One that has not decided yet may be the
/// leftover of a run that nobody knows any more, so who overwrites passes by; a local run does not
/// start while one that its data directory knows needs the output.
pub(super) fn check_other_run(
    directory: &Path,
    name: &str,
    overwrite: bool,
) -> Result<(), OutputError> {
    let owner = Owner::read(&directory.join(name))?;
    let publishing = owner.as_ref().is_some_and(|owner| owner.manifest.exists());
    if overwrite && !publishing {
        return Ok(());
    }
    Err(OutputError::OtherRun {
        directory: directory.to_owned(),
        hidden: directory.join(name),
        owner: match owner {
            Some(Owner { job, run, .. }) => format!("job {job} (run {run})"),
            None => format!("run {}", name.trim_start_matches(HIDDEN_PREFIX)),
        },
        stage: if publishing { "is publishing its output there" } else { "stages its files there" },
    })
}
