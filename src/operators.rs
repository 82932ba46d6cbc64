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
pub(crate) use filter::Filter;
pub(crate) use flat_map::FlatMap;
pub(crate) use flat_map_text::FlatMapText;
pub(crate) use indeterminate::Indeterminate;
pub(crate) use map::Map;
pub(crate) use map_partition::MapPartition;
pub use map_partition::PartitionFunction;
pub(crate) use prepare::Prepare;
pub use text_emitter::TextEmitter;

#[cfg(test)]
mod tests;
