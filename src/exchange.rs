//! How records go from vertex to vertex: written by key or one after the other, read back whole.

mod forward;
mod partition_writer;
mod read_input;
mod record_input;

pub(crate) use forward::Forward;
pub(crate) use partition_writer::PartitionWriter;
pub(crate) use read_input::read_input;
pub(crate) use record_input::RecordInput;
