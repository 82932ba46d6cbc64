//! What operators keep in files of their attempt: entries of a key and a value.
//!
//! An entry is the length of its key and that of its value (LEB128 each), then both, without gaps.
//! Blocks of keyed records have the same form.

mod entry_reader;
mod entry_writer;

use std::{io, path::Path};

use regrow_protocol::TaskFailure;

pub(crate) use entry_reader::EntryReader;
pub(crate) use entry_writer::{EntryWriter, SpillFile};

use crate::record::{read_number, write_number};

/// Bytes that a file being read or written has in memory at most.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Bytes of it where memory is scarce.
const BUFFER_BYTES_MIN: usize = 4 << 10;

/// Bytes of buffer of each of `files` that share `memory_bytes`.
pub(crate) fn buffer_bytes(memory_bytes: usize, files: usize) -> usize {
    (memory_bytes / files.max(1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
}

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

/// What a task says when its spill file at `path` cannot be written or read.
fn failure(path: &Path, error: &io::Error) -> TaskFailure {
    TaskFailure::task(format!("cannot use the spill file {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
