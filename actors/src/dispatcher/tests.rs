use std::{fs, sync::Mutex, time::Duration};

use regrow_protocol::{
    DataDirectoryId, PartitionKeeper, SubmissionId, ToShuffleService, WorkerDescription,
};
use regrow_runtime::{JobOutcome, JobState, JobSubmission, KillHow, Options, WorkerTimeouts};
use regrow_store::{MemoryStore, Table};
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::{
    job_master::JobMaster,
    launch::RunUpdate,
    runner::RunnerKind,
    simulated::{InlineStore, pass, simulate},
    test_program::program,
    worker::{Sharing, WorkerConfig, WorkerDirectories, spawn_worker},
};

/// How long an end waits for the log.
const GIVES_UP: Duration = Duration::from_secs(20);

/// Lets the `JobMaster` of a run panic as a defect would.
struct Sabotage;

impl Message for Sabotage {
    type Result = ();
}

impl Handler<Sabotage> for JobMaster {
    type Result = ();

    fn handle(&mut self, _: Sabotage, _: &mut Self::Context) {
        panic!("an index is out of bounds");
    }
}

/// Looks into a Dispatcher.
struct Look(Box<dyn FnOnce(&mut Dispatcher) + Send>);

impl Message for Look {
    type Result = ();
}

impl Handler<Look> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Look(look): Look, _: &mut Self::Context) {
        look(self);
    }
}

pub(super) type Heard = Arc<Mutex<Vec<ClientUpdate>>>;

pub(super) struct Client(pub(super) Heard);

impl Actor for Client {
    type Context = Context<Self>;
}

impl Handler<ClientUpdate> for Client {
    type Result = ();

    fn handle(&mut self, update: ClientUpdate, _: &mut Self::Context) {
        self.0.lock().unwrap().push(update);
    }
}

/// A job whose updates are kept.
pub(super) struct Watched {
    pub(super) job: JobId,
    pub(super) run: RunId,
    pub(super) heard: Heard,
}

impl Watched {
    pub(super) fn outcome(&self) -> Option<JobOutcome> {
        let ended = |update: &ClientUpdate| {
            let ClientUpdate::Ended { outcome, .. } = update else { return None };
            Some((**outcome).clone())
        };
        self.heard.lock().unwrap().iter().find_map(ended)
    }

    fn deaths(&self) -> usize {
        let heard = self.heard.lock().unwrap();
        let is_death = |update: &&ClientUpdate| {
            matches!(update, ClientUpdate::Run(RunUpdate::JobMasterLost { .. }))
        };
        heard.iter().filter(is_death).count()
    }

    fn is_abandoned(&self) -> bool {
        let abandoned = |update: &ClientUpdate| matches!(update, ClientUpdate::Abandoned { .. });
        self.heard.lock().unwrap().iter().any(abandoned)
    }

    fn is_closed(&self) -> bool {
        matches!(self.heard.lock().unwrap().last(), Some(ClientUpdate::Closed))
    }

    pub(super) async fn end(&self) -> JobOutcome {
        for _ in 0..10_000 {
            if self.is_closed() {
                return self.outcome().expect("it ended before it was closed");
            }
            pass(Duration::from_millis(10)).await;
        }
        panic!("the job does not end: {:?}", self.heard.lock().unwrap());
    }
}

/// A cluster in one thread, under a virtual clock.
pub(super) struct Cluster {
    pub(super) root: TempDir,
    pub(super) store: MemoryStore,
    pub(super) dispatcher: Addr<Dispatcher>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        let (root, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let dispatcher = dispatcher(&root, &store);
        let cluster = Self { root, store, dispatcher };
        cluster.add_worker(7);
        cluster
    }

    /// Lets another process lead what is stored, without a worker. What it is to be asked before it
    /// knows its jobs can be asked at once.
    pub(super) async fn led_by_another(self) -> Self {
        self.dispatcher.send(HandOver).await.unwrap();
        let Self { root, store, .. } = self;
        let dispatcher = dispatcher(&root, &store);
        dispatcher.do_send(RecoverAll);
        Self { root, store, dispatcher }
    }

    pub(super) fn add_worker(&self, id: u128) {
        let shuffle = self.root.path().join("shuffle");
        let directories = WorkerDirectories::open(&shuffle, &[DataDirectoryId::from_bits(id)]);
        let spawned = spawn_worker(WorkerConfig {
            worker: WorkerId::from_bits(id),
            slots: 8,
            sharing: Sharing::default(),
            timeouts: WorkerTimeouts {
                reconnect_grace: Duration::from_secs(5),
                registration_timeout: None,
            },
            directories: directories.unwrap().remove(0),
            factory: program(),
            runner: RunnerKind::LockStep,
            master: self.dispatcher.clone().recipient(),
            watcher: self.dispatcher.clone().recipient(),
        });
        self.dispatcher.do_send(spawned.unwrap().connected);
    }

    pub(super) fn submit(&self, job: &str, trouble: &str) -> Watched {
        self.submit_to(job, job, trouble)
    }

    pub(super) fn submit_to(&self, output: &str, job: &str, trouble: &str) -> Watched {
        let run = RunId::from_bits(u128::from(crc32c::crc32c(job.as_bytes())));
        let output = self.root.path().join(output);
        let arguments = format!("{}:{trouble}", output.display()).into_bytes();
        let job: JobId = job.parse().unwrap();
        let heard = Heard::default();
        self.dispatcher.do_send(SubmitJob {
            submission: JobSubmission {
                job: job.clone(),
                run,
                submission: SubmissionId::from_bits(1),
                job_name: "numbers".to_owned(),
                graph: program().build("numbers", &arguments).unwrap(),
                arguments,
                ledger: None,
                settings: Vec::new(),
            },
            options: Options { store_unavailable_timeout: GIVES_UP, ..Options::default() },
            kills: Vec::new(),
            client: Client(Arc::clone(&heard)).start().recipient(),
            cancel: false,
            kill: None,
            obstacle: None,
        });
        Watched { job, run, heard }
    }

    /// Lets the `JobMaster` of a run panic, if somebody leads it.
    fn sabotage(&self, watched: &Watched) {
        let run = watched.run;
        self.dispatcher.do_send(Look(Box::new(move |dispatcher| {
            if let Some(Run { life: Life::Led(master), .. }) = dispatcher.runs.get(&run) {
                master.do_send(Sabotage);
            }
        })));
    }

    fn published(&self, watched: &Watched) -> usize {
        fs::read_dir(self.root.path().join(watched.job.as_str())).map_or(0, Iterator::count)
    }
}

fn dispatcher(root: &TempDir, store: &MemoryStore) -> Addr<Dispatcher> {
    Dispatcher::new(DispatcherConfig {
        data_directory: root.path().join("data"),
        store: Arc::new(InlineStore::new(store.clone())),
        factory: program(),
        effects: EffectRunner::Inline,
        resource_manager: ResourceManager::default().start(),
        noted: None,
    })
    .start()
}

#[test]
fn a_panic_in_one_job_master_harms_no_other_job() {
    simulate(async {
        let cluster = Cluster::new();
        let (struck, spared) = (cluster.submit("struck", ""), cluster.submit("spared", ""));
        pass(Duration::from_millis(30)).await;
        cluster.sabotage(&struck);
        let (struck_outcome, spared_outcome) = (struck.end().await, spared.end().await);
        assert_eq!(struck_outcome.state, JobState::Finished, "{struck_outcome:?}");
        assert_eq!((struck_outcome.recoveries, struck.deaths()), (1, 1));
        assert_eq!(spared_outcome.state, JobState::Finished, "{spared_outcome:?}");
        assert_eq!((spared_outcome.recoveries, spared.deaths()), (0, 0));
        assert_eq!((cluster.published(&struck), cluster.published(&spared)), (2, 2));
    });
}

#[test]
fn rule_5_14_three_panics_in_a_row_fail_the_job_with_their_text() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("cursed", "forever");
        for life in 1..=3 {
            pass(Duration::from_millis(300)).await;
            cluster.sabotage(&watched);
            pass(Duration::from_millis(1)).await;
            assert_eq!(watched.deaths(), life);
        }
        let outcome = watched.end().await;
        assert_eq!(outcome.state, JobState::Failed);
        let error = outcome.error.unwrap();
        assert!(error.contains("an index is out of bounds"), "{error}");
        assert_eq!(cluster.published(&watched), 0);
    });
}

#[test]
fn rule_5_14_planned_kills_never_fail_a_job() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("killed", "");
        for _ in 0..5 {
            let how = KillHow::Panic;
            cluster.dispatcher.do_send(KillRun { job: watched.job.clone(), how });
            pass(Duration::from_millis(2)).await;
        }
        let outcome = watched.end().await;
        assert_eq!(outcome.state, JobState::Finished, "{outcome:?}");
        assert!(outcome.recoveries >= 2, "{outcome:?}");
    });
}

#[test]
fn rule_3_9_nothing_of_an_ended_run_stays_but_its_result_and_archive() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("ended", "");
        watched.end().await;
        let mut store = cluster.store.clone();
        assert!(store.runs().unwrap().is_empty());
        assert!(store.keys(Table::JobGraphs).unwrap().is_empty());
        assert_eq!(store.keys(Table::Results).unwrap(), ["ended"]);
        let archive = Archive::new(&cluster.root.path().join("data"));
        assert_eq!(archive.jobs().unwrap(), [watched.job]);
    });
}

#[test]
fn rule_3_7_a_log_that_heals_costs_nothing_but_time() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("healed", "");
        pass(Duration::from_millis(30)).await;
        cluster.store.fail_writes(5);
        let outcome = watched.end().await;
        assert_eq!((outcome.state, outcome.recoveries), (JobState::Finished, 0), "{outcome:?}");
        let heard = watched.heard.lock().unwrap();
        let degraded = heard.iter().any(|update| {
            matches!(update, ClientUpdate::Run(RunUpdate::Status(status)) if status.degraded.is_some())
        });
        assert!(degraded, "lost protection is visible");
    });
}

#[test]
fn rule_3_10_a_log_whose_opening_failed_is_opened_under_a_higher_epoch() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("doubtful", "");
        pass(Duration::from_millis(30)).await;
        // The claim of the next life is stored, and nobody is told so.
        cluster.store.fail_syncs(1);
        let how = KillHow::Stop;
        cluster.dispatcher.do_send(KillRun { job: watched.job.clone(), how });
        let outcome = watched.end().await;
        assert_eq!((outcome.state, outcome.recoveries), (JobState::Finished, 1), "{outcome:?}");
    });
}

#[test]
fn fault_26_a_dispatcher_that_hands_over_decides_nothing_more() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("handed", "forever");
        pass(Duration::from_millis(30)).await;
        cluster.dispatcher.send(HandOver).await.unwrap();
        cluster.dispatcher.do_send(CancelRun::of(watched.job.clone()));
        let late = cluster.submit("late", "");
        pass(Duration::from_mins(1)).await;
        assert!(watched.outcome().is_none() && late.heard.lock().unwrap().is_empty());
        assert_eq!(watched.deaths(), 0);
        assert_eq!(cluster.store.clone().keys(Table::JobGraphs).unwrap(), ["handed"]);
    });
}

#[test]
fn rule_3_7_an_end_that_waits_for_a_log_that_never_heals_gives_up_in_time() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("sick", "");
        pass(Duration::from_millis(30)).await;
        cluster.store.fail_writes(u64::MAX);
        cluster.dispatcher.do_send(CancelRun::of(watched.job.clone()));
        let began = Instant::now();
        while !watched.is_abandoned() {
            pass(Duration::from_secs(1)).await;
            assert!(began.elapsed() < 2 * GIVES_UP, "it gives up");
        }
        assert!(began.elapsed() >= GIVES_UP, "it gives the log its time");
        assert!(watched.outcome().is_none());
        let output = cluster.root.path().join("sick");
        let published = fs::read_dir(output).unwrap().flatten();
        assert!(published.into_iter().all(|entry| entry.path().is_dir()), "nothing but the hidden");
    });
}

#[test]
fn rule_p3_a_run_that_another_process_leads_is_let_go() {
    simulate(async {
        let cluster = Cluster::new();
        let watched = cluster.submit("taken", "");
        pass(Duration::from_millis(30)).await;
        cluster.store.clone().open_log(watched.run, Epoch::new(9, 0)).unwrap();
        while !watched.is_abandoned() {
            pass(Duration::from_millis(10)).await;
        }
        assert!(watched.outcome().is_none());
    });
}

/// A worker that keeps what it hears.
struct FakeWorker(Arc<Mutex<Vec<Envelope<ToTaskExecutor>>>>);

impl Actor for FakeWorker {
    type Context = Context<Self>;
}

impl Handler<Post<ToTaskExecutor>> for FakeWorker {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToTaskExecutor>, _: &mut Self::Context) {
        self.0.lock().unwrap().push(envelope);
    }
}

impl Handler<Post<ToShuffleService>> for FakeWorker {
    type Result = ();

    fn handle(&mut self, _: Post<ToShuffleService>, _: &mut Self::Context) {}
}

#[test]
fn rule_4_6_an_inventory_is_answered_by_the_standing_of_its_run() {
    simulate(async {
        let cluster = Cluster::new();
        let ended = cluster.submit("ended", "");
        ended.end().await;
        let heard = Arc::default();
        let fake = FakeWorker(Arc::clone(&heard)).start();
        let worker = WorkerDescription {
            worker: WorkerId::from_bits(99),
            data_directory: DataDirectoryId::from_bits(99),
            slots: 1,
            shuffle_address: None,
            keeper: PartitionKeeper::Worker,
        };
        cluster.dispatcher.do_send(WorkerConnected {
            worker,
            task_executor: fake.clone().recipient(),
            shuffle_service: fake.recipient(),
        });
        // One that has seen a run of this leader and none of the others: it would refuse older terms.
        for run in [RunId::from_bits(12_345), ended.run] {
            let message = ToJobMaster::RunHeld { worker: worker.worker };
            cluster.dispatcher.do_send(Post(Envelope { run, epoch: Epoch::default(), message }));
        }
        pass(Duration::from_millis(1)).await;
        let heard = heard.lock().unwrap();
        let answers: Vec<_> = heard.iter().map(|it| it.message.clone()).collect();
        let standings = [RunStanding::Unknown, RunStanding::Ended];
        assert_eq!(answers, standings.map(|standing| ToTaskExecutor::RunEnded { standing }));
        assert_eq!(heard[1].epoch, Epoch::new(1, 0));
    });
}
