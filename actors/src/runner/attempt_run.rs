//! One attempt from its start to its seal, step by step; the runners differ in how they wait.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use regrow_protocol::{ExecutionAttemptId, FinishRecord, Split, TaskDeployment, TaskFailure};
use regrow_runtime::with_causes;
use tokio::time::Instant;
use tracing::warn;

use super::Equipment;
use crate::{
    ledger::{Ledger, LedgerError, LedgerMark},
    output::check_seen,
    task::{Step, Task, TaskContext},
    task_context::{AttemptContext, Wait},
    user_code::guarded,
};

/// One attempt on its way.
pub(super) struct AttemptRun {
    attempt: ExecutionAttemptId,
    equipment: Arc<Equipment>,
    cancelled: Arc<AtomicBool>,
    started: Instant,
    ledger: Option<Ledger>,
    stage: Stage,
}

enum Stage {
    Submitted(Box<TaskDeployment>),
    Running { task: Box<dyn Task>, context: Box<AttemptContext>, awaits_split: bool },
    Over,
}

/// Why an attempt handed its thread back.
pub(super) enum Advance {
    /// Go on after this time, or as soon as it is cancelled.
    Sleep(Duration),
    /// Go on when a split was delivered, or as soon as it is cancelled.
    AwaitSplit {
        /// Number of the request, from 0.
        request: u64,
    },
    /// It is sealed, or nothing of it is left.
    Ended(Result<Arc<FinishRecord>, TaskFailure>),
}

impl AttemptRun {
    /// An attempt that has not begun.
    pub(super) fn new(
        equipment: Arc<Equipment>,
        deployment: Box<TaskDeployment>,
        cancelled: Arc<AtomicBool>,
    ) -> Self {
        let attempt = deployment.attempt;
        let stage = Stage::Submitted(deployment);
        Self { attempt, equipment, cancelled, started: Instant::now(), ledger: None, stage }
    }

    pub(super) fn attempt(&self) -> ExecutionAttemptId {
        self.attempt
    }

    /// Hands over the split that the attempt waits for.
    pub(super) fn deliver_split(&mut self, split: Option<Split>) {
        if let Stage::Running { context, awaits_split, .. } = &mut self.stage {
            *awaits_split = false;
            context.deliver_split(split);
        }
    }

    /// Works until the attempt must wait or ended.
    pub(super) fn advance(&mut self) -> Advance {
        let ended = match guarded(|| self.work()) {
            Ok(Worked::Sealed(record)) => Ok(record),
            Ok(Worked::Waits(wait)) => return wait,
            Err(failure) => Err(self.equipment.placed(failure)),
        };
        // What a task holds is user code, too: its first failure is told, not one while cleaning up.
        let stage = mem::replace(&mut self.stage, Stage::Over);
        let _ = guarded(|| {
            drop(stage);
            Ok(())
        });
        self.note_end(&ended);
        Advance::Ended(ended)
    }

    fn work(&mut self) -> Result<Worked, TaskFailure> {
        self.begin()?;
        loop {
            let Stage::Running { task, context, awaits_split } = &mut self.stage else {
                return Err(TaskFailure::Cancelled);
            };
            let cancelled = self.cancelled.load(Ordering::Acquire);
            if cancelled && *awaits_split {
                return Err(TaskFailure::Cancelled);
            }
            let step = task.run(&mut **context);
            if cancelled {
                // It had its chance to end by itself.
                return Err(TaskFailure::Cancelled);
            }
            match step? {
                Step::Finished => return self.seal().map(Worked::Sealed),
                Step::Sleep(time) => return Ok(Worked::Waits(Advance::Sleep(time))),
                Step::AwaitSplit => match context.await_split()? {
                    Wait::Ready => {}
                    Wait::Request(request) => {
                        *awaits_split = true;
                        return Ok(Worked::Waits(Advance::AwaitSplit { request }));
                    }
                },
            }
        }
    }

    /// Makes the task, unless that is done: first the line in the ledger, then user code.
    fn begin(&mut self) -> Result<(), TaskFailure> {
        let Stage::Submitted(_) = &self.stage else { return Ok(()) };
        if self.cancelled.load(Ordering::Acquire) {
            return Err(TaskFailure::Cancelled);
        }
        let stage = mem::replace(&mut self.stage, Stage::Over);
        let Stage::Submitted(deployment) = stage else { return Ok(()) };
        if let Some(path) = &deployment.ledger {
            let failure = |error: LedgerError| TaskFailure::task(with_causes(&error));
            let ledger = self.equipment.ledgers.get(path).map_err(failure)?;
            ledger.mark(&self.attempt, LedgerMark::Start).map_err(failure)?;
            self.ledger = Some(ledger);
        }
        check_seen(self.attempt.run, &deployment.sinks)?;
        let (directory, remote) = (&self.equipment.directory, self.equipment.remote.clone());
        let cancelled = Arc::clone(&self.cancelled);
        let context = AttemptContext::open(deployment, directory, remote, cancelled)?;
        let task = self.equipment.factory.create(context.deployment())?;
        let context = Box::new(context);
        self.stage = Stage::Running { task, context, awaits_split: false };
        Ok(())
    }

    /// The point of no return: a cancel before it cancels, a cancel after it finds a finish.
    fn seal(&mut self) -> Result<Arc<FinishRecord>, TaskFailure> {
        let Stage::Running { task, context, .. } = mem::replace(&mut self.stage, Stage::Over)
        else {
            return Err(TaskFailure::Cancelled);
        };
        drop(task);
        if self.cancelled.load(Ordering::Acquire) {
            return Err(TaskFailure::Cancelled);
        }
        context.seal(self.started).map(Arc::new)
    }

    fn note_end(&self, ended: &Result<Arc<FinishRecord>, TaskFailure>) {
        let Some(ledger) = &self.ledger else { return };
        let mark = match ended {
            Ok(_) => LedgerMark::End,
            Err(TaskFailure::Cancelled) => LedgerMark::Cancelled,
            Err(
                TaskFailure::Task { .. }
                | TaskFailure::Panicked { .. }
                | TaskFailure::Unrecoverable { .. }
                | TaskFailure::InputLost { .. }
                | TaskFailure::InputUnreachable { .. },
            ) => LedgerMark::Failed,
        };
        if let Err(error) = ledger.mark(&self.attempt, mark) {
            // What is sealed stays finished, whatever the ledger says.
            warn!(attempt = %self.attempt, error = with_causes(&error), "ledger line lost");
        }
    }
}

/// How far one call got.
enum Worked {
    Waits(Advance),
    Sealed(Arc<FinishRecord>),
}
