//! Runs a scenario of actors in one thread under a virtual clock, for tests.

use actix::{System, clock};
use std::time::Duration;

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
