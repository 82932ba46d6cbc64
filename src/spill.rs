//! What operators keep in files of their attempt: entries of a key and a value.
//!
//! An entry is the length of its key and that of its value (LEB128 each), then both, without gaps.
//! Blocks of keyed records have the same form. A file is a row of chunks (numbers are
//! little-endian):
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | length of the entries |
//! | 4 | 4 | CRC32C of the entries |
//! | 8 | | entries, whole ones |

mod entry_reader;
mod entry_writer;
mod spill_file;

use std::{io, path::Path};

use regrow_protocol::TaskFailure;

pub(crate) use self::{
    entry_reader::{EntryReader, Position},
    entry_writer::EntryWriter,
    spill_file::SpillFile,
};
use crate::record::{read_number, write_number};

/// Bytes in front of the entries of a chunk.
const HEADER_BYTES: usize = 8;

/// Most bytes of the two lengths in front of an entry.
pub(crate) const LENGTHS_BYTES_MAX: usize = 20;

/// Appends an entry to a block.
#[inline]
pub(crate) fn write_entry(key: &[u8], value: &[u8], block: &mut Vec<u8>) {
    write_number(key.len() as u64, block);
    write_number(value.len() as u64, block);
    block.extend_from_slice(key);
    block.extend_from_slice(value);
}

/// Takes an entry off the front of a block; none if the block is malformed.
#[inline]
pub(crate) fn read_entry<'a>(block: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let key = usize::try_from(read_number(block)?).ok()?;
    let value = usize::try_from(read_number(block)?).ok()?;
    let (key, rest) = block.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *block = rest;
    Some((key, value))
}

/// What a task says when it cannot use its spill file at `path`; another attempt may.
fn failure(action: &str, path: &Path, error: &io::Error) -> TaskFailure {
    TaskFailure::task(format!("cannot {action} the spill file {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
