//! Partitions over TCP: a server of the partitions of one process, and readers of it.
//!
//! What is said stands in [`regrow_protocol::ToPartitionServer`]. Blocks go from file to socket as
//! they lie there; whoever reads them verifies them, so no copy on the way needs to be trusted.
//!
//! Invariants:
//! - The server opens only partition files of its own data directories, whose names it makes of
//!   numbers.
//! - A connection has at most its credit under way, and the server one buffer of 128 KiB for it
//!   beside the index entries of the partition that it sends, however slow its reader is.
//! - A reader gives each block once, in order, however often its connection breaks.
//! - Not reaching a server says nothing of its partitions.

mod connection;
mod frames;
mod outage;
mod outbox;
mod partition_server;
mod patient_stream;
mod remote_reader;
mod serving;
mod trouble;

pub use partition_server::{PartitionServer, ServerLimits};
pub use remote_reader::{RemoteInput, RemoteReader, RemoteReads};
