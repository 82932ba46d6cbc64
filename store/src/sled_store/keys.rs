//! Keys in the trees and in the witness.

use regrow_protocol::RunId;

use super::database::Tree;
use crate::{Table, document, frame};

/// How the keys of runs begin in the witness.
pub(super) const RUN_WITNESS: &[u8] = b"run ";

/// A run in the witness.
pub(super) fn witness_key(run: RunId) -> Vec<u8> {
    [RUN_WITNESS, &run.bits().to_be_bytes()].concat()
}

/// A document in the witness.
pub(super) fn document_witness(table: Table, key: &str) -> Vec<u8> {
    [document::table_name(table).as_bytes(), b" ", key.as_bytes()].concat()
}

/// A run in its tree.
pub(super) fn run_key(run: RunId) -> Vec<u8> {
    run.bits().to_be_bytes().to_vec()
}

/// A batch in its tree: big-endian, so that the order of keys is the order of the log.
pub(super) fn batch_key(run: RunId, sequence: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&run.bits().to_be_bytes());
    key[16..].copy_from_slice(&sequence.to_be_bytes());
    key
}

/// The frame under a key, if it belongs there.
pub(super) fn frame_at<'a>(
    run: RunId,
    key: &[u8],
    value: &'a [u8],
) -> Result<frame::Frame<'a>, String> {
    let frame = frame::decode(run, value).map_err(|error| error.to_string())?;
    if frame.len() != value.len() || key != batch_key(run, frame.sequence) {
        return Err(format!("batch {} lies where another one should be", frame.sequence));
    }
    Ok(frame)
}

/// The tree of a table.
pub(super) const fn tree(table: Table) -> Tree {
    match table {
        Table::JobGraphs => Tree::JobGraphs,
        Table::Results => Tree::Results,
    }
}
