//! The frame around one document.
//!
//! Integers are little-endian.
//! ```text
//! offset  bytes  meaning
//!      0      4  "RGWD"
//!      4      4  format: 1
//!      8      8  revision: grows with each document under the same key
//!     16      8  bytes of the document, 0 to DOCUMENT_BYTES_MAX
//!     24      4  CRC32C of offsets 0 to 24, of the table's and the document's key, and of the document
//!     28      n  the document
//! ```

use std::{fmt, path::Path};

use crate::{StoreError, Table};

/// Most bytes of one document.
pub const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// Most bytes of a document's key: escaped, it must fit into a file name.
pub const KEY_BYTES_MAX: usize = 80;

const MAGIC: [u8; 4] = *b"RGWD";
const FORMAT: u32 = 1;
const CHECKSUM_OFFSET: usize = 24;
const HEADER_BYTES: usize = 28;

/// A document whose checksum was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) revision: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentFlaw {
    /// It is not what was stored.
    Damaged(String),
    /// A later version of this program stored it.
    Later { format: u32 },
}

impl DocumentFlaw {
    /// As an error of the store at `path`.
    pub(crate) fn into_error(self, path: &Path, table: Table, key: &str) -> StoreError {
        match self {
            Self::Damaged(reason) => damaged(path, table, key, &reason),
            Self::Later { format: found } => {
                StoreError::Format { path: path.to_owned(), found, supported: FORMAT }
            }
        }
    }
}

impl fmt::Display for DocumentFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(reason) => f.write_str(reason),
            Self::Later { format } => {
                write!(f, "it has format {format}, this program reads {FORMAT}")
            }
        }
    }
}

/// The name of a table, as files and trees carry it.
pub(crate) const fn table_name(table: Table) -> &'static str {
    match table {
        Table::JobGraphs => "job-graphs",
        Table::Results => "results",
    }
}

/// Refuses a key that not every store can hold.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let length = key.len();
        let reason = format!("a key has {length} bytes, 1 to {KEY_BYTES_MAX} are allowed");
        return Err(StoreError::Invalid { reason });
    }
    Ok(())
}

/// A damage of one document.
pub(crate) fn damaged(path: &Path, table: Table, key: &str, reason: &str) -> StoreError {
    let reason = format!("document {key} of {}: {reason}", table_name(table));
    StoreError::Damaged { path: path.to_owned(), reason }
}

/// Frames a document.
pub(crate) fn encode(
    table: &str,
    key: &[u8],
    revision: u64,
    document: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let length = document.len() as u64;
    if length > DOCUMENT_BYTES_MAX {
        let reason = format!("a document has {length} bytes, {DOCUMENT_BYTES_MAX} are allowed");
        return Err(StoreError::Invalid { reason });
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + document.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&revision.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    let checksum = checksum(&bytes, table, key, document);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(document);
    Ok(bytes)
}

/// Reads a document; an error says what is wrong with it.
pub(crate) fn decode(table: &str, key: &[u8], bytes: &[u8]) -> Result<Document, DocumentFlaw> {
    let damaged = |reason: String| Err(DocumentFlaw::Damaged(reason));
    let Some((header, document)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return damaged(format!(
            "it has {} bytes, its header alone has {HEADER_BYTES}",
            bytes.len()
        ));
    };
    if header[..4] != MAGIC {
        return damaged("it does not begin as a document".to_owned());
    }
    let [format, stored] = [4, CHECKSUM_OFFSET]
        .map(|at| u32::from_le_bytes(header[at..].first_chunk().copied().unwrap_or_default()));
    let [revision, length] = [8, 16]
        .map(|at| u64::from_le_bytes(header[at..].first_chunk().copied().unwrap_or_default()));
    // The checksum tells a document of a later format from one whose format was damaged.
    let mut as_ours = header[..CHECKSUM_OFFSET].to_vec();
    as_ours[4..8].copy_from_slice(&FORMAT.to_le_bytes());
    let computed = checksum(&as_ours, table, key, document);
    if format != FORMAT && stored == computed {
        return damaged(format!("it has format {format}, its checksum is that of {FORMAT}"));
    }
    if format > FORMAT {
        return Err(DocumentFlaw::Later { format });
    }
    if length != document.len() as u64 {
        return damaged(format!("it has {} bytes, {length} are announced", document.len()));
    }
    if stored != computed {
        return damaged(format!("it has checksum {computed:08x}, {stored:08x} is stored"));
    }
    Ok(Document { revision, bytes: document.to_vec() })
}

fn checksum(header: &[u8], table: &str, key: &[u8], document: &[u8]) -> u32 {
    let parts = [table.as_bytes(), key, document];
    parts.into_iter().fold(crc32c::crc32c(header), crc32c::crc32c_append)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_document_survives_its_frame(
            document in prop::collection::vec(any::<u8>(), 0..200),
            revision: u64,
        ) {
            let bytes = encode("results", b"job", revision, &document).unwrap();
            let expected = Document { revision, bytes: document };
            prop_assert_eq!(decode("results", b"job", &bytes), Ok(expected));
        }

        #[test]
        fn any_flipped_bit_is_noticed(at in 0usize..33, bit in 0u8..8) {
            let mut bytes = encode("results", b"job", 1, b"hello").unwrap();
            bytes[at] ^= 1 << bit;
            prop_assert!(decode("results", b"job", &bytes).is_err());
        }

        #[test]
        fn any_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(decode("results", b"job", &bytes).is_err());
        }
    }

    #[test]
    fn a_document_under_another_key_or_table_is_refused() {
        let bytes = encode("results", b"job", 1, b"hello").unwrap();
        assert!(decode("results", b"other", &bytes).is_err());
        assert!(decode("job-graphs", b"job", &bytes).is_err());
    }

    #[test]
    fn log_11_a_document_of_a_later_format_is_not_a_damage() {
        let mut bytes = encode("results", b"job", 1, b"hello").unwrap();
        bytes[4] = 2;
        let flipped = decode("results", b"job", &bytes).unwrap_err();
        assert!(matches!(flipped, DocumentFlaw::Damaged(_)), "{flipped}");
        bytes[CHECKSUM_OFFSET] ^= 1;
        let flaw = decode("results", b"job", &bytes).unwrap_err();
        assert_eq!(flaw, DocumentFlaw::Later { format: 2 });
        let error = flaw.into_error(Path::new("/store"), Table::Results, "job");
        assert!(matches!(error, StoreError::Format { found: 2, supported: 1, .. }), "{error}");
        bytes[4] = 0;
        let flaw = decode("results", b"job", &bytes).unwrap_err();
        assert!(matches!(flaw, DocumentFlaw::Damaged(_)), "{flaw}");
    }

    #[test]
    fn keys_fit_into_a_file_name() {
        assert!(check_key("").is_err());
        assert!(check_key(&"k".repeat(KEY_BYTES_MAX)).is_ok());
        assert!(check_key(&"k".repeat(KEY_BYTES_MAX + 1)).is_err());
    }
}
