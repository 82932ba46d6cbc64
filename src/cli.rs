//! The command line.

mod accumulator_text;
mod cluster_commands;
mod config_command;
mod configuration;
mod console;
mod demo_command;
mod error;
mod event_text;
mod followed;
mod generate_command;
mod generated_records;
mod generated_text;
mod job_summary_text;
mod launcher;
mod look_commands;
mod process_settings;
mod progress;
mod recovery_summary;
mod run_command;
mod run_flags;
mod stored_events;
mod stored_jobs;
mod submit_command;
mod verify_command;

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use clap::{
    ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use tracing_subscriber::EnvFilter;

use self::{
    cluster_commands::{ListFlags, OneJobFlags, RoleFlags, ShuffleServiceFlags, TaskManagerFlags},
    config_command::ConfigFlags,
    console::Console,
    demo_command::DemoFlags,
    error::CliError,
    generate_command::GenerateCommand,
    look_commands::{JobFlags, StoreCommand},
    run_flags::RunFlags,
    submit_command::SubmitFlags,
    verify_command::VerifyCommand,
};
use crate::{jobs::Jobs, program_factory::ProgramFactory};

/// Environment variable that asks for the program's log, as `tracing` filters have it.
const LOG_VARIABLE: &str = "REGROW_LOG";

/// What `run` does and `submit` cannot: the coordinator of a cluster is another process.
const KILL_FLAG: &str = "--kill-jobmaster-at";

/// Runs batch dataflow jobs that survive the death of their coordinator
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 fine, 1 the job failed, 2 wrong usage or configuration, \
                  3 cancelled, 4 cluster not reachable.\nSet REGROW_LOG=info for a log."
)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Runs a job in this process
    #[command(after_help = "Examples (`run JOB --help` shows the arguments of a job):
  regrow run JOB ... --job-id nightly
  regrow run JOB ... --kill-jobmaster-at 50% --ledger ledger.txt
  regrow run --resume")]
    Run(RunFlags),
    /// Submits a job to a cluster, and follows it over the deaths of its coordinators
    #[command(after_help = "Examples:
  regrow submit JOB ... --data-dir /data/regrow
  regrow submit JOB ... --detached --job-id nightly")]
    Submit(SubmitFlags),
    /// Leads the jobs of a cluster, or stands by until it may
    #[command(
        name = "jobmanager",
        after_help = "Examples:
  regrow jobmanager --data-dir /data/regrow
  regrow jobmanager -c cluster.yaml
  regrow jobmanager -D jobmanager.rpc.port=6123-6130 -D jobmanager.bind-host=10.0.0.1"
    )]
    JobManager(RoleFlags),
    /// Runs tasks for whoever leads, and keeps what they wrote
    #[command(
        name = "taskmanager",
        after_help = "Examples:
  regrow taskmanager --data-dir /data/regrow
  regrow taskmanager -c cluster.yaml
  regrow taskmanager --slots 4 -D jobmanager.rpc.addresses=10.0.0.1:6123"
    )]
    TaskManager(TaskManagerFlags),
    /// Keeps what the task managers of its host write, and outlives them
    #[command(after_help = "Examples:
  regrow shuffle-service --data-dir /data/regrow
  regrow taskmanager --data-dir /data/regrow -D shuffle-service.type=stand-alone")]
    ShuffleService(ShuffleServiceFlags),
    /// Lists the jobs of a cluster: those that ended, the last of them last, then the others
    #[command(after_help = "Examples:
  regrow list --data-dir /data/regrow
  regrow list --json -D jobmanager.rpc.addresses=10.0.0.1:6123")]
    List(ListFlags),
    /// Says how a job of a cluster stands
    #[command(after_help = "Example:
  regrow status nightly --data-dir /data/regrow")]
    Status(OneJobFlags),
    /// Waits until a job of a cluster has ended
    #[command(after_help = "Example:
  regrow wait nightly --data-dir /data/regrow --json
Exit codes are those of `submit`: 0 finished, 1 failed, 3 cancelled. Ctrl-C ends the waiting alone.")]
    Wait(OneJobFlags),
    /// Cancels a job of a cluster and waits until it has ended
    #[command(after_help = "Example:
  regrow cancel nightly --data-dir /data/regrow
Exit code 0 says that the job is cancelled or had finished before, 1 that it had failed.")]
    Cancel(OneJobFlags),
    /// Counts the words of a text while its coordinator is killed, and shows what was kept
    #[command(after_help = "Examples:
  regrow demo
  regrow demo --kill-jobmaster-at 25% --kill-jobmaster-at 75%:panic")]
    Demo(DemoFlags),
    /// Prints the log of a job
    #[command(after_help = "Examples:
  regrow events nightly --json
  regrow events nightly --data-dir /data/regrow
It asks the cluster that is led there, or reads what the data directory holds if nobody leads.")]
    Events(JobFlags),
    /// Prints what each recovery of a job kept and ran again, and why
    #[command(after_help = "Examples:
  regrow recovery nightly --json
  regrow recovery nightly --data-dir /data/regrow
It asks the cluster that is led there, or reads what the data directory holds if nobody leads.")]
    Recovery(JobFlags),
    /// Prints every option with its value, where that came from, its default and meaning
    #[command(after_help = "Examples:
  regrow config
  regrow config -c cluster.yaml --json
  regrow config taskmanager.memory.task.size
  regrow run JOB ... -D taskmanager.memory.task.size=32mb")]
    Config(ConfigFlags),
    /// Looks into an event store while no run uses it
    #[command(subcommand)]
    Store(StoreCommand),
    /// Makes input for jobs
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Checks the output of a sort
    #[command(subcommand)]
    Verify(VerifyCommand),
}

/// Does what `arguments` (the first is the program) ask for with a program's jobs.
pub(crate) fn run(jobs: Jobs, arguments: Vec<OsString>) -> ExitCode {
    let console = Arc::new(Console::standard());
    let outcome = start_log().and_then(|()| execute(jobs, arguments, &console));
    let written = console.flush().map_err(|error| {
        CliError::Failed(format!("cannot write the result to standard output: {error}"))
    });
    let Err(error) = outcome.and(written) else { return ExitCode::SUCCESS };
    match &error {
        // Its own text says whether it goes to standard output; a closed pipe is no failure.
        CliError::Arguments(error) => {
            let _ = error.print();
        }
        CliError::Failed(text) | CliError::Usage(text) | CliError::Unreachable(text) => {
            console.say(&format!("error: {text}"));
        }
        CliError::Cancelled => console.say(&error.to_string()),
    }
    ExitCode::from(error.exit_code())
}

fn execute(jobs: Jobs, arguments: Vec<OsString>, console: &Arc<Console>) -> Result<(), CliError> {
    let program = arguments.first().map_or_else(
        || env!("CARGO_PKG_NAME").to_owned(),
        |program| program.to_string_lossy().into_owned(),
    );
    let names_a_job =
        arguments.get(1).is_some_and(|command| command == "run" || command == "submit");
    let command = named_in_examples(command(&jobs)?, &program);
    let matches = match command.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if names_a_job => return Err(unknown_job(error, &jobs)),
        Err(error) => return Err(error.into()),
    };
    if let Some(("run", matches)) = matches.subcommand() {
        return run_command::run(Arc::new(ProgramFactory::new(jobs)), matches, &program, console);
    }
    if let Some(("submit", matches)) = matches.subcommand() {
        return submit_command::submit(&ProgramFactory::new(jobs), matches, console);
    }
    dispatch(jobs, &matches, console)
}

/// Names the jobs of the program where the one that was asked for is none of them.
fn unknown_job(error: clap::Error, jobs: &Jobs) -> CliError {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error.into();
    };
    match jobs.find(name) {
        Err(text) => CliError::Usage(text),
        Ok(_) => error.into(),
    }
}

fn dispatch(jobs: Jobs, matches: &ArgMatches, console: &Arc<Console>) -> Result<(), CliError> {
    match CommandLine::from_arg_matches(matches)?.command {
        // `execute` takes these, because they have subcommands that only the program knows.
        CliCommand::Run(_) | CliCommand::Submit(_) => Ok(()),
        CliCommand::JobManager(flags) => cluster_commands::job_manager(jobs, &flags, console),
        CliCommand::TaskManager(flags) => cluster_commands::task_manager(jobs, &flags, console),
        CliCommand::ShuffleService(flags) => {
            cluster_commands::shuffle_service(jobs, &flags, console)
        }
        CliCommand::List(flags) => cluster_commands::list(&jobs, &flags, console),
        CliCommand::Status(flags) => cluster_commands::status(&jobs, &flags, console),
        CliCommand::Wait(flags) => cluster_commands::wait(&jobs, &flags, console),
        CliCommand::Cancel(flags) => cluster_commands::cancel(&jobs, &flags, console),
        CliCommand::Demo(flags) => demo_command::demo(&flags, console),
        CliCommand::Events(flags) => look_commands::events(&jobs, &flags, console),
        CliCommand::Recovery(flags) => look_commands::recovery(&jobs, &flags, console),
        CliCommand::Config(flags) => config_command::config(&flags, console),
        CliCommand::Store(command) => look_commands::store(&command, console),
        CliCommand::Generate(command) => generate_command::generate(&command),
        CliCommand::Verify(command) => verify_command::verify(&command, console),
    }
}

/// The command line with a subcommand of `run` for each job.
fn command(jobs: &Jobs) -> Result<Command, CliError> {
    let (mut jobs_of_run, mut jobs_of_submit) = (Vec::new(), Vec::new());
    for (name, job) in jobs.iter() {
        let own = job.augment(Command::new(name.to_owned()));
        check_names(name, &own)?;
        let about = own.get_about().cloned().unwrap_or_default();
        let submit = for_submit(own.clone());
        jobs_of_submit.push(SubmitFlags::augment_args(submit).about(about));
        // The flags' own description would take the place of the job's.
        let about = own.get_about().cloned().unwrap_or_default();
        jobs_of_run.push(RunFlags::augment_args(own).about(about));
    }
    let run = |run: Command| {
        run.subcommands(jobs_of_run)
            .subcommand_value_name("JOB")
            .subcommand_help_heading("Jobs")
            .disable_help_subcommand(true)
    };
    let submit = |submit: Command| {
        submit
            .subcommands(jobs_of_submit)
            .subcommand_value_name("JOB")
            .subcommand_help_heading("Jobs")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
    };
    Ok(CommandLine::command().mut_subcommand("run", run).mut_subcommand("submit", submit))
}

/// Calls the program by its name in the examples of all commands: they are there to be copied.
fn named_in_examples(mut command: Command, program: &str) -> Command {
    let name =
        Path::new(program).file_name().map_or_else(|| program.into(), OsStr::to_string_lossy);
    command = in_examples(command, "\n  regrow ", &format!("\n  {name} "));
    let below: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    below.into_iter().fold(command, |command, below| {
        command.mut_subcommand(below, |below| named_in_examples(below, program))
    })
}

/// A job of `run` as one of `submit`: without examples of what only `run` can do.
fn for_submit(own: Command) -> Command {
    let help = own.get_after_help().map(ToString::to_string);
    let Some(help) = help else { return own };
    let lines: Vec<_> = help.lines().filter(|line| !line.contains(KILL_FLAG)).collect();
    own.after_help(lines.join("\n").replace("  regrow run ", "  regrow submit "))
}

fn in_examples(command: Command, said: &str, meant: &str) -> Command {
    match command.get_after_help().map(|help| help.to_string().replace(said, meant)) {
        Some(help) => command.after_help(help),
        None => command,
    }
}

/// Refuses a job whose arguments are called like flags that every job has.
fn check_names(job: &str, own: &Command) -> Result<(), CliError> {
    let of_run = RunFlags::augment_args(Command::new("run"));
    let of_submit = SubmitFlags::augment_args(Command::new("submit"));
    for argument in own.get_arguments() {
        let clash = of_run.get_arguments().chain(of_submit.get_arguments()).find(|other| {
            other.get_id() == argument.get_id()
                || (other.get_long().is_some() && other.get_long() == argument.get_long())
                || (other.get_short().is_some() && other.get_short() == argument.get_short())
        });
        if let Some(other) = clash {
            return Err(CliError::Usage(format!(
                "job {job} has an argument {}, which is also one of every job ({}): rename it",
                argument.get_id(),
                other.get_id()
            )));
        }
    }
    Ok(())
}

/// Writes the program's log to standard error, if the environment asks for it.
fn start_log() -> Result<(), CliError> {
    let Ok(filter) = std::env::var(LOG_VARIABLE) else { return Ok(()) };
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| CliError::Usage(format!("{LOG_VARIABLE}={filter}: {error}")))?;
    // A log that is there already is that of whoever called the program as a library.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    Ok(())
}

#[cfg(test)]
mod tests;
