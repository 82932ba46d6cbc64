//! Cancels a local run from another thread.

use std::sync::{Arc, Mutex, PoisonError};

use actix::Recipient;
use regrow_protocol::JobId;

use crate::dispatcher::CancelRun;

/// Cancels a local run. Clones cancel the same one; it works before, during and after the run.
#[derive(Clone, Default)]
pub struct CancelHandle(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    /// Not asked for, and nobody runs.
    #[default]
    Waiting,
    /// Asked for before anybody ran.
    Asked,
    /// Somebody runs.
    Running(JobId, Recipient<CancelRun>),
}

impl CancelHandle {
    /// Asks the run to end. What that comes to is told as
    /// [`RunUpdate::CancelAnswered`](super::RunUpdate::CancelAnswered).
    pub fn cancel(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Waiting => *state = State::Asked,
            State::Asked => {}
            State::Running(job, dispatcher) => dispatcher.do_send(CancelRun::of(job.clone())),
        }
    }

    /// From here on a cancel goes to `dispatcher`; says whether it was asked for before.
    pub(super) fn attach(&self, job: JobId, dispatcher: Recipient<CancelRun>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = matches!(*state, State::Asked);
        *state = State::Running(job, dispatcher);
        asked
    }
}
