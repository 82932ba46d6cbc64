//! Where the event store works: on a thread of its own, because a sync may take long.

use std::{path::Path, sync::Arc};

use regrow_runtime::StoreKind;
use regrow_store::{EventStore, FileStore, MemoryStore, SledStore, StoreError};
use tracing::error;

use crate::effects::{Answer, panic_text};

mod store_thread;

pub(crate) use store_thread::StoreThread;

/// Work on a store; it answers by itself.
pub(crate) type StoreJob = Box<dyn FnOnce(&mut dyn EventStore) + Send>;

/// Runs work on a store, one piece after the other, in the order in which it came.
///
/// Nothing bounds the queue but those who fill it: each `EventWriter` has one write under way, and
/// the `Dispatcher` some requests per run.
pub(crate) trait StoreRunner: Send + Sync {
    /// Runs `job` soon, or drops it when the store cannot be used any more.
    fn run(&self, job: StoreJob);
}

/// A store that many actors use.
pub(crate) type SharedStore = Arc<dyn StoreRunner>;

/// Runs `work` on the store and gives its result to `done`, exactly once: a text if the work
/// panicked or the store cannot be used any more.
pub(crate) fn ask<T: 'static>(
    store: &dyn StoreRunner,
    work: impl FnOnce(&mut dyn EventStore) -> T + Send + 'static,
    done: impl FnOnce(Result<T, String>) + Send + 'static,
) {
    let mut answer = Answer::new(done, "the event store has stopped");
    store.run(Box::new(move |store| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(store)));
        let result = result.map_err(|payload| panic_text(&*payload));
        if let Err(text) = &result {
            error!(panic = %text, "work on the event store panicked");
        }
        answer.give(result);
    }));
}

/// Opens the store of a kind at `path`; one in memory is always new.
pub(crate) fn open_store(kind: StoreKind, path: &Path) -> Result<Box<dyn EventStore>, StoreError> {
    Ok(match kind {
        StoreKind::Sled => Box::new(SledStore::open(path)?),
        StoreKind::File => Box::new(FileStore::open(path)?),
        StoreKind::Memory => Box::new(MemoryStore::new()),
    })
}

/// Makes a store, on the thread that will use it.
pub(crate) type OpenStore = Box<dyn FnOnce() -> Result<Box<dyn EventStore>, StoreError> + Send>;
