//! Runs jobs from within a program, without the command line.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use regrow_actors::{
    launch::{CancelHandle, InterruptedRuns, LocalRun, RunUpdate, interrupted_runs, sweep},
    task::TaskFactory as _,
};
use regrow_protocol::JobId;
use regrow_runtime::{JobState, KillPoint, Options, with_causes};

use crate::{
    job::Job,
    job_arguments::JobArguments,
    job_result::JobResult,
    jobs::Jobs,
    program_factory::ProgramFactory,
    run_error::RunError,
    run_request::{
        SLOTS_MAX, TASK_MANAGERS_MAX, absolute, check_output, data_directory_default, random_job,
        recorded_arguments, slots_default, working_directory,
    },
};

/// Runs jobs with all roles in this process, on threads of their own, while the caller waits: what
/// `run` of the command line does, for programs. Made by [`local`].
///
/// It prints nothing, handles no signals, and never ends the process. A panic of a job's function
/// is a failure of one attempt; so that it prints nothing either, the first run puts a hook before
/// the panic hook of the process, which leaves all other panics to the one that was there.
#[must_use = "nothing runs before `run`"]
pub struct LocalRunner<'a> {
    data_directory: PathBuf,
    task_managers: u32,
    slots: u32,
    settings: Vec<(String, String)>,
    job_id: Option<String>,
    ledger: Option<PathBuf>,
    overwrite: bool,
    kills: Vec<String>,
    cancel: CancelHandle,
    on_progress: Box<dyn FnMut(&RunUpdate) + 'a>,
}

/// Runs jobs from within a program:
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let input = directory.path().join("input.txt");
/// # std::fs::write(&input, "some words and more words\n")?;
/// use regrow::prelude::*;
///
/// fn words(env: &Environment, input: String) -> Written {
///     env.read_text(&input)
///         .flat_map_text(|line, out| out.emit_lowercase_words(line))
///         .count_by_key()
///         .filter(|(_, count)| *count > 1)
///         .collect("frequent", 10)
/// }
///
/// let input = input.to_str().ok_or("no UTF-8")?;
/// let result = regrow::local()
///     .data_directory(directory.path().join("data"))
///     .run(Job::new("words", input.to_owned(), words))?;
/// assert_eq!(result.collected::<(String, u64)>("frequent")?, [("words".to_owned(), 2)]);
/// # Ok(())
/// # }
/// ```
pub fn local<'a>() -> LocalRunner<'a> {
    LocalRunner {
        data_directory: data_directory_default(),
        task_managers: 1,
        slots: slots_default(),
        settings: Vec::new(),
        job_id: None,
        ledger: None,
        overwrite: false,
        kills: Vec::new(),
        cancel: CancelHandle::default(),
        on_progress: Box::new(|_| {}),
    }
}

impl<'a> LocalRunner<'a> {
    /// Keeps runs and the archive of ended jobs in `directory`, instead of `./.regrow`.
    pub fn data_directory(self, directory: impl AsRef<Path>) -> Self {
        Self { data_directory: directory.as_ref().to_owned(), ..self }
    }

    /// How many task managers there are; 1 unless told.
    pub fn task_managers(self, task_managers: u32) -> Self {
        Self { task_managers, ..self }
    }

    /// How many tasks each task manager runs at once; as many as there are cores unless told.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// Changes a setting; `config` of the command line lists them.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Names the job: `[A-Za-z0-9_-]`, up to 64. A run of the same name and data directory that was
    /// interrupted goes on; one that had finished gives its result again. Without a name each run is
    /// another job.
    pub fn job_id(self, id: impl Into<String>) -> Self {
        Self { job_id: Some(id.into()), ..self }
    }

    /// Has each attempt append a line at its start and one at its end to `file`.
    pub fn ledger(self, file: impl AsRef<Path>) -> Self {
        Self { ledger: Some(file.as_ref().to_owned()), ..self }
    }

    /// Lets the job replace output files that are there.
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }

    /// Kills the coordinator at `50%` of the tasks or after `2s`, to see the job regrow; with
    /// `:panic` behind it lets it panic. May be said several times.
    pub fn kill_jobmaster_at(mut self, when: impl Into<String>) -> Self {
        self.kills.push(when.into());
        self
    }

    /// Lets another thread cancel the run by `handle`.
    pub fn cancelled_by(self, handle: &CancelHandle) -> Self {
        Self { cancel: handle.clone(), ..self }
    }

    /// Calls `hear` with all that happens, on the thread that waits: the run does not wait for it,
    /// so what comes too fast of mere progress is left out.
    pub fn on_progress(self, hear: impl FnMut(&RunUpdate) + 'a) -> Self {
        Self { on_progress: Box::new(hear), ..self }
    }

    /// Runs a job to its end.
    ///
    /// # Errors
    /// When there is no finished job to show: it was refused, could not run, failed, or was
    /// cancelled. A failed job is an error so that nobody takes its missing output for an empty one;
    /// [`RunError::result`] has what it left.
    pub fn run(mut self, job: Job) -> Result<JobResult, RunError> {
        let (run, cancel) = self.prepare(job)?;
        let result = run.run(|update| (self.on_progress)(&update), cancel)?;
        let result = JobResult::new(result);
        match result.state {
            JobState::Finished => Ok(result),
            JobState::Canceled => Err(RunError::Canceled(Box::new(result))),
            JobState::Failed
            | JobState::Initializing
            | JobState::Running
            | JobState::Reconciling
            | JobState::Failing
            | JobState::Cancelling => Err(RunError::Failed(Box::new(result))),
        }
    }

    /// What is to run, after all that can be checked before anything is made.
    fn prepare(&self, job: Job) -> Result<(LocalRun, CancelHandle), RunError> {
        let Job { name, arguments, registered } = job;
        let arguments = JobArguments {
            working_directory: Some(working_directory()?),
            overwrite: self.overwrite,
            arguments: arguments.map_err(RunError::Refused)?,
        };
        let arguments = recorded_arguments(&name, &registered, arguments)?;
        let id = self.id()?;
        let settings = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let options = Options::from_settings(settings)
            .map_err(|error| RunError::Refused(with_causes(&error)))?;
        let kills = self.kills.iter().map(|when| parsed::<KillPoint>(when));
        let kills = kills.collect::<Result<Vec<KillPoint>, RunError>>()?;
        let data_directory = absolute(&self.data_directory)?;
        let ledger = self.ledger.as_deref().map(absolute).transpose()?;
        let mut jobs = Jobs::default();
        jobs.insert(&name, registered);
        let factory = Arc::new(ProgramFactory::new(jobs));
        let graph = factory.build(&name, &arguments).map_err(RunError::Refused)?;
        sweep(&data_directory);
        let InterruptedRuns { runs: interrupted, unreadable: _ } =
            interrupted_runs(&data_directory)?;
        check_output(&id, &graph.sinks, &interrupted, &data_directory)?;
        let run = LocalRun {
            job: id,
            named: self.job_id.is_some(),
            job_name: name,
            arguments,
            ledger,
            settings: options.to_settings(),
            options,
            data_directory,
            task_managers: possible("task managers", self.task_managers, TASK_MANAGERS_MAX)?,
            slots: possible("slots", self.slots, SLOTS_MAX)?,
            kills,
            factory,
        };
        Ok((run, self.cancel.clone()))
    }

    fn id(&self) -> Result<JobId, RunError> {
        match &self.job_id {
            Some(id) => parsed(id),
            None => Ok(random_job()?),
        }
    }
}

fn parsed<T>(text: &str) -> Result<T, RunError>
where
    T: std::str::FromStr<Err: std::error::Error>,
{
    text.parse().map_err(|error| RunError::Refused(with_causes(&error)))
}

fn possible(what: &str, count: u32, most: u32) -> Result<u32, RunError> {
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(RunError::Refused(format!("a run with {count} {what} is not possible: use 1 to {most}")))
}
