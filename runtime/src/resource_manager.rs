//! Who gets which slots, over all runs of a process.

use std::{cmp::Reverse, collections::BTreeMap};

use regrow_protocol::{RunId, WorkerDescription, WorkerId};

/// Something that happened to workers or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceInput {
    /// A worker is there. Saying so again is harmless; the number of its slots never changes.
    WorkerRegistered(WorkerDescription),
    /// A worker's process is gone, and all of its slots with it.
    WorkerLost(WorkerId),
    /// A life of a run's `JobMaster` begins: it holds no slot yet, whatever the one before held.
    RunStarted(RunId),
    /// A run could use this many slots, those that it holds included. Ignored for a run that is not
    /// started.
    DemandDeclared {
        /// Which run.
        run: RunId,
        /// Slots held plus slots wanted.
        slots: u32,
        /// Whose slots it does not want.
        avoid: Vec<WorkerId>,
    },
    /// A run gives slots back. More than it holds are all that it holds.
    SlotsReturned {
        /// Which run.
        run: RunId,
        /// Whose slots.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
    /// A run is over: it holds and wants nothing.
    RunEnded(RunId),
}

/// What a `ResourceManager` wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceAction {
    /// Tell a run's `JobMaster` that slots are its own until it returns them.
    Grant {
        /// Which run.
        run: RunId,
        /// Whose slots.
        worker: WorkerId,
        /// How many more than before.
        count: u32,
    },
}

/// Grants slots of workers to runs.
///
/// Where demand exceeds supply, the next slot goes to the run that holds fewest, so that runs share
/// evenly; of the workers that it does not avoid, to the one where that run holds fewest, so that it
/// is spread. A slot is never taken away from a run.
///
/// Invariants, checked after each input: the slots granted of a worker are at most those present,
/// and no slot is free while a run wants more and does not avoid its worker.
#[derive(Clone, Debug, Default)]
pub struct ResourceManager {
    workers: BTreeMap<WorkerId, Worker>,
    demands: BTreeMap<RunId, Demand>,
}

/// What a started run could use.
#[derive(Clone, Debug, Default)]
struct Demand {
    slots: u32,
    avoid: Vec<WorkerId>,
}

#[derive(Clone, Debug)]
struct Worker {
    slots: u32,
    /// Per run, more than zero.
    granted: BTreeMap<RunId, u32>,
}

impl Worker {
    fn free(&self) -> u32 {
        self.slots.saturating_sub(self.granted.values().sum())
    }

    fn granted_to(&self, run: RunId) -> u32 {
        self.granted.get(&run).copied().unwrap_or(0)
    }
}

impl ResourceManager {
    /// Knows no worker and no run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one input; the answer is what is granted by it, ascending by run and worker.
    pub fn handle(&mut self, input: ResourceInput) -> Vec<ResourceAction> {
        self.apply(input);
        let actions = self.grant();
        self.check();
        actions
    }

    /// How many workers are there.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// How many slots of all workers are granted to nobody.
    pub fn free_slots(&self) -> u32 {
        self.workers.values().fold(0, |total, worker| total.saturating_add(worker.free()))
    }

    /// How many slots `run` holds.
    pub fn slots_of(&self, run: RunId) -> u32 {
        let granted = self.workers.values().map(|worker| worker.granted_to(run));
        granted.fold(0, u32::saturating_add)
    }

    fn apply(&mut self, input: ResourceInput) {
        match input {
            ResourceInput::WorkerRegistered(WorkerDescription { worker, slots, .. }) => {
                let new = || Worker { slots, granted: BTreeMap::new() };
                self.workers.entry(worker).or_insert_with(new);
            }
            ResourceInput::WorkerLost(worker) => {
                self.workers.remove(&worker);
            }
            ResourceInput::RunStarted(run) => {
                self.take_back_all(run);
                self.demands.insert(run, Demand::default());
            }
            ResourceInput::DemandDeclared { run, slots, avoid } => {
                if let Some(demand) = self.demands.get_mut(&run) {
                    *demand = Demand { slots, avoid };
                }
            }
            ResourceInput::SlotsReturned { run, worker, count } => {
                self.take_back(run, worker, count);
            }
            ResourceInput::RunEnded(run) => {
                self.take_back_all(run);
                self.demands.remove(&run);
            }
        }
    }

    fn take_back(&mut self, run: RunId, worker: WorkerId, count: u32) {
        let Some(worker) = self.workers.get_mut(&worker) else { return };
        let left = worker.granted_to(run).saturating_sub(count);
        if left == 0 {
            worker.granted.remove(&run);
        } else {
            worker.granted.insert(run, left);
        }
    }

    fn take_back_all(&mut self, run: RunId) {
        for worker in self.workers.values_mut() {
            worker.granted.remove(&run);
        }
    }

    fn grant(&mut self) -> Vec<ResourceAction> {
        let mut held = self.held();
        let mut grants: BTreeMap<(RunId, WorkerId), u32> = BTreeMap::new();
        while let Some((run, worker)) = self.next_grant(&held) {
            *grants.entry((run, worker)).or_default() += 1;
            *held.entry(run).or_default() += 1;
            if let Some(worker) = self.workers.get_mut(&worker) {
                *worker.granted.entry(run).or_default() += 1;
            }
        }
        let grants = grants.into_iter();
        grants.map(|((run, worker), count)| ResourceAction::Grant { run, worker, count }).collect()
    }

    /// Per started run, how many slots it holds.
    fn held(&self) -> BTreeMap<RunId, u32> {
        self.demands.keys().map(|run| (*run, self.slots_of(*run))).collect()
    }

    /// Who gets the next slot, and of which worker: of the runs that want more, and of one that has
    /// a slot, the one that holds fewest.
    fn next_grant(&self, held: &BTreeMap<RunId, u32>) -> Option<(RunId, WorkerId)> {
        let wants = |run: &RunId| self.demands.get(run).map_or(0, |demand| demand.slots);
        let wanting = held.iter().filter(|(run, held)| wants(run) > **held);
        let grants =
            wanting.filter_map(|(run, held)| Some((*held, *run, self.widest_spread(*run)?)));
        grants.min_by_key(|(held, ..)| *held).map(|(_, run, worker)| (run, worker))
    }

    /// Of the workers with a free slot that `run` does not avoid, the one where it holds fewest, and
    /// of those the one with most free.
    fn widest_spread(&self, run: RunId) -> Option<WorkerId> {
        let avoid = self.demands.get(&run).map_or(&[][..], |demand| demand.avoid.as_slice());
        let fits = |(id, worker): &(&WorkerId, &Worker)| worker.free() > 0 && !avoid.contains(id);
        let fitting = self.workers.iter().filter(fits);
        let best =
            fitting.min_by_key(|(_, worker)| (worker.granted_to(run), Reverse(worker.free())));
        best.map(|(id, _)| *id)
    }

    fn check(&self) {
        for (id, worker) in &self.workers {
            let granted = worker.granted.values().map(|count| u64::from(*count)).sum::<u64>();
            assert!(
                granted <= u64::from(worker.slots),
                "{granted} of {} slots of worker {id} are granted",
                worker.slots
            );
        }
        let next = self.next_grant(&self.held());
        assert!(
            next.is_none(),
            "{} slots are free, and run and worker {next:?} could have one",
            self.free_slots()
        );
    }
}

#[cfg(test)]
mod tests;
