//! A full disk, and one that has room again.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::Command,
};

use regrow_store::{EventStore, StoreError};
use tempfile::TempDir;

use crate::fixture::{EPOCH, Kind, RUN, batch, batches};

const DISK_BYTES: u64 = 8 << 20;

// A small file system, if we may mount one.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "regrow-store-test"])
            .arg(directory.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            tell("skipped: a full disk is not tested, for no tmpfs can be mounted here");
            return None;
        }
        Some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn fill(&self) {
        let mut ballast = File::create(self.path().join("ballast")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while ballast.write_all(&vec![7; size]).is_ok() {}
        }
    }

    fn heal(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

#[expect(clippy::print_stderr, reason = "who runs the tests is to see what was not tested")]
fn tell(text: &str) {
    eprintln!("{text}");
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.directory.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

// Appends until it fails; the count of acknowledged batches and the failure.
fn append_until_full(store: &mut dyn EventStore, mut count: u64) -> (u64, StoreError) {
    loop {
        match store.append(RUN, EPOCH, &batch(count).repeat(40)) {
            Ok(position) => {
                assert_eq!(position.sequence, count);
                count += 1;
            }
            Err(error) => return (count, error),
        }
    }
}

#[test]
fn log_5_what_was_acknowledged_survives_a_full_disk_and_writing_goes_on() {
    for kind in Kind::PERSISTENT {
        let Some(disk) = SmallDisk::mount() else { return };
        let path = disk.path().join("store");
        let mut store = kind.open(&path);
        store.open_log(RUN, EPOCH).unwrap();
        for number in 0..5 {
            store.append(RUN, EPOCH, &batch(number).repeat(40)).unwrap();
        }
        disk.fill();
        let (acknowledged, error) = append_until_full(&mut *store, 5);
        assert!(matches!(error, StoreError::Io { .. }), "{kind:?}: {error:?}");
        let poisoned = store.append(RUN, EPOCH, b"x");
        assert!(matches!(poisoned, Err(StoreError::Poisoned { .. })), "{kind:?}");
        assert!(store.reopen().is_err(), "{kind:?}: the disk is still full");
        let poisoned = store.append(RUN, EPOCH, b"x");
        assert!(matches!(poisoned, Err(StoreError::Poisoned { .. })), "{kind:?}");
        disk.heal();
        store.reopen().unwrap();
        let read = batches(&mut *store, RUN);
        assert!(read.len() as u64 >= acknowledged, "{kind:?}: {} of {acknowledged}", read.len());
        for (number, bytes) in read.iter().enumerate() {
            assert_eq!(*bytes, batch(number as u64).repeat(40), "{kind:?}");
        }
        let position = store.append(RUN, EPOCH, b"goes on").unwrap();
        assert_eq!(position.sequence, read.len() as u64, "{kind:?}");
        drop(store);
        assert_eq!(batches(&mut *kind.open(&path), RUN).len(), read.len() + 1, "{kind:?}");
    }
}

#[test]
fn log_5_a_store_that_never_heals_keeps_what_it_has() {
    for kind in Kind::PERSISTENT {
        let Some(disk) = SmallDisk::mount() else { return };
        let path = disk.path().join("store");
        let mut store = kind.open(&path);
        store.open_log(RUN, EPOCH).unwrap();
        store.append(RUN, EPOCH, &batch(0).repeat(40)).unwrap();
        disk.fill();
        let (acknowledged, _) = append_until_full(&mut *store, 1);
        for _ in 0..3 {
            assert!(store.reopen().is_err(), "{kind:?}");
        }
        drop(store);
        disk.heal();
        let read = batches_or_torn(kind, &path);
        assert!(read >= acknowledged, "{kind:?}: {read} of {acknowledged}");
    }
}

fn batches_or_torn(kind: Kind, path: &Path) -> u64 {
    let log = kind.open(path).read_log(RUN).unwrap();
    assert!(log.batches.iter().all(|batch| !batch.follows_damage));
    log.batches.len() as u64
}
