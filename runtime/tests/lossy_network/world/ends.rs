//! The ends of connections: what each notices and does, and when.

use regrow_protocol::{ExecutionAttemptId, WorkerId};
use regrow_runtime::{Input, ResourceInput, TaskExecutorInput};

use super::{Cancel, Faults, GRACE, PROMPT_STEPS, Present, World};

impl World {
    /// Something is noticed at one end of a broken connection.
    pub(super) fn notice(&mut self) {
        let broken = self.network.those(|connection| connection.broken.is_some());
        if broken.is_empty() {
            return;
        }
        let number = broken[self.rng.below(broken.len())];
        if self.rng.chance(50) { self.master_notices(number) } else { self.worker_notices(number) }
    }

    fn master_notices(&mut self, number: u64) {
        let Some(connection) = self.network.connections.get(&number) else { return };
        let worker = connection.worker;
        if !connection.master_end {
            return;
        }
        self.network.close_master_end(number);
        let now = self.now;
        let Some(present) = self.gate.get_mut(&worker) else { return };
        if present.connection == Some(number) {
            *present = Present { connection: None, closed_at: now };
            self.feed(Input::WorkerDisconnected { worker });
        }
    }

    fn worker_notices(&mut self, number: u64) {
        let Some(connection) = self.network.connections.get(&number) else { return };
        let worker = connection.worker;
        if !connection.worker_end {
            return;
        }
        self.network.close_worker_end(number);
        let node = self.nodes.get_mut(&worker).unwrap();
        node.connection = None;
        node.alone_since = self.step;
        node.leader(self.now, false, &mut self.disks);
    }

    /// A worker that is not connected connects.
    pub(super) fn reconnect(&mut self) {
        let step = self.step;
        let alone = self
            .nodes
            .iter()
            .filter(|(_, node)| node.connection.is_none() && node.away_until <= step);
        let alone: Vec<WorkerId> = alone.map(|(id, _)| *id).collect();
        if !alone.is_empty() {
            let worker = alone[self.rng.below(alone.len())];
            self.connect(worker);
        }
    }

    fn connect(&mut self, worker: WorkerId) {
        let number = self.network.connect(worker);
        let node = self.nodes.get_mut(&worker).unwrap();
        node.connection = Some(number);
        let description = node.description;
        let present = Present { connection: Some(number), closed_at: self.now };
        match self.gate.insert(worker, present) {
            None => self.manage(ResourceInput::WorkerRegistered(description)),
            Some(Present { connection: Some(before), .. }) => {
                self.seen.unnoticed += 1;
                self.network.close_master_end(before);
            }
            Some(_) => {}
        }
        self.feed(Input::WorkerConnected { worker });
        let node = self.nodes.get_mut(&worker).unwrap();
        let said = node.leader(self.now, true, &mut self.disks);
        self.say_up(worker, said);
    }

    /// Nothing takes longer than it may where breaks are short, or while all heals.
    pub(super) fn keep_promptness(&mut self) {
        if self.faults == Faults::All && !self.healing {
            return;
        }
        let step = self.step;
        let long_ago = |since: u64| since + PROMPT_STEPS <= step;
        for number in self.network.those(|connection| connection.broken.is_some_and(long_ago)) {
            self.master_notices(number);
            self.worker_notices(number);
        }
        let alone =
            self.nodes.iter().filter(|(_, it)| it.connection.is_none() && long_ago(it.alone_since));
        for worker in alone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.connect(worker);
        }
    }

    /// Counts workers as lost that were away for the grace.
    pub(super) fn give_up_absent(&mut self) {
        let now = self.now;
        let absent = self.gate.iter().filter(|(_, present)| {
            present.connection.is_none() && present.closed_at.after(GRACE) <= now
        });
        for worker in absent.map(|(id, _)| *id).collect::<Vec<_>>() {
            assert_eq!(self.faults, Faults::All, "breaks are short");
            self.seen.given_up += 1;
            self.gate.remove(&worker);
            self.manage(ResourceInput::WorkerLost(worker));
            self.feed(Input::WorkerLost { worker });
        }
    }

    pub(super) fn deliver_up(&mut self) {
        let full = self.network.those(|it| it.master_end && !it.up.is_empty());
        if full.is_empty() {
            return;
        }
        let number = full[self.rng.below(full.len())];
        let connection = self.network.connections.get_mut(&number).unwrap();
        let Some(envelope) = connection.up.pop_front() else { return };
        let worker = connection.worker;
        self.hear_from(worker, envelope);
    }

    pub(super) fn deliver_down(&mut self) {
        let full = self.network.those(|it| it.worker_end && !it.down.is_empty());
        if full.is_empty() {
            return;
        }
        let number = full[self.rng.below(full.len())];
        let connection = self.network.connections.get_mut(&number).unwrap();
        let Some(said) = connection.down.pop_front() else { return };
        let worker = connection.worker;
        self.trace("is told", &(worker, &said));
        let node = self.nodes.get_mut(&worker).unwrap();
        let answers = node.hear(self.now, said, &mut self.disks);
        self.say_up(worker, answers);
        self.look_at_starts(worker);
    }

    /// Some task goes on.
    pub(super) fn work(&mut self) {
        // A job that is to be cancelled would never end by itself.
        let frozen = self.cancel != Cancel::Never && !matches!(self.cancel, Cancel::Planned(_));
        let running: Vec<(WorkerId, ExecutionAttemptId)> = self
            .nodes
            .iter()
            .flat_map(|(id, node)| {
                let tasks = node.tasks.iter().filter(|(_, task)| task.stopping || !frozen);
                tasks.map(|(attempt, _)| (*id, *attempt))
            })
            .collect();
        if running.is_empty() {
            return;
        }
        let (worker, attempt) = running[self.rng.below(running.len())];
        let node = self.nodes.get_mut(&worker).unwrap();
        let Some(input) = node.work(attempt, &self.submission.graph, &mut self.disks) else {
            return;
        };
        if matches!(input, TaskExecutorInput::AttemptFinished(_)) {
            self.sealed.insert(attempt.execution_vertex());
        }
        let said = node.feed(self.now, input, &mut self.disks);
        self.say_up(worker, said);
        self.look_at_starts(worker);
    }

    pub(super) fn wake_nodes(&mut self) {
        for worker in self.nodes.keys().copied().collect::<Vec<_>>() {
            let node = self.nodes.get_mut(&worker).unwrap();
            let said = node.feed(self.now, TaskExecutorInput::Woken, &mut self.disks);
            self.say_up(worker, said);
            self.look_at_starts(worker);
        }
    }
}
