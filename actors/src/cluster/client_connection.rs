//! A client's connection to whoever leads.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;
use regrow_protocol::{Hello, Role, decode};
use regrow_runtime::with_causes;

use super::{
    ClusterClient, ClusterError, ClusterIdentity,
    cluster_client::TellLooking,
    dialer::DialerConfig,
    heard_queue::{Heard, HeardReceiver, HeardSender, heard_queue},
    io_thread::IoThread,
    leader_places::LeaderPlaces,
    leader_search::search,
};
use crate::net::{LinkLimits, link};

/// Longest wait between two looks for the leader.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// A connection to whoever leads; looks for the next leader by itself.
pub(super) struct Connection {
    heard: HeardReceiver,
    _io: IoThread,
}

impl Connection {
    pub(super) fn open(client: &ClusterClient) -> Result<Self, ClusterError> {
        let io = IoThread::start().map_err(ClusterError::Thread)?;
        let (says, heard) = heard_queue();
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

    /// Says one word for each thing that is heard: [`take`](Self::take) it then.
    pub(super) fn signals(&self) -> &Receiver<()> {
        self.heard.signals()
    }

    /// What was heard, after a signal.
    pub(super) fn take(&self) -> Result<Heard, ClusterError> {
        self.heard.take().ok_or(ClusterError::Ended)
    }

    pub(super) fn hear(&self) -> Result<Heard, ClusterError> {
        self.signals().recv().map_err(|_| ClusterError::Ended)?;
        self.take()
    }
}

async fn keep_connected(
    config: DialerConfig,
    (leader_timeout, still_looking): (Duration, TellLooking),
    says: HeardSender,
) {
    loop {
        // A client that did not keep up hears first what it was told.
        says.all_heard().await;
        let dialed = match search(&config, Some(leader_timeout), &*still_looking).await {
            Ok(dialed) => dialed,
            Err(tried) => {
                drop(says.say(Heard::NoLeader(tried)));
                return;
            }
        };
        let (link, task) = link(config.limits);
        if says.say(Heard::Opened { link, address: dialed.address }).is_err() {
            return;
        }
        let hear = |frame: &[u8]| says.pass_on(decode(frame).map_err(|error| with_causes(&error))?);
        let end = task.run(dialed.stream, dialed.read, hear).await;
        if says.say(Heard::Closed(with_causes(&end))).is_err() {
            return;
        }
    }
}
