//! A job that a program offers.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use clap::{ArgMatches, Args, Command, error::ErrorKind};
use regrow_protocol::{decode, encode};
use regrow_runtime::with_causes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    environment::{BuiltJob, Environment},
    job_arguments::JobArguments,
};

type Parse = Box<dyn Fn(&ArgMatches) -> Result<Vec<u8>, clap::Error> + Send + Sync>;
type Build = Box<dyn Fn(&Environment, &[u8]) -> Result<(), String> + Send + Sync>;

/// A job that a program offers: its arguments and how it is built.
pub(crate) struct RegisteredJob {
    augment: fn(Command) -> Command,
    parse: Parse,
    build: Build,
}

impl RegisteredJob {
    /// Registers a builder that takes `A` and says what is wrong with it.
    pub(crate) fn new<A, F>(builder: F) -> Self
    where
        A: Args + Serialize + DeserializeOwned,
        F: Fn(&Environment, A) -> Result<(), String> + Send + Sync + 'static,
    {
        let parse = |matches: &ArgMatches| {
            let arguments = A::from_arg_matches(matches)?;
            encode(&arguments).map_err(|error| {
                let text = not_utf8(matches).unwrap_or_else(|| with_causes(&error));
                clap::Error::raw(ErrorKind::ValueValidation, format!("{text}\n"))
            })
        };
        let (augment, parse): (_, Parse) = (A::augment_args, Box::new(parse));
        Self { augment, parse, ..Self::without_command_line(builder) }
    }

    /// Registers a builder for a program that gives the arguments by itself.
    pub(crate) fn without_command_line<A, F>(builder: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(&Environment, A) -> Result<(), String> + Send + Sync + 'static,
    {
        let parse = |_: &ArgMatches| {
            let reason = "the job has no arguments on the command line";
            Err(clap::Error::raw(ErrorKind::Io, reason))
        };
        let build = move |environment: &Environment, arguments: &[u8]| {
            let arguments = decode(arguments).map_err(|error| {
                format!("the recorded arguments are not those of this job: {}", with_causes(&error))
            })?;
            builder(environment, arguments)
        };
        Self { augment: |command| command, parse: Box::new(parse), build: Box::new(build) }
    }

    /// Adds the job's arguments to its command.
    pub(crate) fn augment(&self, command: Command) -> Command {
        (self.augment)(command)
    }

    /// Takes the job's arguments from a parsed command line, encoded.
    pub(crate) fn parse(&self, matches: &ArgMatches) -> Result<Vec<u8>, clap::Error> {
        (self.parse)(matches)
    }

    /// Builds the job, and says whether it depends on the working directory.
    pub(crate) fn build(&self, arguments: &JobArguments) -> Result<(BuiltJob, bool), String> {
        let environment =
            Environment::new(arguments.working_directory.clone(), arguments.overwrite);
        catch_unwind(AssertUnwindSafe(|| (self.build)(&environment, &arguments.arguments)))
            .map_err(|panic| format!("the job's builder panicked: {}", panic_text(&*panic)))??;
        let used = environment.used_working_directory();
        let job = environment.into_job();
        if let Some(defect) = job.defect {
            return Err(defect);
        }
        job.graph.validate().map_err(|error| error.to_string())?;
        Ok((job, used))
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<String>() {
        return text.clone();
    }
    panic.downcast_ref::<&str>().map_or("no text", |text| text).to_owned()
}

/// What to say about an argument that is not UTF-8, as all that is recorded must be, if there is one.
fn not_utf8(matches: &ArgMatches) -> Option<String> {
    matches.ids().find_map(|id| {
        let mut values = matches.try_get_raw(id.as_str()).ok()??;
        let odd = values.find(|value| value.to_str().is_none())?;
        Some(format!(
            "--{id} {} is not UTF-8, as the arguments of a job must be, since they are recorded; \
             rename it, or name it by a link",
            odd.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

    use serde::Deserialize;

    use super::*;

    #[derive(Args, Serialize, Deserialize)]
    struct Paths {
        #[arg(long)]
        input: PathBuf,
        #[arg(long)]
        output: PathBuf,
    }

    #[test]
    fn a_path_that_cannot_be_recorded_is_named() {
        let job = RegisteredJob::new(|_: &Environment, _: Paths| Ok(()));
        let command = job.augment(Command::new("job").no_binary_name(true));
        let odd = OsString::from_vec(b"/data/b\xff".to_vec());
        let line = ["--input".into(), "/a".into(), "--output".into(), odd];
        let error = job.parse(&command.try_get_matches_from(line).unwrap()).unwrap_err();
        let text = error.to_string();
        let named = text.contains("--output") && text.contains("/data/b\u{fffd}");
        assert!(named && text.contains("UTF-8") && !text.contains("--input"), "{text}");
        assert!(text.ends_with('\n') && !text.contains("regrow::"), "{text}");
    }
}
