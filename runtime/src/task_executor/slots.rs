//! The slots of a worker and what waits for them.

use std::collections::{BTreeMap, VecDeque};

use regrow_protocol::{ExecutionAttemptId, RunId, TaskDeployment, TaskFailure};

/// Attempts that may wait, per slot. A master submits no more than the slots that it was granted,
/// but attempts of several runs may wait at once while those of lost masters wind down.
const WAITING_PER_SLOT_MAX: usize = 4;

/// The slots of a worker and what waits for them, in the order of submission.
#[derive(Debug)]
pub(super) struct Slots {
    count: usize,
    running: BTreeMap<ExecutionAttemptId, Occupant>,
    waiting: VecDeque<Box<TaskDeployment>>,
}

#[derive(Debug, Default)]
struct Occupant {
    /// It was told to stop.
    stopping: bool,
    /// Number of the split request that was not answered yet.
    awaited: Option<u64>,
}

impl Slots {
    pub(super) fn new(count: u32) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self { count, running: BTreeMap::new(), waiting: VecDeque::new() }
    }

    pub(super) fn occupied(&self) -> usize {
        self.running.len()
    }

    /// Whether the attempt runs, winds down or waits.
    pub(super) fn holds(&self, attempt: ExecutionAttemptId) -> bool {
        self.running.contains_key(&attempt)
            || self.waiting.iter().any(|waiting| waiting.attempt == attempt)
    }

    /// Whether anything of the run runs, winds down or waits.
    pub(super) fn serves(&self, run: RunId) -> bool {
        self.running.keys().any(|attempt| attempt.run == run)
            || self.waiting.iter().any(|waiting| waiting.attempt.run == run)
    }

    /// Has an attempt wait for a slot.
    ///
    /// # Errors
    /// When too many wait: its master submitted more than it was granted.
    pub(super) fn enqueue(&mut self, deployment: Box<TaskDeployment>) -> Result<(), TaskFailure> {
        let most = self.count.saturating_mul(WAITING_PER_SLOT_MAX);
        if self.waiting.len() >= most {
            return Err(TaskFailure::task(format!(
                "cannot queue the task: {} tasks wait for the {} slots of this worker already; \
                 submit no more than the worker has slots",
                self.waiting.len(),
                self.count
            )));
        }
        self.waiting.push_back(deployment);
        Ok(())
    }

    /// Gives a free slot to who waits longest.
    pub(super) fn start_next(&mut self) -> Option<Box<TaskDeployment>> {
        if self.running.len() >= self.count {
            return None;
        }
        let deployment = self.waiting.pop_front()?;
        self.running.insert(deployment.attempt, Occupant::default());
        Some(deployment)
    }

    /// Frees the slot of an ended attempt; false if it has none.
    pub(super) fn free(&mut self, attempt: ExecutionAttemptId) -> bool {
        self.running.remove(&attempt).is_some()
    }

    /// Marks a running attempt as stopping; false if there is nothing to stop.
    pub(super) fn stop(&mut self, attempt: ExecutionAttemptId) -> bool {
        let Some(occupant) = self.running.get_mut(&attempt) else { return false };
        occupant.awaited = None;
        !std::mem::replace(&mut occupant.stopping, true)
    }

    /// Takes all attempts that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<ExecutionAttemptId> {
        self.waiting.drain(..).map(|waiting| waiting.attempt).collect()
    }

    /// Removes attempts that wait; says whether there were any.
    pub(super) fn drop_waiting(&mut self, which: impl Fn(ExecutionAttemptId) -> bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !which(waiting.attempt));
        self.waiting.len() < before
    }

    /// Attempts that run and were not told to stop.
    pub(super) fn live_running(
        &self,
        which: impl Fn(ExecutionAttemptId) -> bool,
    ) -> Vec<ExecutionAttemptId> {
        let live =
            self.running.iter().filter(|(attempt, state)| !state.stopping && which(**attempt));
        live.map(|(attempt, _)| *attempt).collect()
    }

    /// Attempts of a run that wait or run, those that were told to stop included: they may still
    /// finish.
    pub(super) fn of_run(&self, run: RunId) -> Vec<ExecutionAttemptId> {
        let waiting = self.waiting.iter().map(|waiting| waiting.attempt);
        let mut attempts: Vec<_> = waiting.chain(self.running.keys().copied()).collect();
        attempts.retain(|attempt| attempt.run == run);
        attempts.sort_unstable();
        attempts
    }

    /// Notes that a running attempt waits for a split; false if it is not to get one.
    pub(super) fn await_split(&mut self, attempt: ExecutionAttemptId, request: u64) -> bool {
        let Some(occupant) = self.running.get_mut(&attempt) else { return false };
        if !occupant.stopping {
            occupant.awaited = Some(request);
        }
        !occupant.stopping
    }

    /// Notes that the answer to a request came; false if nobody waits for it.
    pub(super) fn take_answer(&mut self, attempt: ExecutionAttemptId, request: u64) -> bool {
        let Some(occupant) = self.running.get_mut(&attempt) else { return false };
        occupant.awaited.take_if(|awaited| *awaited == request).is_some()
    }

    /// Requests of a run that were not answered yet.
    pub(super) fn awaited_splits(&self, run: RunId) -> Vec<(ExecutionAttemptId, u64)> {
        let of_run = self.running.iter().filter(|(attempt, _)| attempt.run == run);
        of_run
            .filter_map(|(attempt, state)| state.awaited.map(|request| (*attempt, request)))
            .collect()
    }
}
