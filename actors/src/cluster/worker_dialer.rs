//! Calls workers that may not know who leads.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use actix::Message;
use regrow_protocol::{Hello, Role};
use tracing::debug;

use super::{
    acceptor::Caller,
    dialer::{Called, call, is_none},
};
use crate::net::LinkLimits;

/// Wait before the first call and between two: workers that know where to look have come by then.
pub(crate) const CALL_PAUSE: Duration = Duration::from_millis(300);

/// Calls of one worker at most. It looks for a leader itself all the while.
const CALLS_MAX: u32 = 100;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// What is looked for.
const WORKER: &str = "worker";

/// Call whoever listens there, unless they are connected.
pub(crate) struct DialWorkers(pub(crate) Vec<SocketAddr>);

impl Message for DialWorkers {
    type Result = ();
}

/// The workers that are to be called, and how often each was. Each is called once at a time: one that
/// is slow to answer is waited for, and not called again meanwhile.
#[derive(Debug, Default)]
pub(super) struct CallList {
    calls: BTreeMap<SocketAddr, u32>,
    under_way: BTreeSet<SocketAddr>,
}

impl CallList {
    /// Adds addresses; says whether the list was empty before, so that nobody works on it.
    pub(super) fn add(&mut self, addresses: Vec<SocketAddr>) -> bool {
        let was_empty = self.calls.is_empty();
        for address in addresses {
            self.calls.entry(address).or_default();
        }
        was_empty && !self.calls.is_empty()
    }

    /// The addresses to call now: who is `here`, or was called in vain too often, is called no more.
    pub(super) fn next_round(&mut self, here: &BTreeSet<SocketAddr>) -> Vec<SocketAddr> {
        self.calls.retain(|address, calls| *calls < CALLS_MAX && !here.contains(address));
        let idle = self.calls.iter_mut().filter(|(address, _)| !self.under_way.contains(address));
        let round: Vec<SocketAddr> = idle
            .map(|(address, calls)| {
                *calls += 1;
                *address
            })
            .collect();
        self.under_way.extend(&round);
        round
    }

    /// A call is over, whatever came of it.
    pub(super) fn ended(&mut self, address: SocketAddr) {
        self.under_way.remove(&address);
    }

    /// Whether nobody is to be called any more.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// Calls whoever listens at `address`. A worker that answers is treated as if it had called.
pub(super) async fn call_worker(
    address: SocketAddr,
    ours: &Hello,
    limits: LinkLimits,
) -> Option<Caller> {
    match try_call(address, ours, limits).await {
        Ok(caller) => Some(caller),
        Err(reason) => {
            debug!(%address, reason, "a former worker does not answer");
            None
        }
    }
}

async fn try_call(address: SocketAddr, ours: &Hello, limits: LinkLimits) -> Result<Caller, String> {
    let Called { role, stream, read } =
        call(address, CONNECT_TIMEOUT, ours, limits, WORKER).await?;
    match role {
        Role::TaskManager(_) | Role::ShuffleService(_) => {
            Ok(Caller { peer: address, role, stream, read, permit: None })
        }
        Role::JobManager | Role::Standby { .. } | Role::Client | Role::PartitionReader => {
            Err(is_none(WORKER))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// A round of calls, all of which end.
    fn round(list: &mut CallList, here: &[SocketAddr]) -> Vec<SocketAddr> {
        let round = list.next_round(&here.iter().copied().collect());
        for address in &round {
            list.ended(*address);
        }
        round
    }

    #[test]
    fn rule_4_5_a_worker_is_called_until_it_is_there_or_does_not_come() {
        let mut list = CallList::default();
        assert!(!list.add(Vec::new()));
        assert!(list.add(vec![at(1), at(2)]), "somebody must begin");
        assert!(!list.add(vec![at(2)]), "somebody has begun");
        assert_eq!(round(&mut list, &[]), [at(1), at(2)]);
        assert_eq!(round(&mut list, &[at(1)]), [at(2)]);
        for _ in 2..CALLS_MAX {
            assert_eq!(round(&mut list, &[]), [at(2)]);
        }
        assert_eq!(round(&mut list, &[]), []);
        assert!(list.is_empty());
        assert!(list.add(vec![at(2)]), "a later life calls again");
    }

    #[test]
    fn a_worker_that_is_slow_to_answer_is_called_once_at_a_time() {
        let (mut list, nobody) = (CallList::default(), BTreeSet::new());
        list.add(vec![at(1), at(2)]);
        assert_eq!(list.next_round(&nobody), [at(1), at(2)]);
        list.ended(at(2));
        for _ in 0..2 * CALLS_MAX {
            assert!(!list.next_round(&nobody).contains(&at(1)), "it has not answered yet");
            list.ended(at(2));
        }
        assert!(!list.is_empty(), "it is still to be called");
        list.ended(at(1));
        assert_eq!(list.next_round(&nobody), [at(1)]);
        // Forgotten, and asked for again, while it is called.
        assert_eq!(list.next_round(&BTreeSet::from([at(1)])), []);
        list.add(vec![at(1)]);
        assert_eq!(list.next_round(&nobody), []);
    }
}
