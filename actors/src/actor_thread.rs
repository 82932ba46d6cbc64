//! The thread on which the actors of a process live.

use std::{
    io,
    thread::{self, JoinHandle},
};

use actix::System;
use tokio::runtime::Builder;

/// Runs `work`, and all actors that it starts, on one new thread, until it is done. The actors end
/// with it.
///
/// Before the thread sleeps it lets others run once: what it would be woken for is often about to
/// be said, and waking a thread costs more than looking again. With attempts of no work this is a
/// quarter of the time of a job.
///
/// # Errors
/// When the process may have no more threads or file descriptors.
pub(crate) fn spawn_actor_thread<F: Future<Output = ()>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime =
        Builder::new_current_thread().enable_all().on_thread_park(thread::yield_now).build()?;
    let serve = move || System::with_tokio_rt(|| runtime).block_on(work());
    thread::Builder::new().name("regrow-actors".to_owned()).spawn(serve)
}
