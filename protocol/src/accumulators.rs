//! Counters that tasks keep and that a job adds up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One accumulated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accumulator {
    /// The sum over all tasks; saturates.
    Sum(i64),
    /// The least value of all tasks.
    Min(i64),
    /// The greatest value of all tasks.
    Max(i64),
}

/// Accumulators by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accumulators(BTreeMap<String, Accumulator>);

impl Accumulator {
    /// What was accumulated.
    pub const fn value(self) -> i64 {
        match self {
            Self::Sum(value) | Self::Min(value) | Self::Max(value) => value,
        }
    }

    /// Folds `other` in; one of another kind replaces the value, since the last writer named it.
    fn merge(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::Sum(a), Self::Sum(b)) => Self::Sum(a.saturating_add(b)),
            (Self::Min(a), Self::Min(b)) => Self::Min(a.min(b)),
            (Self::Max(a), Self::Max(b)) => Self::Max(a.max(b)),
            (_, other) => other,
        };
    }
}

impl Accumulators {
    /// Adds `value` to what stands under `name`.
    pub fn add(&mut self, name: &str, value: Accumulator) {
        match self.0.get_mut(name) {
            Some(present) => present.merge(value),
            None => {
                self.0.insert(name.to_owned(), value);
            }
        }
    }

    /// Folds all of `other` in.
    pub fn merge(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.add(name, *value);
        }
    }

    /// What stands under `name`.
    pub fn get(&self, name: &str) -> Option<Accumulator> {
        self.0.get(name).copied()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Accumulator)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_sums_and_keeps_extremes() {
        let mut total = Accumulators::default();
        for value in [3, 5] {
            let mut task = Accumulators::default();
            task.add("lines", Accumulator::Sum(value));
            task.add("longest", Accumulator::Max(value));
            total.merge(&task);
        }
        assert_eq!(total.get("lines"), Some(Accumulator::Sum(8)));
        assert_eq!(total.get("longest"), Some(Accumulator::Max(5)));
    }
}
