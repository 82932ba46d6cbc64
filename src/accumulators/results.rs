//! What a job accumulated and collected, as its program reads it.

use std::any::type_name;

use regrow_protocol::{
    Accumulator as Value, AccumulatorKind, Accumulators as Values, CollectedRecords, decode,
};
use regrow_runtime::with_causes;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

use super::Accumulator;
use crate::record::Record;

/// What a job accumulated: a fold over its tasks, each counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accumulators(Values);

/// What a job left under a name cannot be read as asked.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ResultError {
    /// Nothing was collected under the name.
    #[error("the job collected nothing as {name:?}; it collected: {present}")]
    NotCollected {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        present: String,
    },
    /// It was made as another type, or by another version of it.
    #[error("{name:?} cannot be read as {read_as}: {reason}")]
    OtherType {
        /// Its name.
        name: String,
        /// The type that was asked for.
        read_as: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl Accumulators {
    pub(crate) fn new(values: Values) -> Self {
        Self(values)
    }

    /// The sum of what was added as `name`; none if nothing was.
    pub fn sum(&self, name: &str) -> Option<i64> {
        self.number(name, AccumulatorKind::Sum)
    }

    /// The greatest value of `name`; none if there was no value.
    pub fn max(&self, name: &str) -> Option<i64> {
        self.number(name, AccumulatorKind::Max)
    }

    /// The least value of `name`; none if there was no value.
    pub fn min(&self, name: &str) -> Option<i64> {
        self.number(name, AccumulatorKind::Min)
    }

    /// All sums, extremes and values of other types, by name, for people.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().filter_map(|(name, value)| Some((name, shown(value)?)))
    }

    /// The merged value of `name`, which is of type `T`; the default if no task made one.
    ///
    /// # Errors
    /// When a task's value is none of type `T`.
    pub fn custom<T: Accumulator>(&self, name: &str) -> Result<T, ResultError> {
        let mut merged = T::default();
        if let Some(Value::Custom(values)) = self.0.find(name, AccumulatorKind::Custom) {
            for value in values {
                let value = decode::<T>(&value.0)
                    .map_err(|error| other_type::<T>(name, with_causes(&error)))?;
                merged.merge(&value);
            }
        }
        Ok(merged)
    }

    /// The records that were collected as `name`, in the order of the data set; those of a data set
    /// of texts are read as `String`.
    ///
    /// # Errors
    /// When nothing was collected as `name`, or records of another type.
    pub(crate) fn collected<T>(&self, name: &str) -> Result<Vec<T>, ResultError>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let found = self.0.find(name, AccumulatorKind::Collected);
        let Some(Value::Collected(collected)) = found else {
            return Err(ResultError::NotCollected {
                name: name.to_owned(),
                present: self.names_of_collected(),
            });
        };
        read_all(name, collected)
    }

    fn number(&self, name: &str, kind: AccumulatorKind) -> Option<i64> {
        match self.0.find(name, kind)? {
            Value::Sum(number) | Value::Min(number) | Value::Max(number) => Some(*number),
            Value::Custom(_) | Value::Collected(_) => None,
        }
    }

    fn names_of_collected(&self) -> String {
        let collected =
            self.0.iter().filter(|(_, value)| value.kind() == AccumulatorKind::Collected);
        let names: Vec<&str> = collected.map(|(name, _)| name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

/// A value for people; none for what was collected.
pub(crate) fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Sum(number) | Value::Min(number) | Value::Max(number) => Some(number.to_string()),
        Value::Custom(values) => {
            let bytes: usize = values.iter().map(|value| value.0.len()).sum();
            Some(format!("{} values of the program's own type, {bytes} bytes", values.len()))
        }
        Value::Collected(_) => None,
    }
}

fn read_all<T>(name: &str, collected: &CollectedRecords) -> Result<Vec<T>, ResultError>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    if collected.record_type != type_name::<T>() {
        let reason = format!("it holds records of type {}", collected.record_type);
        return Err(other_type::<T>(name, reason));
    }
    let mut rest = collected.bytes.0.as_slice();
    let mut records = Vec::new();
    while !rest.is_empty() {
        let mut slot = None;
        T::read(&mut rest, &mut slot).map_err(|error| other_type::<T>(name, error.to_string()))?;
        records.extend(slot);
    }
    Ok(records)
}

fn other_type<T: ?Sized>(name: &str, reason: String) -> ResultError {
    ResultError::OtherType { name: name.to_owned(), read_as: type_name::<T>(), reason }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{OpaqueBytes, encode};

    use super::*;

    fn collected(records: &[(String, u64)]) -> Accumulators {
        let mut bytes = Vec::new();
        for record in records {
            record.write(&mut bytes).unwrap();
        }
        let mut values = Values::default();
        let (count, record_type) = (records.len() as u64, type_name::<(String, u64)>());
        values.add(
            "words",
            Value::Collected(CollectedRecords {
                records: count,
                record_type: record_type.to_owned(),
                bytes: OpaqueBytes(bytes),
            }),
        );
        Accumulators::new(values)
    }

    #[test]
    fn collected_records_are_read_as_what_they_are_or_not_at_all() {
        let records = [("a".to_owned(), 1), ("b".to_owned(), 2)];
        let found = collected(&records);
        assert_eq!(found.collected::<(String, u64)>("words").unwrap(), records);
        let error = found.collected::<(String, i64)>("words").unwrap_err().to_string();
        assert!(error.contains("(alloc::string::String, u64)"), "{error}");
        let error = found.collected::<String>("wrods").unwrap_err().to_string();
        assert!(error.contains("\"wrods\"") && error.contains("it collected: words"), "{error}");
        assert_eq!(found.iter().count(), 0);
    }

    #[test]
    fn numbers_and_values_of_other_types_are_read_by_name() {
        let mut values = Values::default();
        values.add("lines", Value::Sum(3));
        values.add("lines", Value::Max(9));
        for part in [vec![2, 1], vec![3]] {
            values.add("sizes", Value::Custom(vec![OpaqueBytes(encode(&part).unwrap())]));
        }
        let found = Accumulators::new(values);
        assert_eq!(
            (found.sum("lines"), found.max("lines"), found.min("lines")),
            (Some(3), Some(9), None)
        );
        assert_eq!(found.custom::<Vec<u8>>("sizes").unwrap(), [2, 1, 3]);
        assert_eq!(found.custom::<Vec<u8>>("none").unwrap(), [0; 0]);
        let error = found.custom::<Names>("sizes").unwrap_err().to_string();
        assert!(error.contains("Names"), "{error}");
        let shown: Vec<(&str, String)> = found.iter().collect();
        assert_eq!(shown[0], ("lines", "3".to_owned()));
        assert!(shown[2].1.contains("2 values"), "{shown:?}");
    }

    #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
    struct Names(Vec<String>);

    impl Accumulator for Names {
        fn merge(&mut self, other: &Self) {
            self.0.extend(other.0.iter().cloned());
        }
    }
}
