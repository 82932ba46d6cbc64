//! The event store: opaque batches per run, durable when appended, fenced by epochs.
//!
//! Invariants:
//! - What an append acknowledged is on stable storage, and a later read returns it or reports the
//!   position of a damage; it is never silently absent.
//! - After a higher epoch of a run was opened, an append of a lower one fails and changes nothing.
//! - After a failed write or sync a handle is poisoned until it is reopened.
//! - No byte that was read is believed before its checksum.

mod document;
mod durable;
mod error;
mod event_store;
mod fence;
mod file_store;
mod frame;
mod home;
mod log_assembler;
mod memory_store;
mod open_existing;
mod sled_store;
mod verify;

pub use document::{DOCUMENT_BYTES_MAX, KEY_BYTES_MAX};
pub use error::StoreError;
pub use event_store::{
    BatchPosition, EventStore, Log, LogBatch, LogDamage, LogPart, LogPlace, Table,
};
pub use file_store::{FileStore, SEGMENT_BYTES_MAX};
pub use frame::BATCH_BYTES_MAX;
pub use memory_store::MemoryStore;
pub use open_existing::open_existing;
pub use sled_store::SledStore;
pub use verify::{RunReport, verify};
