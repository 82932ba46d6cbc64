//! How a job ended, for the program that ran it.

use std::time::Duration;

use regrow_actors::launch::LocalResult;
use regrow_protocol::{JobId, RunId};
use regrow_runtime::JobState;
use serde::{Serialize, de::DeserializeOwned};

use crate::accumulators::{Accumulators, ResultError};

/// How a job ended.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Which job.
    pub job_id: JobId,
    /// Which run of it.
    pub run_id: RunId,
    /// A terminal state.
    pub state: JobState,
    /// How long the program waited for it.
    pub duration: Duration,
    /// How often its coordinator died and came back.
    pub recoveries: u32,
    /// Whether it had finished before, and this is its result again.
    pub was_stored: bool,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// What its tasks accumulated, each task once; of a job that did not finish, what its finished
    /// tasks did.
    pub accumulators: Accumulators,
}

impl JobResult {
    pub(crate) fn new(result: LocalResult) -> Self {
        let LocalResult { outcome, duration, joined } = result;
        Self {
            job_id: outcome.job,
            run_id: outcome.run,
            state: outcome.state,
            duration,
            recoveries: outcome.recoveries,
            was_stored: joined,
            error: outcome.error,
            accumulators: Accumulators::new(outcome.accumulators),
        }
    }

    /// The records that the job [collected](crate::DataSet::collect) as `name`. Texts are read as
    /// `String`.
    ///
    /// # Errors
    /// When it collected nothing as `name`, or records of another type than `T`.
    pub fn collected<T>(&self, name: &str) -> Result<Vec<T>, ResultError>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        self.accumulators.collected(name)
    }
}
