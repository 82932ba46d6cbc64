//! Finds the leader and connects to it.

use std::{
    collections::VecDeque,
    fmt, io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::BytesMut;
use regrow_protocol::{Hello, Role};
use regrow_runtime::with_causes;
use tokio::{
    net::{TcpStream, ToSocketAddrs},
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};
use tracing::{debug, info};

use super::leader_places::{Candidate, LeaderPlaces};
use crate::net::{HandshakeError, LinkLimits, handshake};

/// Wait after the first vain round over all addresses; doubles with each.
const BACKOFF_MIN: Duration = Duration::from_millis(20);

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What is looked for.
const LEADER: &str = "JobManager";

/// How often a standby is believed about where the leader is, in one round.
const REDIRECTS_MAX: u32 = 4;

/// Places that are kept to be told, and things that were found at each.
const TRIED_MAX: usize = 32;

/// Where and how to look for the leader.
pub(crate) struct DialerConfig {
    /// Asked anew for each round, since a directory may come to name another leader.
    pub(crate) places: LeaderPlaces,
    pub(crate) hello: Hello,
    pub(crate) limits: LinkLimits,
    /// Longest wait between two rounds (rule 4.5: between 50 ms and 2 s).
    pub(crate) backoff_max: Duration,
    /// A number from 0 to 2^32 - 1 that differs between processes and calls: jitter.
    pub(crate) random: Box<dyn Fn() -> u32 + Send + Sync>,
}

/// A connection to the leader.
pub(crate) struct Dialed {
    pub(crate) address: String,
    pub(crate) stream: TcpStream,
    pub(crate) read: BytesMut,
    /// Given back when the connection ends; none of one that this side made.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// Places where somebody might lead, and what was found there, each thing once.
#[derive(Debug, Default)]
pub(super) struct Tried(Mutex<Vec<Place>>);

#[derive(Debug)]
struct Place {
    name: String,
    found: Vec<String>,
}

impl Tried {
    /// Notes that one is to be looked at.
    fn add(&self, name: &str) {
        self.change(name, |_| ());
    }

    /// Notes what was found at one.
    pub(super) fn note(&self, name: &str, found: &str) {
        debug!(place = name, found, "no leader there");
        self.change(name, |all| {
            if !all.iter().any(|before| before == found) && all.len() < TRIED_MAX {
                all.push(found.to_owned());
            }
        });
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.iter_mut().find(|place| place.name == name) {
            change(&mut place.found);
        } else if places.len() < TRIED_MAX {
            let mut found = Vec::new();
            change(&mut found);
            places.push(Place { name: name.to_owned(), found });
        }
    }

    /// All of it, for people.
    pub(super) fn told(&self) -> String {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = places.iter().map(|Place { name, found }| match &**found {
            [] => format!("{name} (no answer yet)"),
            found => format!("{name} ({})", found.join("; ")),
        });
        lines.collect::<Vec<String>>().join(", ")
    }
}

/// Tries all addresses until one leads.
pub(crate) async fn dial(config: &DialerConfig, tried: &Tried) -> Dialed {
    let mut round = 0;
    loop {
        if let Some(dialed) = look_around(config, tried).await {
            info!(leader = %dialed.address, "connected to the leader");
            return dialed;
        }
        sleep(pause(round, config.backoff_max, (config.random)())).await;
        round += 1;
    }
}

/// One round over all addresses, and those that standbys name.
async fn look_around(config: &DialerConfig, tried: &Tried) -> Option<Dialed> {
    let mut candidates: VecDeque<Candidate> = match config.places.candidates() {
        Ok(candidates) => candidates.into(),
        Err((place, reason)) => {
            tried.note(&place, &reason);
            return None;
        }
    };
    for candidate in &candidates {
        tried.add(&candidate.label);
    }
    let mut redirects = 0;
    while let Some(Candidate { address, label }) = candidates.pop_front() {
        match knock(config, &address).await {
            Ok(Answer::Leads(dialed)) => return Some(dialed),
            Ok(Answer::Stands { leader }) => {
                tried.note(&label, "a standby, which does not lead");
                if let Some(leader) = leader
                    && redirects < REDIRECTS_MAX
                    && leader != address
                {
                    redirects += 1;
                    let candidate = Candidate::of_standby(leader, &address);
                    tried.add(&candidate.label);
                    candidates.push_front(candidate);
                }
            }
            Err(reason) => tried.note(&label, &reason),
        }
    }
    None
}

enum Answer {
    Leads(Dialed),
    Stands { leader: Option<String> },
}

async fn knock(config: &DialerConfig, address: &str) -> Result<Answer, String> {
    let Called { role, stream, read } =
        call(address, CONNECT_TIMEOUT, &config.hello, config.limits, LEADER).await?;
    match role {
        Role::JobManager => {
            Ok(Answer::Leads(Dialed { address: address.to_owned(), stream, read, permit: None }))
        }
        Role::Standby { leader } => Ok(Answer::Stands { leader }),
        Role::TaskManager(_) | Role::ShuffleService(_) | Role::Client | Role::PartitionReader => {
            Err(is_none(LEADER))
        }
    }
}

/// Somebody who was called and said who they are.
pub(super) struct Called {
    pub(super) role: Role,
    pub(super) stream: TcpStream,
    /// What was read beyond the `Hello`.
    pub(super) read: BytesMut,
}

/// Says that somebody else than `wanted` was found.
pub(super) fn is_none(wanted: &str) -> String {
    format!("whoever listens there is no {wanted}")
}

/// Connects to whoever listens at `address`, for `connect_timeout` at most, and says `ours`. The error
/// is for people, who look for a `wanted` there.
pub(super) async fn call(
    address: impl ToSocketAddrs + fmt::Display,
    connect_timeout: Duration,
    ours: &Hello,
    limits: LinkLimits,
    wanted: &str,
) -> Result<Called, String> {
    let mut stream = timeout(connect_timeout, TcpStream::connect(&address))
        .await
        .map_err(|_| format!("no answer for {} ms", connect_timeout.as_millis()))?
        .map_err(|error| {
            let refused = error.kind() == io::ErrorKind::ConnectionRefused;
            if refused { "nothing listens there".to_owned() } else { error.to_string() }
        })?;
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%address, %error, "small messages may wait");
    }
    let (theirs, read) =
        handshake(&mut stream, ours, limits).await.map_err(|error| match error {
            HandshakeError::BadFrame(_) | HandshakeError::NoHello(_) => {
                format!("{}: {}", is_none(wanted), with_causes(&error))
            }
            HandshakeError::Refused(_)
            | HandshakeError::Silent(_)
            | HandshakeError::Closed
            | HandshakeError::Broken(_)
            | HandshakeError::Encode(_) => with_causes(&error),
        })?;
    Ok(Called { role: theirs.role, stream, read })
}

/// The wait after vain round number `round`, from 0: doubles up to `max`, less up to a half of it
/// by chance, so that those who lost one leader do not all come to the next at once.
fn pause(round: u32, max: Duration, random: u32) -> Duration {
    let full = BACKOFF_MIN.saturating_mul(1 << round.min(16)).min(max.max(BACKOFF_MIN));
    full.saturating_sub(full.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[test]
    fn what_was_tried_is_told_once_and_bounded() {
        let tried = Tried::default();
        tried.add("a:1");
        tried.add("b:2");
        assert_eq!(tried.told(), "a:1 (no answer yet), b:2 (no answer yet)");
        tried.note("a:1", "refused");
        tried.note("a:1", "refused");
        tried.note("a:1", "silent");
        assert_eq!(tried.told(), "a:1 (refused; silent), b:2 (no answer yet)");
        (0..2 * TRIED_MAX).for_each(|port| tried.note(&format!("c:{port}"), "refused"));
        assert_eq!(tried.told().matches(", ").count() + 1, TRIED_MAX);
    }

    /// What is found of a server that says this.
    async fn found_of(said: &[u8]) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = async {
            let mut stream = listener.accept().await.unwrap().0;
            stream.write_all(said).await.unwrap();
            stream
        };
        let hello = Hello::new("c".to_owned(), None, Role::Client);
        let called = call(address, CONNECT_TIMEOUT, &hello, LinkLimits::default(), LEADER);
        let (called, _stream) = tokio::join!(called, answer);
        called.err().unwrap()
    }

    #[tokio::test]
    async fn whoever_does_not_speak_as_we_do_is_no_job_manager() {
        for (said, cause) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "frame size too big"),
            (&[0; 8][..], "did not introduce itself"),
        ] {
            let found = found_of(said).await;
            let start = "whoever listens there is no JobManager: ";
            assert!(found.starts_with(start) && found.contains(cause), "{found}");
            assert!(found.matches("whole buffer").count() < 2, "{found}");
        }
    }

    #[test]
    fn rule_4_5_waits_grow_to_their_cap_with_jitter() {
        let max = Duration::from_secs(2);
        assert_eq!(pause(0, max, 0), BACKOFF_MIN);
        assert_eq!(pause(3, max, 0), BACKOFF_MIN * 8);
        assert_eq!(pause(60, max, 0), max);
        assert_eq!(pause(60, max, u32::MAX), max / 2);
        assert_eq!(pause(9, Duration::ZERO, 0), BACKOFF_MIN);
    }
}
