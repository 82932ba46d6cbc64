//! What user functions count, and how a program reads it when the job has ended.

mod accumulator;
mod results;
mod tally;

pub use accumulator::Accumulator;
pub(crate) use results::shown;
pub use results::{Accumulators, ResultError};
pub(crate) use tally::Tally;
