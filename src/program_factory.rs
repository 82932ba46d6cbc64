//! Makes the tasks of a program's jobs.

use std::sync::{Arc, Mutex, PoisonError};

use regrow_actors::task::{Task, TaskFactory};
use regrow_protocol::{JobVertexId, Split, TaskDeployment, TaskFailure};
use regrow_runtime::JobGraph;

use crate::{environment::BuiltJob, job_arguments::JobArguments, jobs::Jobs};

/// Makes the tasks of a program's jobs. Builds a job once per change of job or arguments: it keeps
/// the last one that it built.
pub(crate) struct ProgramFactory {
    jobs: Jobs,
    last: Mutex<Option<Built>>,
}

#[derive(Clone)]
struct Built {
    job_name: String,
    arguments: Vec<u8>,
    graph_hash: u64,
    job: Arc<BuiltJob>,
}

impl ProgramFactory {
    /// Makes tasks of `jobs`.
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self { jobs, last: Mutex::default() }
    }

    /// The program's jobs.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    fn built(&self, job_name: &str, arguments: &[u8]) -> Result<Built, String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(built) = last
            && built.job_name == job_name
            && built.arguments == arguments
        {
            return Ok(built);
        }
        let job = self.jobs.find(job_name)?;
        let (job, _) = job.build(&JobArguments::from_bytes(arguments)?)?;
        let built = Built {
            job_name: job_name.to_owned(),
            arguments: arguments.to_vec(),
            graph_hash: job.graph.hash(),
            job: Arc::new(job),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(built.clone());
        Ok(built)
    }
}

impl TaskFactory for ProgramFactory {
    fn build(&self, job_name: &str, arguments: &[u8]) -> Result<JobGraph, String> {
        Ok(self.built(job_name, arguments)?.job.graph.clone())
    }

    fn create(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        let built = self
            .built(&deployment.job_name, &deployment.arguments)
            .map_err(TaskFailure::unrecoverable)?;
        if built.graph_hash != deployment.graph_hash {
            return Err(TaskFailure::unrecoverable(format!(
                "the job's builder is not deterministic: job {} was submitted with graph \
                 {:016x}, and was built here with graph {:016x} from the same arguments; a builder \
                 may depend on nothing but them",
                deployment.job_name, deployment.graph_hash, built.graph_hash
            )));
        }
        let vertex = deployment.attempt.vertex;
        let operator = built.job.operators.get(vertex.0 as usize).ok_or_else(|| {
            TaskFailure::unrecoverable(format!(
                "job {} has no vertex {vertex}, which attempt {} is of",
                deployment.job_name, deployment.attempt
            ))
        })?;
        operator.task(deployment)
    }

    fn discover_splits(
        &self,
        job_name: &str,
        arguments: &[u8],
        vertex: JobVertexId,
    ) -> Result<Vec<Split>, String> {
        let built = self.built(job_name, arguments)?;
        built
            .job
            .operators
            .get(vertex.0 as usize)
            .and_then(|operator| operator.discover_splits())
            .ok_or_else(|| format!("vertex {vertex} of job {job_name} has no splits to list"))?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use clap::Args;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{environment::Environment, test_context::TestContext};

    #[derive(Args, Serialize, Deserialize)]
    struct NoArguments {}

    fn factory(
        builder: impl Fn(&Environment, NoArguments) -> Result<(), String> + Send + Sync + 'static,
    ) -> (ProgramFactory, Vec<u8>) {
        let mut jobs = Jobs::default();
        jobs.add("test", builder);
        let arguments = regrow_protocol::encode(&NoArguments {}).unwrap();
        let arguments = JobArguments { working_directory: None, overwrite: false, arguments };
        (ProgramFactory::new(jobs), arguments.to_bytes().unwrap())
    }

    fn read_and_write(environment: &Environment, input: &str) {
        let _ = environment.read_text(input).count_by_key().write_csv("/output");
    }

    #[test]
    fn a_builder_that_makes_another_graph_each_time_fails_the_job_for_good() {
        let built = AtomicU32::new(0);
        let (factory, arguments) = factory(move |environment, NoArguments {}| {
            for _ in 0..=built.fetch_add(1, Ordering::Relaxed) {
                let _ = environment.read_text("/input").count_by_key();
            }
            Ok(())
        });
        let submitted = factory.build("test", &arguments).unwrap();
        let mut deployment = TestContext::new(0).deployment;
        deployment.job_name = "test".to_owned();
        deployment.arguments = arguments;
        deployment.graph_hash = submitted.hash();
        assert!(factory.create(&deployment).is_ok());

        *factory.last.lock().unwrap() = None;
        let failure = factory.create(&deployment).err().unwrap();
        let TaskFailure::Unrecoverable { message } = &failure else { panic!("{failure}") };
        assert!(message.contains("the job's builder is not deterministic"), "{message}");
    }

    #[test]
    fn a_builder_that_panics_is_an_error_with_its_text() {
        let (factory, arguments) = factory(|_, NoArguments {}| panic!("no such table"));
        let error = factory.build("test", &arguments).unwrap_err();
        assert!(error.contains("no such table"), "{error}");
    }

    #[test]
    fn only_sources_have_splits_and_only_known_jobs_are_built() {
        let (factory, arguments) = factory(|environment, NoArguments {}| {
            read_and_write(environment, "/no/such/input");
            Ok(())
        });
        let splits = |vertex| factory.discover_splits("test", &arguments, JobVertexId(vertex));
        assert!(splits(0).unwrap_err().contains("/no/such/input"));
        assert!(splits(1).unwrap_err().contains("no splits"));
        assert!(factory.build("tets", &arguments).unwrap_err().contains("did you mean test?"));
    }

    #[test]
    fn a_relative_path_without_a_directory_to_take_it_from_is_refused() {
        let (factory, arguments) = factory(|environment, NoArguments {}| {
            read_and_write(environment, "input");
            Ok(())
        });
        assert!(factory.build("test", &arguments).unwrap_err().contains("relative"));
    }
}
