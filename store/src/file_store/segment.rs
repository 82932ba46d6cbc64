//! One file of a log: frames, one behind the other, and nothing else.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use regrow_protocol::RunId;

use crate::{
    LogDamage, StoreError,
    durable::Tried,
    frame::{self, FrameError},
    log_assembler::LogAssembler,
};

/// Bytes after which the next batch goes to another file. A file is removed as a whole, so a
/// smaller one gives space back earlier, and a larger one costs fewer syncs of the directory.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 20;

/// Appends to a new file.
pub(super) struct SegmentWriter {
    file: File,
    path: PathBuf,
    segment: u64,
    acknowledged_bytes: u64,
}

impl SegmentWriter {
    /// Makes the file; its name is durable when the directory is synced.
    pub(super) fn create(path: PathBuf, segment: u64) -> Result<Self, StoreError> {
        let file =
            OpenOptions::new().append(true).create_new(true).open(&path).tried("create", &path)?;
        Ok(Self { file, path, segment, acknowledged_bytes: 0 })
    }

    pub(super) fn segment(&self) -> u64 {
        self.segment
    }

    pub(super) fn is_full(&self) -> bool {
        self.acknowledged_bytes >= SEGMENT_BYTES_MAX
    }

    /// Appends a frame; it is durable when this returns.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(frame).tried("append to", &self.path)?;
        self.file.sync_data().tried("sync", &self.path)?;
        self.acknowledged_bytes += frame.len() as u64;
        Ok(())
    }

    /// How to take back what was not acknowledged.
    pub(super) fn cut(&self) -> Cut {
        Cut { path: self.path.clone(), bytes: self.acknowledged_bytes }
    }
}

/// A file that is to have this length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl Cut {
    pub(super) fn carry_out(&self) -> Result<(), StoreError> {
        let file = match OpenOptions::new().write(true).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            result => result.tried("open", &self.path)?,
        };
        file.set_len(self.bytes).tried("truncate", &self.path)?;
        file.sync_all().tried("sync", &self.path)
    }
}

/// Where a segment stands among those that have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A later one has bytes: this one was complete.
    Earlier,
    /// The one that was written last.
    Newest,
}

/// Reads the frames of a segment. Returns where an incomplete last batch of the newest segment
/// begins: it was never acknowledged and may be cut off.
pub(super) fn scan(
    run: RunId,
    segment: u64,
    bytes: &[u8],
    standing: Standing,
    assembler: &mut LogAssembler,
) -> Option<u64> {
    let mut at = 0;
    while at < bytes.len() && !assembler.is_full() {
        let offset = Some(at as u64);
        let error = match frame::decode(run, &bytes[at..]) {
            Ok(frame) => {
                assembler.batch(segment, offset, frame);
                at += frame.len();
                continue;
            }
            Err(error) => error,
        };
        let next = frame::find(run, bytes, at + 1, assembler.next_sequence());
        let torn = matches!(error, FrameError::Incomplete { .. }) && standing == Standing::Newest;
        match next {
            None if torn => {
                assembler.damage(segment, offset, LogDamage::INCOMPLETE_END.to_owned());
                return offset;
            }
            None => {
                assembler.damage(segment, offset, error.to_string());
                return None;
            }
            Some(next) => {
                assembler.damage(segment, offset, error.to_string());
                at = next;
            }
        }
    }
    None
}

/// The bytes of a segment's file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).tried("read", path)
}
