//! Connections between workers and a master.

use std::collections::{BTreeMap, VecDeque};

use regrow_protocol::{Envelope, ToJobMaster, ToShuffleService, ToTaskExecutor, WorkerId};

use super::rng::Rng;

/// What goes to a worker.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Executor(Envelope<ToTaskExecutor>),
    Service(Envelope<ToShuffleService>),
}

/// One connection; each end may take it for open though it is not.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) worker: WorkerId,
    pub(crate) up: VecDeque<Envelope<ToJobMaster>>,
    pub(crate) down: VecDeque<Down>,
    /// In which step it broke.
    pub(crate) broken: Option<u64>,
    pub(crate) master_end: bool,
    pub(crate) worker_end: bool,
}

/// All connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) connections: BTreeMap<u64, Connection>,
    made: u64,
}

impl Network {
    pub(crate) fn connect(&mut self, worker: WorkerId) -> u64 {
        self.made += 1;
        let (up, down) = (VecDeque::new(), VecDeque::new());
        let connection =
            Connection { worker, up, down, broken: None, master_end: true, worker_end: true };
        self.connections.insert(self.made, connection);
        self.made
    }

    /// Sends on a connection; lost if it is broken.
    pub(crate) fn send_up(&mut self, number: u64, said: Vec<Envelope<ToJobMaster>>) {
        let sound = self.connections.get_mut(&number).filter(|it| it.broken.is_none());
        if let Some(connection) = sound {
            connection.up.extend(said);
        }
    }

    /// As [`send_up`](Self::send_up), the other way.
    pub(crate) fn send_down(&mut self, number: u64, said: Down) {
        let sound = self.connections.get_mut(&number).filter(|it| it.broken.is_none());
        if let Some(connection) = sound {
            connection.down.push_back(said);
        }
    }

    /// Breaks a connection: what is under way is lost, but for some of the first of it. Says how
    /// much is lost, up and down.
    pub(crate) fn break_one(&mut self, number: u64, step: u64, rng: &mut Rng) -> (usize, usize) {
        let Some(connection) = self.connections.get_mut(&number) else { return (0, 0) };
        connection.broken.get_or_insert(step);
        let (up, down) = (connection.up.len(), connection.down.len());
        connection.up.truncate(rng.below(up + 1));
        connection.down.truncate(rng.below(down + 1));
        (up - connection.up.len(), down - connection.down.len())
    }

    pub(crate) fn close_master_end(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.master_end = false;
            connection.up.clear();
        }
        self.forget_closed();
    }

    pub(crate) fn close_worker_end(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.worker_end = false;
            connection.down.clear();
        }
        self.forget_closed();
    }

    fn forget_closed(&mut self) {
        self.connections.retain(|_, connection| connection.master_end || connection.worker_end);
    }

    /// Numbers of the connections for which `which` holds.
    pub(crate) fn those(&self, which: impl Fn(&Connection) -> bool) -> Vec<u64> {
        let chosen = self.connections.iter().filter(|(_, connection)| which(connection));
        chosen.map(|(number, _)| *number).collect()
    }
}
