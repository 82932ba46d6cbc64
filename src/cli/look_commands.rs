//! The commands that look at what is stored: `events`, `recovery`, `store`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use regrow_actors::{
    archive::Archive,
    cluster::{ClusterClient, ClusterPlace, EventPage, Unled},
    recovery_reports,
};
use regrow_protocol::JobId;
use regrow_runtime::{RecoveryReport, with_causes};
use regrow_store::verify;
use serde_json::json;

use super::{
    cluster_commands::{client, client_error},
    configuration::Configuration,
    console::Console,
    error::CliError,
    event_text::{event_json, event_line},
    recovery_summary::{fate_json, full},
    run_flags::DataFlags,
    stored_events::{self, StoredEvents, unknown_job},
};
use crate::jobs::Jobs;

/// A job and where it is kept.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// Which job
    #[arg(value_name = "ID")]
    job: JobId,
    #[command(flatten)]
    data: DataFlags,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Reads the whole store and says what is wrong with it
    #[command(after_help = "Examples:
  regrow store verify .regrow/runs/nightly/store
  regrow store verify --data-dir .regrow nightly")]
    Verify(StoreFlags),
    /// Prints all events of the store
    #[command(after_help = "Example:
  regrow store dump --data-dir .regrow nightly --json")]
    Dump(StoreFlags),
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// Directory of the store, or the id of a job that was interrupted
    #[arg(value_name = "PATH|ID")]
    store: PathBuf,
    #[command(flatten)]
    data: DataFlags,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

impl StoreFlags {
    /// The store: a directory that is there, or else that of a job.
    fn path(&self) -> Result<PathBuf, CliError> {
        if self.data.data_dir.is_none() && self.store.is_dir() {
            return Ok(self.store.clone());
        }
        let directory = Configuration::load(&self.data)?.directory();
        let job = self.store.to_string_lossy().parse::<JobId>().ok();
        let path = job.as_ref().map(|job| stored_events::store_of(&directory, job));
        if let (Some(job), Some(path)) = (job, path) {
            if path.is_dir() {
                return Ok(path);
            }
            if path.parent().is_some_and(Path::is_dir) {
                return Err(CliError::Usage(stored_events::no_store(&job)));
            }
        }
        Err(CliError::Usage(format!(
            "{} is neither the directory of a store nor an interrupted job under {}",
            self.store.display(),
            directory.display()
        )))
    }
}

/// Where what is recorded of a job is found.
enum Source {
    /// A cluster that somebody leads.
    Cluster(ClusterClient),
    /// A data directory; that of a cluster is kept from being led meanwhile.
    Directory { path: PathBuf, unled: Option<Unled> },
}

impl Source {
    fn of(jobs: &Jobs, flags: &DataFlags, console: &Arc<Console>) -> Result<Self, CliError> {
        let configuration = Configuration::load(flags)?;
        let client = client(jobs, &configuration, false, console)?;
        if !client.leaders.is_empty() {
            return Ok(Self::Cluster(client));
        }
        let path = configuration.directory();
        let place = ClusterPlace::of(&path).map_err(|error| {
            CliError::Failed(format!("cannot look who leads {}: {error}", path.display()))
        })?;
        Ok(match place {
            ClusterPlace::Led => Self::Cluster(client),
            ClusterPlace::Free(unled) => Self::Directory { path, unled: Some(unled) },
            ClusterPlace::NoCluster => Self::Directory { path, unled: None },
        })
    }
}

/// `events ID`: prints the log of a job.
pub(crate) fn events(
    jobs: &Jobs,
    flags: &JobFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    match Source::of(jobs, &flags.data, console)? {
        Source::Cluster(client) => {
            let mut show = |page: EventPage| {
                if let Some((from, to)) = page.replaced {
                    console.say(&replaced(from, to));
                }
                let mut events = StoredEvents::decode(page.batches.iter().map(|batch| &***batch));
                let behind = events.damage.take();
                print_events(&events, flags.json, console);
                if let Some(damage) = behind.or(page.damage) {
                    console.say(&damaged(&damage, page.next.is_some()));
                }
            };
            client.events(&flags.job, &mut show).map_err(|error| client_error(&error))
        }
        Source::Directory { path, unled } => {
            let events = stored_events::of_job(&path, &flags.job, unled.is_some())?;
            print_events(&events, flags.json, console);
            Ok(())
        }
    }
}

/// `recovery ID`: prints the report of each recovery of a job.
pub(crate) fn recovery(
    jobs: &Jobs,
    flags: &JobFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let reports = match Source::of(jobs, &flags.data, console)? {
        Source::Cluster(client) => {
            client.recoveries(&flags.job).map_err(|error| client_error(&error))?
        }
        Source::Directory { path, unled } => reports(&path, &flags.job, unled.is_some())?,
    };
    for report in &reports {
        if flags.json {
            for line in &report.lines {
                console.result(&fate_json(report, line).to_string());
            }
        } else {
            for line in full(report) {
                console.result(&line);
            }
        }
    }
    if reports.is_empty() && !flags.json {
        console.result(&format!("job {} had no recovery", flags.job));
    }
    Ok(())
}

/// The reports of a job that is not over, or of the last one of that name that ended.
fn reports(
    data_directory: &Path,
    job: &JobId,
    of_cluster: bool,
) -> Result<Vec<RecoveryReport>, CliError> {
    let unfinished = recovery_reports::of_unfinished(data_directory, job);
    if let Some(reports) = unfinished.map_err(|error| CliError::Failed(with_causes(&error)))? {
        return Ok(reports);
    }
    let archived = Archive::new(data_directory).read(job);
    let archived = archived.map_err(|error| CliError::Failed(with_causes(&error)))?;
    if let Some(archived) = archived {
        return Ok(archived.reports);
    }
    // A job of a cluster has nothing but its log until its first recovery.
    if of_cluster && stored_events::of_cluster(data_directory, job)?.is_some() {
        return Ok(Vec::new());
    }
    Err(unknown_job(data_directory, job))
}

/// `store verify|dump`.
pub(crate) fn store(command: &StoreCommand, console: &Console) -> Result<(), CliError> {
    match command {
        StoreCommand::Verify(flags) => verify_store(flags, console),
        StoreCommand::Dump(flags) => dump_store(flags, console),
    }
}

fn verify_store(flags: &StoreFlags, console: &Console) -> Result<(), CliError> {
    let mut store = stored_events::open(&flags.path()?)?;
    let reports = verify(&mut *store).map_err(|error| CliError::Failed(with_causes(&error)))?;
    let mut damaged = 0;
    for report in &reports {
        let damage = report.damage.as_ref().map(ToString::to_string);
        damaged += usize::from(damage.is_some());
        if flags.json {
            let line = json!({
                "run_id": report.run,
                "batches": report.batches,
                "bytes": report.bytes,
                "damage": damage,
            });
            console.result(&line.to_string());
        } else {
            let damage =
                damage.map_or_else(|| "no damage".to_owned(), |text| format!("DAMAGED at {text}"));
            console.result(&format!(
                "run {}: {} batches, {} bytes, {damage}",
                report.run, report.batches, report.bytes
            ));
        }
    }
    if damaged > 0 {
        return Err(CliError::Failed(format!("{damaged} of {} logs are damaged", reports.len())));
    }
    Ok(())
}

fn dump_store(flags: &StoreFlags, console: &Console) -> Result<(), CliError> {
    let mut store = stored_events::open(&flags.path()?)?;
    for run in store.runs().map_err(|error| CliError::Failed(with_causes(&error)))? {
        if !flags.json {
            console.result(&format!("run {run}"));
        }
        print_events(&stored_events::of_run(&mut *store, run)?, flags.json, console);
    }
    Ok(())
}

fn print_events(events: &StoredEvents, json: bool, console: &Console) {
    for event in &events.events {
        let line = if json { event_json(event).to_string() } else { event_line(event) };
        console.result(&line);
    }
    if let Some(damage) = &events.damage {
        console.say(&damaged(damage, false));
    }
}

fn damaged(damage: &str, goes_on: bool) -> String {
    if goes_on {
        return format!("the log cannot be read here, and goes on behind that: {damage}");
    }
    format!("the log cannot be read from here on: {damage}")
}

/// What a reader of a job that runs did not see.
fn replaced(from: u64, to: u64) -> String {
    format!(
        "events {from} to {} were replaced by the snapshot that follows, while they were read",
        to - 1
    )
}
