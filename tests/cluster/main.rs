//! A cluster of processes, as its users run it. One target holds all of its tests, so that they are
//! linked once and those that wait do so together.

#[expect(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a helper of tests, which share it"
)]
#[path = "../support/sandbox.rs"]
mod sandbox;

#[expect(clippy::expect_used, reason = "a helper of tests")]
mod proxy;
#[expect(clippy::expect_used, reason = "a helper of tests")]
mod roles;
mod storm;

mod client;
mod kills;
mod lost_directory;
mod network;
mod reads;
mod runs;
mod service;
mod stop;
mod strangers;
mod usage;
mod waits;
