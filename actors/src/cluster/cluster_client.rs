//! A client of a cluster: finds the leader, and finds the next one when that is gone.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crossbeam_channel::{Receiver, select};
use regrow_protocol::{JobId, SubmissionId, encode};
use regrow_runtime::{JobOutcome, RecoveryReport, with_causes};

use super::{
    ClusterError, ClusterIdentity, StillLooking,
    client_connection::Connection,
    client_messages::{FromClient, JobSummary, Submission, ToClient},
    event_page::EventPage,
    heard_queue::Heard,
    pages::ReportPlace,
};
use crate::{launch::RunUpdate, net::Link, random_bits::random_bits};

/// A client of a cluster.
pub struct ClusterClient {
    /// Which cluster.
    pub identity: ClusterIdentity,
    /// Where the address of the leader may stand.
    pub data_directory: PathBuf,
    /// `host:port` of `JobManagers`; empty to look into the data directory.
    pub leaders: Vec<String>,
    /// How long it looks for a leader before it gives up: the first one, and each next one.
    pub leader_timeout: Duration,
    /// Told when it has looked for a leader for long and goes on, once each time; on a thread of its
    /// own.
    pub still_looking: TellLooking,
}

/// Hears of a search that takes long.
pub type TellLooking = Arc<dyn Fn(StillLooking) + Send + Sync>;

/// A job for a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSubmission {
    /// What the user called it, or 128 random bits.
    pub job: JobId,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Its arguments, as its builder reads them.
    pub arguments: Vec<u8>,
    /// Hash of the graph that was built of them.
    pub graph_hash: u64,
    /// File to which each attempt appends its start and end, absolute.
    pub ledger: Option<PathBuf>,
    /// Settings that differ from the defaults.
    pub settings: Vec<(String, String)>,
}

/// What a client hears while it follows a job.
#[derive(Clone, Debug)]
pub enum FollowUpdate {
    /// Something happened to the run.
    Run(RunUpdate),
    /// The leader is out of reach; the client looks for the next.
    LeaderLost {
        /// What happened.
        reason: String,
    },
    /// A leader is found.
    LeaderFound {
        /// Where.
        address: String,
    },
}

/// How the following of a job ended.
#[derive(Clone, Debug)]
pub enum Followed {
    /// The job is terminal.
    Ended {
        /// How it ended.
        outcome: Box<JobOutcome>,
        /// Whether it had ended before it was asked about.
        joined: bool,
    },
    /// The caller wanted no more.
    Left,
}

impl ClusterClient {
    /// Submits a job and follows it to its end.
    ///
    /// # Errors
    /// When the submission is refused, or no leader is found.
    pub fn submit(
        &self,
        job: ClusterSubmission,
        wishes: &Receiver<Wish>,
        updates: impl FnMut(FollowUpdate),
    ) -> Result<Followed, ClusterError> {
        let submission = Submission {
            job: job.job,
            id: SubmissionId::from_bits(random_bits()?),
            job_name: job.job_name,
            arguments: job.arguments,
            graph_hash: job.graph_hash,
            ledger: job.ledger.map(|path| path.to_string_lossy().into_owned()),
            settings: job.settings,
        };
        // Said again to each leader until one has accepted it: the same submission joins its run.
        self.follow_with(FromClient::Submit(Box::new(submission)), wishes, updates)
    }

    /// Follows a job to its end.
    ///
    /// # Errors
    /// When there is no such job, or no leader is found.
    pub fn follow(
        &self,
        job: JobId,
        wishes: &Receiver<Wish>,
        updates: impl FnMut(FollowUpdate),
    ) -> Result<Followed, ClusterError> {
        self.follow_with(FromClient::Follow { job, run: None }, wishes, updates)
    }

    /// Cancels a job and follows it to its end.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    pub fn cancel(
        &self,
        job: JobId,
        wishes: &Receiver<Wish>,
        updates: impl FnMut(FollowUpdate),
    ) -> Result<Followed, ClusterError> {
        self.follow_with(FromClient::Cancel { job }, wishes, updates)
    }

    /// All jobs that the cluster knows, or the one that is named.
    ///
    /// # Errors
    /// When no leader is found.
    pub fn jobs(&self, job: Option<JobId>) -> Result<Vec<JobSummary>, ClusterError> {
        let question = job.map_or(FromClient::List, |job| FromClient::Status { job });
        Asking::of(self)?.ask(&question, ToClient::jobs)
    }

    /// Shows the events of a job, page by page, also of one that has ended.
    ///
    /// # Errors
    /// When there is no such job, or no leader is found.
    pub fn events(&self, job: &JobId, mut show: impl FnMut(EventPage)) -> Result<(), ClusterError> {
        let (mut asking, mut next) = (Asking::of(self)?, Some((0, None)));
        while let Some((from, place)) = next {
            let question = FromClient::Events { job: job.clone(), from, place };
            let page = asking.ask(&question, ToClient::events)?;
            next = page.next.map(|from| (from, page.place));
            show(page);
        }
        Ok(())
    }

    /// The report of each recovery of a job, oldest first, also of one that has ended.
    ///
    /// # Errors
    /// When there is no such job, or no leader is found.
    pub fn recoveries(&self, job: &JobId) -> Result<Vec<RecoveryReport>, ClusterError> {
        let (mut asking, mut next) = (Asking::of(self)?, Some(ReportPlace::default()));
        let mut all = Vec::new();
        while let Some(from) = next {
            let question = FromClient::Recoveries { job: job.clone(), from };
            let page = asking.ask(&question, ToClient::recoveries)?;
            next = page.next;
            page.add_to(&mut all);
        }
        Ok(all)
    }

    fn follow_with(
        &self,
        question: FromClient,
        wishes: &Receiver<Wish>,
        mut updates: impl FnMut(FollowUpdate),
    ) -> Result<Followed, ClusterError> {
        let connection = Connection::open(self)?;
        let mut talk = Talk { question, open: None, cancel: None };
        loop {
            let heard = select! {
                recv(connection.signals()) -> signal => {
                    signal.map_err(|_| ClusterError::Ended)?;
                    connection.take()?
                }
                recv(wishes) -> wish => match wish {
                    Ok(Wish::Cancel(job)) => {
                        talk.cancel(job)?;
                        continue;
                    }
                    Ok(Wish::Leave) | Err(_) => return Ok(Followed::Left),
                },
            };
            match heard {
                Heard::Opened { link, address } => {
                    talk.opened(link)?;
                    updates(FollowUpdate::LeaderFound { address });
                }
                Heard::Closed(reason) => {
                    talk.open = None;
                    updates(FollowUpdate::LeaderLost { reason });
                }
                Heard::NoLeader(tried) => return Err(ClusterError::NoLeader { tried }),
                Heard::Message(message) => match *message {
                    ToClient::Update(update) => {
                        talk.heard(&update)?;
                        updates(FollowUpdate::Run(*update));
                    }
                    ToClient::Refused { reason } => return Err(ClusterError::Refused(reason)),
                    ToClient::Ended { outcome, joined } => {
                        return Ok(Followed::Ended { outcome, joined });
                    }
                    // The connection closes next, and the client looks for the next leader.
                    ToClient::Abandoned { reason } => {
                        updates(FollowUpdate::LeaderLost { reason });
                    }
                    ToClient::Closed
                    | ToClient::Jobs(_)
                    | ToClient::Events(_)
                    | ToClient::Recoveries(_) => {}
                },
            }
        }
    }
}

/// What a client that follows a job says, to one leader after the other.
struct Talk {
    /// Said to each leader.
    question: FromClient,
    open: Option<Link>,
    /// A job to be cancelled as soon as it is accepted.
    cancel: Option<JobId>,
}

impl Talk {
    fn say(&self, message: &FromClient) -> Result<(), ClusterError> {
        if let Some(link) = &self.open {
            link.send(frame(message)?);
        }
        Ok(())
    }

    fn opened(&mut self, link: Link) -> Result<(), ClusterError> {
        self.open = Some(link);
        self.say(&self.question)
    }

    fn cancel(&mut self, job: JobId) -> Result<(), ClusterError> {
        // A job that is not accepted is not known yet.
        if matches!(self.question, FromClient::Submit(_)) {
            self.cancel = Some(job);
            return Ok(());
        }
        self.question = FromClient::Cancel { job };
        self.say(&self.question)
    }

    fn heard(&mut self, update: &RunUpdate) -> Result<(), ClusterError> {
        let RunUpdate::Accepted { job, run, .. } = update else { return Ok(()) };
        if !matches!(self.question, FromClient::Submit(_)) {
            return Ok(());
        }
        // From here on it is this run, however the submission came to it.
        self.question = FromClient::Follow { job: job.clone(), run: Some(*run) };
        self.cancel.take().map_or(Ok(()), |job| self.cancel(job))
    }
}

/// What the caller of a client wants while it follows a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Cancel it.
    Cancel(JobId),
    /// Follow it no more; the job goes on.
    Leave,
}

/// A client that asks and waits for each answer, from one leader or the next.
struct Asking {
    connection: Connection,
    open: Option<Link>,
}

impl Asking {
    fn of(client: &ClusterClient) -> Result<Self, ClusterError> {
        Ok(Self { connection: Connection::open(client)?, open: None })
    }

    /// Asks until `answer` finds one in what is said.
    fn ask<T>(
        &mut self,
        question: &FromClient,
        answer: fn(ToClient) -> Result<Option<T>, ClusterError>,
    ) -> Result<T, ClusterError> {
        if let Some(link) = &self.open {
            link.send(frame(question)?);
        }
        loop {
            let said = match self.connection.hear()? {
                Heard::Opened { link, .. } => {
                    link.send(frame(question)?);
                    self.open = Some(link);
                    continue;
                }
                Heard::Closed(_) => {
                    self.open = None;
                    continue;
                }
                Heard::Message(message) => *message,
                Heard::NoLeader(tried) => return Err(ClusterError::NoLeader { tried }),
            };
            if let Some(answer) = answer(said)? {
                return Ok(answer);
            }
        }
    }
}

fn frame(message: &FromClient) -> Result<Vec<u8>, ClusterError> {
    encode(message).map_err(|error| ClusterError::Refused(with_causes(&error)))
}
