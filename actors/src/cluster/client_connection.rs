//! A client's connection to whoever leads.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::{Receiver, Sender, unbounded};
use regrow_protocol::{Hello, Role, decode};
use regrow_runtime::with_causes;

use super::{
    ClusterClient, ClusterError, ClusterIdentity, client_messages::ToClient,
    cluster_client::TellLooking, dialer::DialerConfig, io_thread::IoThread,
    leader_places::LeaderPlaces, leader_search::search,
};
use crate::net::{Link, LinkLimits, link};

/// Longest wait between two looks for the leader.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// What the connection says.
pub(super) enum Heard {
    Message(Box<ToClient>),
    Opened { link: Link, address: String },
    Closed(String),
    NoLeader(String),
}

/// A connection to whoever leads; looks for the next leader by itself.
pub(super) struct Connection {
    pub(super) heard: Receiver<Heard>,
    _io: IoThread,
}

impl Connection {
    pub(super) fn open(client: &ClusterClient) -> Result<Self, ClusterError> {
        let io = IoThread::start().map_err(ClusterError::Thread)?;
        let (says, heard) = unbounded();
        let ClusterIdentity { cluster_id, registry } = client.identity.clone();
        let config = DialerConfig {
            places: LeaderPlaces::of(client.leaders.clone(), client.data_directory.clone()),
            hello: Hello::new(cluster_id, Some(registry), Role::Client),
            limits: LinkLimits::default(),
            backoff_max: BACKOFF_MAX,
            random: Box::new(|| getrandom::u32().unwrap_or_default()),
        };
        let patience = (client.leader_timeout, Arc::clone(&client.still_looking));
        io.handle().spawn(keep_connected(config, patience, says));
        Ok(Self { heard, _io: io })
    }

    pub(super) fn hear(&self) -> Result<Heard, ClusterError> {
        self.heard.recv().map_err(|_| ClusterError::Ended)
    }
}

async fn keep_connected(
    config: DialerConfig,
    (leader_timeout, still_looking): (Duration, TellLooking),
    says: Sender<Heard>,
) {
    loop {
        let dialed = match search(&config, Some(leader_timeout), &*still_looking).await {
            Ok(dialed) => dialed,
            Err(tried) => {
                drop(says.send(Heard::NoLeader(tried)));
                return;
            }
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
