//! One master, its workers and the network between them, one step at a time in random order.

mod ends;
mod master_side;
mod oracles;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use regrow_protocol::{Envelope, Epoch, ExecutionVertexId, ToJobMaster, WorkerId};
use regrow_runtime::{
    CoordinatorKind, Input, Job, JobEvent, JobOutcome, JobSubmission, LifeStart, Lsn, Options,
    PreviousLife, ResourceManager, Timestamp,
};

use super::{
    graphs,
    network::Network,
    node::{Disks, Node},
    rng::Rng,
};

/// Which faults the world has, beside connections that break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    /// All breaks end within the grace.
    Flaps,
    /// The same, and masters die, with or without their process.
    Masters,
    /// Breaks of any length, too.
    All,
}

const FAULTY_STEPS: u64 = 150;
const HEALING_STEPS: u64 = 5_000;
const STEP_MS: u64 = 50;
const EVENTS_PER_STEP: usize = 14;

/// The `taskmanager.reconnect-grace`.
const GRACE: Duration = Duration::from_secs(5);

/// How long a worker may be out of reach: up to twice the grace.
const AWAY_STEPS_MAX: usize = 200;

/// Within so many steps a broken connection is noticed, and opened again: well within the grace.
const PROMPT_STEPS: u64 = 10;

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    submission: JobSubmission,
    job: Job,
    epoch: Epoch,
    now: Timestamp,
    step: u64,
    /// Events on stable storage, and those in the writer's buffer.
    stored: Vec<JobEvent>,
    buffer: VecDeque<JobEvent>,
    resources: ResourceManager,
    /// What the master hears of its own process.
    local: VecDeque<Input>,
    /// The workers that the master's process takes for there.
    gate: BTreeMap<WorkerId, Present>,
    nodes: BTreeMap<WorkerId, Node>,
    disks: Disks,
    network: Network,
    outcome: Option<JobOutcome>,
    sealed: BTreeSet<ExecutionVertexId>,
    cancel: Cancel,
    cancelled_at: Timestamp,
    /// Percentage of the steps in which something breaks.
    fault_rate: u64,
    healing: bool,
    seen: Seen,
}

struct Present {
    connection: Option<u64>,
    closed_at: Timestamp,
}

/// A user's wish that the job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    /// Comes in this step.
    Planned(u64),
    Never,
    /// Until it is answered, it is said to each life. Meanwhile tasks end only if they are told to.
    Asked,
    Answered,
}

/// What happened in worlds: a test that never met its fault shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Messages that were lost on their way to the master, and from it.
    pub(crate) lost_up: usize,
    pub(crate) lost_down: usize,
    /// Connections that a worker opened while the master took an older one for open.
    pub(crate) unnoticed: usize,
    pub(crate) lives: usize,
    /// Workers that were counted as lost.
    pub(crate) given_up: usize,
    pub(crate) taken_back: usize,
    pub(crate) cancelled: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Self) {
        self.lost_up += other.lost_up;
        self.lost_down += other.lost_down;
        self.unnoticed += other.unnoticed;
        self.lives += other.lives;
        self.given_up += other.given_up;
        self.taken_back += other.taken_back;
        self.cancelled += other.cancelled;
    }
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed);
        let mut submission = graphs::submission(&mut rng);
        for vertex in &mut submission.graph.vertices {
            // What is listed twice is another test's.
            vertex.coordinator = vertex.coordinator.map(|_| CoordinatorKind::Source);
        }
        let epoch = Epoch::new(1, 0);
        let (job, decision) =
            Job::submit(Timestamp(0), submission.clone(), life(epoch, faults, PreviousLife::None));
        let cancel = match seed % 4 {
            0 => Cancel::Planned(5 + u64::try_from(rng.below(100)).unwrap()),
            _ => Cancel::Never,
        };
        let mut world = Self {
            rng,
            faults,
            submission,
            job,
            epoch,
            now: Timestamp(0),
            step: 0,
            stored: Vec::new(),
            buffer: VecDeque::new(),
            resources: ResourceManager::new(),
            local: VecDeque::new(),
            gate: BTreeMap::new(),
            nodes: BTreeMap::new(),
            disks: Disks::new(),
            network: Network::default(),
            outcome: None,
            sealed: BTreeSet::new(),
            cancel,
            cancelled_at: Timestamp(0),
            fault_rate: [10, 30, 60][usize::try_from(seed % 3).unwrap()],
            healing: false,
            seen: Seen::default(),
        };
        world.lead(decision);
        for bits in 1..=1 + world.rng.below(3) {
            let slots = 1 + u32::try_from(world.rng.below(2)).unwrap();
            let node = Node::new(bits as u128, slots, GRACE);
            world.nodes.insert(node.description.worker, node);
        }
        world
    }

    /// Breaks connections for a while, then lets all heal; panics where a promise is broken.
    pub(crate) fn run(mut self) -> Seen {
        for _ in 0..FAULTY_STEPS {
            self.disturb();
            self.pass_step();
        }
        self.healing = true;
        for _ in 0..HEALING_STEPS {
            if self.outcome.is_some() && self.nothing_is_left() {
                return self.seen;
            }
            self.pass_step();
        }
        let (outcome, disks) = (&self.outcome, &self.disks);
        panic!("O5: the job does not end, or leaves something: {outcome:?}, {disks:?}");
    }

    fn disturb(&mut self) {
        if self.rng.chance(self.fault_rate) {
            let sound = self.network.those(|connection| connection.broken.is_none());
            if !sound.is_empty() {
                let number = sound[self.rng.below(sound.len())];
                let lost = self.network.break_one(number, self.step, &mut self.rng);
                self.stay_away(number);
                self.seen.lost_up += lost.0;
                self.seen.lost_down += lost.1;
            }
        }
        if self.faults != Faults::Flaps && self.rng.chance(self.fault_rate / 10) {
            self.kill_master();
        }
    }

    /// Some breaks take longer than anybody waits.
    fn stay_away(&mut self, number: u64) {
        if self.faults == Faults::All && self.rng.chance(40) {
            let worker = self.network.connections[&number].worker;
            let steps = u64::try_from(self.rng.below(AWAY_STEPS_MAX)).unwrap();
            self.nodes.get_mut(&worker).unwrap().away_until = self.step + steps;
        }
    }

    fn pass_step(&mut self) {
        self.step += 1;
        self.now.0 += STEP_MS;
        if self.cancel == Cancel::Planned(self.step) {
            self.cancel = Cancel::Asked;
            self.cancelled_at = self.now;
            self.feed(Input::CancelRequested);
        }
        self.keep_promptness();
        self.give_up_absent();
        for _ in 0..EVENTS_PER_STEP {
            match self.rng.below(20) {
                0 => self.flush(),
                1..=5 => self.work(),
                6 => self.notice(),
                7 => self.reconnect(),
                8 if self.rng.chance(3) => self.feed(Input::SnapshotWanted),
                8 => self.feed(Input::Woken),
                9..=10 => self.hear_local(),
                11..=15 => self.deliver_up(),
                _ => self.deliver_down(),
            }
        }
        self.wake_nodes();
    }

    fn flush(&mut self) {
        self.stored.extend(self.buffer.drain(..));
        self.feed(Input::Persisted { upto: Lsn(self.stored.len() as u64) });
    }

    fn hear_local(&mut self) {
        if let Some(input) = self.local.pop_front() {
            self.feed(input);
        }
    }

    fn feed(&mut self, input: Input) {
        if self.outcome.is_some() {
            return;
        }
        self.trace("hears", &input);
        let decision = self.job.handle(self.now, input);
        self.carry_out(decision);
    }

    /// Tells what happens when one seed is run alone.
    #[expect(clippy::print_stderr, reason = "who runs one seed wants to see what happens")]
    fn trace(&self, what: &str, value: &impl std::fmt::Debug) {
        if std::env::var_os("REGROW_SEED").is_some() {
            eprintln!("{} {what} {value:?}", self.now.0);
        }
    }

    fn say_up(&mut self, worker: WorkerId, said: Vec<Envelope<ToJobMaster>>) {
        if let Some(number) = self.nodes[&worker].connection {
            self.network.send_up(number, said);
        }
    }
}

fn life(epoch: Epoch, faults: Faults, previous: PreviousLife) -> LifeStart {
    // Where nobody is away for long, whoever is slow is waited for.
    let patience = if faults == Faults::All { 5 } else { 100_000 };
    LifeStart {
        epoch,
        previous,
        sealed: None,
        kills: Vec::new(),
        read_log_ms: 0,
        log_damage: None,
        options: Options {
            previous_worker_timeout: Duration::from_secs(patience),
            reconnect_grace: GRACE,
            ..Options::default()
        },
    }
}
