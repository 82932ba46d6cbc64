//! The faults of the model.

use std::collections::{BTreeMap, VecDeque};

use regrow_protocol::{DataDirectoryId, ExecutionAttemptId, TaskFailure, WorkerId};
use regrow_runtime::{Input, Job, JobEvent, Lsn, PreviousLife, Replay};

use super::{
    super::workers::{Kind, Seat, Worker},
    Faults, World, life,
};

impl World {
    pub(super) fn disturb(&mut self) {
        if !self.rng.chance(self.fault_rate) {
            return;
        }
        match (self.faults, self.rng.below(100)) {
            (Faults::Masters, 0..3) | (Faults::All, 0..2) | (Faults::Services, 0) => {
                self.kill_master();
            }
            (Faults::Processes, 0..3) | (Faults::All, 2) | (Faults::Services, 1) => {
                self.kill_process();
            }
            (Faults::Services, 2) => self.kill_all_but_services(),
            (Faults::Services, 3..6) => self.kill_writer(),
            (Faults::Services, 6 | 7) | (Faults::All, 10) => self.replace_keeper(),
            (Faults::All, 3) => self.kill_worker(),
            (Faults::All, 4 | 5) => self.lose_partition(),
            (Faults::All, 6) => self.fail_task(),
            (Faults::All, 7) => self.bring_back(),
            (Faults::All, 8) => self.damage_partition(),
            (Faults::All, 9) => self.lose_log(),
            (Faults::All, 11 | 12) => self.hide_partition(),
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
        (self.demand, self.avoided, self.granted) = (0, Vec::new(), BTreeMap::new());
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
        let seats: Vec<Seat> = self.workers.values().map(Worker::seat).collect();
        self.workers.clear();
        self.kill_master();
        for seat in seats {
            if self.faults == Faults::All && self.rng.chance(30) {
                self.away.push(seat);
            } else {
                self.start(seat);
            }
        }
    }

    fn kill_all_but_services(&mut self) {
        let (services, others) = std::mem::take(&mut self.workers)
            .into_iter()
            .partition(|(_, worker)| worker.kind == Kind::Service);
        self.workers = services;
        self.kill_master();
        let others: BTreeMap<WorkerId, Worker> = others;
        for worker in others.into_values() {
            self.start(worker.seat());
        }
    }

    /// Somebody is there again who was away.
    fn bring_back(&mut self) {
        if !self.away.is_empty() {
            let index = self.rng.below(self.away.len());
            let seat = self.away.swap_remove(index);
            self.start(seat);
        }
    }

    fn some_worker(&mut self, which: impl Fn(&Worker) -> bool) -> Option<WorkerId> {
        let chosen = |(id, worker): (&WorkerId, &Worker)| which(worker).then_some(*id);
        let ids: Vec<WorkerId> = self.workers.iter().filter_map(chosen).collect();
        (!ids.is_empty()).then(|| ids[self.rng.below(ids.len())])
    }

    fn kill_worker(&mut self) {
        if self.workers.len() < 2 {
            return;
        }
        let Some(id) = self.some_worker(|_| true) else { return };
        let seat = self.lose(id);
        match self.rng.below(3) {
            0 => self.start(seat),
            1 if seat.kind == Kind::Worker => {
                self.disks.remove(&seat.data_directory);
                let data_directory = DataDirectoryId::from_bits(self.next_id + 1000);
                self.start(Seat { data_directory, ..seat });
            }
            _ => self.away.push(seat),
        }
    }

    /// What a writer sealed is with its service; what it ran is lost.
    fn kill_writer(&mut self) {
        let Some(id) = self.some_worker(|worker| worker.kind == Kind::Writer) else { return };
        self.seen.lost_writers += 1;
        let seat = self.lose(id);
        self.start(seat);
    }

    fn lose(&mut self, id: WorkerId) -> Seat {
        let gone = self.workers.remove(&id).unwrap();
        self.granted.remove(&id);
        self.post(id, Input::WorkerLost { worker: id });
        gone.seat()
    }

    /// A new process keeps the directory of one that is just gone.
    fn replace_keeper(&mut self) {
        let Some(worker) = self.some_worker(|worker| worker.kind != Kind::Writer) else { return };
        self.seen.replaced += 1;
        let seat = self.workers.remove(&worker).unwrap().seat();
        self.granted.remove(&worker);
        let by = WorkerId::from_bits(self.next_id + 1);
        let data_directory = seat.data_directory;
        self.post(by, Input::WorkerReplaced { worker, data_directory, by });
        self.start(seat);
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

    /// What lies there is sound, and the next reader does not reach it.
    fn hide_partition(&mut self) {
        if let Some((_, attempt)) = self.some_partition() {
            self.contents.hide(attempt);
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
