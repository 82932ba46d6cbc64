//! One thread per slot for user code.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use actix::Recipient;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};
use regrow_protocol::{ExecutionAttemptId, FinishRecord, Split, TaskDeployment, TaskFailure};
use tokio::time::Instant;
use tracing::warn;

use super::{
    Equipment, Runner, RunnerEvent, Signal,
    attempt_run::{Advance, AttemptRun},
    tell_end,
};
use crate::actor_thread::{LOOK_BEFORE_SLEEP, note_told};

/// How long the end of a process waits for user code that does not look at its cancel flag.
const USER_CODE_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs attempts on long-lived threads, one per slot, each started when it is first needed. They
/// end when the runner is dropped and their task returned.
pub struct SlotThreads {
    jobs: Sender<Job>,
    pool: Pool,
    threads: u32,
    slots: u32,
    ended: ThreadsEnded,
}

/// Tells when all threads of a runner have ended.
#[derive(Clone, Debug)]
pub struct ThreadsEnded(Receiver<Infallible>);

/// What the threads share.
#[derive(Clone)]
struct Pool {
    equipment: Arc<Equipment>,
    events: Recipient<RunnerEvent>,
    queue: Receiver<Job>,
    controls: Arc<Mutex<BTreeMap<ExecutionAttemptId, Control>>>,
    /// Held by each thread; the channel closes with the last of them.
    _alive: Sender<Infallible>,
}

/// How to reach a running attempt.
struct Control {
    cancelled: Arc<AtomicBool>,
    signals: Sender<Signal>,
}

struct Job {
    run: AttemptRun,
    signals: Receiver<Signal>,
}

impl SlotThreads {
    /// A runner for `slots` attempts at a time that tells `events`.
    pub fn new(equipment: Arc<Equipment>, slots: u32, events: Recipient<RunnerEvent>) -> Self {
        let (jobs, queue) = unbounded();
        let (alive, ended) = bounded(0);
        let controls = Arc::default();
        let pool = Pool { equipment, events, queue, controls, _alive: alive };
        Self { jobs, pool, threads: 0, slots, ended: ThreadsEnded(ended) }
    }

    /// To wait for the end of all threads, once the runner is dropped.
    pub fn ended(&self) -> ThreadsEnded {
        self.ended.clone()
    }

    /// Starts a thread if all there are may be busy; an error if there is none at all.
    fn ensure_thread(&mut self, running: usize) -> Result<(), TaskFailure> {
        let idle = usize::try_from(self.threads).is_ok_and(|threads| running < threads);
        if idle || self.threads >= self.slots {
            return Ok(());
        }
        let pool = self.pool.clone();
        let name = format!("slot-{}", self.threads);
        let started = thread::Builder::new().name(name).spawn(move || pool.work());
        match started {
            Ok(_) => self.threads += 1,
            Err(error) => {
                return Err(TaskFailure::task(format!(
                    "cannot start a thread for the task: {error}; allow more threads to this user \
                     or give the worker fewer slots"
                )));
            }
        }
        Ok(())
    }
}

impl Runner for SlotThreads {
    fn start(&mut self, deployment: Box<TaskDeployment>) {
        let attempt = deployment.attempt;
        let running = self.pool.controls().len();
        if let Err(failure) = self.ensure_thread(running) {
            tell_end(&self.pool.events, attempt, Err(failure));
            return;
        }
        let (sender, signals) = unbounded();
        let cancelled = Arc::new(AtomicBool::new(false));
        let equipment = Arc::clone(&self.pool.equipment);
        let run = AttemptRun::new(equipment, deployment, Arc::clone(&cancelled));
        self.pool.controls().insert(attempt, Control { cancelled, signals: sender });
        // The pool holds a receiver, so that the channel is open.
        let _ = self.jobs.send(Job { run, signals });
    }

    fn cancel(&mut self, attempt: &ExecutionAttemptId) {
        if let Some(control) = self.pool.controls().get(attempt) {
            control.cancel();
        }
    }

    fn deliver_split(&mut self, attempt: &ExecutionAttemptId, split: Option<Split>) {
        if let Some(control) = self.pool.controls().get(attempt) {
            // An attempt that ended meanwhile needs no split.
            let _ = control.signals.send(Signal::Split(split));
        }
    }
}

impl Drop for SlotThreads {
    fn drop(&mut self) {
        for control in self.pool.controls().values() {
            control.cancel();
        }
    }
}

impl Control {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        let _ = self.signals.send(Signal::Cancel);
    }
}

impl Pool {
    fn controls(&self) -> MutexGuard<'_, BTreeMap<ExecutionAttemptId, Control>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a thread: it ends when the runner is gone and nothing is left in the queue.
    fn work(self) {
        while let Some(Job { run, signals }) = self.next_job() {
            let attempt = run.attempt();
            let ended = self.drive(run, &signals);
            self.controls().remove(&attempt);
            tell_end(&self.events, attempt, ended);
            note_told();
        }
    }

    /// Waits for a job, awake at first; none when the runner is gone and the queue is empty.
    fn next_job(&self) -> Option<Job> {
        let until = Instant::now() + LOOK_BEFORE_SLEEP;
        loop {
            match self.queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if Instant::now() < until => thread::yield_now(),
                Err(TryRecvError::Empty) => break,
            }
        }
        self.queue.recv().ok()
    }

    fn drive(
        &self,
        mut run: AttemptRun,
        signals: &Receiver<Signal>,
    ) -> Result<Arc<FinishRecord>, TaskFailure> {
        loop {
            match run.advance() {
                Advance::Sleep(time) => sleep(time, signals),
                Advance::AwaitSplit { request } => self.await_split(&mut run, request, signals),
                Advance::Ended(ended) => return ended,
            }
        }
    }

    /// Asks for a split and waits for it, or until the attempt is cancelled or its runner is gone.
    fn await_split(&self, run: &mut AttemptRun, request: u64, signals: &Receiver<Signal>) {
        self.events.do_send(RunnerEvent::WantsSplit { attempt: run.attempt(), request });
        note_told();
        if let Ok(Signal::Split(split)) = signals.recv() {
            run.deliver_split(split);
        }
    }
}

/// Waits for a time, or until the attempt is cancelled or its runner is gone.
fn sleep(time: Duration, signals: &Receiver<Signal>) {
    match signals.recv_timeout(time) {
        Ok(Signal::Cancel | Signal::Split(_))
        | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
}

impl ThreadsEnded {
    /// Waits until all threads have ended, at most for `timeout`; says whether they have. Not for
    /// the thread of an actor.
    pub fn wait(&self, timeout: Duration) -> bool {
        matches!(self.0.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected))
    }

    /// Waits for user code at the end of a process, and leaves behind what does not look at its
    /// cancel flag.
    pub(crate) fn wait_at_end(&self) {
        if !self.wait(USER_CODE_END_TIMEOUT) {
            warn!("a task does not look at its cancel flag; it is left behind");
        }
    }
}
