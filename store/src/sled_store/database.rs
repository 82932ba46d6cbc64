//! A sled database with guards around it.
//!
//! - After its flush, which on Linux is no fsync, the files are synced.
//! - A torn `snap.*.generating`, which makes it refuse to open, is removed first.
//! - Its settings are written anew at each start.
//! - It may panic on what it reads: a panic becomes [`StoreError::Damaged`].
//! - It may wait for ever when it closes after a write that failed: then it is left behind.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::ErrorKind,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    StoreError,
    durable::{self, Tried},
};

// 1 GiB is sled's default.
const CACHE_BYTES: u64 = 16 << 20;
// Small files and a quick start; sled puts what is larger than a quarter of it into a file of its
// own, which is rewritten more often the smaller this is.
const SEGMENT_BYTES: usize = 128 << 10;
// Threads of sled give its lock back a moment after the handle is dropped.
const LOCK_WAIT: Duration = Duration::from_millis(1);
const LOCK_WAITS_MAX: u32 = 5_000;
// How long sled may take to close; what it holds was synced long before.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A tree of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    Batches,
    Runs,
    Terms,
    JobGraphs,
    Results,
}

impl Tree {
    pub(super) const ALL: [Self; 5] =
        [Self::Batches, Self::Runs, Self::Terms, Self::JobGraphs, Self::Results];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Batches => "batches",
            Self::Runs => "runs",
            Self::Terms => "terms",
            Self::JobGraphs => "job-graphs",
            Self::Results => "results",
        }
    }
}

/// An open database. Nothing is durable before [`Database::sync`].
pub(super) struct Database {
    path: PathBuf,
    opened: Option<Opened>,
    file: File,
    names: Names,
    synced_blobs: BTreeSet<String>,
}

/// Whether the names of sled's files, and its settings, are durable: opening waits for no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    New,
    Synced,
}

struct Opened {
    database: sled::Db,
    trees: [sled::Tree; Tree::ALL.len()],
}

impl Database {
    /// Opens the database in `path`, or makes one.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        remove_what_was_never_used(path)?;
        remove_torn_snapshots(path)?;
        fs::create_dir_all(path).tried("create directory", path)?;
        // Sled writes its settings anew if they are missing; ours never change within a format of
        // the store, so a damaged copy of them is no reason not to open it.
        durable::remove_file(&path.join("conf"))?;
        let opened = open_when_free(path)?;
        let data = path.join("db");
        let file = OpenOptions::new().read(true).write(true).open(&data).tried("open", &data)?;
        let synced_blobs = BTreeSet::new();
        let path = path.to_owned();
        Ok(Self { path, opened: Some(opened), file, names: Names::New, synced_blobs })
    }

    /// The value of a key.
    pub(super) fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.call("read", |opened| opened.tree(tree).get(key))?;
        Ok(value.map(|value| value.to_vec()))
    }

    /// Puts a value.
    pub(super) fn insert(&self, tree: Tree, key: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        self.call("write", |opened| opened.tree(tree).insert(key, value)).map(drop)
    }

    /// Removes keys, all or none.
    pub(super) fn remove(&self, tree: Tree, keys: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for key in keys {
            batch.remove(key.as_slice());
        }
        self.call("remove from", |opened| opened.tree(tree).apply_batch(batch))
    }

    /// Hands the entries from `first` to `last` to `visit`, ascending.
    pub(super) fn visit(
        &self,
        tree: Tree,
        range: (&[u8], &[u8]),
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        self.visit_until(tree, range, |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })
    }

    /// Hands the entries from `first` to `last` to `visit`, ascending, until it has enough.
    pub(super) fn visit_until(
        &self,
        tree: Tree,
        (first, last): (&[u8], &[u8]),
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.call("read", |opened| {
            let mut entries = opened.tree(tree).range(first..=last);
            let mut wish = ControlFlow::Continue(());
            while wish.is_continue()
                && let Some(entry) = entries.next()
            {
                let (key, value) = entry?;
                wish = visit(&key, &value);
            }
            Ok(())
        })
    }

    /// The keys from `first` to `last`, ascending.
    pub(super) fn keys(
        &self,
        tree: Tree,
        (first, last): (&[u8], &[u8]),
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut keys = Vec::new();
        self.visit(tree, (first, last), |key, _| keys.push(key.to_vec()))?;
        Ok(keys)
    }

    /// Makes all that was written durable. Files that sled keeps beside its log come first, for
    /// the log points to them.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.sync_names()?;
        self.sync_blobs()?;
        self.call("flush", |opened| opened.database.flush())?;
        self.file.sync_data().tried("sync", &self.path.join("db"))
    }

    /// Copies all entries into a new database at `path`, durable.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let mut copy = Self::open(path)?;
        for tree in Tree::ALL {
            self.copy_tree_to(&copy, tree)?;
        }
        copy.sync()
    }

    fn copy_tree_to(&self, copy: &Self, tree: Tree) -> Result<(), StoreError> {
        let mut copied = Ok(());
        self.visit(tree, (&[], &[0xff; 256]), |key, value| {
            if copied.is_ok() {
                copied = copy.insert(tree, key, value.to_vec());
            }
        })?;
        copied
    }

    fn sync_names(&mut self) -> Result<(), StoreError> {
        if self.names == Names::New {
            let settings = self.path.join("conf");
            File::open(&settings).and_then(|file| file.sync_all()).tried("sync", &settings)?;
            durable::sync_directory(&self.path)?;
            durable::sync_directory(self.path.parent().unwrap_or(&self.path))?;
            self.names = Names::Synced;
        }
        Ok(())
    }

    fn sync_blobs(&mut self) -> Result<(), StoreError> {
        let directory = self.path.join("blobs");
        let names: BTreeSet<String> = durable::names(&directory)?.into_iter().collect();
        for name in names.difference(&self.synced_blobs) {
            let path = directory.join(name);
            match File::open(&path).and_then(|file| file.sync_all()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result.tried("sync", &path)?,
            }
        }
        if !names.is_subset(&self.synced_blobs) {
            durable::sync_directory(&directory)?;
        }
        self.synced_blobs = names;
        Ok(())
    }

    fn call<T>(
        &self,
        action: &'static str,
        call: impl FnOnce(&Opened) -> sled::Result<T>,
    ) -> Result<T, StoreError> {
        guarded(action, &self.path, || match &self.opened {
            Some(opened) => call(opened),
            None => Err(sled::Error::ReportableBug("the database is closed".to_owned())),
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(opened) = self.opened.take() {
            close(&self.path, opened, CLOSE_TIMEOUT);
        }
    }
}

/// Drops something of sled. It flushes then: it panics if it cannot, and after a write that failed
/// it was seen to wait for ever. So it does that on a thread of its own, which is left behind, with
/// the lock of the database, when it takes longer than `timeout`.
fn close<T: Send + 'static>(path: &Path, opened: T, timeout: Duration) {
    let path = path.display();
    let (closed, waits) = mpsc::channel();
    let drop_it = move || {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(opened)));
        // Nobody may wait any more.
        let _ = closed.send(dropped.is_ok());
    };
    if let Err(error) = thread::Builder::new().name("sled-close".to_owned()).spawn(drop_it) {
        tracing::warn!(%path, %error, "no thread to close sled on");
    }
    match waits.recv_timeout(timeout) {
        Ok(true) => {}
        Ok(false) => tracing::warn!(%path, "sled panicked while it closed"),
        Err(_) => tracing::warn!(%path, "sled does not close; it is left behind"),
    }
}

impl Opened {
    fn tree(&self, tree: Tree) -> &sled::Tree {
        &self.trees[tree as usize]
    }
}

// The data file is made after all others: without bytes in it nothing was ever acknowledged, and
// the others may be half written.
fn remove_what_was_never_used(path: &Path) -> Result<(), StoreError> {
    let data = path.join("db");
    let used = fs::metadata(&data).is_ok_and(|metadata| metadata.len() > 0);
    if used || !path.is_dir() {
        return Ok(());
    }
    fs::remove_dir_all(path).tried("remove", path)
}

fn remove_torn_snapshots(path: &Path) -> Result<(), StoreError> {
    for name in durable::names(path)? {
        if name.starts_with("snap.") && name.ends_with(".generating") {
            durable::remove_file(&path.join(name))?;
        }
    }
    Ok(())
}

fn open_when_free(path: &Path) -> Result<Opened, StoreError> {
    let mut waits = 0;
    loop {
        match guarded("open", path, || open(path)) {
            Err(StoreError::Io { source, .. })
                if waits < LOCK_WAITS_MAX && source.to_string().contains("acquire lock") =>
            {
                waits += 1;
                thread::park_timeout(LOCK_WAIT);
            }
            result => return result,
        }
    }
}

fn open(path: &Path) -> sled::Result<Opened> {
    let database = sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .segment_size(SEGMENT_BYTES)
        .mode(sled::Mode::LowSpace)
        .flush_every_ms(None)
        .open()?;
    let [batches, runs, terms, graphs, results] =
        Tree::ALL.map(|tree| database.open_tree(tree.name()));
    Ok(Opened { trees: [batches?, runs?, terms?, graphs?, results?], database })
}

fn guarded<T>(
    action: &'static str,
    path: &Path,
    call: impl FnOnce() -> sled::Result<T>,
) -> Result<T, StoreError> {
    let damaged = |reason| StoreError::Damaged { path: path.to_owned(), reason };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(sled::Error::Io(error))) => Err(error).tried(action, path),
        Ok(Err(error)) => Err(damaged(format!("sled cannot {action} it: {error}"))),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no text");
            Err(damaged(format!("sled panicked when it was to {action} it: {text}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as long to drop as it is told to.
    struct Waits(mpsc::Receiver<()>);

    impl Drop for Waits {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn p4_what_does_not_close_is_left_behind() {
        let (end, waits) = mpsc::channel();
        close(Path::new("/data"), Waits(waits), Duration::from_millis(1));
        assert!(end.send(()).is_ok(), "it still waits");
    }
}
