//! Operators that run within a vertex: from record to record, without an exchange.

mod emitter;
mod filter;
mod flat_map;
mod flat_map_text;
mod indeterminate;
mod map;
mod map_partition;
mod prepare;
mod text_emitter;

pub use emitter::Emitter;
pub use filter::Filter;
pub use flat_map::FlatMap;
pub use flat_map_text::FlatMapText;
pub use indeterminate::Indeterminate;
pub use map::Map;
pub use map_partition::{MapPartition, PartitionFunction};
pub(crate) use prepare::Prepare;
pub use text_emitter::TextEmitter;

#[cfg(test)]
mod tests;
