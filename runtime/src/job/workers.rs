//! The workers that a job knows at the moment, and the slots it holds of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use regrow_protocol::{DataDirectoryId, PartitionKeeper, WorkerDescription, WorkerId};

use crate::Timestamp;

/// The workers of a job, with free slots in order.
#[derive(Debug, Default)]
pub(super) struct Workers {
    by_id: BTreeMap<WorkerId, Worker>,
    /// (free slots, worker) of workers that can take an attempt.
    free: BTreeSet<(u32, WorkerId)>,
    /// Free slots of workers that cannot take an attempt, because nobody keeps what they write, or
    /// they have not told what they hold. One that leaves is in neither: its slots are gone.
    stranded: BTreeMap<WorkerId, u32>,
    /// The worker that serves each data directory.
    served: BTreeMap<DataDirectoryId, WorkerId>,
    /// Those whose content was reported. Who writes to others takes no attempt: what a worker that
    /// was lost brings back would run again before it has told of it, and what is written to the
    /// directory of a shuffle service that is gone is kept by nobody.
    reported: BTreeSet<DataDirectoryId>,
}

/// A worker; slots may be granted before its connection is heard of.
#[derive(Debug, Default)]
struct Worker {
    heard_of: bool,
    description: Option<WorkerDescription>,
    disconnected: Option<Timestamp>,
    /// It is about to stop.
    leaving: bool,
    free_slots: u32,
}

impl Workers {
    /// A connection is open (again).
    pub(super) fn connect(&mut self, worker: WorkerId) {
        self.update(worker, |worker| {
            worker.heard_of = true;
            worker.disconnected = None;
        });
    }

    /// A worker told what it is; unless a shuffle service does, it serves its data directory.
    pub(super) fn register(&mut self, description: WorkerDescription) {
        self.update(description.worker, |worker| worker.description = Some(description));
        match description.keeper {
            PartitionKeeper::Worker => self.serve(description.data_directory, description.worker),
            PartitionKeeper::ShuffleService => {}
        }
    }

    /// A worker serves a data directory from now on.
    pub(super) fn serve(&mut self, data_directory: DataDirectoryId, worker: WorkerId) {
        self.served.insert(data_directory, worker);
    }

    /// A worker reported what lies in a data directory, or nothing can lie there: it serves it.
    pub(super) fn report(&mut self, data_directory: DataDirectoryId, worker: WorkerId) {
        self.serve(data_directory, worker);
        if self.reported.insert(data_directory) {
            self.sort_writers_of(data_directory);
        }
    }

    /// Those who write to a directory can take attempts iff its content was reported.
    fn sort_writers_of(&mut self, data_directory: DataDirectoryId) {
        let here = |it: &WorkerDescription| it.data_directory == data_directory;
        let writers: Vec<WorkerId> =
            self.descriptions().filter(here).map(|writer| writer.worker).collect();
        for worker in writers {
            self.update(worker, |_| ());
        }
    }

    /// The connection closed; false if the worker is not known.
    pub(super) fn disconnect(&mut self, worker: WorkerId, now: Timestamp) -> bool {
        let known = self.by_id.contains_key(&worker);
        if known {
            self.update(worker, |worker| worker.disconnected = Some(now));
        }
        known
    }

    /// A worker takes no attempt any more.
    pub(super) fn leave(&mut self, worker: WorkerId) {
        if self.by_id.contains_key(&worker) {
            self.update(worker, |worker| worker.leaving = true);
        }
    }

    /// Workers whose connection closed at or before `deadline`.
    pub(super) fn disconnected_until(&self, deadline: Timestamp) -> Vec<WorkerId> {
        let closed = |worker: &Worker| worker.disconnected.is_some_and(|at| at <= deadline);
        self.by_id.iter().filter(|(_, worker)| closed(worker)).map(|(id, _)| *id).collect()
    }

    /// The oldest closed connection.
    pub(super) fn first_disconnect(&self) -> Option<Timestamp> {
        self.by_id.values().filter_map(|worker| worker.disconnected).min()
    }

    /// Forgets a worker; returns the data directories that nobody serves any more.
    pub(super) fn remove(&mut self, worker: WorkerId) -> Vec<DataDirectoryId> {
        if let Some(gone) = self.by_id.remove(&worker) {
            self.free.remove(&(gone.free_slots, worker));
            self.stranded.remove(&worker);
        }
        let unserved: Vec<DataDirectoryId> =
            self.served.iter().filter(|(_, id)| **id == worker).map(|(id, _)| *id).collect();
        for data_directory in &unserved {
            self.served.remove(data_directory);
            self.reported.remove(data_directory);
            self.sort_writers_of(*data_directory);
        }
        unserved
    }

    /// Slots were granted or became free.
    pub(super) fn add_free(&mut self, worker: WorkerId, count: u32) {
        self.update(worker, |worker| worker.free_slots += count);
    }

    /// The worker with the most free slots of those that are not among `avoided`.
    pub(super) fn freest_besides(&self, avoided: &[WorkerId]) -> Option<WorkerId> {
        let mut others = self.free.iter().rev().map(|(_, worker)| *worker);
        others.find(|worker| !avoided.contains(worker))
    }

    /// Whether a worker that is not among `avoided` can take attempts, be its slots free or not. One
    /// whose connection is closed counts until it is lost.
    pub(super) fn any_besides(&self, avoided: &[WorkerId]) -> bool {
        let keeps =
            |it: WorkerDescription| it.slots > 0 && self.reported.contains(&it.data_directory);
        let mut others = self.by_id.iter().filter(|(id, _)| !avoided.contains(id));
        others.any(|(_, worker)| !worker.leaving && worker.description.is_some_and(keeps))
    }

    /// Takes a slot of a worker that has a free one.
    pub(super) fn take_slot(&mut self, worker: WorkerId) {
        self.update(worker, |worker| worker.free_slots = worker.free_slots.saturating_sub(1));
    }

    /// Takes all free slots, to give them back.
    pub(super) fn take_all_free(&mut self) -> Vec<(WorkerId, u32)> {
        let free: Vec<(u32, WorkerId)> = std::mem::take(&mut self.free).into_iter().collect();
        for (_, worker) in &free {
            self.update(*worker, |worker| worker.free_slots = 0);
        }
        free.into_iter().map(|(count, worker)| (worker, count)).collect()
    }

    /// Takes all free slots of one worker, to give them back.
    pub(super) fn take_free_of(&mut self, worker: WorkerId) -> u32 {
        let free = self.free.iter().find(|(_, id)| *id == worker).map_or(0, |(count, _)| *count);
        if free > 0 {
            self.update(worker, |worker| worker.free_slots = 0);
        }
        free
    }

    pub(super) fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many slots are of no use, because nobody keeps what their workers write, or those have not
    /// told what they hold.
    pub(super) fn stranded_slots(&self) -> u32 {
        self.stranded.values().fold(0, |total, count| total.saturating_add(*count))
    }

    /// Whose slots are of no use, if any are.
    pub(super) fn stranded_by(&self) -> Option<PartitionKeeper> {
        let keepers = self.stranded.keys().filter_map(|id| Some(self.description(*id)?.keeper));
        keepers.min_by_key(|keeper| match keeper {
            PartitionKeeper::ShuffleService => 0,
            PartitionKeeper::Worker => 1,
        })
    }

    /// Whether a connection to a worker was told of, and not yet its loss.
    pub(super) fn knows(&self, worker: WorkerId) -> bool {
        self.by_id.get(&worker).is_some_and(|worker| worker.heard_of)
    }

    /// What a worker told of itself.
    pub(super) fn description(&self, worker: WorkerId) -> Option<WorkerDescription> {
        self.by_id.get(&worker)?.description
    }

    /// Whether every known worker has told what it is.
    pub(super) fn all_registered(&self) -> bool {
        self.by_id.values().all(|worker| worker.description.is_some() || !worker.heard_of)
    }

    /// What registered workers told of themselves.
    pub(super) fn descriptions(&self) -> impl Iterator<Item = WorkerDescription> + '_ {
        self.by_id.values().filter_map(|worker| worker.description)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.values().all(|worker| !worker.heard_of)
    }

    /// The worker that serves a data directory.
    pub(super) fn server(&self, data_directory: DataDirectoryId) -> Option<WorkerId> {
        self.served.get(&data_directory).copied()
    }

    /// Where a worker listens, if it does.
    pub(super) fn address(&self, worker: WorkerId) -> Option<SocketAddr> {
        self.description(worker)?.shuffle_address
    }

    /// Where other hosts read a data directory, if it is served to them.
    pub(super) fn shuffle_address(&self, data_directory: DataDirectoryId) -> Option<SocketAddr> {
        self.address(self.server(data_directory)?)
    }

    /// Changes a worker and keeps the order of free slots; makes it if it is new.
    fn update(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let worker = self.by_id.entry(id).or_default();
        self.free.remove(&(worker.free_slots, id));
        change(worker);
        self.stranded.remove(&id);
        let free_slots = worker.free_slots;
        // The slots of a worker that leaves are no longer granted, so nothing makes up for them.
        let counts = free_slots > 0 && !worker.leaving;
        let Some(description) = worker.description.filter(|_| counts) else { return };
        let reported = self.reported.contains(&description.data_directory);
        if !reported {
            self.stranded.insert(id, free_slots);
        } else if worker.disconnected.is_none() {
            self.free.insert((free_slots, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(workers: &mut Workers) -> Option<WorkerId> {
        let worker = workers.freest_besides(&[])?;
        workers.take_slot(worker);
        Some(worker)
    }

    fn description(bits: u128) -> WorkerDescription {
        WorkerDescription {
            worker: WorkerId::from_bits(bits),
            data_directory: DataDirectoryId::from_bits(bits),
            slots: 2,
            shuffle_address: None,
            keeper: PartitionKeeper::Worker,
        }
    }

    #[test]
    fn slots_are_taken_from_the_freest_usable_worker() {
        let mut workers = Workers::default();
        for bits in [1, 2] {
            workers.connect(WorkerId::from_bits(bits));
            workers.register(description(bits));
            workers.report(DataDirectoryId::from_bits(bits), WorkerId::from_bits(bits));
        }
        workers.add_free(WorkerId::from_bits(1), 1);
        workers.add_free(WorkerId::from_bits(2), 2);
        assert_eq!(take(&mut workers), Some(WorkerId::from_bits(2)));
        workers.disconnect(WorkerId::from_bits(2), Timestamp(5));
        assert_eq!(take(&mut workers), Some(WorkerId::from_bits(1)));
        assert_eq!(take(&mut workers), None);
        workers.connect(WorkerId::from_bits(2));
        assert_eq!(take(&mut workers), Some(WorkerId::from_bits(2)));
    }

    #[test]
    fn a_worker_to_be_avoided_gives_no_slot() {
        let mut workers = Workers::default();
        let [good, bad] = [1, 2].map(WorkerId::from_bits);
        for bits in [1, 2] {
            workers.register(description(bits));
            workers.report(DataDirectoryId::from_bits(bits), WorkerId::from_bits(bits));
        }
        workers.add_free(good, 1);
        workers.add_free(bad, 2);
        assert_eq!(workers.freest_besides(&[]), Some(bad));
        assert_eq!(workers.freest_besides(&[bad]), Some(good));
        assert_eq!(workers.freest_besides(&[bad, good]), None);
        workers.take_slot(good);
        assert_eq!(workers.freest_besides(&[bad]), None);
    }

    #[test]
    fn slots_of_a_worker_that_has_not_told_what_it_holds_are_stranded() {
        let mut workers = Workers::default();
        workers.connect(WorkerId::from_bits(1));
        workers.register(description(1));
        workers.add_free(WorkerId::from_bits(1), 2);
        assert_eq!((take(&mut workers), workers.stranded_slots()), (None, 2));
        assert_eq!(workers.stranded_by(), Some(PartitionKeeper::Worker));
        workers.report(DataDirectoryId::from_bits(1), WorkerId::from_bits(1));
        assert_eq!((workers.stranded_by(), workers.stranded_slots()), (None, 0));
    }

    #[test]
    fn slots_of_a_worker_that_leaves_are_nobodys_whatever_it_has_told() {
        let mut workers = Workers::default();
        let leaver = WorkerId::from_bits(1);
        workers.connect(leaver);
        workers.register(description(1));
        workers.add_free(leaver, 2);
        workers.leave(leaver);
        assert_eq!((workers.stranded_by(), workers.stranded_slots()), (None, 0));
        workers.report(DataDirectoryId::from_bits(1), leaver);
        workers.add_free(leaver, 1);
        assert_eq!((take(&mut workers), workers.stranded_slots()), (None, 0));
    }

    #[test]
    fn a_worker_whose_shuffle_service_is_gone_takes_no_attempt_until_it_is_back() {
        let mut workers = Workers::default();
        let writer = WorkerDescription {
            data_directory: DataDirectoryId::from_bits(9),
            keeper: PartitionKeeper::ShuffleService,
            ..description(1)
        };
        workers.connect(writer.worker);
        workers.register(writer);
        workers.add_free(writer.worker, 2);
        assert_eq!((take(&mut workers), workers.stranded_slots()), (None, 2));
        workers.register(description(9));
        assert_eq!(take(&mut workers), None, "nobody knows yet what it holds");
        workers.report(writer.data_directory, WorkerId::from_bits(9));
        assert_eq!(workers.server(writer.data_directory), Some(WorkerId::from_bits(9)));
        assert_eq!((take(&mut workers), workers.stranded_slots()), (Some(writer.worker), 0));
        assert_eq!(workers.remove(WorkerId::from_bits(9)), [writer.data_directory]);
        assert_eq!((take(&mut workers), workers.stranded_slots()), (None, 1));
        assert!(workers.remove(writer.worker).is_empty());
        assert_eq!(workers.stranded_slots(), 0);
    }

    #[test]
    fn a_data_directory_taken_over_survives_its_first_worker() {
        let mut workers = Workers::default();
        workers.register(description(1));
        workers.serve(DataDirectoryId::from_bits(1), WorkerId::from_bits(2));
        assert!(workers.remove(WorkerId::from_bits(1)).is_empty());
        assert_eq!(workers.server(DataDirectoryId::from_bits(1)), Some(WorkerId::from_bits(2)));
    }
}
