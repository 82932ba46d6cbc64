//! Runs a scenario of actors in one thread under a virtual clock, for tests.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use actix::{System, clock};
use regrow_store::EventStore;

use crate::store_runner::{StoreJob, StoreRunner};

/// Runs `scenario`; its hours pass in no time.
pub(crate) fn simulate<F: Future>(scenario: F) -> F::Output {
    let paused = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a paused runtime")
    };
    System::with_tokio_rt(paused).block_on(scenario)
}

/// Lets this much virtual time pass, and all that happens in it happen.
pub(crate) async fn pass(time: Duration) {
    clock::sleep(time).await;
}

/// A store that works at once, on the caller's thread.
pub(crate) struct InlineStore(Mutex<Box<dyn EventStore>>);

impl InlineStore {
    /// Works on `store`.
    pub(crate) fn new(store: impl EventStore + 'static) -> Self {
        Self(Mutex::new(Box::new(store)))
    }
}

impl StoreRunner for InlineStore {
    fn run(&self, job: StoreJob) {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        job(&mut **store);
    }
}
