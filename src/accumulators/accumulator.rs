//! Accumulators of a program's own type.

use serde::{Serialize, de::DeserializeOwned};

/// A type of values that are accumulated: a histogram, a sketch, a set of the worst offenders. Each
/// task has one, which begins as the default; see
/// [`Emitter::accumulator`](crate::Emitter::accumulator).
///
/// A value is kept beside the task's result, so it survives what the task's result survives, and
/// counts once per task whatever had to run again. It is written by names of fields: new fields with
/// defaults can still read what an older program wrote.
pub trait Accumulator: Default + Serialize + DeserializeOwned + Send + 'static {
    /// Takes the value of a later task in. Values come in the order of the job's vertices and
    /// subtasks.
    fn merge(&mut self, other: &Self);
}
