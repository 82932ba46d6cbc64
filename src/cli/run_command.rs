//! `run`: a job in one process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{ArgMatches, FromArgMatches as _};
use regrow_actors::{
    launch::{InterruptedRun, InterruptedRuns, LocalRun, interrupted_runs, sweep},
    task::TaskFactory as _,
};
use regrow_protocol::JobId;
use regrow_runtime::with_causes;

use super::{
    configuration::Configuration, console::Console, error::CliError, launcher,
    process_settings::ProcessSettings, run_flags::RunFlags,
};
use crate::{
    job_arguments::JobArguments,
    program_factory::ProgramFactory,
    run_request::{absolute, check_output, random_job, recorded_arguments, working_directory},
};

/// Interrupted runs that are named at most.
const NAMED_RUNS_MAX: usize = 10;

/// The job that is to run.
struct Request {
    job: JobId,
    job_name: String,
    arguments: Vec<u8>,
    /// Settings that were recorded when it began.
    settings: Vec<(String, String)>,
    ledger: Option<PathBuf>,
}

/// `run [JOB]`; `program` is how the user called it.
pub(crate) fn run(
    factory: Arc<ProgramFactory>,
    matches: &ArgMatches,
    program: &str,
    console: &Arc<Console>,
) -> Result<(), CliError> {
    let behind = matches.subcommand();
    let flags = match behind {
        Some((_, behind)) => RunFlags::from_both(matches, behind)?,
        None => RunFlags::from_arg_matches(matches)?,
    };
    let configuration = Configuration::load(&flags.data)?;
    let data_directory = absolute(&configuration.directory())?;
    // What a dead run staged would be in the way of a new one.
    sweep(&data_directory);
    let InterruptedRuns { runs: interrupted, unreadable } =
        interrupted_runs(&data_directory).map_err(|error| CliError::Usage(with_causes(&error)))?;
    for error in &unreadable {
        console.say(&with_causes(error));
    }
    let named = match behind {
        Some((name, behind)) => Some((name, arguments(&factory, name, behind, flags.overwrite)?)),
        None => None,
    };
    let request = if flags.resume {
        resume(named, interrupted, (&flags, &data_directory), console)?
    } else {
        let request = fresh(&factory, named, &flags)?;
        let graph =
            factory.build(&request.job_name, &request.arguments).map_err(CliError::Usage)?;
        check_output(&request.job, &graph.sinks, &interrupted, &data_directory)?;
        name_interrupted(&interrupted, &request.job, &data_directory, program, console);
        request
    };
    let options = if flags.resume {
        configuration.options_of_resumed(&request.settings)?
    } else {
        configuration.options()?
    };
    let run = LocalRun {
        job: request.job,
        named: flags.job_id.is_some(),
        job_name: request.job_name,
        arguments: request.arguments,
        ledger: request.ledger,
        settings: options.to_settings(),
        options,
        data_directory,
        task_managers: flags.task_managers.unwrap_or(1),
        slots: flags.slots.unwrap_or(ProcessSettings::of(&configuration)?.slots),
        kills: flags.kill_jobmaster_at.clone(),
        factory,
    };
    let launched = launcher::launch(run, console, flags.quiet)?;
    launcher::report(&launched.result, flags.json, flags.quiet, console)
}

/// The arguments of a job as they are recorded, after the job was built once from them.
pub(super) fn arguments(
    factory: &ProgramFactory,
    name: &str,
    matches: &ArgMatches,
    overwrite: bool,
) -> Result<Vec<u8>, CliError> {
    let job = factory.jobs().find(name).map_err(CliError::Usage)?;
    let arguments = JobArguments {
        working_directory: Some(working_directory()?),
        overwrite,
        arguments: job.parse(matches)?,
    };
    Ok(recorded_arguments(name, job, arguments)?)
}

fn fresh(
    factory: &ProgramFactory,
    named: Option<(&str, Vec<u8>)>,
    flags: &RunFlags,
) -> Result<Request, CliError> {
    let Some((name, arguments)) = named else {
        let known: Vec<&str> = factory.jobs().iter().map(|(name, _)| name).collect();
        return Err(CliError::Usage(format!(
            "name the job to run, or use --resume; this program has: {}",
            known.join(", ")
        )));
    };
    Ok(Request {
        job: flags.job_id.clone().map_or_else(random_job, Ok)?,
        job_name: name.to_owned(),
        arguments,
        settings: Vec::new(),
        ledger: flags.ledger.as_deref().map(absolute).transpose()?,
    })
}

/// The one interrupted run that is meant.
fn resume(
    named: Option<(&str, Vec<u8>)>,
    interrupted: Vec<InterruptedRun>,
    (flags, directory): (&RunFlags, &Path),
    console: &Console,
) -> Result<Request, CliError> {
    let is_meant = |run: &InterruptedRun| {
        flags.job_id.as_ref().is_none_or(|job| *job == run.job)
            && named.as_ref().is_none_or(|(name, _)| *name == run.job_name)
    };
    let mut meant: Vec<InterruptedRun> = interrupted.into_iter().filter(is_meant).collect();
    let Some(run) = meant.pop() else {
        let id = flags.job_id.as_ref().map_or_else(String::new, |job| format!(" with id {job}"));
        let name = named.map_or_else(String::new, |(name, _)| format!(" of job {name}"));
        return Err(CliError::Usage(format!(
            "there is no interrupted run{id}{name} under the data directory {}",
            directory.display()
        )));
    };
    if !meant.is_empty() {
        meant.push(run);
        for run in &meant {
            console.say(&format!("{} (job {})", run.job, run.job_name));
        }
        return Err(CliError::Usage(format!(
            "{} runs under {} were interrupted: name the one to resume with --job-id",
            meant.len(),
            directory.display()
        )));
    }
    if named.is_some_and(|(_, arguments)| arguments != run.arguments) {
        return Err(CliError::Usage(format!(
            "run {} was started with other arguments: leave the job and its arguments out to resume \
             it as it was, or --resume to start another run",
            run.job
        )));
    }
    let ledger = flags.ledger.as_deref().map(absolute).transpose()?.or_else(|| run.ledger.clone());
    let InterruptedRun { job, job_name, arguments, settings, ledger: _ } = run;
    Ok(Request { job, job_name, arguments, settings, ledger })
}

/// Names the interrupted runs that are not meant, with the commands that resume them.
fn name_interrupted(
    interrupted: &[InterruptedRun],
    job: &JobId,
    data_directory: &Path,
    program: &str,
    console: &Console,
) {
    let others: Vec<&InterruptedRun> = interrupted.iter().filter(|run| run.job != *job).collect();
    for run in others.iter().take(NAMED_RUNS_MAX) {
        console.say(&format!(
            "run {} of job {} was interrupted; resume it with: {} run --resume --job-id {} \
             --data-dir {}",
            run.job,
            run.job_name,
            quoted(program),
            run.job,
            quoted(&data_directory.to_string_lossy())
        ));
    }
    if others.len() > NAMED_RUNS_MAX {
        console.say(&format!("and {} more", others.len() - NAMED_RUNS_MAX));
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+:=@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Jobs;

    fn interrupted(job: &str, job_name: &str) -> InterruptedRun {
        InterruptedRun {
            job: job.parse().unwrap(),
            job_name: job_name.to_owned(),
            arguments: vec![1],
            settings: vec![("a".to_owned(), "1".to_owned())],
            ledger: None,
        }
    }

    fn resumed(named: Option<(&str, Vec<u8>)>, flags: &RunFlags) -> Result<Request, CliError> {
        let runs = vec![interrupted("x", "stages"), interrupted("y", "wordcount")];
        resume(named, runs, (flags, Path::new("/data")), &Console::standard())
    }

    #[test]
    fn the_run_that_is_meant_resumes_with_what_was_recorded() {
        let flags = RunFlags { job_id: Some("y".parse().unwrap()), ..RunFlags::default() };
        let request = resumed(None, &flags).unwrap();
        assert_eq!((request.job.as_str(), request.arguments), ("y", vec![1]));
        assert_eq!(request.settings, [("a".to_owned(), "1".to_owned())]);
        let by_name = resumed(Some(("stages", vec![1])), &RunFlags::default()).unwrap();
        assert_eq!(by_name.job.as_str(), "x");
    }

    #[test]
    fn an_unclear_or_wrong_resume_is_refused() {
        let unknown = RunFlags { job_id: Some("z".parse().unwrap()), ..RunFlags::default() };
        for result in [
            resumed(None, &RunFlags::default()),
            resumed(None, &unknown),
            resumed(Some(("stages", vec![2])), &RunFlags::default()),
        ] {
            assert!(matches!(result, Err(CliError::Usage(_))));
        }
    }

    fn recorded(line: &str) -> Result<JobArguments, CliError> {
        let factory = ProgramFactory::new(Jobs::built_in());
        let job = factory.jobs().find("wordcount").unwrap();
        let matches = job
            .augment(clap::Command::new("wordcount").no_binary_name(true))
            .try_get_matches_from(line.split(' '))
            .unwrap();
        let bytes = arguments(&factory, "wordcount", &matches, false)?;
        Ok(JobArguments::from_bytes(&bytes).unwrap())
    }

    #[test]
    fn the_working_directory_is_recorded_only_where_it_counts() {
        let absolute = recorded("--input /in --output /out").unwrap();
        assert_eq!(absolute.working_directory, None);
        let relative = recorded("--input in --output /out").unwrap();
        assert_eq!(relative.working_directory, Some(std::env::current_dir().unwrap()));
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("a/b-c.1"), "a/b-c.1");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
    }
}
