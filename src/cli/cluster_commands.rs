//! The roles of a cluster, and what is asked of one.

use std::{sync::Arc, thread};

use clap::Args;
use crossbeam_channel::{Receiver, bounded, never};
use regrow_actors::cluster::{
    ClusterClient, ClusterError, ClusterIdentity, Followed, JobManager, JobManagerNews,
    ShuffleServiceNews, ShuffleServiceRole, StillLooking, TaskManager, TaskManagerNews,
    WorkerSetup,
};
use regrow_protocol::{JobId, StableHasher};
use regrow_runtime::with_causes;
use serde_json::json;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::{
    configuration::Configuration,
    console::Console,
    error::CliError,
    followed::{Follower, report},
    job_summary_text::{json_line, lines, text},
    process_settings::{ProcessSettings, SLOTS, data_place},
    run_flags::DataFlags,
    stored_jobs,
};
use crate::{
    jobs::Jobs,
    program_factory::ProgramFactory,
    run_request::{SLOTS_MAX, absolute},
};

/// The flags of a role.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoleFlags {
    #[command(flatten)]
    data: DataFlags,
}

/// The flags of `taskmanager`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TaskManagerFlags {
    #[command(flatten)]
    data: DataFlags,
    /// How many tasks it runs at once: the same as -D taskmanager.numberOfTaskSlots=N
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    slots: Option<u32>,
}

/// The flags of `shuffle-service`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShuffleServiceFlags {
    #[command(flatten)]
    data: DataFlags,
    /// Print what it keeps as JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListFlags {
    #[command(flatten)]
    data: DataFlags,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Say nothing while no leader is found
    #[arg(long, short)]
    quiet: bool,
}

/// The flags of what is asked of one job.
#[derive(Clone, Debug, Args)]
pub(crate) struct OneJobFlags {
    /// Which job
    #[arg(value_name = "ID")]
    job: JobId,
    #[command(flatten)]
    data: DataFlags,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// `jobmanager`: leads, or waits until it may.
pub(crate) fn job_manager(
    jobs: Jobs,
    flags: &RoleFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let configuration = Configuration::load(&flags.data)?;
    let settings = ProcessSettings::of(&configuration)?;
    let manager = JobManager {
        identity: identity(&settings, &jobs),
        data_directory: absolute(&configuration.directory())?,
        host: settings.host,
        ports: settings.ports,
        options: settings.options,
        factory: Arc::new(ProgramFactory::new(jobs)),
    };
    let stop = stop_signal()?;
    let directory = manager.data_directory.clone();
    let said = manager.run(&stop, |news| match news {
        JobManagerNews::Listening(address) => console.say(&format!("listening on {address}")),
        JobManagerNews::StandsBy { leader: Some((address, pid)) } => {
            console.say(&format!("standing by: process {pid} at {address} leads"));
        }
        JobManagerNews::StandsBy { leader: None } => {
            console.say("standing by: another process leads");
        }
        JobManagerNews::DirectoryAway => console.say(&format!(
            "standing by until {} is there again: it was deleted or moved away; if it is to stay \
             elsewhere, stop this process and start it with --data-dir where it is now",
            directory.display()
        )),
        JobManagerNews::Leads => console.say("leading"),
    });
    said.map_err(role_error)
}

/// `taskmanager`: runs tasks for whoever leads.
pub(crate) fn task_manager(
    jobs: Jobs,
    flags: &TaskManagerFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let mut data = flags.data.clone();
    // The last setting of an option counts.
    data.settings.extend(flags.slots.map(|slots| (SLOTS.to_owned(), slots.to_string())));
    let configuration = Configuration::load(&data)?;
    let settings = ProcessSettings::of(&configuration)?;
    let manager = TaskManager {
        shuffle_service: settings.shuffle_service,
        slots: settings.slots,
        setup: worker_setup(jobs, settings, &configuration)?,
    };
    let stop = stop_signal()?;
    let ended = manager.run(&stop, |news| match news {
        TaskManagerNews::WaitsForShuffleService { directory } => console.say(&format!(
            "waiting for a shuffle service in {}; start one: regrow shuffle-service --data-dir {}",
            directory.display(),
            configuration.directory().display()
        )),
        TaskManagerNews::Listening(address) => console.say(&format!("listening on {address}")),
        TaskManagerNews::NoLeader(looking) => console.say(&looking.to_string()),
        TaskManagerNews::Runs { slots } => {
            console.say(&format!("running tasks on {slots} slots"));
        }
    });
    ended.map_err(role_error)
}

/// `shuffle-service`: keeps what `TaskManagers` of its host write.
pub(crate) fn shuffle_service(
    jobs: Jobs,
    flags: &ShuffleServiceFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let configuration = Configuration::load(&flags.data)?;
    let settings = ProcessSettings::of(&configuration)?;
    let service = ShuffleServiceRole { setup: worker_setup(jobs, settings, &configuration)? };
    let stop = stop_signal()?;
    let mut kept = None;
    let ended = service.run(&stop, |news| match news {
        ShuffleServiceNews::Listening(address) if flags.json => {
            let line = json!({ "data_directory": kept, "address": address });
            console.result_at_once(&line.to_string());
        }
        ShuffleServiceNews::Listening(address) => {
            console.say(&format!("listening on {address}"));
        }
        ShuffleServiceNews::NoLeader(looking) => console.say(&looking.to_string()),
        ShuffleServiceNews::Keeps { data_directory } => {
            kept = Some(data_directory);
            console.say(&format!("keeping partitions in data directory {data_directory}"));
        }
    });
    ended.map_err(role_error)
}

fn worker_setup(
    jobs: Jobs,
    settings: ProcessSettings,
    configuration: &Configuration,
) -> Result<WorkerSetup, CliError> {
    Ok(WorkerSetup {
        identity: identity(&settings, &jobs),
        data_directory: absolute(&configuration.directory())?,
        leaders: settings.leaders,
        data_place: data_place(configuration)?,
        options: settings.options,
        factory: Arc::new(ProgramFactory::new(jobs)),
    })
}

/// `list`: all jobs that the cluster knows.
pub(crate) fn list(jobs: &Jobs, flags: &ListFlags, console: &Arc<Console>) -> Result<(), CliError> {
    let client = client(jobs, &Configuration::load(&flags.data)?, flags.quiet, console)?;
    let found = client.jobs(None).map_err(|error| client_error(&error))?;
    let lines = if flags.json { found.iter().map(json_line).collect() } else { lines(&found) };
    for line in &lines {
        console.result(line);
    }
    Ok(())
}

/// `status`: how a job stands.
pub(crate) fn status(
    jobs: &Jobs,
    flags: &OneJobFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let client = client(jobs, &Configuration::load(&flags.data)?, flags.quiet, console)?;
    let found = client.jobs(Some(flags.job.clone())).map_err(|error| {
        if let ClusterError::NoLeader { .. } = &error {
            let known = stored_jobs::without_leader(&client.data_directory, &flags.job);
            return CliError::Unreachable(format!("{}{known}", with_causes(&error)));
        }
        client_error(&error)
    })?;
    let Some(job) = found.first() else {
        return Err(CliError::Usage(format!(
            "there is no job {}; `list` names those that are known",
            flags.job
        )));
    };
    console.result(&if flags.json { json_line(job) } else { text(job) });
    Ok(())
}

/// `wait`: follows a job to its end.
pub(crate) fn wait(
    jobs: &Jobs,
    flags: &OneJobFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let client = client(jobs, &Configuration::load(&flags.data)?, flags.quiet, console)?;
    let mut follower = Follower::new(Arc::clone(console), flags.quiet);
    // Ctrl-C ends the waiting, not the job.
    let end = client.follow(flags.job.clone(), &never(), |update| follower.hear(update));
    finish(end, follower, flags, console)
}

/// `cancel`: cancels a job and waits until it has ended.
pub(crate) fn cancel(
    jobs: &Jobs,
    flags: &OneJobFlags,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let client = client(jobs, &Configuration::load(&flags.data)?, flags.quiet, console)?;
    let mut follower = Follower::new(Arc::clone(console), flags.quiet);
    let end = client.cancel(flags.job.clone(), &never(), |update| follower.hear(update));
    match finish(end, follower, flags, console) {
        // That is what was asked for.
        Err(CliError::Cancelled) => Ok(()),
        other => other,
    }
}

fn finish(
    end: Result<Followed, ClusterError>,
    follower: Follower,
    flags: &OneJobFlags,
    console: &Console,
) -> Result<(), CliError> {
    let began = follower.finish();
    match end.map_err(|error| client_error(&error))? {
        Followed::Left => Ok(()),
        Followed::Ended { outcome, joined } => {
            report(*outcome, (began, joined), (flags.json, flags.quiet), console)
        }
    }
}

/// A client of the cluster that the flags name. Unless it is to be `quiet`, it says when it has looked
/// for the leader for long.
pub(crate) fn client(
    jobs: &Jobs,
    configuration: &Configuration,
    quiet: bool,
    console: &Arc<Console>,
) -> Result<ClusterClient, CliError> {
    let console = Arc::clone(console);
    let still_looking = move |looking: StillLooking| {
        if !quiet {
            console.say(&looking.to_string());
        }
    };
    let settings = ProcessSettings::of(configuration)?;
    Ok(ClusterClient {
        identity: identity(&settings, jobs),
        data_directory: absolute(&configuration.directory())?,
        leaders: settings.leaders,
        leader_timeout: settings.leader_timeout,
        still_looking: Arc::new(still_looking),
    })
}

fn identity(settings: &ProcessSettings, jobs: &Jobs) -> ClusterIdentity {
    let mut registry = StableHasher::new("registry");
    for (name, _) in jobs.iter() {
        registry.bytes(name.as_bytes());
    }
    ClusterIdentity { cluster_id: settings.cluster_id.clone(), registry: registry.finish() }
}

/// Speaks when the process is asked to stop, by Ctrl-C or SIGTERM. Asked again, it ends at once.
fn stop_signal() -> Result<Receiver<()>, CliError> {
    let (stop, stopped) = bounded(1);
    let failed = |error| CliError::Failed(format!("cannot watch for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let watch = move || {
        let mut signals = signals.forever();
        signals.next();
        // Whoever listened may be done.
        let _ = stop.send(());
        if let Some(again) = signals.next() {
            // As if nobody had watched for it; no state is harmed that a kill would not harm.
            let _ = emulate_default_handler(again);
        }
    };
    thread::Builder::new().name("regrow-signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(stopped)
}

fn role_error(error: ClusterError) -> CliError {
    let text = with_causes(&error);
    match error {
        ClusterError::Ended | ClusterError::DirectoryLost { .. } => CliError::Failed(text),
        ClusterError::Worker(_)
        | ClusterError::Random(_)
        | ClusterError::Listen(_)
        | ClusterError::Thread(_)
        | ClusterError::Directory { .. }
        | ClusterError::DataDirectory(_)
        | ClusterError::Store(_)
        | ClusterError::NoLeader { .. }
        | ClusterError::OtherCluster { .. }
        | ClusterError::Refused(_) => CliError::Usage(text),
    }
}

/// How a client ends without success.
pub(crate) fn client_error(error: &ClusterError) -> CliError {
    let text = with_causes(error);
    match error {
        ClusterError::NoLeader { .. } => CliError::Unreachable(text),
        ClusterError::Refused(_) => CliError::Usage(text),
        ClusterError::Listen(_)
        | ClusterError::Thread(_)
        | ClusterError::Directory { .. }
        | ClusterError::DataDirectory(_)
        | ClusterError::Store(_)
        | ClusterError::Worker(_)
        | ClusterError::Random(_)
        | ClusterError::OtherCluster { .. }
        | ClusterError::DirectoryLost { .. }
        | ClusterError::Ended => CliError::Failed(text),
    }
}
