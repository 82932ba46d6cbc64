//! Adaptive batch scheduling: initializing vertices, choosing what runs next, and where.

use regrow_protocol::{
    ExecutionAttemptId, ExecutionVertexId, JobVertexId, PinnedSplits, Split, WorkerId,
};

use super::{
    Job, Output,
    executions::{Execution, ExecutionStage},
    held::HeldAction,
};
use crate::{
    Action, CoordinatorDelta, Decision, Distribution, Flush, InputStatistics, JobEvent, Lsn,
    OperatorCoordinator, Parallelism, plan_vertex,
};

/// How many that are ready are looked at for one that has not failed where a slot is free.
const AVOIDING_LOOKS_MAX: usize = 64;

impl Job {
    /// Asks for the splits of sources that were never listed, or must be listed again.
    pub(super) fn discover_splits(&mut self, out: &mut Decision) {
        let vertices: Vec<JobVertexId> = self.recorded.coordinators.vertices().collect();
        for vertex in vertices {
            let fresh =
                self.recorded.coordinators.get(vertex).is_some_and(OperatorCoordinator::start);
            if fresh && self.discovering.insert(vertex) {
                out.actions.push(Action::DiscoverSplits { vertex });
            }
        }
    }

    pub(super) fn splits_discovered(
        &mut self,
        vertex: JobVertexId,
        result: Result<Vec<Split>, String>,
        out: &mut Decision,
    ) {
        self.discovering.remove(&vertex);
        let Some(coordinator) = self.recorded.coordinators.get(vertex) else { return };
        if !coordinator.start() || self.is_ending() {
            return;
        }
        let epoch = self.epoch();
        match result.and_then(|splits| coordinator.splits_discovered(epoch, splits)) {
            Ok(delta) => {
                self.record_delta(vertex, delta, out);
                self.look_for_plans = true;
                self.refresh_ready(vertex);
            }
            Err(error) => self.fail(error, out),
        }
    }

    /// Records a change of a coordinator under its next number.
    pub(super) fn record_delta(
        &mut self,
        vertex: JobVertexId,
        delta: CoordinatorDelta,
        out: &mut Decision,
    ) -> Lsn {
        let number = self.recorded.coordinators.next_number(vertex);
        self.record(JobEvent::CoordinatorChanged { vertex, number, delta }, out)
    }

    /// Initializes every vertex whose parallelism and input ranges can be decided.
    pub(super) fn initialize_vertices(&mut self, out: &mut Decision) {
        if !std::mem::take(&mut self.look_for_plans) {
            return;
        }
        for vertex in self.recorded.vertices() {
            if self.recorded.plan(vertex).is_some() || !self.can_initialize(vertex) {
                continue;
            }
            let inputs = self.statistics(vertex);
            let coordinator = self.recorded.coordinators.get(vertex);
            let source_bytes = coordinator.and_then(OperatorCoordinator::discovered_bytes);
            let graph = self.recorded.graph();
            let plan = plan_vertex(graph, vertex, &inputs, source_bytes, &self.options);
            self.record(JobEvent::JobVertexInitialized { vertex, plan }, out);
            self.refresh_ready(vertex);
            self.settle_proofs(out);
        }
    }

    fn can_initialize(&self, vertex: JobVertexId) -> bool {
        let graph = self.recorded.graph();
        let decided = graph.vertices[vertex.0 as usize].parallelism == Parallelism::Decided;
        let discovered = match self.recorded.coordinators.get(vertex) {
            Some(coordinator) => coordinator.discovered_bytes().is_some(),
            None => true,
        };
        discovered
            && graph.inputs(vertex).all(|(_, edge)| {
                if decided && edge.distribution != Distribution::Pointwise {
                    self.recorded.is_complete(edge.producer)
                } else {
                    self.recorded.plan(edge.producer).is_some()
                }
            })
    }

    /// What is known of the inputs of a vertex, in the order of its edges.
    fn statistics(&self, vertex: JobVertexId) -> Vec<InputStatistics> {
        let graph = self.recorded.graph();
        let inputs = graph.inputs(vertex).map(|(data_set, edge)| {
            let outputs = graph.outputs(edge.producer);
            let output = outputs.into_iter().position(|(id, _)| id == data_set).unwrap_or(0);
            let plan = self.recorded.plan(edge.producer);
            let subpartitions =
                plan.and_then(|plan| plan.output_subpartitions.get(output).copied()).unwrap_or(1);
            let measured = self.recorded.is_complete(edge.producer);
            InputStatistics {
                producer_parallelism: plan.map_or(1, |plan| plan.parallelism),
                subpartitions,
                subpartition_bytes: if measured {
                    self.sum_bytes(edge.producer, output, subpartitions)
                } else {
                    Vec::new()
                },
            }
        });
        inputs.collect()
    }

    fn sum_bytes(&self, producer: JobVertexId, output: usize, subpartitions: u32) -> Vec<u64> {
        let mut sums = vec![0_u64; subpartitions as usize];
        let records = self.recorded.subtasks(producer).filter_map(|it| self.recorded.accepted(it));
        let metrics = records.filter_map(|record| record.outputs.get(output));
        for (index, bytes) in metrics.flat_map(|metrics| metrics.subpartition_bytes.iter()) {
            if let Some(sum) = sums.get_mut(index as usize) {
                *sum = sum.saturating_add(bytes);
            }
        }
        sums
    }

    /// Makes ready every subtask of a vertex that can run.
    pub(super) fn refresh_ready(&mut self, vertex: JobVertexId) {
        let recorded = &self.recorded;
        let waits_for_all = recorded.graph().inputs(vertex).any(|(_, edge)| {
            edge.distribution != Distribution::Pointwise && !recorded.is_complete(edge.producer)
        });
        if waits_for_all {
            return;
        }
        for subtask in self.recorded.subtasks(vertex) {
            self.refresh_subtask(subtask);
        }
    }

    /// Makes a subtask ready if it can run.
    pub(super) fn refresh_subtask(&mut self, subtask: ExecutionVertexId) {
        if self.can_run(subtask) && !self.delayed.iter().any(|(_, delayed)| *delayed == subtask) {
            self.ready.insert(subtask);
        }
    }

    fn can_run(&self, subtask: ExecutionVertexId) -> bool {
        let unfinished =
            self.recorded.subtask(subtask).is_some_and(|record| record.finish.is_none());
        let coordinator = self.recorded.coordinators.get(subtask.vertex);
        unfinished
            && self.executions.get(subtask).is_none()
            && !coordinator.is_some_and(OperatorCoordinator::start)
            && self.inputs_are_finished(subtask)
    }

    /// Whether all producers that a subtask reads are finished.
    fn inputs_are_finished(&self, subtask: ExecutionVertexId) -> bool {
        self.recorded.graph().inputs(subtask.vertex).enumerate().all(|(input, (_, edge))| {
            if self.recorded.is_complete(edge.producer) {
                return true;
            }
            let Some(range) = self.recorded.input_range(subtask, input) else { return false };
            let vertex = edge.producer;
            range.producers().all(|subtask| {
                self.recorded.finish(ExecutionVertexId { vertex, subtask }).is_some()
            })
        })
    }

    pub(super) fn wake_delayed(&mut self) {
        while let Some((at, subtask)) = self.delayed.first().copied()
            && at <= self.now
        {
            self.delayed.pop_first();
            self.refresh_subtask(subtask);
        }
    }

    /// Gives ready subtasks to free slots.
    pub(super) fn dispatch(&mut self, out: &mut Decision) {
        if !matches!(self.output, Output::Prepared(_)) {
            return;
        }
        while let Some((subtask, worker)) = self.next_match() {
            self.ready.remove(&subtask);
            if self.can_run(subtask) {
                self.workers.take_slot(worker);
                self.dispatch_to(subtask, worker, out);
            }
        }
    }

    /// What runs next, and where: the first that is ready and has a slot where it has not failed. One
    /// that failed wherever it can run takes any slot.
    fn next_match(&self) -> Option<(ExecutionVertexId, WorkerId)> {
        if !self.workers.has_free_slot() {
            return None;
        }
        let place = |it| Some((it, self.workers.freest_besides(self.avoided_by(it))?));
        self.looked_at().find_map(place)
    }

    /// The first that are ready.
    fn looked_at(&self) -> impl Iterator<Item = ExecutionVertexId> {
        self.ready.iter().copied().take(AVOIDING_LOOKS_MAX)
    }

    /// Where a subtask is not to run: where attempts of it failed, if it can run elsewhere.
    fn avoided_by(&self, subtask: ExecutionVertexId) -> &[WorkerId] {
        let failed_on = self.failed_on(subtask);
        if failed_on.is_empty() || self.workers.any_besides(failed_on) { failed_on } else { &[] }
    }

    /// Where attempts of a subtask failed.
    fn failed_on(&self, subtask: ExecutionVertexId) -> &[WorkerId] {
        self.failed_on.get(&subtask).map_or(&[], Vec::as_slice)
    }

    fn dispatch_to(&mut self, subtask: ExecutionVertexId, worker: WorkerId, out: &mut Decision) {
        let run = self.recorded.facts.submission.run;
        let ExecutionVertexId { vertex, subtask: index } = subtask;
        let number = self.recorded.subtask(subtask).map_or(0, |record| record.next_attempt);
        let epoch = self.epoch();
        let attempt = ExecutionAttemptId { run, vertex, subtask: index, epoch, number };
        let mut waits_for = self.use_worker(worker, out).max(self.dispatch_barrier(subtask));
        let mut splits = PinnedSplits::None;
        if let Some(coordinator) = self.recorded.coordinators.get(vertex) {
            waits_for = waits_for.max(self.recorded.coordinators.barrier(vertex));
            let delta = coordinator.subtask_ready(attempt);
            splits = match coordinator.pinned(index) {
                Some(pinned) => PinnedSplits::Exactly(pinned),
                None => PinnedSplits::OnRequest,
            };
            if let Some(delta) = delta {
                self.record_delta(vertex, delta, out);
            }
        }
        let stage = ExecutionStage::Held;
        let ticket = self.executions.next_ticket();
        self.executions.insert(Execution { attempt, worker, stage, splits, ticket });
        self.hold(waits_for, Flush::Now, HeldAction::Submit { attempt, ticket }, out);
    }

    /// What must be durable before a subtask is dispatched (recovery.md 3.6).
    fn dispatch_barrier(&self, subtask: ExecutionVertexId) -> Lsn {
        let vertex = self.recorded.vertex(subtask.vertex);
        let reset = self.recorded.subtask(subtask).map_or(Lsn(0), |record| record.barrier);
        let inputs = self.recorded.graph().inputs(subtask.vertex).enumerate();
        let producers = inputs.map(|(input, (_, edge))| match edge.distribution {
            Distribution::AllToAll | Distribution::Broadcast => {
                self.recorded.vertex(edge.producer).last_finish
            }
            Distribution::Pointwise => self.last_finish_of(subtask, input, edge.producer),
        });
        producers.fold(vertex.initialized.max(reset), Lsn::max)
    }

    fn last_finish_of(&self, subtask: ExecutionVertexId, input: usize, vertex: JobVertexId) -> Lsn {
        let Some(range) = self.recorded.input_range(subtask, input) else { return Lsn(0) };
        let finishes = range
            .producers()
            .filter_map(|subtask| self.recorded.finish(ExecutionVertexId { vertex, subtask }));
        finishes.map(|finish| finish.lsn).fold(Lsn(0), Lsn::max)
    }

    /// Sends a dispatch that had waited, if it is still wanted.
    pub(super) fn send(&mut self, attempt: &ExecutionAttemptId, ticket: u64, out: &mut Decision) {
        let subtask = attempt.execution_vertex();
        let Some(execution) = self.executions.of_attempt(attempt) else { return };
        if execution.ticket != ticket {
            return;
        }
        if !self.inputs_are_finished(subtask) {
            self.withdraw(subtask);
            return;
        }
        let worker = execution.worker;
        let splits = execution.splits.clone();
        self.executions.mark_sent(attempt);
        let deployment = Box::new(self.deployment(*attempt, splits));
        out.actions.push(Action::SubmitTask { worker, deployment });
    }

    /// Repeats a dispatch that its worker may not have heard.
    pub(super) fn send_again(&mut self, attempt: &ExecutionAttemptId, out: &mut Decision) {
        let Some(execution) = self.executions.of_attempt(attempt) else { return };
        let (worker, splits) = (execution.worker, execution.splits.clone());
        let deployment = Box::new(self.deployment(*attempt, splits));
        self.executions.mark_sent(attempt);
        out.actions.push(Action::SubmitTask { worker, deployment });
    }

    /// Takes back a dispatch that was not sent; false if there is none.
    pub(super) fn withdraw(&mut self, subtask: ExecutionVertexId) -> bool {
        let held = |execution: &Execution| execution.stage == ExecutionStage::Held;
        if !self.executions.get(subtask).is_some_and(held) {
            return false;
        }
        if let Some(execution) = self.executions.remove(subtask) {
            self.workers.add_free(execution.worker, 1);
        }
        true
    }

    /// Workers where nothing that is ready is to run.
    fn avoided_by_all(&self) -> Vec<WorkerId> {
        let mut ready = self.looked_at();
        let Some(first) = ready.next() else { return Vec::new() };
        let mut avoided = self.avoided_by(first).to_vec();
        for other in ready {
            if avoided.is_empty() {
                break;
            }
            let theirs = self.avoided_by(other);
            avoided.retain(|worker| theirs.contains(worker));
        }
        avoided
    }

    /// Tells the `ResourceManager` what the job could use, and gives back what it cannot.
    pub(super) fn declare_demand(&mut self, out: &mut Decision) {
        // What waits for its restart wants no slot meanwhile: one that is given back would come back.
        let wanted = self.executions.len() + self.ready.len();
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        // Held, and of no use: others must make up for them.
        let wanted = wanted.saturating_add(self.workers.stranded_slots());
        let idle = self.ready.is_empty() && self.workers.has_free_slot();
        let avoid = self.avoided_by_all();
        let (declared, avoided) = &self.declared_demand;
        if wanted > *declared || avoid != *avoided || (idle && wanted != *declared) {
            self.declared_demand = (wanted, avoid.clone());
            out.actions.push(Action::DeclareDemand { slots: wanted, avoid: avoid.clone() });
        }
        // After the demand, or they would come back.
        let unused = if idle {
            self.workers.take_all_free()
        } else {
            avoid.into_iter().map(|worker| (worker, self.workers.take_free_of(worker))).collect()
        };
        for (worker, count) in unused.into_iter().filter(|(_, count)| *count > 0) {
            out.actions.push(Action::ReturnSlots { worker, count });
        }
    }
}
