use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use regrow_runtime::decode_batch;
use regrow_store::MemoryStore;

use super::*;
use crate::{
    hand_over::hand_over,
    simulated::{InlineStore, pass, simulate},
    store_runner::{StoreJob, StoreRunner},
};

const RUN: RunId = RunId::from_bits(1);
const EPOCH: Epoch = Epoch::new(1, 0);

type Heard = Arc<Mutex<Vec<(u64, LogUpdate)>>>;

/// Notes what the writer says, with the virtual time.
struct Listener {
    began: Instant,
    heard: Heard,
}

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<LogUpdate> for Listener {
    type Result = ();

    fn handle(&mut self, update: LogUpdate, _: &mut Self::Context) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap();
        self.heard.lock().unwrap().push((now, update));
    }
}

/// A store whose disk works when the test says so.
#[derive(Clone, Default)]
struct SteppedStore {
    store: MemoryStore,
    jobs: Arc<Mutex<VecDeque<StoreJob>>>,
}

impl SteppedStore {
    fn step(&self) -> bool {
        let job = self.jobs.lock().unwrap().pop_front();
        job.map(|job| job(&mut self.store.clone())).is_some()
    }
}

impl StoreRunner for SteppedStore {
    fn run(&self, job: StoreJob) {
        self.jobs.lock().unwrap().push_back(job);
    }
}

/// A writer and what it said.
struct Scene {
    writer: EventWriterHandle,
    store: MemoryStore,
    heard: Heard,
    upto: u64,
}

impl Scene {
    fn new(options: &Options) -> Self {
        let store = opened();
        Self::on(Arc::new(InlineStore::new(store.clone())), store, options)
    }

    fn on(runner: SharedStore, store: MemoryStore, options: &Options) -> Self {
        let recording = Recording::Stored { store: runner, size: LogSize::default() };
        Self::recording(recording, store, options)
    }

    fn recording(recording: Recording, store: MemoryStore, options: &Options) -> Self {
        let heard = Heard::default();
        let listener = Listener { began: Instant::now(), heard: Arc::clone(&heard) }.start();
        let writer = EventWriter::launch(RUN, EPOCH, recording, options, listener.recipient());
        Self { writer, store, heard, upto: 0 }
    }

    fn append(&mut self, event: JobEvent, flush: Flush) {
        self.upto += 1;
        self.writer.append(Append { events: vec![event], upto: Lsn(self.upto), flush });
    }

    fn heard(&self) -> Vec<(u64, LogUpdate)> {
        self.heard.lock().unwrap().clone()
    }

    fn stored(&self) -> Vec<Vec<JobEvent>> {
        let log = self.store.clone().read_log(RUN).unwrap();
        log.batches.iter().map(|batch| decode_batch(&batch.bytes).unwrap().events).collect()
    }
}

fn opened() -> MemoryStore {
    let store = MemoryStore::new();
    store.clone().open_log(RUN, EPOCH).unwrap();
    store
}

fn event(text: &str) -> JobEvent {
    JobEvent::FailureDecided { error: text.to_owned() }
}

fn snapshot() -> JobEvent {
    JobEvent::Snapshot { state: vec![7; 9] }
}

fn persisted(at_ms: u64, upto: u64) -> (u64, LogUpdate) {
    (at_ms, LogUpdate::Persisted { upto: Lsn(upto) })
}

async fn ms(time: u64) {
    pass(Duration::from_millis(time)).await;
}

#[test]
fn rule_3_1_events_are_stored_an_interval_after_the_first() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.append(event("a"), Flush::Whenever);
        ms(700).await;
        scene.append(event("b"), Flush::Whenever);
        ms(299).await;
        assert_eq!(scene.heard(), []);
        ms(10).await;
        assert_eq!(scene.heard(), [persisted(1000, 2)]);
        assert_eq!(scene.stored(), [[event("a"), event("b")]]);
    });
}

#[test]
fn rule_3_1_a_full_buffer_is_stored_at_once() {
    simulate(async {
        let bytes = event("a").approximate_bytes();
        let options = Options { write_buffer_bytes: 2 * bytes, ..Options::default() };
        let mut scene = Scene::new(&options);
        scene.append(event("a"), Flush::Whenever);
        ms(1).await;
        assert_eq!(scene.heard(), []);
        scene.append(event("b"), Flush::Whenever);
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(1, 2)]);
    });
}

#[test]
fn rule_3_1_events_that_somebody_looks_at_are_stored_within_100_ms() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.append(event("a"), Flush::Whenever);
        ms(10).await;
        scene.append(event("b"), Flush::Soon);
        ms(200).await;
        assert_eq!(scene.heard(), [persisted(110, 2)]);
    });
}

#[test]
fn rule_3_1_events_that_an_action_waits_for_are_stored_at_once() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.append(event("a"), Flush::Whenever);
        scene.append(event("b"), Flush::Now);
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(0, 2)]);
        let hurry = Append { events: Vec::new(), upto: Lsn(3), flush: Flush::Now };
        scene.append(event("c"), Flush::Whenever);
        scene.writer.append(hurry);
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(0, 2), persisted(1, 3)]);
    });
}

#[test]
fn an_interval_of_zero_stores_each_decision_at_once() {
    simulate(async {
        let options = Options { flush_interval: Duration::ZERO, ..Options::default() };
        let mut scene = Scene::new(&options);
        scene.append(event("a"), Flush::Whenever);
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(0, 1)]);
    });
}

#[test]
fn rule_3_1_what_comes_during_a_write_is_one_group_commit() {
    simulate(async {
        let stepped = SteppedStore { store: opened(), ..SteppedStore::default() };
        let store = stepped.store.clone();
        let mut scene = Scene::on(Arc::new(stepped.clone()), store, &Options::default());
        for text in ["a", "b", "c"] {
            scene.append(event(text), Flush::Now);
            ms(1).await;
        }
        assert!(stepped.step() && !stepped.step(), "one write at a time");
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(3, 1)]);
        assert!(stepped.step() && !stepped.step(), "one write for both");
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(3, 1), persisted(4, 3)]);
        assert_eq!(scene.stored(), [vec![event("a")], vec![event("b"), event("c")]]);
    });
}

#[test]
fn rule_3_7_after_a_failed_write_only_a_snapshot_goes_on() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.append(event("before"), Flush::Now);
        ms(1).await;
        scene.store.fail_writes(1);
        scene.append(event("failed"), Flush::Now);
        scene.append(event("lost with it"), Flush::Whenever);
        ms(101).await;
        let heard = scene.heard();
        assert!(matches!(heard[1], (1, LogUpdate::Degraded { .. })), "{heard:?}");
        assert_eq!(heard[2..], [(101, LogUpdate::Reopened)]);
        scene.append(event("on its way when the log came back"), Flush::Now);
        scene.append(snapshot(), Flush::Whenever);
        scene.append(event("after"), Flush::Now);
        ms(1).await;
        let upto: Vec<_> = scene.heard().split_off(3);
        assert_eq!(upto.last(), Some(&persisted(102, 6)));
        assert_eq!(scene.stored().concat(), [snapshot(), event("after")]);
    });
}

#[test]
fn rule_3_7_a_store_that_stays_sick_is_tried_less_and_less_often() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.store.fail_writes(4);
        scene.append(event("failed"), Flush::Now);
        ms(2000).await;
        let heard = scene.heard();
        let times: Vec<u64> = heard.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 100, 300, 700, 1500], "{heard:?}");
        assert_eq!(heard[4].1, LogUpdate::Reopened);
    });
}

#[test]
fn rule_3_10_a_writer_whose_log_has_a_new_owner_stops() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.store.clone().open_log(RUN, EPOCH.next_life()).unwrap();
        scene.append(event("too late"), Flush::Now);
        ms(1).await;
        let heard = scene.heard();
        assert!(matches!(heard[..], [(0, LogUpdate::Fenced { .. })]), "{heard:?}");
        scene.append(event("later still"), Flush::Now);
        ms(5000).await;
        assert_eq!(scene.heard().len(), 1);
        assert!(scene.stored().is_empty());
    });
}

#[test]
fn rule_3_1_the_buffer_dies_with_its_job_master() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.append(event("lost"), Flush::Whenever);
        ms(1).await;
        let Scene { writer, store, .. } = scene;
        drop(writer);
        ms(5000).await;
        assert!(store.clone().read_log(RUN).unwrap().batches.is_empty());
    });
}

#[test]
fn a_writer_that_is_drained_stores_all_and_says_so() {
    simulate(async {
        let stepped = SteppedStore { store: opened(), ..SteppedStore::default() };
        let store = stepped.store.clone();
        let mut scene = Scene::on(Arc::new(stepped.clone()), store, &Options::default());
        scene.append(event("under way"), Flush::Now);
        ms(1).await;
        scene.append(event("waiting"), Flush::Whenever);
        let (part, end) = hand_over();
        scene.writer.drain(part);
        let drained = actix::spawn(end.wait());
        ms(1).await;
        assert!(stepped.step());
        ms(1).await;
        assert!(!drained.is_finished());
        assert!(stepped.step());
        assert!(drained.await.unwrap());
        assert_eq!(scene.stored(), [[event("under way")], [event("waiting")]]);
    });
}

#[test]
fn a_sick_writer_is_drained_at_once() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        scene.store.fail_writes(u64::MAX);
        scene.append(event("lost"), Flush::Whenever);
        let (part, end) = hand_over();
        scene.writer.drain(part);
        let began = Instant::now();
        assert!(end.wait().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}

#[test]
fn without_recovery_all_counts_as_persisted() {
    simulate(async {
        let mut scene = Scene::recording(Recording::Off, opened(), &Options::default());
        scene.append(event("a"), Flush::Whenever);
        ms(1).await;
        assert_eq!(scene.heard(), [persisted(0, 1)]);
        assert!(scene.stored().is_empty());
    });
}

#[test]
fn rule_3_8_what_a_snapshot_covers_is_removed_once_it_is_durable() {
    simulate(async {
        let stepped = SteppedStore { store: opened(), ..SteppedStore::default() };
        let store = stepped.store.clone();
        let mut scene = Scene::on(Arc::new(stepped.clone()), store, &Options::default());
        scene.append(event("stored"), Flush::Whenever);
        scene.append(snapshot(), Flush::Whenever);
        scene.append(event("after"), Flush::Now);
        ms(1).await;
        assert!(stepped.step());
        ms(1).await;
        assert_eq!(scene.stored(), [[event("stored")]]);
        assert!(stepped.step());
        ms(1).await;
        assert_eq!(scene.stored(), [[snapshot(), event("after")]]);
        assert_eq!(scene.heard(), [persisted(1, 1), persisted(2, 3)]);
    });
}

#[test]
fn rule_3_8_a_log_that_outgrew_its_snapshot_asks_for_one() {
    simulate(async {
        let mut scene = Scene::new(&Options::default());
        for _ in 0..3 {
            scene.append(event(&"x".repeat(4 << 20)), Flush::Now);
            ms(1).await;
        }
        let heard = scene.heard();
        let asked = heard.iter().filter(|(_, update)| *update == LogUpdate::Outgrown).count();
        assert_eq!(asked, 1, "{heard:?}");
    });
}
