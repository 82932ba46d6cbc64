//! A row of CSV, as text.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
    ser::SerializeSeq as _,
};

/// A row of CSV: any number of fields, as text, in one piece of memory. It is written as a sequence
/// of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    text: String,
    /// Where each field ends.
    ends: Vec<usize>,
}

impl Fields {
    /// Adds a field.
    pub(super) fn push(&mut self, field: &str) {
        self.text.push_str(field);
        self.ends.push(self.text.len());
    }

    /// How many fields there are.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// The field at `index`, from 0; empty if there is none.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &str {
        let Some(end) = self.ends.get(index) else { return "" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..*end]
    }

    /// The fields of this row, then those of `other`.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let mut text = String::with_capacity(self.text.len() + other.text.len());
        text.push_str(&self.text);
        text.push_str(&other.text);
        let mut ends = Vec::with_capacity(self.ends.len() + other.ends.len());
        ends.extend_from_slice(&self.ends);
        ends.extend(other.ends.iter().map(|end| self.text.len() + end));
        Self { text, ends }
    }

    /// The fields of this row, then `count` empty ones.
    pub(super) fn padded(&self, count: usize) -> Self {
        let mut row = self.clone();
        row.ends.resize(self.ends.len() + count, self.text.len());
        row
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.get(index))
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_seq(Some(self.ends.len()))?;
        for field in self.iter() {
            fields.serialize_element(field)?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the fields of a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Fields, A::Error> {
        let mut row = Fields::default();
        while fields.next_element_seed(NextField(&mut row))?.is_some() {}
        Ok(row)
    }
}

/// Adds a field to a row.
struct NextField<'a>(&'a mut Fields);

impl<'de> DeserializeSeed<'de> for NextField<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NextField<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field")
    }

    fn visit_str<E: Error>(self, field: &str) -> Result<(), E> {
        self.0.push(field);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Record;

    fn row(fields: &[String]) -> Fields {
        let mut row = Fields::default();
        for field in fields {
            row.push(field);
        }
        row
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_row_is_a_sequence_of_texts(left: Vec<String>, right: Vec<String>, count in 0_usize..3) {
            let fields = row(&left);
            prop_assert_eq!(fields.iter().collect::<Vec<_>>(), left.iter().collect::<Vec<_>>());
            let (mut written, mut expected) = (Vec::new(), Vec::new());
            fields.write(&mut written).unwrap();
            left.write(&mut expected).unwrap();
            prop_assert_eq!(&written, &expected);
            let mut slot = None;
            prop_assert_eq!(Fields::read(&mut written.as_slice(), &mut slot).unwrap(), &fields);

            let both: Vec<String> = left.iter().chain(&right).cloned().collect();
            prop_assert_eq!(fields.joined(&row(&right)), row(&both));
            let mut padded = left.clone();
            padded.resize(left.len() + count, String::new());
            prop_assert_eq!(fields.padded(count), row(&padded));
        }
    }
}
