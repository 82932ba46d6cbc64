//! One suite for all stores: the contract, and what the disk and the kernel may do to it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod contract;
mod damage;
mod disk_full;
mod fixture;
mod kill;
