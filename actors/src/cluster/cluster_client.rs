//! A client of a cluster: finds the leader, and finds the next one when that is gone.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use regrow_protocol::{Hello, JobId, Role, SubmissionId, decode, encode};
use regrow_runtime::{JobOutcome, with_causes};
use tokio::time::timeout;

use super::{
    ClusterError, ClusterIdentity, LeaderPlace,
    client_messages::{FromClient, JobSummary, Submission, ToClient},
    dialer::{DialerConfig, dial},
    io_thread::IoThread,
};
use crate::{
    launch::{LaunchError, RunUpdate, random_bits},
    net::{Link, LinkLimits, link},
};

/// Longest wait between two looks for the leader.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// A client of a cluster.
pub struct ClusterClient {
    /// Which cluster.
    pub identity: ClusterIdentity,
    /// Where the address of the leader may stand.
    pub data_directory: PathBuf,
    /// `host:port` of `JobManagers`; empty to look into the data directory.
    pub leaders: Vec<String>,
    /// How long it looks for a leader before it gives up; while it follows a job, it never does
    /// after it was connected once, unless this time passes without any leader.
    pub leader_timeout: Duration,
}

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

/// What the connection says.
enum Heard {
    Message(Box<ToClient>),
    Opened { link: Link, address: String },
    Closed(String),
    NoLeader(String),
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
        let bits =
            random_bits().map_err(|error: LaunchError| ClusterError::Worker(error.into()))?;
        let submission = Submission {
            job: job.job,
            id: SubmissionId::from_bits(bits),
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
        let connection = Connection::open(self)?;
        loop {
            match connection.hear()? {
                Heard::Opened { link, .. } => link.send(frame(&question)?),
                Heard::Message(message) => match *message {
                    ToClient::Jobs(jobs) => return Ok(jobs),
                    ToClient::Refused { reason } => return Err(ClusterError::Refused(reason)),
                    ToClient::Update(_)
                    | ToClient::Abandoned { .. }
                    | ToClient::Ended { .. }
                    | ToClient::Closed => {}
                },
                Heard::Closed(_) => {}
                Heard::NoLeader(tried) => return Err(ClusterError::NoLeader { tried }),
            }
        }
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
                recv(connection.heard) -> heard => heard.map_err(|_| ClusterError::Ended)?,
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
                    ToClient::Closed | ToClient::Jobs(_) => {}
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

fn frame(message: &FromClient) -> Result<Vec<u8>, ClusterError> {
    encode(message).map_err(|error| ClusterError::Refused(with_causes(&error)))
}

/// A connection to whoever leads; looks for the next leader by itself.
struct Connection {
    heard: Receiver<Heard>,
    _io: IoThread,
}

impl Connection {
    fn open(client: &ClusterClient) -> Result<Self, ClusterError> {
        let io = IoThread::start().map_err(ClusterError::Thread)?;
        let (says, heard) = unbounded();
        let ClusterIdentity { cluster_id, registry } = client.identity.clone();
        let config = DialerConfig {
            addresses: LeaderPlace::addresses(
                client.leaders.clone(),
                client.data_directory.clone(),
            ),
            hello: Hello::new(cluster_id, Some(registry), Role::Client),
            limits: LinkLimits::default(),
            backoff_max: BACKOFF_MAX,
            random: Box::new(|| getrandom::u32().unwrap_or_default()),
        };
        io.handle().spawn(keep_connected(config, client.leader_timeout, says));
        Ok(Self { heard, _io: io })
    }

    fn hear(&self) -> Result<Heard, ClusterError> {
        self.heard.recv().map_err(|_| ClusterError::Ended)
    }
}

async fn keep_connected(config: DialerConfig, leader_timeout: Duration, says: Sender<Heard>) {
    loop {
        let tried = Arc::<Mutex<Vec<String>>>::default();
        let note = |address: &str, reason: &str| {
            let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
            let line = format!("{address} ({reason})");
            if !tried.contains(&line) {
                tried.push(line);
            }
        };
        let Ok(dialed) = timeout(leader_timeout, dial(&config, note)).await else {
            let tried = tried.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
            let tried =
                if tried.is_empty() { "no address, since none is known".to_owned() } else { tried };
            drop(says.send(Heard::NoLeader(tried)));
            return;
        };
        let (link, task) = link(config.limits);
        if says.send(Heard::Opened { link, address: dialed.address }).is_err() {
            return;
        }
        let hear = |frame: &[u8]| {
            let message = decode(frame).map_err(|error| with_causes(&error))?;
            says.send(Heard::Message(Box::new(message))).map_err(|_| "nobody listens".to_owned())
        };
        let end = task.run(dialed.stream, dialed.read, hear).await;
        if says.send(Heard::Closed(with_causes(&end))).is_err() {
            return;
        }
    }
}
