//! What clients and a `JobManager` say to each other.
//!
//! They stand here and not in `protocol`, because they carry what the runtime says of jobs.

use std::time::Duration;

use regrow_protocol::{JobId, RunId, SubmissionId};
use regrow_runtime::{JobOutcome, JobState, VertexStatus};
use serde::{Deserialize, Serialize};

use super::{
    ClusterError,
    event_page::{EventPage, EventPlace},
    pages::{ReportPage, ReportPlace},
};
use crate::{archive::ArchivedJob, launch::RunUpdate};

/// What a client says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromClient {
    /// Run a job, or join its run. Repeating it, with the same submission id, joins.
    Submit(Box<Submission>),
    /// Tell how the run of a job goes on, until it ends.
    Follow {
        /// Which job.
        job: JobId,
        /// Only this run of it.
        #[serde(default)]
        run: Option<RunId>,
    },
    /// Cancel the run of a job, and tell how it goes on.
    Cancel {
        /// Which job.
        job: JobId,
    },
    /// Tell of all jobs.
    List,
    /// Tell how a job stands.
    Status {
        /// Which job.
        job: JobId,
    },
    /// Show events of a job.
    Events {
        /// Which job.
        job: JobId,
        /// Number of the first event.
        from: u64,
        /// Where it is, as the page before said.
        #[serde(default)]
        place: Option<EventPlace>,
    },
    /// Show how a job was recovered.
    Recoveries {
        /// Which job.
        job: JobId,
        /// Where to begin.
        from: ReportPlace,
    },
}

/// A job as a client submits it; the `JobManager` builds its graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Submission {
    pub(crate) job: JobId,
    pub(crate) id: SubmissionId,
    pub(crate) job_name: String,
    #[serde(with = "serde_bytes")]
    pub(crate) arguments: Vec<u8>,
    pub(crate) graph_hash: u64,
    pub(crate) ledger: Option<String>,
    pub(crate) settings: Vec<(String, String)>,
}

/// What a client hears.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToClient {
    /// Something happened to the run.
    Update(Box<RunUpdate>),
    /// What was asked for cannot be done; nothing was harmed.
    Refused {
        /// Why, with what to do.
        reason: String,
    },
    /// This `JobManager` leads the run no more: connect to the next leader.
    Abandoned {
        /// Why.
        reason: String,
    },
    /// The job is terminal.
    Ended {
        /// How it ended.
        outcome: Box<JobOutcome>,
        /// Whether it had ended before it was asked about.
        joined: bool,
    },
    /// Nothing more comes.
    Closed,
    /// All jobs that are known, the newest last.
    Jobs(Vec<JobSummary>),
    /// Events of a job.
    Events(EventPage),
    /// How a job was recovered.
    Recoveries(ReportPage),
}

/// What a client waits for that has asked; none if this is something else.
impl ToClient {
    pub(super) fn jobs(self) -> Result<Option<Vec<JobSummary>>, ClusterError> {
        if let Self::Jobs(jobs) = self {
            return Ok(Some(jobs));
        }
        self.refusal()
    }

    pub(super) fn events(self) -> Result<Option<EventPage>, ClusterError> {
        if let Self::Events(page) = self {
            return Ok(Some(page));
        }
        self.refusal()
    }

    pub(super) fn recoveries(self) -> Result<Option<ReportPage>, ClusterError> {
        if let Self::Recoveries(page) = self {
            return Ok(Some(page));
        }
        self.refusal()
    }

    fn refusal<T>(self) -> Result<Option<T>, ClusterError> {
        match self {
            Self::Refused { reason } => Err(ClusterError::Refused(reason)),
            Self::Update(_)
            | Self::Abandoned { .. }
            | Self::Ended { .. }
            | Self::Closed
            | Self::Jobs(_)
            | Self::Events(_)
            | Self::Recoveries(_) => Ok(None),
        }
    }
}

impl JobSummary {
    /// Of a job that is in the archive.
    pub(crate) fn ended(archived: ArchivedJob, age: Option<Duration>) -> Self {
        let ArchivedJob { outcome, job_name, .. } = archived;
        Self {
            job: outcome.job,
            run: outcome.run,
            job_name,
            state: outcome.state,
            waiting_for: None,
            degraded: None,
            recoveries: outcome.recoveries,
            error: outcome.error,
            refused_commands: 0,
            ended_ago_ms: age.and_then(|age| u64::try_from(age.as_millis()).ok()),
            vertices: Vec::new(),
        }
    }
}

/// How a job stands, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Which job.
    pub job: JobId,
    /// Which run of it.
    pub run: RunId,
    /// Name under which the program registered it.
    pub job_name: String,
    /// Its state.
    pub state: JobState,
    /// What it waits for, if it waits.
    pub waiting_for: Option<String>,
    /// Why the log cannot be written, while it cannot.
    pub degraded: Option<String>,
    /// How many times a `JobMaster` came back.
    pub recoveries: u32,
    /// Why it failed.
    pub error: Option<String>,
    /// Commands of former masters that workers refused, as far as the newest `JobMaster` heard.
    #[serde(default)]
    pub refused_commands: u64,
    /// How long ago it ended.
    #[serde(default)]
    pub ended_ago_ms: Option<u64>,
    /// Each vertex, while the job runs.
    pub vertices: Vec<VertexStatus>,
}
