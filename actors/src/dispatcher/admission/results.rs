//! How the last runs of a job ended, as the store keeps it.

use regrow_protocol::{JobId, RunId, SubmissionId};
use regrow_runtime::{JobOutcome, JobSubmission};
use regrow_store::{EventStore, Table};
use serde::{Deserialize, Serialize};

use super::{
    SubmitError,
    documents::{Document, Documents, FORMAT, put},
};

/// Ends of earlier runs that are kept beside that of the newest, for clients that were away.
const EARLIER_MAX: usize = 8;

/// How the newest run of a job ended, and some before it.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResult {
    format: u32,
    pub(super) job_name: String,
    #[serde(with = "serde_bytes")]
    pub(super) arguments: Vec<u8>,
    pub(super) outcome: JobOutcome,
    /// Who began the run; older programs did not note it.
    #[serde(default)]
    pub(super) submission: Option<SubmissionId>,
    /// The newest first.
    #[serde(default)]
    earlier: Vec<EarlierResult>,
}

/// How a run before the newest ended.
#[derive(Serialize, Deserialize)]
struct EarlierResult {
    submission: SubmissionId,
    outcome: JobOutcome,
}

/// Which run of a job is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dispatcher) enum Which {
    /// The one that ended last.
    Newest,
    /// This one.
    Run(RunId),
    /// The one that this submission began.
    Of(SubmissionId),
}

impl Which {
    /// Whether the run of `outcome`, which `submission` began, is meant.
    pub(super) fn is(self, outcome: &JobOutcome, submission: Option<SubmissionId>) -> bool {
        match self {
            Self::Newest => true,
            Self::Run(run) => outcome.run == run,
            Self::Of(wanted) => submission == Some(wanted),
        }
    }
}

impl Document for StoredResult {
    fn format(&self) -> u32 {
        self.format
    }
}

impl StoredResult {
    /// How the run ended that is meant, if that is known.
    pub(super) fn find(&self, which: Which) -> Option<&JobOutcome> {
        if which.is(&self.outcome, self.submission) {
            return Some(&self.outcome);
        }
        let is_meant =
            |earlier: &&EarlierResult| which.is(&earlier.outcome, Some(earlier.submission));
        self.earlier.iter().find(is_meant).map(|earlier| &earlier.outcome)
    }

    /// What is kept of it beside the result of another run.
    fn into_earlier(self) -> Vec<EarlierResult> {
        let newest =
            self.submission.map(|submission| EarlierResult { submission, outcome: self.outcome });
        newest.into_iter().chain(self.earlier).take(EARLIER_MAX).collect()
    }
}

/// Stores the result of a run, durable: from here on it is only cleaned up.
pub(in crate::dispatcher) fn store_result(
    store: &mut dyn EventStore,
    submission: &JobSubmission,
    outcome: &JobOutcome,
) -> Result<(), SubmitError> {
    let job: &JobId = &submission.job;
    // One that is damaged is given up: the newest is what counts.
    let earlier = match Documents::read(store, job)?.result {
        Some(same) if same.outcome.run == outcome.run => same.earlier,
        Some(other) => other.into_earlier(),
        None => Vec::new(),
    };
    let result = StoredResult {
        format: FORMAT,
        job_name: submission.job_name.clone(),
        arguments: submission.arguments.clone(),
        outcome: outcome.clone(),
        submission: Some(submission.submission),
        earlier,
    };
    put(store, Table::Results, job, &result)
}
