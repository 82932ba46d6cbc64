//! What the function of one operator counts in one attempt.

use std::any::{Any, TypeId, type_name};

use regrow_actors::task::TaskContext;
use regrow_protocol::{
    ACCUMULATOR_BYTES_MAX, Accumulator as Value, Accumulators, OpaqueBytes, TaskFailure, encode,
};

use super::Accumulator;

/// Room that a name takes in a task before its value is known; at least that of a finish record.
const NAME_BYTES: u64 = 16;

/// Numbers that are found without a search in most cases: more than most functions count.
const QUICK_MAX: usize = 8;

/// What the function of one operator counts in one attempt. It goes to the attempt's finish record
/// when all records were seen.
#[derive(Default)]
pub(crate) struct Tally {
    /// The first numbers that were counted, at most [`QUICK_MAX`].
    quick: Vec<(String, Value)>,
    /// Where the next number is expected: functions count in the same order again and again.
    expected: usize,
    /// All other numbers.
    numbers: Accumulators,
    custom: Vec<Custom>,
    /// Bytes of names, so that names made of data fail before they fill the memory.
    bytes: u64,
}

/// A value of the program's own type.
struct Custom {
    name: String,
    value: Box<dyn Any + Send>,
    encode: fn(&(dyn Any + Send)) -> Result<Vec<u8>, String>,
    type_name: &'static str,
}

impl Tally {
    /// Folds a number in.
    #[inline]
    pub(crate) fn count(&mut self, name: &str, value: Value) {
        if let Some((known, present)) = self.quick.get_mut(self.expected)
            && known == name
            && fold(present, &value)
        {
            self.expected = (self.expected + 1) % self.quick.len();
            return;
        }
        self.search(name, value);
    }

    fn search(&mut self, name: &str, value: Value) {
        for (index, (known, present)) in self.quick.iter_mut().enumerate() {
            if known == name && fold(present, &value) {
                self.expected = (index + 1) % self.quick.len();
                return;
            }
        }
        if self.quick.len() < QUICK_MAX {
            self.bytes += name.len() as u64 + NAME_BYTES;
            self.quick.push((name.to_owned(), value));
            return;
        }
        let names = self.numbers.len();
        self.numbers.add(name, value);
        if self.numbers.len() > names {
            self.bytes += name.len() as u64 + NAME_BYTES;
        }
    }

    /// The value of type `T` that is called `name`.
    #[expect(clippy::expect_used, reason = "the value was found or made by its type")]
    pub(crate) fn accumulator<T: Accumulator>(&mut self, name: &str) -> &mut T {
        let is_meant =
            |custom: &Custom| custom.name == name && (*custom.value).type_id() == TypeId::of::<T>();
        let index = self.custom.iter().position(is_meant).unwrap_or_else(|| {
            self.bytes += name.len() as u64 + NAME_BYTES;
            self.custom.push(Custom::new::<T>(name));
            self.custom.len() - 1
        });
        self.custom[index].value.downcast_mut().expect("it has this type")
    }

    /// Whether there are so many names that the attempt cannot finish.
    #[inline]
    pub(crate) fn is_too_large(&self) -> bool {
        self.bytes > ACCUMULATOR_BYTES_MAX
    }

    /// Fails an attempt whose function made too many names.
    pub(crate) fn check(&self) -> Result<(), TaskFailure> {
        if !self.is_too_large() {
            return Ok(());
        }
        Err(TaskFailure::unrecoverable(format!(
            "a function made {} accumulators, which take more than the {ACCUMULATOR_BYTES_MAX} \
             bytes that are kept of one task: use fewer names, or emit records and count those",
            self.quick.len() + self.numbers.len() + self.custom.len()
        )))
    }

    /// Gives all to the attempt, and forgets it.
    pub(crate) fn hand_over(&mut self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        self.check()?;
        let Self { quick, numbers, custom, expected: _, bytes: _ } = std::mem::take(self);
        for (index, one) in custom.iter().enumerate() {
            if let Some(other) = custom[..index].iter().find(|other| other.name == one.name) {
                return Err(TaskFailure::unrecoverable(format!(
                    "the accumulator {:?} is of type {} and of type {}: give each its own name",
                    one.name, other.type_name, one.type_name
                )));
            }
        }
        let target = context.accumulators();
        for (name, value) in quick {
            target.add(&name, value);
        }
        target.merge(&numbers);
        for Custom { name, value, encode, type_name } in custom {
            let bytes = encode(&*value).map_err(|error| {
                TaskFailure::unrecoverable(format!(
                    "the accumulator {name:?} of type {type_name} cannot be written: {error}"
                ))
            })?;
            target.add(&name, Value::Custom(vec![OpaqueBytes(bytes)]));
        }
        Ok(())
    }
}

/// Folds a number in, if it is of the same kind.
#[inline]
fn fold(present: &mut Value, value: &Value) -> bool {
    match (present, value) {
        (Value::Sum(a), Value::Sum(b)) => *a = a.saturating_add(*b),
        (Value::Min(a), Value::Min(b)) => *a = (*a).min(*b),
        (Value::Max(a), Value::Max(b)) => *a = (*a).max(*b),
        (
            Value::Sum(_) | Value::Min(_) | Value::Max(_) | Value::Custom(_) | Value::Collected(_),
            _,
        ) => return false,
    }
    true
}

impl Custom {
    fn new<T: Accumulator>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: Box::<T>::default(),
            encode: |value| {
                let value = value.downcast_ref::<T>().ok_or("it has another type")?;
                encode(value).map_err(|error| error.to_string())
            },
            type_name: type_name::<T>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::AccumulatorKind;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::test_context::TestContext;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Letters(String);

    impl Accumulator for Letters {
        fn merge(&mut self, other: &Self) {
            self.0.push_str(&other.0);
        }
    }

    impl Accumulator for Vec<u8> {
        fn merge(&mut self, other: &Self) {
            self.extend(other);
        }
    }

    #[test]
    fn what_was_counted_goes_to_the_attempt_once() {
        let mut tally = Tally::default();
        for value in [3, 4] {
            tally.count("lines", Value::Sum(value));
            tally.count("most", Value::Max(value));
        }
        tally.accumulator::<Letters>("letters").0.push('a');
        tally.accumulator::<Letters>("letters").0.push('b');
        let mut context = TestContext::new(0);
        tally.hand_over(&mut context).unwrap();
        tally.hand_over(&mut context).unwrap();
        let found = context.accumulators();
        assert_eq!(found.get("lines"), Some(&Value::Sum(7)));
        assert_eq!(found.get("most"), Some(&Value::Max(4)));
        let bytes = encode(&Letters("ab".to_owned())).unwrap();
        assert_eq!(found.get("letters"), Some(&Value::Custom(vec![OpaqueBytes(bytes)])));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn any_number_of_names_and_kinds_in_any_order_counts_right() {
        let mut tally = Tally::default();
        for round in 0..50_i64 {
            for step in 0..20 {
                let name = format!("name {}", (step * (round % 3 + 1)) % 20);
                tally.count(&name, Value::Sum(1));
                tally.count(&name, Value::Min(-round));
            }
        }
        let mut context = TestContext::new(0);
        tally.hand_over(&mut context).unwrap();
        let found = context.accumulators();
        assert_eq!(found.len(), 40);
        let numbers = |kind| {
            let each = (0..20).map(|index| found.find(&format!("name {index}"), kind).unwrap());
            each.cloned().collect::<Vec<Value>>()
        };
        let sums = numbers(AccumulatorKind::Sum);
        let total = sums.iter().map(|sum| if let Value::Sum(sum) = sum { *sum } else { 0 });
        assert_eq!(total.sum::<i64>(), 1_000);
        assert!(numbers(AccumulatorKind::Min).contains(&Value::Min(-49)));
    }

    #[test]
    fn names_without_end_fail_before_they_fill_the_memory() {
        let mut tally = Tally::default();
        let mut names = 0;
        while !tally.is_too_large() {
            tally.count(&format!("word {names}"), Value::Sum(1));
            names += 1;
        }
        assert!(names < 4_000, "{names}");
        let failure = tally.hand_over(&mut TestContext::new(0)).unwrap_err();
        assert!(failure.to_string().contains("accumulators"), "{failure}");
    }

    #[test]
    fn one_name_for_two_types_is_refused() {
        let mut tally = Tally::default();
        tally.accumulator::<Letters>("x").0.push('a');
        tally.accumulator::<Vec<u8>>("x").push(1);
        let failure = tally.hand_over(&mut TestContext::new(0)).unwrap_err();
        assert!(failure.to_string().contains("Letters"), "{failure}");
    }
}
