//! The data directories of one worker.

use std::{collections::VecDeque, net::SocketAddr, path::Path, sync::Arc};

use regrow_protocol::{DataDirectoryId, PartitionKeeper, WorkerId};
use regrow_runtime::with_causes;
use regrow_shuffle::{DataDirectory, DirectoryError};
use tracing::warn;

use crate::shuffle_service::Standing;

/// The data directories of one worker; locked while any part of the worker lives.
pub struct WorkerDirectories {
    /// Where new outputs go.
    own: Arc<DataDirectory>,
    /// What a former process left.
    taken_over: Vec<Arc<DataDirectory>>,
    standing: Standing,
}

impl WorkerDirectories {
    /// Opens the directories of as many workers as `new` has ids. They take over what former
    /// processes left under `root`, so that a restarted process keeps its directories; a worker for
    /// which nothing is left makes one named by its id. Reads the disk: not for the thread of a
    /// busy actor.
    ///
    /// # Errors
    /// When `root` cannot be used.
    pub fn open(root: &Path, new: &[DataDirectoryId]) -> Result<Vec<Self>, DirectoryError> {
        let mut found = DataDirectory::take_over(root)?.into_iter();
        let mut workers = Vec::with_capacity(new.len());
        for id in new {
            let own = match found.next() {
                Some(first) => first,
                None => DataDirectory::create(root, *id)?,
            };
            let (own, taken_over) = (Arc::new(own), Vec::new());
            workers.push(Self { own, taken_over, standing: Standing::OfWorker });
        }
        let left = found.filter(|directory| !is_removed(directory)).map(Arc::new);
        for (index, directory) in left.enumerate() {
            let worker = index % workers.len().max(1);
            if let Some(worker) = workers.get_mut(worker) {
                worker.taken_over.push(directory);
            }
        }
        Ok(workers)
    }

    /// Opens the directories of a stand-alone shuffle service: the one that an earlier life of it
    /// kept under `root`, or one named `new`, and what workers left that are gone.
    ///
    /// # Errors
    /// When another service lives there, or `root` cannot be used.
    pub(crate) fn keep(root: &Path, new: DataDirectoryId) -> Result<Self, DirectoryError> {
        let mut term = 0;
        let mut kept = VecDeque::new();
        for directory in DataDirectory::keep(root, new)? {
            if directory.is_of_a_service() {
                term = term.max(directory.term()?);
            }
            kept.push_back(directory);
        }
        let own = match kept.pop_front() {
            Some(own) => own,
            None => DataDirectory::create(root, new)?,
        };
        let others = kept.into_iter().filter(|directory| !is_removed(directory));
        let taken_over = others.map(Arc::new).collect();
        Ok(Self { own: Arc::new(own), taken_over, standing: Standing::StandAlone { term } })
    }

    /// Joins those who write into the directory that a living shuffle service keeps under `root`;
    /// none if no service lives.
    ///
    /// # Errors
    /// When `root` cannot be used.
    pub(crate) fn join(root: &Path, worker: WorkerId) -> Result<Option<Self>, DirectoryError> {
        let joined = DataDirectory::join(root, worker)?;
        Ok(joined.map(|own| Self {
            own: Arc::new(own),
            taken_over: Vec::new(),
            standing: Standing::OfWorker,
        }))
    }

    /// Says where a stand-alone shuffle service listens, for those who look at its files.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(crate) fn note_address(&self, address: SocketAddr) -> Result<(), DirectoryError> {
        match self.standing {
            Standing::OfWorker => Ok(()),
            Standing::StandAlone { .. } => Ok(self.own.note_life(Some(address.to_string()))?),
        }
    }

    /// Who answers for what is written there.
    pub(crate) fn keeper(&self) -> PartitionKeeper {
        if self.own.is_kept_here() {
            PartitionKeeper::Worker
        } else {
            PartitionKeeper::ShuffleService
        }
    }

    /// What the shuffle service of the process is.
    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    /// Gives the directory of new outputs, and gives up the others.
    pub(super) fn into_own(self) -> Arc<DataDirectory> {
        self.own
    }

    /// The directory of new outputs.
    pub(crate) fn id(&self) -> DataDirectoryId {
        self.own.id()
    }

    /// Those of whose partitions this process answers for: others read them here.
    pub(crate) fn served(&self) -> Vec<Arc<DataDirectory>> {
        let all = self.all().into_iter();
        all.filter(|directory| directory.is_kept_here()).collect()
    }

    /// All of them, that of new outputs first.
    pub(super) fn all(&self) -> Vec<Arc<DataDirectory>> {
        let taken_over = self.taken_over.iter().map(Arc::clone);
        std::iter::once(Arc::clone(&self.own)).chain(taken_over).collect()
    }
}

/// Removes a directory that nobody needs.
fn is_removed(directory: &DataDirectory) -> bool {
    directory.remove_if_empty().unwrap_or_else(|error| {
        warn!(directory = %directory.id(), error = with_causes(&error), "cannot tidy up");
        false
    })
}
