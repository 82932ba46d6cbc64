//! Aggregation by key: each producer combines what it sees, the consumers combine the rest.

mod combine;
mod counted_input;
mod key_counter;
mod sorted_counts;

pub(crate) use combine::Combine;
pub use counted_input::CountedInput;
