//! The built-in job `sort`.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{environment::Environment, sinks::Sinks as _};

/// Bytes of a record.
const RECORD_BYTES: u32 = 100;

/// Bytes of its key, with which it begins.
const KEY_BYTES: usize = 10;

/// Sorts records of 100 bytes by their first 10
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(after_help = "Example:
  regrow generate records --size 1gb --files 16 --output records/
  regrow run sort --input records/ --output sorted/
  regrow verify sorted sorted/
writes sorted/part-00000.bin, ...: sorted each, and one after the other. Records of the same key
come in the order of their other bytes.")]
pub(crate) struct Sort {
    /// File of records, or directory of such files
    #[arg(long, value_name = "PATH")]
    pub(crate) input: PathBuf,
    /// Directory for the result
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Builds the job.
pub(crate) fn build(env: &Environment, arguments: Sort) -> Result<(), String> {
    env.read_records(&arguments.input, RECORD_BYTES)
        .sort_by_key_parts(|record, key| {
            // Of a fixed length, so that its end need not be marked.
            if let Some(first) = record.first_chunk::<KEY_BYTES>() {
                key.add(first);
            }
        })
        .write_records(&arguments.output)
        .accept()
}
