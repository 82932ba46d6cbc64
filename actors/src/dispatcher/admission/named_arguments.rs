//! Arguments of jobs by name, as far as they have names: to say in what two jobs differ.

use std::{collections::BTreeMap, fmt};

use regrow_protocol::decode;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

/// Differing arguments that are named at most.
const NAMED_MAX: usize = 2;

/// Longest value that is shown whole.
const VALUE_CHARS_MAX: usize = 100;

/// Values within values at most: arguments that lie deeper are told by their size alone.
const DEPTH_MAX: u32 = 16;

/// Elements of a list that are looked at: more do not fit into what is shown.
const ELEMENTS_MAX: usize = VALUE_CHARS_MAX;

/// The arguments in which two jobs differ, with the values of each: `stage=2x60s, overwrite=false`.
/// None if they cannot be told by name, or do not differ.
pub(super) fn differing(ours: &[u8], theirs: &[u8]) -> Option<(String, String)> {
    let (ours, theirs) = (named(ours)?, named(theirs)?);
    let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| ours.get(*name) != theirs.get(*name));
    if names.is_empty() {
        return None;
    }
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        count => format!(" and {count} more that differ"),
    };
    let shown = |arguments: &BTreeMap<String, Value>| {
        let value = |name: &&&String| match arguments.get(**name) {
            Some(value) => format!("{name}={}", shortened(&value.to_string())),
            None => format!("no {name}"),
        };
        let each: Vec<String> = names.iter().take(NAMED_MAX).map(|name| value(&name)).collect();
        format!("{}{more}", each.join(", "))
    };
    Some((shown(&ours), shown(&theirs)))
}

/// All that has a name. What a program encoded by itself, and put into a field of the whole, has names
/// of its own.
fn named(bytes: &[u8]) -> Option<BTreeMap<String, Value>> {
    let Value::Map(outer) = decode(bytes).ok()? else { return None };
    let mut all = BTreeMap::new();
    for (name, value) in outer {
        match &value {
            Value::Bytes(inner) => match decode(inner) {
                Ok(Value::Map(fields)) => all.extend(fields),
                Ok(_) | Err(_) => drop(all.insert(name, value)),
            },
            Value::Text(_) | Value::List(_) | Value::Map(_) => drop(all.insert(name, value)),
        }
    }
    Some(all)
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// Any value that may stand in arguments.
#[derive(Debug, PartialEq)]
enum Value {
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => {
                write!(f, "({} bytes, {:08x})", bytes.len(), crc32c::crc32c(bytes))
            }
            Self::List(values) => {
                let each: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", each.join(", "))
            }
            Self::Map(fields) => {
                let each = fields.iter().map(|(name, value)| format!("{name}: {value}"));
                write!(f, "{{{}}}", each.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Depth(0).deserialize(deserializer)
    }
}

/// Reads a value that lies in so many others.
#[derive(Clone, Copy)]
struct Depth(u32);

impl Depth {
    fn text(value: impl fmt::Display) -> Value {
        Value::Text(value.to_string())
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0 > DEPTH_MAX {
            return Err(D::Error::custom("too deep to be told in a line"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_f32<E: Error>(self, value: f32) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Self::text(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Self::text("none"))
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Self::text("none"))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let mut left_out = 0_u64;
        while let Some(value) = values.next_element_seed(Depth(self.0 + 1))? {
            if list.len() < ELEMENTS_MAX {
                list.push(value);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            list.push(Value::Text(format!("and {left_out} more")));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(name) = fields.next_key_seed(Depth(self.0 + 1))? {
            map.push((name.to_string(), fields.next_value_seed(Depth(self.0 + 1))?));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::encode;
    use serde_json::{Value as Json, json};

    use super::*;

    fn arguments(json: &Json) -> Vec<u8> {
        encode(json).unwrap()
    }

    #[test]
    fn the_first_two_that_differ_are_named_with_both_values() {
        let ours = arguments(&json!({"a": 1, "b": ["x", "y"], "c": null, "d": true}));
        let theirs = arguments(&json!({"a": 1, "b": ["x"], "c": "z", "e": {"f": 1.5}}));
        let (ours, theirs) = differing(&ours, &theirs).unwrap();
        assert_eq!(ours, "b=[x, y], c=none and 2 more that differ");
        assert_eq!(theirs, "b=[x], c=z and 2 more that differ");
        let ours = arguments(&json!({"a": 1}));
        let theirs = arguments(&json!({"a": 1, "b": "long ".repeat(100)}));
        let (ours, theirs) = differing(&ours, &theirs).unwrap();
        assert_eq!(ours, "no b");
        assert_eq!((theirs.len(), theirs.ends_with("...")), (2 + VALUE_CHARS_MAX + 3, true));
    }

    #[test]
    fn what_a_program_encoded_by_itself_has_names_of_its_own() {
        #[derive(serde::Serialize)]
        struct Whole {
            overwrite: bool,
            #[serde(with = "serde_bytes")]
            arguments: Vec<u8>,
        }
        let whole = |input: &str| {
            let arguments = arguments(&json!({"input": input}));
            encode(&Whole { overwrite: false, arguments }).unwrap()
        };
        let differing = differing(&whole("a"), &whole("b")).unwrap();
        assert_eq!(differing, ("input=a".to_owned(), "input=b".to_owned()));
    }

    #[test]
    fn what_has_no_names_or_is_deep_harms_nothing() {
        assert_eq!(differing(b"--input a", b"--input b"), None);
        assert_eq!(differing(b"", &[0xc1]), None);
        let list = |last: u64| (0..1_000_u64).chain([last]).collect::<Vec<_>>();
        let long = |last| arguments(&json!({"a": list(last)}));
        assert_eq!(differing(&long(1), &long(2)), None, "what is shown does not differ");
        let nested = |last: u8| [b"\x81\xa1a".repeat(100_000), vec![last]].concat();
        assert_eq!(differing(&nested(1), &nested(2)), None);
    }
}
