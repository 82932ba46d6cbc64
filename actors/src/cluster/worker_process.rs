//! A process that is a worker: a `TaskManager`, or a stand-alone shuffle service.

use std::{net::SocketAddr, sync::mpsc, time::Duration};

use actix::{Actor, Addr, Context, Handler};
use crossbeam_channel::{Receiver, Sender, bounded, select};
use regrow_protocol::{Hello, Role, WorkerDescription, WorkerId};
use regrow_runtime::WorkerTimeouts;
use regrow_shuffle::RemoteReads;
use tokio::{runtime::Handle, sync::oneshot};
use tracing::warn;

use super::{
    ClusterError, ClusterIdentity, StillLooking, WorkerSetup,
    data_port::{DataPort, DataPortConfig},
    dialer::DialerConfig,
    io_thread::IoThread,
    leader_places::LeaderPlaces,
    master_link::{Behind, MasterLink, MasterLinkConfig, SayLeaving},
};
use crate::{
    actor_thread::spawn_actor_thread,
    net::LinkLimits,
    runner::RunnerKind,
    task_executor::{LeaveWorker, StopWorker},
    watch::Terminated,
    worker::{SpawnedWorker, WorkerConfig, WorkerDirectories, spawn_worker},
};

/// Longest wait between two looks for the leader.
const BACKOFF_MAX: Duration = Duration::from_millis(250);

/// What a worker tells whoever started it.
pub(crate) enum WorkerNews {
    /// It takes connections.
    Listening(SocketAddr),
    /// It looked for a leader for long, and goes on.
    NoLeader(StillLooking),
}

/// A worker, before it runs.
pub(crate) struct WorkerProcess {
    pub(crate) setup: WorkerSetup,
    /// This life of it.
    pub(crate) worker: WorkerId,
    /// How many attempts it runs at a time.
    pub(crate) slots: u32,
    /// Where its files are.
    pub(crate) directories: WorkerDirectories,
    /// What it says it is.
    pub(crate) role: fn(WorkerDescription) -> Role,
}

impl WorkerProcess {
    /// Runs until `stop` speaks, on threads of its own; `news` hears how it stands.
    ///
    /// # Errors
    /// When its actors cannot be started, or died.
    pub(crate) fn run(
        self,
        stop: &Receiver<()>,
        mut news: impl FnMut(WorkerNews),
    ) -> Result<(), ClusterError> {
        let io = IoThread::start().map_err(ClusterError::Thread)?;
        let (died, deaths) = bounded(1);
        let (no_leader, searches) = bounded(1);
        let (halt, halted) = oneshot::channel::<()>();
        let (started, starts) = mpsc::channel();
        let handle = io.handle().clone();
        let drain = self.setup.options.drain_timeout;
        let work = async move {
            let Started { worker, link, port } =
                match self.start(handle, no_leader, Watcher { died }) {
                    Ok(started) => started,
                    Err(error) => return drop(started.send(Err(error))),
                };
            drop(started.send(Ok((worker.threads_ended, port.bound()))));
            // A sender that was dropped says the same.
            let _ = halted.await;
            let (left, leaves) = oneshot::channel();
            // Before anything is given back, or it would come back at once.
            link.do_send(SayLeaving);
            worker.task_executor.do_send(LeaveWorker { drain, left });
            // Nothing is sent; it is dropped when all is done, or by a worker that died.
            let _ = leaves.await;
            worker.task_executor.do_send(StopWorker);
            // Lets it hear that before the thread ends.
            tokio::task::yield_now().await;
            drop(port);
        };
        let thread = spawn_actor_thread(move || work).map_err(ClusterError::Thread)?;
        let (threads_ended, bound) = starts.recv().map_err(|_| ClusterError::Ended)??;
        news(WorkerNews::Listening(bound));
        let ended = loop {
            select! {
                recv(stop) -> _ => break Ok(()),
                recv(deaths) -> _ => break Err(ClusterError::Ended),
                recv(searches) -> looking => match looking {
                    Ok(looking) => news(WorkerNews::NoLeader(looking)),
                    // Whoever looks is gone.
                    Err(_) => break Err(ClusterError::Ended),
                },
            }
        };
        drop(halt);
        if thread.join().is_err() {
            warn!("the thread of the actors panicked");
        }
        if let Some(threads) = threads_ended {
            threads.wait_at_end();
        }
        ended
    }

    fn start(
        self,
        io: Handle,
        no_leader: Sender<StillLooking>,
        watcher: Watcher,
    ) -> Result<Started, ClusterError> {
        let description = WorkerDescription {
            worker: self.worker,
            data_directory: self.directories.id(),
            slots: self.slots,
            shuffle_address: None,
            keeper: self.directories.keeper(),
        };
        let limits = LinkLimits::of(&self.setup.options);
        let port = DataPort::open(
            DataPortConfig {
                place: self.setup.data_place.clone(),
                identity: self.setup.identity.clone(),
                limits,
                worker: description,
                role: self.role,
                directories: &self.directories,
            },
            &io,
        )?;
        self.directories.note_address(port.address()).map_err(ClusterError::DataDirectory)?;
        let shuffle_address = Some(port.address());
        let description = WorkerDescription { shuffle_address, ..description };
        let link = MasterLink::new(MasterLinkConfig {
            dialer: self.dialer(description),
            limits,
            io,
            no_leader,
        })
        .start();
        port.pass_on(link.clone().recipient());
        let spawned = spawn_worker(WorkerConfig {
            worker: self.worker,
            slots: self.slots,
            sharing: port.sharing(self.reads()),
            timeouts: WorkerTimeouts::of(&self.setup.options),
            directories: self.directories,
            factory: self.setup.factory,
            runner: RunnerKind::SlotThreads,
            master: link.clone().recipient(),
            watcher: watcher.start().recipient(),
        })
        .map_err(|error| ClusterError::Worker(error.into()))?;
        link.do_send(Behind {
            task_executor: spawned.connected.task_executor.clone(),
            shuffle_service: spawned.connected.shuffle_service.clone(),
            news: spawned.task_executor.clone().recipient(),
        });
        Ok(Started { worker: spawned, link, port })
    }

    /// How inputs of other hosts are read.
    fn reads(&self) -> RemoteReads {
        let ClusterIdentity { cluster_id, registry } = self.setup.identity.clone();
        RemoteReads {
            hello: Hello::new(cluster_id, Some(registry), Role::PartitionReader),
            grace: self.setup.options.reconnect_grace,
            silence_timeout: self.setup.options.heartbeat_timeout,
        }
    }

    fn dialer(&self, worker: WorkerDescription) -> DialerConfig {
        let ClusterIdentity { cluster_id, registry } = self.setup.identity.clone();
        DialerConfig {
            places: LeaderPlaces::of(self.setup.leaders.clone(), self.setup.data_directory.clone()),
            hello: Hello::new(cluster_id, Some(registry), (self.role)(worker)),
            limits: LinkLimits::of(&self.setup.options),
            backoff_max: BACKOFF_MAX,
            random: Box::new(|| getrandom::u32().unwrap_or_default()),
        }
    }
}

/// What runs in a process that was started.
struct Started {
    worker: SpawnedWorker,
    link: Addr<MasterLink>,
    port: DataPort,
}

/// Says when the worker died.
struct Watcher {
    died: Sender<()>,
}

impl Actor for Watcher {
    type Context = Context<Self>;
}

impl Handler<Terminated<WorkerId>> for Watcher {
    type Result = ();

    fn handle(&mut self, _: Terminated<WorkerId>, _: &mut Self::Context) {
        // Whoever listened may be gone.
        let _ = self.died.try_send(());
    }
}
