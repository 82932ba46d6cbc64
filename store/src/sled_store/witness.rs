//! What the database is known to have held: sled ends its log silently at the first page that it
//! cannot read, and with it may go what was acknowledged.
//!
//! A file of slots, each for one run, term or document, and each a lower bound: it is written after
//! what it witnesses is durable, and not synced, so it costs microseconds. A killed process loses
//! none of it, a crashed host at most the last moments. A slot that cannot be read is ignored.
//!
//! Integers are little-endian.
//! ```text
//! offset  bytes  meaning of a slot
//!      0      1  length of the key, 0 for a free slot
//!      1     95  the key, filled up with zeros
//!     96      8  term
//!    104      4  life
//!    108      8  number: of the next batch, or revision of the document
//!    116      4  CRC32C of offsets 0 to 116
//! ```

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use regrow_protocol::Epoch;

use crate::{
    StoreError,
    durable::{self, Tried},
};

const SLOT_BYTES: usize = 120;
const KEY_BYTES: usize = 95;
const CHECKSUM_OFFSET: usize = 116;

/// The witness file, and what it says.
pub(super) struct Witness {
    file: File,
    path: PathBuf,
    slots: BTreeMap<Vec<u8>, Slot>,
    free: Vec<u64>,
    end: u64,
}

struct Slot {
    index: u64,
    testimony: Testimony,
}

/// A lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Testimony {
    /// Highest claim.
    pub(super) epoch: Epoch,
    /// Number of the next batch, or revision of a document.
    pub(super) number: u64,
}

impl Witness {
    /// Reads the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let bytes = durable::read_file(path)?.unwrap_or_default();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .tried("open", path)?;
        let mut witness =
            Self { file, path: path.to_owned(), slots: BTreeMap::new(), free: Vec::new(), end: 0 };
        for slot in bytes.chunks(SLOT_BYTES) {
            let index = witness.end;
            witness.end += 1;
            match decode(slot) {
                Some((key, testimony)) => {
                    witness.slots.insert(key, Slot { index, testimony });
                }
                None => witness.free.push(index),
            }
        }
        Ok(witness)
    }

    /// What is known of `key`.
    pub(super) fn of(&self, key: &[u8]) -> Option<Testimony> {
        self.slots.get(key).map(|slot| slot.testimony)
    }

    /// The keys that begin with `prefix`, without it, ascending.
    pub(super) fn keys(&self, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.slots.keys().filter_map(move |key| key.strip_prefix(prefix))
    }

    /// Notes what is durable now. A failure costs protection only, so it is told and not returned.
    pub(super) fn note(&mut self, key: &[u8], testimony: Testimony) {
        let index = match self.slots.get(key) {
            Some(slot) => slot.index,
            None => self.free.pop().unwrap_or_else(|| {
                self.end += 1;
                self.end - 1
            }),
        };
        self.slots.insert(key.to_vec(), Slot { index, testimony });
        if let Err(error) = self.write(index, &encode(key, testimony)) {
            tracing::warn!(path = %self.path.display(), %error, "cannot note what is durable");
        }
    }

    /// Forgets a key, durably: called before it is removed from the database.
    pub(super) fn forget(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let Some(slot) = self.slots.get(key) else {
            return Ok(());
        };
        let index = slot.index;
        self.write(index, &[0; SLOT_BYTES])?;
        self.file.sync_data().tried("sync", &self.path)?;
        self.slots.remove(key);
        self.free.push(index);
        Ok(())
    }

    fn write(&self, index: u64, slot: &[u8; SLOT_BYTES]) -> Result<(), StoreError> {
        self.file.write_all_at(slot, index * SLOT_BYTES as u64).tried("write", &self.path)
    }
}

fn encode(key: &[u8], testimony: Testimony) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    assert!(key.len() <= KEY_BYTES, "keys of documents are checked, and others are shorter");
    slot[0] = u8::try_from(key.len()).unwrap_or(0);
    slot[1..=key.len()].copy_from_slice(key);
    slot[96..104].copy_from_slice(&testimony.epoch.term.to_le_bytes());
    slot[104..108].copy_from_slice(&testimony.epoch.life.to_le_bytes());
    slot[108..116].copy_from_slice(&testimony.number.to_le_bytes());
    let checksum = crc32c::crc32c(&slot[..CHECKSUM_OFFSET]);
    slot[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
    slot
}

fn decode(slot: &[u8]) -> Option<(Vec<u8>, Testimony)> {
    let stored = u32::from_le_bytes(*slot.get(CHECKSUM_OFFSET..)?.first_chunk()?);
    if crc32c::crc32c(&slot[..CHECKSUM_OFFSET]) != stored {
        return None;
    }
    let length = usize::from(slot[0]);
    if length == 0 || length > KEY_BYTES {
        return None;
    }
    let epoch = Epoch::new(
        u64::from_le_bytes(*slot[96..].first_chunk()?),
        u32::from_le_bytes(*slot[104..].first_chunk()?),
    );
    let number = u64::from_le_bytes(*slot[108..].first_chunk()?);
    Some((slot[1..=length].to_vec(), Testimony { epoch, number }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn testimony(number: u64) -> Testimony {
        Testimony { epoch: Epoch::new(2, 1), number }
    }

    #[test]
    fn what_was_noted_is_known_to_the_next_life() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("witness");
        let mut witness = Witness::open(&path).unwrap();
        witness.note(b"a", testimony(1));
        witness.note(b"b", testimony(2));
        witness.note(b"a", testimony(3));
        let witness = Witness::open(&path).unwrap();
        assert_eq!(witness.of(b"a"), Some(testimony(3)));
        assert_eq!(witness.of(b"b"), Some(testimony(2)));
        assert_eq!(witness.of(b"c"), None);
    }

    #[test]
    fn forgotten_slots_are_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("witness");
        let mut witness = Witness::open(&path).unwrap();
        for key in 0..100_u8 {
            witness.note(&[b'k', key], testimony(1));
            witness.forget(&[b'k', key]).unwrap();
        }
        let mut witness = Witness::open(&path).unwrap();
        witness.note(b"x", testimony(1));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), SLOT_BYTES as u64);
        assert_eq!(Witness::open(&path).unwrap().keys(b"").count(), 1);
    }

    #[test]
    fn a_flipped_bit_costs_one_slot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("witness");
        let mut witness = Witness::open(&path).unwrap();
        witness.note(b"a", testimony(1));
        witness.note(b"b", testimony(2));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[50] ^= 1;
        std::fs::write(&path, &bytes[..]).unwrap();
        let witness = Witness::open(&path).unwrap();
        assert_eq!((witness.of(b"a"), witness.of(b"b")), (None, Some(testimony(2))));
    }

    #[test]
    fn garbage_testifies_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("witness");
        for bytes in [vec![0_u8; 500], vec![255; 119], vec![7; 121]] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Witness::open(&path).unwrap().keys(b"").count(), 0);
        }
    }
}
