//! The faults of the model.

use std::collections::{BTreeMap, VecDeque};

use regrow_protocol::{DataDirectoryId, ExecutionAttemptId, TaskFailure, WorkerId};
use regrow_runtime::{Input, Job, JobEvent, Lsn, PreviousLife, Replay};

use super::{Faults, World, life};

impl World {
    pub(super) fn disturb(&mut self) {
        if !self.rng.chance(self.fault_rate) {
            return;
        }
        match (self.faults, self.rng.below(100)) {
            (Faults::Masters, 0..3) | (Faults::All, 0..2) => self.kill_master(),
            (Faults::Processes, 0..3) | (Faults::All, 2) => self.kill_process(),
            (Faults::All, 3) => self.kill_worker(),
            (Faults::All, 4 | 5) => self.lose_partition(),
            (Faults::All, 6) => self.fail_task(),
            (Faults::All, 7) => self.bring_back(),
            (Faults::All, 8) => self.damage_partition(),
            (Faults::All, 9) => self.lose_log(),
            _ => {}
        }
    }

    pub(super) fn kill_master(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        let survives = self.rng.below(self.buffer.len() + 1);
        self.stored.extend(self.buffer.drain(..survives));
        self.begin_life();
    }

    /// Not even the log is left of a master.
    fn lose_log(&mut self) {
        if self.outcome.is_none() {
            self.seen.lost_logs += 1;
            self.stored.clear();
            self.begin_life();
        }
    }

    fn begin_life(&mut self) {
        self.seen.lives += 1;
        self.buffer.clear();
        self.heard.clear();
        self.mail.iter_mut().for_each(VecDeque::clear);
        (self.demand, self.granted) = (0, BTreeMap::new());
        self.epoch = self.epoch.next_life();
        self.acknowledged = Lsn(self.stored.len() as u64);
        let life = life(self.epoch, self.faults, PreviousLife::Unknown);
        let (job, decision) =
            Job::recover(self.now, self.submission.clone(), self.compacted(), life).unwrap();
        self.job = job;
        self.replay = Replay::new(self.submission.clone());
        for event in &self.stored {
            self.replay.apply(event).unwrap();
        }
        self.carry_out(decision);
        for id in self.workers.keys().copied().collect::<Vec<_>>() {
            self.post(id, Input::WorkerConnected { worker: id });
        }
    }

    /// The log as a store may have kept it: from its last snapshot on.
    fn compacted(&self) -> &[JobEvent] {
        let snapshot = |event: &JobEvent| matches!(event, JobEvent::Snapshot { .. });
        &self.stored[self.stored.iter().rposition(snapshot).unwrap_or(0)..]
    }

    fn kill_process(&mut self) {
        let directories: Vec<DataDirectoryId> =
            self.workers.values().map(|worker| worker.data_directory).collect();
        self.workers.clear();
        self.kill_master();
        for directory in directories {
            if self.faults == Faults::All && self.rng.chance(30) {
                self.away.push(directory);
            } else {
                self.start_worker(directory);
            }
        }
    }

    /// Somebody serves a directory again that nobody served.
    fn bring_back(&mut self) {
        if !self.away.is_empty() {
            let index = self.rng.below(self.away.len());
            let directory = self.away.swap_remove(index);
            self.start_worker(directory);
        }
    }

    fn kill_worker(&mut self) {
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        if ids.len() < 2 {
            return;
        }
        let id = ids[self.rng.below(ids.len())];
        let gone = self.workers.remove(&id).unwrap();
        self.granted.remove(&id);
        self.post(id, Input::WorkerLost { worker: id });
        match self.rng.below(3) {
            0 => self.start_worker(gone.data_directory),
            1 => {
                self.disks.remove(&gone.data_directory);
                let fresh = DataDirectoryId::from_bits(self.next_id + 1000);
                self.start_worker(fresh);
            }
            _ => self.away.push(gone.data_directory),
        }
    }

    fn lose_partition(&mut self) {
        if let Some((directory, attempt)) = self.some_partition() {
            self.disks.get_mut(&directory).unwrap().remove(&attempt);
        }
    }

    /// What lies there cannot be read, and only who reads it finds out.
    fn damage_partition(&mut self) {
        if let Some((_, attempt)) = self.some_partition() {
            self.contents.damage(attempt);
        }
    }

    fn some_partition(&mut self) -> Option<(DataDirectoryId, ExecutionAttemptId)> {
        let ids: Vec<DataDirectoryId> = self.disks.keys().copied().collect();
        let id = ids[self.rng.below(ids.len())];
        let attempts: Vec<ExecutionAttemptId> = self.disks[&id].keys().copied().collect();
        if attempts.is_empty() {
            return None;
        }
        Some((id, attempts[self.rng.below(attempts.len())]))
    }

    fn fail_task(&mut self) {
        let chosen = self
            .workers
            .values()
            .find_map(|worker| worker.running.keys().next().map(|attempt| (worker.id, *attempt)));
        let Some((id, attempt)) = chosen else { return };
        let worker = self.workers.get_mut(&id).unwrap();
        worker.running.remove(&attempt);
        let input = worker.failed(attempt, TaskFailure::task("told to"));
        self.post(id, input);
    }
}
