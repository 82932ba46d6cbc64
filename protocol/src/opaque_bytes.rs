//! Bytes whose meaning only a program knows.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes whose meaning only a program knows: hex digits for people, bytes elsewhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OpaqueBytes(pub Vec<u8>);

impl fmt::Debug for OpaqueBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for OpaqueBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
        let text: String =
            self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for OpaqueBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(Self(serde_bytes::ByteBuf::deserialize(deserializer)?.into_vec()));
        }
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(Self).ok_or_else(|| de::Error::custom("expected pairs of hex digits"))
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|half| u8::try_from(half).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| bytes.collect())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn bytes_come_back_from_both_forms() {
        let bytes = OpaqueBytes((0..=255).collect());
        assert_eq!(decode::<OpaqueBytes>(&encode(&bytes).unwrap()).unwrap(), bytes);
        let text = serde_json::to_string(&bytes).unwrap();
        assert!(text.starts_with("\"000102") && text.ends_with("feff\""), "{text}");
        assert_eq!(serde_json::from_str::<OpaqueBytes>(&text).unwrap(), bytes);
        for wrong in ["\"0\"", "\"0x\"", "\"é\"", "7"] {
            assert!(serde_json::from_str::<OpaqueBytes>(wrong).is_err(), "{wrong}");
        }
    }
}
