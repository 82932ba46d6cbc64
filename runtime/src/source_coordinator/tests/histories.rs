//! Random histories: a small master that asks, fails, loses outputs, and dies with its log's tail.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SUBTASKS: u32 = 3;
const SPLITS: u32 = 7;

#[derive(Clone, Debug)]
enum Step {
    /// A subtask starts an attempt if none runs, and its attempt asks for a split.
    Ask(u32),
    /// All requests of a running attempt come again.
    Repeat(u32),
    /// The attempt ends; it finishes if it was told the end.
    End(u32),
    /// The attempt fails.
    Fail(u32),
    /// The output of a finished attempt is lost.
    LoseOutput(u32),
    /// A snapshot is stored.
    Snapshot,
    /// The master dies; of the tail that nothing waited for, this part is lost.
    Die(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let subtask = || 0..SUBTASKS;
    let step = prop_oneof![
        8 => subtask().prop_map(Step::Ask),
        1 => subtask().prop_map(Step::Repeat),
        3 => subtask().prop_map(Step::End),
        1 => subtask().prop_map(Step::Fail),
        1 => subtask().prop_map(Step::LoseOutput),
        1 => Just(Step::Snapshot),
        1 => any::<prop::sample::Index>().prop_map(Step::Die),
    ];
    proptest::collection::vec(step, 0..60)
}

/// What the world knows of a subtask, whatever the coordinator thinks.
#[derive(Clone, Debug, Default)]
struct Subtask {
    attempts: u32,
    running: Option<Running>,
    finished: Option<(ExecutionAttemptId, Vec<SplitId>)>,
    /// What it has read once and must read each time.
    pinned: Option<Vec<SplitId>>,
}

#[derive(Clone, Debug)]
struct Running {
    attempt: ExecutionAttemptId,
    read: Vec<SplitId>,
    answers: Vec<Option<SplitId>>,
    at_end: bool,
}

struct Master {
    coordinator: SourceCoordinator,
    subtasks: BTreeMap<u32, Subtask>,
    /// The newest stored snapshot, and the deltas after it.
    snapshot: Vec<u8>,
    deltas: Vec<CoordinatorDelta>,
    /// How many of the deltas something waited for.
    durable: usize,
}

impl Master {
    fn new() -> Self {
        let coordinator = coordinator(SPLITS);
        Self {
            snapshot: coordinator.checkpoint_coordinator(NO_CHECKPOINT),
            coordinator,
            subtasks: (0..SUBTASKS).map(|subtask| (subtask, Subtask::default())).collect(),
            deltas: vec![],
            durable: 0,
        }
    }

    fn record(&mut self, delta: Option<CoordinatorDelta>) {
        if let Some(delta) = delta {
            self.coordinator.apply_delta(&delta);
            self.deltas.push(delta);
        }
    }

    /// Rule 3.6: what goes out after a reset waits until the reset is durable.
    fn record_durably(&mut self, delta: Option<CoordinatorDelta>) {
        self.record(delta);
        self.durable = self.deltas.len();
    }

    fn subtask(&mut self, subtask: u32) -> &mut Subtask {
        self.subtasks.get_mut(&subtask).unwrap()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask(subtask) => self.ask(subtask),
            Step::Repeat(subtask) => self.repeat(subtask),
            Step::End(subtask) => self.end(subtask),
            Step::Fail(subtask) => {
                if let Some(running) = self.subtask(subtask).running.take() {
                    let delta = self.coordinator.subtask_failed(running.attempt);
                    self.record_durably(delta);
                }
            }
            Step::LoseOutput(subtask) => self.lose_output(subtask),
            Step::Snapshot => {
                self.snapshot = self.coordinator.checkpoint_coordinator(NO_CHECKPOINT);
                self.deltas.clear();
                self.durable = 0;
            }
            Step::Die(lost) => {
                let lost = lost.index(self.deltas.len() - self.durable + 1);
                self.die(lost);
            }
        }
    }

    fn start(&mut self, subtask: u32) {
        if self.subtask(subtask).running.is_some() || self.subtask(subtask).finished.is_some() {
            return;
        }
        let number = self.subtask(subtask).attempts;
        let attempt = attempt(subtask, number);
        let delta = self.coordinator.subtask_ready(attempt);
        self.record(delta);
        let pinned = self.coordinator.pinned(subtask);
        let pinned = pinned.map(|splits| splits.iter().map(|split| split.id).collect::<Vec<_>>());
        let state = self.subtask(subtask);
        assert_eq!(pinned, state.pinned, "pinned to subtask {subtask}");
        state.attempts += 1;
        state.running = Some(Running {
            attempt,
            at_end: pinned.is_some(),
            read: pinned.unwrap_or_default(),
            answers: vec![],
        });
    }

    fn ask(&mut self, subtask: u32) {
        self.start(subtask);
        let Some(mut running) = self.subtask(subtask).running.clone() else { return };
        if running.at_end {
            return;
        }
        let request = u64::try_from(running.answers.len()).unwrap();
        let reply = self.coordinator.handle_event(running.attempt, request);
        self.record(reply.delta);
        let split = reply.split.map(|split| split.id);
        running.answers.push(split);
        running.read.extend(split);
        running.at_end = split.is_none();
        self.subtask(subtask).running = Some(running);
    }

    fn repeat(&mut self, subtask: u32) {
        let Some(running) = self.subtask(subtask).running.clone() else { return };
        for (request, answer) in (0..).zip(running.answers) {
            let reply = self.coordinator.handle_event(running.attempt, request);
            assert_eq!(reply.delta, None);
            assert_eq!(reply.split.map(|split| split.id), answer);
        }
    }

    fn end(&mut self, subtask: u32) {
        let Some(running) = self.subtask(subtask).running.clone() else { return };
        if running.at_end {
            assert!(self.coordinator.holds(running.attempt, &running.read));
            let state = self.subtask(subtask);
            state.running = None;
            state.finished = Some((running.attempt, running.read));
        }
    }

    fn lose_output(&mut self, subtask: u32) {
        let Some((attempt, read)) = self.subtask(subtask).finished.take() else { return };
        let delta = self.coordinator.subtask_reset(subtask, NO_CHECKPOINT, Some(attempt));
        self.record_durably(delta);
        self.subtask(subtask).pinned = Some(read);
    }

    fn restored(&self) -> SourceCoordinator {
        let mut restored = SourceCoordinator::new();
        restored.reset_to_checkpoint(NO_CHECKPOINT, &self.snapshot).unwrap();
        for delta in &self.deltas {
            restored.apply_delta(delta);
        }
        restored
    }

    /// A new master: finished attempts claim what the log does not know, the others are reset.
    fn die(&mut self, lost: usize) {
        self.deltas.truncate(self.deltas.len() - lost);
        self.coordinator = self.restored();
        for subtask in 0..SUBTASKS {
            let Some((attempt, read)) = self.subtask(subtask).finished.clone() else { continue };
            if !self.coordinator.holds(attempt, &read) {
                let claim = self.coordinator.claim(attempt, &read);
                assert!(claim.is_some(), "the claim of {attempt} on {read:?}");
                self.record(claim);
            }
        }
        for subtask in 0..SUBTASKS {
            if self.subtask(subtask).finished.is_none() {
                self.subtask(subtask).running = None;
                let delta = self.coordinator.subtask_reset(subtask, NO_CHECKPOINT, None);
                self.record(delta);
            }
        }
        self.durable = self.deltas.len();
    }

    /// No split is with two live holders.
    fn check_holders(&self) {
        let mut holders = BTreeMap::new();
        for (&subtask, state) in &self.subtasks {
            let running = state.running.as_ref().map(|running| &running.read);
            let finished = state.finished.as_ref().map(|(_, read)| read);
            let held = running.or(finished).or(state.pinned.as_ref());
            for split in held.into_iter().flatten() {
                let other = holders.insert(*split, subtask);
                assert_eq!(other, None, "{split:?} is also with subtask {subtask}");
            }
        }
    }

    /// All tasks run to their end: what they read is each split, once.
    fn finish_all(&mut self) {
        for subtask in 0..SUBTASKS {
            for _ in 0..=SPLITS {
                self.ask(subtask);
            }
            self.end(subtask);
        }
        assert!(self.coordinator.is_exhausted());
        let finished = self.subtasks.values().filter_map(|state| state.finished.as_ref());
        let mut read: Vec<u32> =
            finished.flat_map(|(_, read)| read.iter().map(|split| split.0)).collect();
        read.sort_unstable();
        assert_eq!(read, (0..SPLITS).collect::<Vec<_>>());
    }
}

/// The last subtask never finishes early, so that somebody is left to read what comes back.
fn keeps_a_reader(step: &Step) -> bool {
    !matches!(step, Step::End(subtask) if *subtask == SUBTASKS - 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_split_is_read_twice_or_lost(steps in steps()) {
        let mut master = Master::new();
        for step in steps.into_iter().filter(keeps_a_reader) {
            master.take(step);
            master.check_holders();
            prop_assert_eq!(&master.restored(), &master.coordinator);
        }
        // Who reads what is left must not have been told the end before it came back.
        master.take(Step::Fail(SUBTASKS - 1));
        for subtask in (0..SUBTASKS).rev() {
            if master.subtasks[&subtask].running.is_some() {
                master.take(Step::Fail(subtask));
            }
        }
        master.finish_all();
    }

    #[test]
    fn a_restored_snapshot_encodes_to_the_same_bytes(steps in steps()) {
        let mut master = Master::new();
        for step in steps {
            master.take(step);
        }
        let state = master.coordinator.checkpoint_coordinator(NO_CHECKPOINT);
        let mut restored = SourceCoordinator::new();
        restored.reset_to_checkpoint(NO_CHECKPOINT, &state).unwrap();
        prop_assert_eq!(restored.checkpoint_coordinator(NO_CHECKPOINT), state);
    }
}
