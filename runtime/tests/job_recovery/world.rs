//! A master, its workers, disks and log, one step at a time in random order.

mod actions;
mod disturbances;
mod listings;
mod oracles;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regrow_protocol::{DataDirectoryId, Epoch, ExecutionAttemptId, ExecutionVertexId, WorkerId};
use regrow_runtime::{
    Input, Job, JobEvent, JobOutcome, JobSubmission, LifeStart, Lsn, Options, PreviousLife, Replay,
    Timestamp,
};

use self::listings::Listings;
use super::{
    contents::Contents,
    graphs,
    rng::Rng,
    workers::{Disks, Kind, Seat, Worker},
};

/// Which faults the world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    /// Masters die, their buffer with them.
    Masters,
    /// The whole process dies; directories stay.
    Processes,
    /// All directories are kept by services. Masters die, and workers with them or alone; services
    /// are followed by others.
    Services,
    /// Workers and partitions vanish, and tasks fail.
    All,
}

const FAULTY_STEPS: usize = 150;
const HEALING_STEPS: usize = 5_000;
const STEP_MS: u64 = 50;
const EVENTS_PER_STEP: usize = 12;

pub(crate) struct World {
    rng: Rng,
    faults: Faults,
    submission: JobSubmission,
    job: Job,
    /// What the events give without the job.
    replay: Replay,
    epoch: Epoch,
    now: Timestamp,
    /// Events on stable storage, and those in the writer's buffer.
    stored: Vec<JobEvent>,
    buffer: VecDeque<JobEvent>,
    acknowledged: Lsn,
    workers: BTreeMap<WorkerId, Worker>,
    disks: Disks,
    contents: Contents,
    granted: BTreeMap<WorkerId, u32>,
    demand: u32,
    avoided: Vec<WorkerId>,
    /// Messages to the master, in order per sender.
    mail: Vec<VecDeque<Input>>,
    outcome: Option<JobOutcome>,
    sealed: BTreeSet<ExecutionVertexId>,
    listings: Listings,
    /// Whom each attempt was sent to.
    dispatched: BTreeMap<ExecutionAttemptId, WorkerId>,
    /// Attempts whose outputs this master was told of.
    heard: BTreeSet<ExecutionAttemptId>,
    /// Those who are gone for the moment.
    away: Vec<Seat>,
    next_id: u128,
    /// Percentage of the disturbances that happen: lives must be long enough to run tasks.
    fault_rate: u64,
    seen: Seen,
}

/// What happened in worlds: a test that never met its fault shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) lives: u32,
    /// Attempts sealed although they had been told to stop.
    pub(crate) late_seals: u32,
    /// Messages that came again, late.
    pub(crate) repeated: u32,
    /// Finishes that only a file or report proved.
    pub(crate) found: u32,
    /// Sources of one listing that a new master kept, being complete, and that it listed again.
    pub(crate) kept_listings: u32,
    pub(crate) void_listings: u32,
    /// Listings that became void because an output was lost.
    pub(crate) lost_listings: u32,
    /// Logs that were gone as a whole.
    pub(crate) lost_logs: u32,
    /// Resets of what a service brought back.
    pub(crate) taken_back: u32,
    /// Writers that were lost alone, and services that others followed.
    pub(crate) lost_writers: u32,
    pub(crate) replaced: u32,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Self) {
        self.lives += other.lives;
        self.late_seals += other.late_seals;
        self.repeated += other.repeated;
        self.found += other.found;
        self.kept_listings += other.kept_listings;
        self.void_listings += other.void_listings;
        self.lost_listings += other.lost_listings;
        self.lost_logs += other.lost_logs;
        self.taken_back += other.taken_back;
        self.lost_writers += other.lost_writers;
        self.replaced += other.replaced;
    }
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed);
        let submission = graphs::submission(&mut rng);
        let epoch = Epoch::new(1, 0);
        let (job, decision) =
            Job::submit(Timestamp(0), submission.clone(), life(epoch, faults, PreviousLife::None));
        let mut world = Self {
            rng,
            faults,
            replay: Replay::new(submission.clone()),
            submission,
            job,
            epoch,
            now: Timestamp(0),
            stored: Vec::new(),
            buffer: VecDeque::new(),
            acknowledged: Lsn(0),
            workers: BTreeMap::new(),
            disks: Disks::new(),
            contents: Contents::default(),
            granted: BTreeMap::new(),
            demand: 0,
            avoided: Vec::new(),
            mail: vec![VecDeque::new(); 8],
            outcome: None,
            sealed: BTreeSet::new(),
            listings: Listings::default(),
            dispatched: BTreeMap::new(),
            heard: BTreeSet::new(),
            away: Vec::new(),
            next_id: 100,
            fault_rate: match seed % 3 {
                0 => 20,
                1 => 50,
                _ => 100,
            },
            seen: Seen::default(),
        };
        world.carry_out(decision);
        for directory in 0..=world.rng.below(3) as u128 {
            world.use_directory(DataDirectoryId::from_bits(directory));
        }
        world
    }

    /// Starts who writes to a directory, and who keeps it.
    fn use_directory(&mut self, data_directory: DataDirectoryId) {
        let start = |world: &mut Self, kind| world.start(Seat { data_directory, kind });
        if self.faults != Faults::Services && self.rng.chance(70) {
            start(self, Kind::Worker);
            return;
        }
        let writers = 1 + self.rng.below(2);
        let place = self.rng.below(writers + 1);
        for index in 0..=writers {
            start(self, if index == place { Kind::Service } else { Kind::Writer });
        }
    }

    /// Disturbs the job for a while, then lets it heal; panics where a promise is broken.
    pub(crate) fn run(mut self) -> Seen {
        for _ in 0..FAULTY_STEPS {
            self.disturb();
            self.step();
        }
        if !self.workers.values().any(|worker| worker.kind == Kind::Worker) {
            // Of the others, those who keep what they write may be away for good.
            let data_directory = DataDirectoryId::from_bits(50);
            self.start(Seat { data_directory, kind: Kind::Worker });
        }
        for _ in 0..HEALING_STEPS {
            if self.outcome.is_some() {
                break;
            }
            self.step();
        }
        let Some(outcome) = self.outcome.clone() else {
            panic!("the job never ends: {:?}", self.job.status());
        };
        self.check_end(&outcome);
        self.seen
    }

    fn start(&mut self, seat: Seat) {
        self.next_id += 1;
        let slots = 1 + u32::try_from(self.rng.below(2)).unwrap();
        let worker = Worker::new(self.next_id, seat, slots);
        self.disks.entry(seat.data_directory).or_default();
        self.post(worker.id, Input::WorkerConnected { worker: worker.id });
        self.workers.insert(worker.id, worker);
    }

    fn post(&mut self, from: WorkerId, input: Input) {
        let lane = usize::try_from(from.bits()).unwrap() % (self.mail.len() - 1);
        self.mail[lane].push_back(input);
    }

    /// Posts what does not come from a worker.
    fn post_local(&mut self, input: Input) {
        self.mail.last_mut().unwrap().push_back(input);
    }

    fn step(&mut self) {
        self.now.0 += STEP_MS;
        for _ in 0..EVENTS_PER_STEP {
            match self.rng.below(20) {
                0 => self.flush(),
                1..=5 => self.work(),
                6 | 7 => self.grant(),
                8 if self.rng.chance(5) => self.feed(Input::SnapshotWanted),
                8 => self.feed(Input::Woken),
                _ => self.deliver(),
            }
        }
    }

    fn deliver(&mut self) {
        let full: Vec<usize> =
            (0..self.mail.len()).filter(|lane| !self.mail[*lane].is_empty()).collect();
        if full.is_empty() {
            return;
        }
        let lane = full[self.rng.below(full.len())];
        let Some(input) = self.mail[lane].pop_front() else { return };
        let said = !matches!(
            input,
            Input::WorkerConnected { .. } | Input::WorkerLost { .. } | Input::WorkerReplaced { .. }
        );
        let from_worker = lane + 1 < self.mail.len();
        if from_worker && said && self.faults != Faults::None && self.rng.chance(3) {
            self.seen.repeated += 1;
            self.mail[lane].push_back(input.clone());
        }
        self.feed(input);
    }

    fn flush(&mut self) {
        self.stored.extend(self.buffer.drain(..));
        self.acknowledged = Lsn(self.stored.len() as u64);
        self.feed(Input::Persisted { upto: self.acknowledged });
    }

    fn work(&mut self) {
        let running: Vec<(WorkerId, ExecutionAttemptId)> = self
            .workers
            .values()
            .flat_map(|worker| worker.running.keys().map(|attempt| (worker.id, *attempt)))
            .collect();
        if running.is_empty() {
            return;
        }
        let (id, attempt) = running[self.rng.below(running.len())];
        let worker = self.workers.get_mut(&id).unwrap();
        let late = worker.running[&attempt].stopping;
        let graph = &self.submission.graph;
        let said = worker.work(attempt, graph, &mut self.disks, &mut self.contents);
        let Some(input) = said else { return };
        if matches!(input, Input::TaskFinished { .. }) {
            if !self.listings.is_void(&attempt) {
                self.sealed.insert(attempt.execution_vertex());
            }
            self.seen.late_seals += u32::from(late);
        }
        self.post(id, input);
    }

    fn grant(&mut self) {
        let total: u32 = self.granted.values().sum();
        let free = |worker: &&Worker| {
            let granted = self.granted.get(&worker.id).copied().unwrap_or(0);
            granted < worker.slots && !self.avoided.contains(&worker.id)
        };
        let Some(worker) = self.workers.values().find(free).map(|worker| worker.id) else { return };
        if total < self.demand {
            *self.granted.entry(worker).or_default() += 1;
            self.post_local(Input::SlotsGranted { worker, count: 1 });
        }
    }

    /// Tells what happens when one seed is run alone.
    #[expect(clippy::print_stderr, reason = "who runs one seed wants to see what happens")]
    pub(super) fn trace(&self, what: &str, value: &impl std::fmt::Debug) {
        if std::env::var_os("REGROW_SEED").is_some() {
            eprintln!("{} {what} {value:?}", self.now.0);
        }
    }

    fn feed(&mut self, input: Input) {
        if self.outcome.is_some() {
            return;
        }
        self.trace("hears", &input);
        self.note_outputs(&input);
        let decision = self.job.handle(self.now, input);
        self.carry_out(decision);
        self.check_replay();
    }
}

fn life(epoch: Epoch, faults: Faults, previous: PreviousLife) -> LifeStart {
    // Where nobody vanishes, whoever is slow is waited for.
    let patience = if faults == Faults::All { 5 } else { 100_000 };
    LifeStart {
        epoch,
        previous,
        sealed: None,
        kills: Vec::new(),
        read_log_ms: 0,
        log_damage: None,
        options: Options {
            previous_worker_timeout: std::time::Duration::from_secs(patience),
            ..Options::default()
        },
    }
}
