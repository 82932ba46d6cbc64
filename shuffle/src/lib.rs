//! The data plane: partition files, their writers, readers and inventory.
//!
//! Knows partitions and epochs, nothing of jobs or actors.
//!
//! Invariants:
//! - A file under its final name is complete: it was written under another name and renamed.
//! - An attempt is finished iff its finish record can be read, and the record is sealed after all
//!   outputs are. Files without one prove nothing.
//! - A reader gets the bytes that were written, or an error; it never gets other bytes.
//! - Nothing is deleted because its owner is unknown: only a release, and the start of a new life
//!   of a locked directory (which removes what nobody can seal any more), delete.
//! - No call reserves memory for a length that was read from a file before the length is checked
//!   against a named limit and against the size of the file.

mod attempt_bytes;
mod attempt_writer;
mod block_buffer;
mod block_cursor;
mod block_header;
mod chunk_pool;
mod closed_partition;
mod data_directory;
mod directory_lock;
mod disk_error;
mod fetch_error;
mod fields;
mod finish_frame;
mod finish_log;
mod footer;
mod partition_file;
mod partition_reader;
mod partition_writer;
mod remote;
mod run_directory;
mod run_file;
mod run_index;
mod run_inventory;
mod run_remains;
mod segment;
mod segment_copier;
mod span_reader;
mod temporary;
#[cfg(test)]
mod tests;
mod trailer;
mod write_error;

pub use attempt_writer::AttemptWriter;
pub use block_header::BLOCK_BYTES_MAX;
pub use data_directory::{DataDirectory, DirectoryError};
pub use disk_error::DiskError;
pub use fetch_error::FetchError;
pub use finish_frame::FINISH_RECORD_BYTES_MAX;
pub use footer::SUBPARTITIONS_MAX;
pub use partition_reader::PartitionReader;
pub use remote::{PartitionServer, RemoteInput, RemoteReader, RemoteReads, ServerLimits};
pub use run_inventory::{Damage, RunInventory};
pub use run_remains::RunRemains;
pub use write_error::WriteError;
