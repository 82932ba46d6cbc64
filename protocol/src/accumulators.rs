//! Values that tasks accumulate and that a job folds together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::OpaqueBytes;

/// Most bytes of accumulators that one attempt may leave, names included: they stand in its finish
/// record, in the log, and in the memory of the `JobMaster`, once per subtask of the job. What an
/// attempt collects ([`Accumulator::Collected`]) has a limit of its own.
pub const ACCUMULATOR_BYTES_MAX: u64 = 64 << 10;

/// Room of a number and of what stands around an accumulator.
const ITEM_BYTES: u64 = 16;

/// One accumulated value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accumulator {
    /// The sum over all tasks; saturates.
    Sum(i64),
    /// The least value of all tasks.
    Min(i64),
    /// The greatest value of all tasks.
    Max(i64),
    /// Values of a type of the program's, in the order of vertices and subtasks. Who has the type
    /// merges them.
    Custom(Vec<OpaqueBytes>),
    /// Records that the job gives back.
    Collected(CollectedRecords),
}

/// Records that a job gives back to who started it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedRecords {
    /// How many there are.
    pub records: u64,
    /// Name of their type in the program.
    pub record_type: String,
    /// The records, one after the other, as in a block.
    pub bytes: OpaqueBytes,
}

/// How values of an accumulator are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccumulatorKind {
    /// [`Accumulator::Sum`].
    Sum,
    /// [`Accumulator::Min`].
    Min,
    /// [`Accumulator::Max`].
    Max,
    /// [`Accumulator::Custom`].
    Custom,
    /// [`Accumulator::Collected`].
    Collected,
}

/// Accumulators by name.
///
/// What comes under a name that stands for another kind is kept beside it, with the kind behind the
/// name: `lines (max)` beside the sum `lines`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, Accumulator>")]
pub struct Accumulators {
    /// By ascending name. There are few, once a task: the node of a tree would be ten times larger.
    values: Vec<(String, Accumulator)>,
}

impl AccumulatorKind {
    /// The kind for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Custom => "custom",
            Self::Collected => "collected",
        }
    }
}

impl Accumulator {
    /// How values are folded.
    pub const fn kind(&self) -> AccumulatorKind {
        match self {
            Self::Sum(_) => AccumulatorKind::Sum,
            Self::Min(_) => AccumulatorKind::Min,
            Self::Max(_) => AccumulatorKind::Max,
            Self::Custom(_) => AccumulatorKind::Custom,
            Self::Collected(_) => AccumulatorKind::Collected,
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        ITEM_BYTES
            + match self {
                Self::Sum(_) | Self::Min(_) | Self::Max(_) => 0,
                Self::Custom(values) => {
                    values.iter().map(|value| ITEM_BYTES + value.0.len() as u64).sum()
                }
                Self::Collected(collected) => {
                    (collected.record_type.len() + collected.bytes.0.len()) as u64
                }
            }
    }

    /// Folds `other` in; gives it back if it is of another kind.
    fn merge(&mut self, other: Self) -> Result<(), Self> {
        match (self, other) {
            (Self::Sum(a), Self::Sum(b)) => *a = a.saturating_add(b),
            (Self::Min(a), Self::Min(b)) => *a = (*a).min(b),
            (Self::Max(a), Self::Max(b)) => *a = (*a).max(b),
            (Self::Custom(a), Self::Custom(b)) => a.extend(b),
            (Self::Collected(a), Self::Collected(b)) => {
                a.records = a.records.saturating_add(b.records);
                a.bytes.0.extend(b.bytes.0);
            }
            (
                Self::Sum(_) | Self::Min(_) | Self::Max(_) | Self::Custom(_) | Self::Collected(_),
                other,
            ) => return Err(other),
        }
        Ok(())
    }
}

impl Accumulators {
    /// Folds `value` into what stands under `name`.
    #[inline]
    pub fn add(&mut self, name: &str, value: Accumulator) {
        match self.position(name) {
            Ok(index) => {
                if let Err(other) = self.values[index].1.merge(value) {
                    let beside = beside(name, other.kind());
                    self.add(&beside, other);
                }
            }
            Err(index) => {
                self.values.reserve_exact(1);
                self.values.insert(index, (name.to_owned(), value));
            }
        }
    }

    /// Folds all of `other` in.
    pub fn merge(&mut self, other: &Self) {
        for (name, value) in other.iter() {
            self.add(name, value.clone());
        }
    }

    /// What stands under `name`.
    pub fn get(&self, name: &str) -> Option<&Accumulator> {
        self.position(name).ok().map(|index| &self.values[index].1)
    }

    /// Where `name` stands, or where it belongs.
    fn position(&self, name: &str) -> Result<usize, usize> {
        self.values.binary_search_by(|(present, _)| present.as_str().cmp(name))
    }

    /// What was accumulated as `name` by values of this kind.
    pub fn find(&self, name: &str, kind: AccumulatorKind) -> Option<&Accumulator> {
        let is_meant = |found: &&Accumulator| found.kind() == kind;
        let first = self.get(name).filter(is_meant);
        first.or_else(|| self.get(&beside(name, kind)).filter(is_meant))
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Accumulator)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// About how many bytes they take, without what is collected; see [`ACCUMULATOR_BYTES_MAX`].
    pub fn bytes(&self) -> u64 {
        let counted =
            self.values.iter().filter(|(_, value)| value.kind() != AccumulatorKind::Collected);
        counted.map(|(name, value)| name.len() as u64 + value.bytes()).sum()
    }
}

impl From<BTreeMap<String, Accumulator>> for Accumulators {
    fn from(values: BTreeMap<String, Accumulator>) -> Self {
        Self { values: values.into_iter().collect() }
    }
}

impl Serialize for Accumulators {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The name of an accumulator whose own name stands for another kind.
fn beside(name: &str, kind: AccumulatorKind) -> String {
    format!("{name} ({})", kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    fn custom(byte: u8) -> Accumulator {
        Accumulator::Custom(vec![OpaqueBytes(vec![byte])])
    }

    fn collected(byte: u8) -> Accumulator {
        let bytes = OpaqueBytes(vec![byte]);
        let record_type = "u8".to_owned();
        Accumulator::Collected(CollectedRecords { records: 1, record_type, bytes })
    }

    #[test]
    fn merging_adds_sums_keeps_extremes_and_lines_up_the_rest() {
        let mut total = Accumulators::default();
        for value in [3_u8, 5] {
            let mut task = Accumulators::default();
            task.add("lines", Accumulator::Sum(i64::from(value)));
            task.add("longest", Accumulator::Max(i64::from(value)));
            task.add("shortest", Accumulator::Min(i64::from(value)));
            task.add("lengths", custom(value));
            total.merge(&task);
        }
        assert_eq!(total.get("lines"), Some(&Accumulator::Sum(8)));
        assert_eq!(total.get("longest"), Some(&Accumulator::Max(5)));
        assert_eq!(total.get("shortest"), Some(&Accumulator::Min(3)));
        let values = vec![OpaqueBytes(vec![3]), OpaqueBytes(vec![5])];
        assert_eq!(total.get("lengths"), Some(&Accumulator::Custom(values)));
    }

    #[test]
    fn p4_one_name_for_two_kinds_loses_neither() {
        let mut found = Accumulators::default();
        for value in [Accumulator::Sum(1), Accumulator::Max(7), collected(1), Accumulator::Max(9)] {
            found.add("lines", value);
        }
        assert_eq!(found.find("lines", AccumulatorKind::Sum), Some(&Accumulator::Sum(1)));
        assert_eq!(found.get("lines (max)"), Some(&Accumulator::Max(9)));
        assert_eq!(found.find("lines", AccumulatorKind::Max), Some(&Accumulator::Max(9)));
        assert_eq!(found.find("lines", AccumulatorKind::Collected), Some(&collected(1)));
        assert_eq!(found.find("lines", AccumulatorKind::Min), None);
    }

    #[test]
    fn bytes_are_those_of_names_and_values_but_of_nothing_collected() {
        let mut found = Accumulators::default();
        found.add("lengths", Accumulator::Custom(vec![OpaqueBytes(vec![0; 1000])]));
        let bytes = found.bytes();
        assert!((1007..1100).contains(&bytes), "{bytes}");
        found.add("sample", collected(1));
        assert_eq!(found.bytes(), bytes);
    }

    /// What the first version wrote stays readable, and what this one writes does not change.
    #[test]
    fn the_bytes_of_each_kind_are_fixed() {
        let first = b"\x82\xa5lines\x81\xa3Sum\xfd\xa4most\x81\xa3Max\x02";
        let found: Accumulators = decode(first).unwrap();
        assert_eq!(found.get("lines"), Some(&Accumulator::Sum(-3)));
        assert_eq!(encode(&found).unwrap(), first);

        let mut newer = Accumulators::default();
        newer.add("a", custom(7));
        newer.add("b", collected(8));
        let bytes = b"\x82\xa1a\x81\xa6Custom\x91\xc4\x01\x07\
            \xa1b\x81\xa9Collected\x83\xa7records\x01\xabrecord_type\xa2u8\xa5bytes\xc4\x01\x08";
        assert_eq!(encode(&newer).unwrap(), bytes);
        assert_eq!(decode::<Accumulators>(bytes).unwrap(), newer);
        let json = serde_json::to_string(&newer).unwrap();
        assert_eq!(serde_json::from_str::<Accumulators>(&json).unwrap(), newer);
    }
}
