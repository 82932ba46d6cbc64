//! Encoding: `MessagePack` with named fields.
//!
//! Named, because only that survives fields added on either side.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The value cannot be encoded; a defect of its `Serialize`.
#[derive(Debug, Error)]
#[error("cannot encode a value of type {type_name}")]
pub struct EncodeError {
    type_name: &'static str,
    source: rmp_serde::encode::Error,
}

/// The bytes are not what was expected: refuse the message or treat the record as damaged.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The bytes do not describe a value of the type.
    #[error("cannot decode {length} bytes as {type_name}")]
    Malformed {
        /// How many bytes there were.
        length: usize,
        /// What was expected.
        type_name: &'static str,
        /// What the decoder said.
        source: rmp_serde::decode::Error,
    },
    /// A value was followed by more bytes.
    #[error("{trailing} bytes follow a value of type {type_name}")]
    Trailing {
        /// How many.
        trailing: usize,
        /// What was decoded.
        type_name: &'static str,
    },
}

/// Encodes `value`.
///
/// # Errors
/// When `value` does not serialize.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    rmp_serde::to_vec_named(value)
        .map_err(|source| EncodeError { type_name: std::any::type_name::<T>(), source })
}

/// Decodes one value that fills `bytes`.
///
/// # Errors
/// When the bytes are malformed or more than one value; never panics on any input.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let type_name = std::any::type_name::<T>();
    let mut rest = bytes;
    let value = {
        let mut deserializer = rmp_serde::Deserializer::new(&mut rest);
        T::deserialize(&mut deserializer).map_err(|source| DecodeError::Malformed {
            length: bytes.len(),
            type_name,
            source,
        })?
    };
    if !rest.is_empty() {
        return Err(DecodeError::Trailing { trailing: rest.len(), type_name });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FinishRecord, ToJobMaster, ToTaskExecutor};

    #[test]
    fn trailing_bytes_are_refused() {
        let mut bytes = encode(&7_u32).unwrap();
        bytes.push(0);
        assert!(matches!(decode::<u32>(&bytes), Err(DecodeError::Trailing { trailing: 1, .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = decode::<ToJobMaster>(&bytes);
            let _ = decode::<ToTaskExecutor>(&bytes);
            let _ = decode::<FinishRecord>(&bytes);
        }
    }
}
