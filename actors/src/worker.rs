//! Starts the actors of one worker: a `TaskExecutor` and the `ShuffleService` that keeps what it
//! wrote.

#[cfg(test)]
pub(crate) mod bench;
mod place;
mod sharing;
mod worker_directories;

use std::{io, sync::Arc};

use actix::prelude::*;
use regrow_protocol::{WorkerDescription, WorkerId};
use regrow_runtime::WorkerTimeouts;
use regrow_shuffle::DiskError;
use thiserror::Error;

pub use self::{place::WorkerPlace, sharing::Sharing, worker_directories::WorkerDirectories};
use crate::{
    gateway::{MasterGateway, WorkerConnected},
    runner::{Equipment, LockStep, RunnerKind, SlotThreads, ThreadsEnded},
    shuffle_service::{FileThread, ShuffleService, ShuffleServiceConfig, WatchedBy},
    task::TaskFactory,
    task_executor::{TaskExecutor, TaskExecutorConfig},
    watch::Terminated,
};

/// What a worker is told at its start.
pub struct WorkerConfig {
    /// This life of it; never used twice.
    pub worker: WorkerId,
    /// How many attempts it runs at a time; 0 for a stand-alone shuffle service.
    pub slots: u32,
    /// How it shares partitions with other hosts.
    pub sharing: Sharing,
    /// How long it waits for a master.
    pub timeouts: WorkerTimeouts,
    /// Where its files are.
    pub directories: WorkerDirectories,
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
    /// How user code runs.
    pub runner: RunnerKind,
    /// Where its reports go.
    pub master: MasterGateway,
    /// Who is told when it is gone.
    pub watcher: Recipient<Terminated<WorkerId>>,
}

/// A worker that was started.
pub struct SpawnedWorker {
    /// How masters reach it.
    pub connected: WorkerConnected,
    /// For [`MasterLost`](crate::task_executor::MasterLost) and
    /// [`StopWorker`](crate::task_executor::StopWorker).
    pub task_executor: Addr<TaskExecutor>,
    /// To wait for the end of user code once the worker is gone; none in simulation.
    pub threads_ended: Option<ThreadsEnded>,
}

/// A worker could not be started.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// What it stores cannot be listed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The system refuses a thread.
    #[error("cannot start the thread for partition files; allow more threads to this user")]
    Thread(#[from] io::Error),
}

/// Starts the actors of a worker on the current thread. If one of them goes away, so does the
/// other, and `watcher` is told.
///
/// # Errors
/// When its directories cannot be listed or the thread for its files cannot be started.
pub fn spawn_worker(config: WorkerConfig) -> Result<SpawnedWorker, WorkerError> {
    let WorkerConfig {
        worker,
        slots,
        sharing,
        timeouts,
        directories,
        factory,
        runner,
        master,
        watcher,
    } = config;
    let file_thread = match runner {
        RunnerKind::SlotThreads => FileThread::Own,
        RunnerKind::LockStep => FileThread::Inline,
    };
    let shuffle_service = ShuffleService::start(ShuffleServiceConfig {
        worker,
        timeouts,
        directories: directories.all(),
        server: sharing.server,
        standing: directories.standing(),
        master: master.clone(),
        file_thread,
    })?;
    let place = sharing.address.map(|_| WorkerPlace::here(worker));
    let (data_directory, keeper) = (directories.id(), directories.keeper());
    let identity = WorkerDescription {
        worker,
        data_directory,
        slots,
        shuffle_address: sharing.address,
        keeper,
    };
    let config = TaskExecutorConfig {
        identity,
        term: directories.standing().term(),
        timeouts,
        master,
        shuffle_service: shuffle_service.clone().recipient(),
        watchers: [watcher, shuffle_service.clone().recipient()],
    };
    let equipment = Arc::new(Equipment::new(factory, directories.into_own(), sharing.reads, place));
    let mut threads_ended = None;
    let task_executor = TaskExecutor::start(config, |events| match runner {
        RunnerKind::LockStep => Box::new(LockStep::new(equipment, events)),
        RunnerKind::SlotThreads => {
            let threads = SlotThreads::new(equipment, slots, events);
            threads_ended = Some(threads.ended());
            Box::new(threads)
        }
    });
    shuffle_service.do_send(WatchedBy(task_executor.clone().recipient()));
    let connected = WorkerConnected {
        worker: identity,
        task_executor: task_executor.clone().recipient(),
        shuffle_service: shuffle_service.recipient(),
    };
    Ok(SpawnedWorker { connected, task_executor, threads_ended })
}
