//! `submit`: a job for a cluster.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use clap::{ArgMatches, Args, FromArgMatches as _};
use crossbeam_channel::{Sender, bounded};
use regrow_actors::{
    cluster::{ClusterError, ClusterSubmission, FollowUpdate, Followed, Wish},
    launch::RunUpdate,
    task::TaskFactory as _,
};
use regrow_protocol::JobId;
use serde_json::json;

use super::{
    cluster_commands::{client, client_error},
    configuration::Configuration,
    console::Console,
    error::CliError,
    followed::{Follower, report},
    run_command::arguments,
    run_flags::DataFlags,
};
use crate::{
    program_factory::ProgramFactory,
    run_request::{absolute, random_job},
};

/// Exit code after a second Ctrl-C, as shells have it for an interrupt.
const INTERRUPTED: i32 = 130;

/// The flags of `submit`, which every job has.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every job")]
pub(crate) struct SubmitFlags {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    /// File to which each attempt appends a line at its start and one at its end
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Name of the job: [A-Za-z0-9_-], up to 64; the same name again joins it
    #[arg(long, value_name = "ID")]
    pub(crate) job_id: Option<JobId>,
    /// Replace output files that are there
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Leave as soon as the job is accepted
    #[arg(long)]
    pub(crate) detached: bool,
    /// Print the result as JSON; with --detached the job's name alone
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `submit JOB`: submits the job, and follows it to its end unless it is to be detached.
pub(crate) fn submit(
    factory: &ProgramFactory,
    matches: &ArgMatches,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let Some((name, behind)) = matches.subcommand() else {
        return Err(CliError::Usage("name the job to submit, see `submit --help`".to_owned()));
    };
    let flags = SubmitFlags::from_arg_matches(behind)?;
    let configuration = Configuration::load(&flags.data)?;
    let arguments = arguments(factory, name, behind, flags.overwrite)?;
    let graph = factory.build(name, &arguments).map_err(CliError::Usage)?;
    let job = flags.job_id.clone().map_or_else(random_job, Ok)?;
    let submission = ClusterSubmission {
        job: job.clone(),
        job_name: name.to_owned(),
        arguments,
        graph_hash: graph.hash(),
        ledger: flags.ledger.as_deref().map(absolute).transpose()?,
        settings: configuration.options()?.to_settings(),
    };
    let client = client(factory.jobs(), &configuration, flags.quiet, console)?;
    let (wish, wishes) = bounded(4);
    cancel_on_interrupt(job.clone(), wish.clone(), Arc::clone(console))?;
    let named = json!({ "job_id": job }).to_string();
    let submit = |updates: Updates<'_>| client.submit(submission, &wishes, updates);
    let end = follow(&flags, (&job, &wish), console, submit)?;
    if end == End::Left && flags.json {
        console.result(&named);
    }
    Ok(())
}

/// How the following of a job ended that did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Before the job: nothing is said of it.
    Left,
    /// With the job, which is reported.
    Reported,
}

type Updates<'a> = &'a mut dyn FnMut(FollowUpdate);

fn follow(
    flags: &SubmitFlags,
    (job, wish): (&JobId, &Sender<Wish>),
    console: &Arc<Console>,
    submit: impl FnOnce(Updates<'_>) -> Result<Followed, ClusterError>,
) -> Result<End, CliError> {
    let mut follower = Follower::new(Arc::clone(console), flags.quiet || flags.detached);
    let mut stage = Stage::Unasked;
    let end = submit(&mut |update: FollowUpdate| {
        match &update {
            FollowUpdate::LeaderFound { .. } => stage = stage.max(Stage::Asked),
            FollowUpdate::Run(RunUpdate::Accepted { .. }) if stage < Stage::Accepted => {
                stage = Stage::Accepted;
                name(job, console);
            }
            FollowUpdate::Run(_) | FollowUpdate::LeaderLost { .. } => {}
        }
        if flags.detached && stage == Stage::Accepted {
            // Full only when Ctrl-C says the same.
            let _ = wish.try_send(Wish::Leave);
        }
        follower.hear(update);
    });
    let began = follower.finish();
    match end {
        Ok(Followed::Ended { outcome, joined }) => {
            if stage < Stage::Accepted {
                name(job, console);
            }
            report(*outcome, (began, joined), (flags.json, flags.quiet), console)?;
            Ok(End::Reported)
        }
        // The job that was accepted is gone.
        Err(ClusterError::Refused(reason)) if stage == Stage::Accepted => {
            Err(CliError::Failed(reason))
        }
        Err(error @ ClusterError::Refused(_)) => Err(client_error(&error)),
        left_or_lost => {
            if stage == Stage::Asked {
                console.say(&unheard(job));
            }
            left_or_lost.map(|_| End::Left).map_err(|error| client_error(&error))
        }
    }
}

/// How far a submission is, as the client heard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No leader was found.
    Unasked,
    /// A leader has it.
    Asked,
    /// There is such a job.
    Accepted,
}

/// Names a job once there is one: it is accepted, or has ended.
fn name(job: &JobId, console: &Console) {
    console.say(&format!("job {job}"));
}

/// A job may be accepted whose client has not heard of it.
fn unheard(job: &JobId) -> String {
    format!("job {job} was not heard to be accepted, and may be; `status {job}` tells")
}

fn cancel_on_interrupt(
    job: JobId,
    wish: Sender<Wish>,
    console: Arc<Console>,
) -> Result<(), CliError> {
    let interrupts = AtomicUsize::new(0);
    let handler = move || {
        if interrupts.fetch_add(1, Ordering::Relaxed) > 0 {
            std::process::exit(INTERRUPTED);
        }
        console.say("cancelling the job; press Ctrl-C again to leave at once");
        // Full only when it was said already.
        let _ = wish.try_send(Wish::Cancel(job.clone()));
    };
    ctrlc::set_handler(handler)
        .map_err(|error| CliError::Failed(format!("cannot watch for Ctrl-C: {error}")))
}
