//! The threads of a local run: one for all actors, one for the store.

use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use actix::Actor;
use crossbeam_channel::Sender;
use regrow_protocol::WorkerId;
use regrow_runtime::{JobSubmission, KillPoint, Options, WorkerTimeouts};
use tokio::sync::oneshot;
use tracing::warn;

use super::{
    CancelHandle, LaunchError,
    local_client::{LocalClient, Meet},
};
use crate::{
    actor_thread::spawn_actor_thread,
    dispatcher::{ClientUpdate, Dispatcher, DispatcherConfig, SubmitJob},
    effects::EffectRunner,
    resource_manager::ResourceManager,
    run_directory::NotedRun,
    runner::{RunnerKind, ThreadsEnded},
    store_runner::SharedStore,
    task::TaskFactory,
    task_executor::{StopWorker, TaskExecutor},
    worker::{Sharing, WorkerConfig, WorkerDirectories, WorkerError, spawn_worker},
};

/// All that the actors of a local run need.
pub(super) struct LocalSystemConfig {
    pub(super) submission: JobSubmission,
    pub(super) options: Options,
    pub(super) kills: Vec<KillPoint>,
    pub(super) slots: u32,
    pub(super) workers: Vec<(WorkerId, WorkerDirectories)>,
    pub(super) data_directory: PathBuf,
    pub(super) store: SharedStore,
    pub(super) factory: Arc<dyn TaskFactory>,
    pub(super) noted: NotedRun,
    pub(super) cancel: CancelHandle,
    pub(super) caller: Sender<ClientUpdate>,
}

/// The running actors of a local run.
pub(super) struct LocalSystem {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    threads_ended: Vec<ThreadsEnded>,
}

/// Workers that were started.
struct Workers {
    executors: Vec<actix::Addr<TaskExecutor>>,
    threads_ended: Vec<ThreadsEnded>,
}

impl LocalSystem {
    /// Starts the actors and submits the job.
    pub(super) fn start(config: LocalSystemConfig) -> Result<Self, LaunchError> {
        let (stop, stopped) = oneshot::channel();
        let (sender, started) = mpsc::channel();
        let thread = spawn_actor_thread(move || serve(config, sender, stopped))
            .map_err(LaunchError::Thread)?;
        let ended = || LaunchError::Workers("the thread of the actors ended".into());
        let workers = started.recv().map_err(|_| ended())?;
        let threads_ended = workers.map_err(|error| LaunchError::Workers(error.into()))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), threads_ended })
    }
}

impl Drop for LocalSystem {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Actors that died have nothing to stop.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the thread of the actors panicked");
        }
        self.threads_ended.iter().for_each(ThreadsEnded::wait_at_end);
    }
}

type Started = mpsc::Sender<Result<Vec<ThreadsEnded>, WorkerError>>;

async fn serve(config: LocalSystemConfig, started: Started, stopped: oneshot::Receiver<()>) {
    let workers = match start_actors(config) {
        Ok(workers) => workers,
        Err(error) => return drop(started.send(Err(error))),
    };
    drop(started.send(Ok(workers.threads_ended)));
    // A sender that was dropped says the same.
    drop(stopped.await);
    for executor in &workers.executors {
        executor.do_send(StopWorker);
    }
    // Lets them hear it before the thread ends.
    tokio::task::yield_now().await;
}

fn start_actors(config: LocalSystemConfig) -> Result<Workers, WorkerError> {
    let resource_manager = ResourceManager::default().start();
    let job = config.submission.job.clone();
    let dispatcher = Dispatcher::new(DispatcherConfig {
        data_directory: config.data_directory,
        store: config.store,
        factory: Arc::clone(&config.factory),
        effects: EffectRunner::Threads,
        resource_manager,
        noted: Some(config.noted),
    })
    .start();
    let client = LocalClient {
        job: job.clone(),
        kills: config.kills.clone(),
        caller: config.caller,
        dispatcher: None,
        workers: u32::try_from(config.workers.len()).unwrap_or(u32::MAX),
    }
    .start();
    client.do_send(Meet(dispatcher.clone()));
    let timeouts = WorkerTimeouts::of(&config.options);
    let mut workers = Workers { executors: Vec::new(), threads_ended: Vec::new() };
    for (worker, directories) in config.workers {
        let spawned = spawn_worker(WorkerConfig {
            worker,
            slots: config.slots,
            sharing: Sharing::default(),
            timeouts,
            directories,
            factory: Arc::clone(&config.factory),
            runner: RunnerKind::SlotThreads,
            master: dispatcher.clone().recipient(),
            watcher: client.clone().recipient(),
        })?;
        dispatcher.do_send(spawned.connected);
        workers.executors.push(spawned.task_executor);
        workers.threads_ended.extend(spawned.threads_ended);
    }
    let cancel = config.cancel.attach(job, dispatcher.clone().recipient());
    dispatcher.do_send(SubmitJob {
        submission: config.submission,
        options: config.options,
        // The others are the client's to fire.
        kills: config.kills.into_iter().filter(|kill| kill.percent().is_some()).collect(),
        client: client.recipient(),
        cancel,
        kill: None,
        obstacle: None,
    });
    Ok(workers)
}
