//! The thread of a store.

use std::{io, thread, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use regrow_store::{EventStore, StoreError};
use tracing::warn;

use super::{OpenStore, StoreJob, StoreRunner};

/// How long the end of a store is waited for once nothing more is asked of it. What was said to be
/// stored is; a store that hangs must not keep its process.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// Works on a store on a thread of its own. Dropping it does all that was asked for, closes the
/// store and waits for that, for half a minute at most.
pub(crate) struct StoreThread {
    // There until the drop.
    jobs: Option<Sender<StoreJob>>,
    /// Says that the thread has ended, in whatever way.
    ended: Receiver<()>,
}

impl StoreThread {
    /// Starts the thread, which opens the store and tells `opened`. Work may be asked for at once;
    /// it is dropped if the store cannot be opened.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start(
        open: OpenStore,
        opened: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, queue) = unbounded();
        let (lives, ended) = bounded(0);
        thread::Builder::new().name("regrow-store".to_owned()).spawn(move || {
            // Dropped last.
            let _lives: Sender<()> = lives;
            match open() {
                Ok(store) => {
                    opened(Ok(()));
                    work(store, &queue);
                }
                Err(error) => opened(Err(error)),
            }
        })?;
        Ok(Self { jobs: Some(jobs), ended })
    }
}

fn work(mut store: Box<dyn EventStore>, queue: &Receiver<StoreJob>) {
    for job in queue {
        job(&mut *store);
    }
}

impl StoreRunner for StoreThread {
    fn run(&self, job: StoreJob) {
        // A thread that ended has dropped the queue; then the job is dropped, which answers it.
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(job));
        }
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if self.ended.recv_timeout(END_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            warn!("the event store does not end; it is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::mpsc};

    use regrow_store::{MemoryStore, Table};

    use super::*;
    use crate::store_runner::ask;

    #[test]
    fn work_asked_for_before_the_store_is_open_is_done() {
        let (gate, wait) = mpsc::channel::<()>();
        let open: OpenStore = Box::new(move || {
            wait.recv().unwrap();
            Ok(Box::new(MemoryStore::new()) as Box<dyn EventStore>)
        });
        let store = StoreThread::start(open, drop).unwrap();
        let (sender, receiver) = mpsc::channel();
        ask(&store, |store| store.keys(Table::Results), move |keys| sender.send(keys).unwrap());
        gate.send(()).unwrap();
        assert!(receiver.recv().unwrap().unwrap().unwrap().is_empty());
    }

    #[test]
    fn a_store_that_cannot_be_opened_answers_all_work() {
        let (sender, receiver) = mpsc::channel();
        let path = PathBuf::from("/data");
        let open: OpenStore = Box::new(move || Err(StoreError::Poisoned { path }));
        let store = StoreThread::start(open, move |opened| sender.send(opened).unwrap()).unwrap();
        assert!(receiver.recv().unwrap().is_err());
        let (sender, receiver) = mpsc::channel();
        ask(&store, |store| store.keys(Table::Results), move |keys| sender.send(keys).unwrap());
        assert!(receiver.recv().unwrap().is_err());
    }

    #[test]
    fn work_that_panics_leaves_the_thread_to_others() {
        let open: OpenStore = Box::new(|| Ok(Box::new(MemoryStore::new()) as Box<dyn EventStore>));
        let store = StoreThread::start(open, drop).unwrap();
        let (sender, receiver) = mpsc::channel();
        let answers = sender.clone();
        ask(&store, |_| -> u32 { panic!("a defect") }, move |it| answers.send(it).unwrap());
        ask(&store, |_| 7, move |it| sender.send(it).unwrap());
        assert_eq!(receiver.recv().unwrap(), Err("a defect".to_owned()));
        assert_eq!(receiver.recv().unwrap(), Ok(7));
    }
}
