//! Tasks on the thread of the actor, in virtual time.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use actix::Recipient;
use actix_rt::task::JoinHandle;
use regrow_protocol::{ExecutionAttemptId, FinishRecord, Split, TaskDeployment, TaskFailure};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

use super::{
    Equipment, Runner, RunnerEvent, Signal,
    attempt_run::{Advance, AttemptRun},
    tell_end,
};

/// Runs attempts on the thread that starts them: a task that waits hands the thread back. With
/// tokio's paused clock, and one thread for all, each run of a program is the same.
pub struct LockStep {
    equipment: Arc<Equipment>,
    events: Recipient<RunnerEvent>,
    controls: Controls,
}

type Controls = Rc<RefCell<BTreeMap<ExecutionAttemptId, Control>>>;

/// How to reach a running attempt.
struct Control {
    cancelled: Arc<AtomicBool>,
    signals: UnboundedSender<Signal>,
    body: JoinHandle<()>,
}

impl LockStep {
    /// A runner that tells `events`.
    pub fn new(equipment: Arc<Equipment>, events: Recipient<RunnerEvent>) -> Self {
        Self { equipment, events, controls: Controls::default() }
    }
}

impl Runner for LockStep {
    fn start(&mut self, deployment: Box<TaskDeployment>) {
        let attempt = deployment.attempt;
        let cancelled = Arc::new(AtomicBool::new(false));
        let run = AttemptRun::new(Arc::clone(&self.equipment), deployment, Arc::clone(&cancelled));
        let (sender, signals) = unbounded_channel();
        let events = self.events.clone();
        let controls = Rc::clone(&self.controls);
        let body = actix_rt::spawn(async move {
            let ended = drive(run, signals, &events).await;
            controls.borrow_mut().remove(&attempt);
            tell_end(&events, attempt, ended);
        });
        self.controls.borrow_mut().insert(attempt, Control { cancelled, signals: sender, body });
    }

    fn cancel(&mut self, attempt: &ExecutionAttemptId) {
        if let Some(control) = self.controls.borrow().get(attempt) {
            control.cancelled.store(true, Ordering::Release);
            let _ = control.signals.send(Signal::Cancel);
        }
    }

    fn deliver_split(&mut self, attempt: &ExecutionAttemptId, split: Option<Split>) {
        if let Some(control) = self.controls.borrow().get(attempt) {
            // An attempt that ended meanwhile needs no split.
            let _ = control.signals.send(Signal::Split(split));
        }
    }
}

impl Drop for LockStep {
    /// All tasks vanish, as with a killed process.
    fn drop(&mut self) {
        for control in self.controls.borrow().values() {
            control.body.abort();
        }
    }
}

async fn drive(
    mut run: AttemptRun,
    mut signals: UnboundedReceiver<Signal>,
    events: &Recipient<RunnerEvent>,
) -> Result<Arc<FinishRecord>, TaskFailure> {
    loop {
        match run.advance() {
            Advance::Sleep(time) => {
                // Ends early when the attempt is cancelled.
                let _ = timeout(time, signals.recv()).await;
            }
            Advance::AwaitSplit { request } => {
                events.do_send(RunnerEvent::WantsSplit { attempt: run.attempt(), request });
                if let Some(Signal::Split(split)) = signals.recv().await {
                    run.deliver_split(split);
                }
            }
            Advance::Ended(ended) => return ended,
        }
    }
}
