//! Who keeps what workers wrote: noted in the log, so that the next life waits for them
//! (recovery.md 5.3), and followed from one process of a data directory to the next (4.7).

use std::{collections::BTreeSet, net::SocketAddr};

use regrow_protocol::{DataDirectoryId, PartitionKeeper, WorkerId};

use super::{Job, Phase, recorded::Finish};
use crate::{Decision, JobEvent, Lsn};

impl Job {
    /// Notes that a worker gets its first attempt; returns what must be durable before it does.
    pub(super) fn use_worker(&mut self, worker: WorkerId, out: &mut Decision) -> Lsn {
        if let Some(used) = self.recorded.facts.workers.get(&worker)
            && !used.lost
        {
            return used.lsn;
        }
        let Some(description) = self.workers.description(worker) else { return Lsn(0) };
        let data_directory = description.data_directory;
        let shuffle_service = match description.keeper {
            PartitionKeeper::Worker => None,
            PartitionKeeper::ShuffleService => self.workers.server(data_directory),
        };
        let listening = [Some(worker), shuffle_service].into_iter().flatten();
        let addresses = listening.filter_map(|it| self.workers.address(it)).collect();
        let used = JobEvent::WorkerUsed { worker, data_directory, shuffle_service, addresses };
        self.record(used, out)
    }

    /// Where former workers listen that were not lost: they may know an older master only.
    pub fn former_addresses(&self) -> Vec<SocketAddr> {
        let used = self.recorded.facts.workers.values().filter(|used| !used.lost);
        let all: BTreeSet<SocketAddr> =
            used.flat_map(|used| used.addresses.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// Notes who keeps a directory of which something counts, unless the log knows: the next life
    /// waits for them.
    pub(super) fn note_keeper(&mut self, data_directory: DataDirectoryId, out: &mut Decision) {
        let Some(worker) = self.unnoted_keeper(data_directory) else { return };
        let shuffle_service = None;
        let addresses = self.workers.address(worker).into_iter().collect();
        let used = JobEvent::WorkerUsed { worker, data_directory, shuffle_service, addresses };
        self.record(used, out);
    }

    /// As [`note_keeper`](Self::note_keeper), of a directory of which nothing may count.
    pub(super) fn note_keeper_of(&mut self, data_directory: DataDirectoryId, out: &mut Decision) {
        let here = |finish: &Finish| finish.data_directory == data_directory;
        if self.unnoted_keeper(data_directory).is_some()
            && self.recorded.finishes().any(|(_, finish)| here(finish))
        {
            self.note_keeper(data_directory, out);
        }
    }

    /// Who keeps a directory as its own, if the log does not say so.
    fn unnoted_keeper(&self, data_directory: DataDirectoryId) -> Option<WorkerId> {
        let worker = self.workers.server(data_directory)?;
        let own = self.workers.description(worker)?.data_directory == data_directory;
        let noted = self.recorded.facts.workers.get(&worker).is_some_and(|used| !used.lost);
        (own && !noted).then_some(worker)
    }

    /// A new process keeps the directory of a worker whose own process is gone.
    pub(super) fn worker_replaced(
        &mut self,
        worker: WorkerId,
        data_directory: DataDirectoryId,
        by: WorkerId,
        out: &mut Decision,
    ) {
        let decided = matches!(self.phase, Phase::Active | Phase::Deciding(_));
        if decided && self.workers.server(data_directory) == Some(worker) {
            // What lay there counts on; the report of the new process tells what does not.
            self.workers.serve(data_directory, by);
            self.asked.insert(data_directory, self.recorded.lsn());
        }
        self.worker_lost(worker, out);
    }
}
