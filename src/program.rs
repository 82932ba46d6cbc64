//! A program of jobs.

use std::process::ExitCode;

use clap::Args;
use serde::{Serialize, de::DeserializeOwned};

use crate::{cli, environment::Environment, jobs::Jobs, sinks::Sinks};

/// A program of jobs: give it your jobs and call [`run`](Self::run) as all that `main` does.
#[derive(Default)]
#[must_use = "a program does nothing before `run`"]
pub struct Program {
    jobs: Jobs,
}

/// A program without jobs.
pub fn program() -> Program {
    Program::default()
}

/// The program `regrow`, with the jobs that come with it.
pub fn built_in_program() -> Program {
    Program { jobs: Jobs::built_in() }
}

impl Program {
    /// Adds a job. `builder` puts it together from its arguments and does no input or output: it
    /// runs in every process that works for the job, and must make the same job of the same
    /// arguments each time.
    ///
    /// It gives back all that it writes, one data set or several: see [`Sinks`].
    ///
    /// The arguments are those of `run NAME` on the command line, and are recorded with the job.
    pub fn job<A, S, F>(mut self, name: &str, builder: F) -> Self
    where
        A: Args + Serialize + DeserializeOwned,
        S: Sinks,
        F: Fn(&Environment, A) -> S + Send + Sync + 'static,
    {
        self.jobs.add(name, move |environment: &Environment, arguments: A| {
            builder(environment, arguments).accept()
        });
        self
    }

    /// Does what the command line asks for, and says how it went: 0 fine, 1 the job failed, 2 wrong
    /// usage or configuration, 3 cancelled, 4 cluster not reachable.
    pub fn run(self) -> ExitCode {
        cli::run(self.jobs, std::env::args_os().collect())
    }
}
