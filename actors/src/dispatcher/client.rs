//! What clients say to a Dispatcher, and what they hear.

use actix::{Message, Recipient};
use regrow_protocol::JobId;
use regrow_runtime::{JobOutcome, JobSubmission, KillHow, KillPoint, Options};

use super::SubmitError;
use crate::launch::RunUpdate;

/// Run a job, or join the run of it that is there.
pub(crate) struct SubmitJob {
    /// What to run; its run id counts if the run is new.
    pub submission: JobSubmission,
    /// Its settings, parsed.
    pub options: Options,
    /// Planned kills of its `JobMaster` by percentage.
    pub kills: Vec<KillPoint>,
    /// Who hears of it.
    pub client: Recipient<ClientUpdate>,
    /// Whether it was cancelled before it was accepted.
    pub cancel: bool,
    /// A planned kill that came before it was accepted.
    pub kill: Option<KillHow>,
    /// Why it may not begin a run, if it may not; it may join one all the same.
    pub obstacle: Option<String>,
}

impl SubmitJob {
    /// A submission without kills, for which nothing is in the way.
    pub(crate) fn new(
        submission: JobSubmission,
        options: Options,
        client: Recipient<ClientUpdate>,
    ) -> Self {
        let (kills, kill, cancel, obstacle) = (Vec::new(), None, false, None);
        Self { submission, options, kills, client, cancel, kill, obstacle }
    }
}

impl Message for SubmitJob {
    type Result = ();
}

/// Cancel the run of a job.
#[derive(Clone)]
pub(crate) struct CancelRun {
    /// Which job.
    pub job: JobId,
    /// Who is to hear how it goes on, or that it was not taken.
    pub client: Option<Recipient<ClientUpdate>>,
}

impl CancelRun {
    /// Of a job that somebody follows already.
    pub(crate) fn of(job: JobId) -> Self {
        Self { job, client: None }
    }
}

impl Message for CancelRun {
    type Result = ();
}

/// Let the `JobMaster` of a job die, if the job has not ended: the one that leads, or the next.
#[derive(Clone, Debug)]
pub(crate) struct KillRun {
    /// Whose.
    pub job: JobId,
    /// How.
    pub how: KillHow,
}

impl Message for KillRun {
    type Result = ();
}

/// What a client hears.
#[derive(Debug)]
pub(crate) enum ClientUpdate {
    /// Something happened to the run.
    Run(RunUpdate),
    /// The submission is refused; nothing more comes.
    Refused(SubmitError),
    /// The log could not be used for too long, or another process leads: all is kept, and the run
    /// can be resumed. Nothing more comes.
    Abandoned {
        /// What went wrong.
        reason: String,
    },
    /// The job is terminal.
    Ended {
        /// How it ended.
        outcome: Box<JobOutcome>,
        /// Whether it had ended before it was submitted.
        joined: bool,
    },
    /// Nothing of the run is left but its result. Nothing more comes.
    Closed,
}

impl Message for ClientUpdate {
    type Result = ();
}
