//! A job with its arguments.

use regrow_protocol::encode;
use regrow_runtime::with_causes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{environment::Environment, registered_job::RegisteredJob, sinks::Sinks};

/// A job for [`local`](crate::local): a name, arguments, and a builder as
/// [`Program::job`](crate::Program::job) takes it, so that one function serves both.
pub struct Job {
    pub(crate) name: String,
    pub(crate) arguments: Result<Vec<u8>, String>,
    pub(crate) registered: RegisteredJob,
}

impl Job {
    /// Makes a job of its parts. The arguments are recorded with the job, and the builder gets what
    /// was recorded: it may depend on nothing else, and does no input or output.
    pub fn new<A, S, F>(name: impl Into<String>, arguments: A, builder: F) -> Self
    where
        A: Serialize + DeserializeOwned,
        S: Sinks,
        F: Fn(&Environment, A) -> S + Send + Sync + 'static,
    {
        let name = name.into();
        let arguments = encode(&arguments).map_err(|error| {
            format!("the arguments of job {name} cannot be recorded: {}", with_causes(&error))
        });
        let registered =
            RegisteredJob::without_command_line(move |environment: &Environment, arguments: A| {
                builder(environment, arguments).accept()
            });
        Self { name, arguments, registered }
    }
}
