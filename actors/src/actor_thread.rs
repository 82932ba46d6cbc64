//! The thread on which the actors of a process live.

use std::{
    cell::Cell,
    io,
    sync::atomic::{AtomicU64, Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};

use actix::System;
use tokio::{runtime::Builder, time::Instant};

/// How long the actors' thread and that of a slot look for what the other says next, and let others
/// run meanwhile, before they sleep: to wake a thread takes longer than an attempt of little work.
pub(crate) const LOOK_BEFORE_SLEEP: Duration = Duration::from_micros(200);

/// How often slots have told actors something.
static TOLD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What this thread has seen of [`TOLD`], and until when it looks for more.
    static SEEN: Cell<(u64, Option<Instant>)> = const { Cell::new((0, None)) };
}

/// Says that a slot has told an actor something, and that more is soon to come.
pub(crate) fn note_told() {
    TOLD.fetch_add(1, Ordering::Relaxed);
}

/// Runs `work`, and all actors that it starts, on one new thread, until it is done. The actors end
/// with it.
///
/// # Errors
/// When the process may have no more threads or file descriptors.
pub(crate) fn spawn_actor_thread<F: Future<Output = ()>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime =
        Builder::new_current_thread().enable_all().on_thread_park(look_before_sleep).build()?;
    let serve = move || System::with_tokio_rt(|| runtime).block_on(work());
    thread::Builder::new().name("regrow-actors".to_owned()).spawn(serve)
}

/// Lets others run, once or for as long as a slot has told something lately, until it says more.
fn look_before_sleep() {
    let (seen, until) = SEEN.get();
    loop {
        let told = TOLD.load(Ordering::Relaxed);
        if told != seen {
            SEEN.set((told, Some(Instant::now() + LOOK_BEFORE_SLEEP)));
            return;
        }
        thread::yield_now();
        if until.is_none_or(|until| Instant::now() >= until) {
            return;
        }
    }
}
