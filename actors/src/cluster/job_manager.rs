//! The role of a `JobManager`: waits until it leads, then leads all jobs of its data directory.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use actix::{Actor, Addr};
use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use regrow_protocol::{Hello, Role};
use regrow_runtime::Options;
use regrow_store::StoreError;
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    ClusterError, ClusterIdentity,
    acceptor::{Acceptor, AcceptorConfig, Caller},
    gate::{CallerArrived, Gate, GateConfig},
    io_thread::IoThread,
    leader_lock::{LeaderLock, LeaderPlace},
    led_store::{LeadershipWatch, LedStore},
};
use crate::{
    actor_thread::spawn_actor_thread,
    dispatcher::{Dispatcher, DispatcherConfig, HandOver, RecoverAll, UseDialer},
    effects::EffectRunner,
    net::LinkLimits,
    resource_manager::ResourceManager,
    store_runner::{OpenStore, SharedStore, StoreThread, open_store},
    task::TaskFactory,
};

/// How often a leader looks whether its data directory is still there, beside each time before it
/// says that something is stored.
const LEADERSHIP_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A `JobManager`, before it runs.
pub struct JobManager {
    /// Which cluster it leads.
    pub identity: ClusterIdentity,
    /// Where it keeps jobs, events and results; whoever uses the same directory may lead next.
    pub data_directory: PathBuf,
    /// Address to listen on.
    pub host: IpAddr,
    /// The first free port of these is taken; 0 is any.
    pub ports: RangeInclusive<u16>,
    /// Settings of the process.
    pub options: Options,
    /// The program's jobs.
    pub factory: Arc<dyn TaskFactory>,
}

/// What a `JobManager` tells whoever started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobManagerNews {
    /// It takes connections.
    Listening(SocketAddr),
    /// Another process leads; this one waits.
    StandsBy {
        /// Where the leader listens, and its process id, if it said so.
        leader: Option<(String, u32)>,
    },
    /// The data directory was deleted or moved away while this process stood by; it waits until it
    /// is there again.
    DirectoryAway,
    /// It leads.
    Leads,
}

/// Who gets the callers: nobody, as long as this process does not lead.
#[derive(Default)]
struct Door {
    gate: Mutex<Option<Addr<Gate>>>,
}

impl Door {
    fn open(&self, gate: Addr<Gate>) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate);
    }

    /// Nobody gets in any more: this process is about to lead no longer.
    fn close(&self) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn gate(&self) -> Option<Addr<Gate>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl JobManager {
    /// Runs until `stop` speaks, on threads of its own.
    ///
    /// # Errors
    /// When no port is free, the data directory cannot be used, or the store cannot be opened.
    pub fn run(
        self,
        stop: &Receiver<()>,
        mut news: impl FnMut(JobManagerNews),
    ) -> Result<(), ClusterError> {
        let io = IoThread::start().map_err(ClusterError::Thread)?;
        let door = Arc::<Door>::default();
        let acceptor = self.listen(&door, io.handle())?;
        news(JobManagerNews::Listening(acceptor.address()));
        let directory = |source| self.cannot_lead(source);
        if !LeaderLock::is_free(&self.data_directory).map_err(directory)? {
            let place = LeaderPlace::read(&self.data_directory);
            let ours = &self.identity.cluster_id;
            if let Some(leads) = place.as_ref().and_then(|place| place.other_cluster(ours)) {
                return Err(ClusterError::OtherCluster {
                    directory: self.data_directory.clone(),
                    leads: leads.to_owned(),
                    ours: ours.clone(),
                });
            }
            news(JobManagerNews::StandsBy { leader: place.map(|it| (it.address, it.pid)) });
        }
        let away = || news(JobManagerNews::DirectoryAway);
        let waited = LeaderLock::wait(&self.data_directory, stop, away).map_err(directory)?;
        let Some(lock) = waited else { return Ok(()) };
        lock.announce(acceptor.address().to_string(), &self.identity.cluster_id)
            .map_err(directory)?;
        let ended = self.lead(stop, &lock, (&door, io.handle()), news);
        drop((acceptor, lock));
        ended
    }

    /// Leads until `stop` speaks, or another process may lead.
    fn lead(
        &self,
        stop: &Receiver<()>,
        lock: &LeaderLock,
        (door, io): (&Arc<Door>, &Handle),
        mut news: impl FnMut(JobManagerNews),
    ) -> Result<(), ClusterError> {
        let (lost, losses) = bounded(1);
        let path = self.data_directory.join("store");
        let watch = LeadershipWatch { path, leadership: lock.leadership(), lost };
        let (store, mut opened) = self.start_store(watch.clone())?;
        let (failed, failures) = bounded(1);
        let leading = Leading::start(self, Arc::new(store), io, door, failed)?;
        news(JobManagerNews::Leads);
        let ended = loop {
            select! {
                recv(stop) -> _ => break Ok(()),
                recv(losses) -> _ => {}
                recv(opened) -> result => match result {
                    // Nothing more is told.
                    Ok(Ok(())) => opened = never(),
                    Ok(Err(error)) => break Err(ClusterError::Store(error)),
                    Err(_) => break Err(ClusterError::Ended),
                },
                recv(failures) -> _ => break Err(ClusterError::Ended),
                default(LEADERSHIP_CHECK_INTERVAL) => {}
            }
            if watch.check().is_err() {
                break Err(ClusterError::Ended);
            }
        };
        door.close();
        leading.stop();
        match (ended, watch.leadership.check()) {
            // Whatever failed, that is why.
            (Err(_), Err(found)) => {
                Err(ClusterError::DirectoryLost { directory: self.data_directory.clone(), found })
            }
            (ended, _) => ended,
        }
    }

    fn cannot_lead(&self, source: io::Error) -> ClusterError {
        ClusterError::directory("lead the cluster of", &self.data_directory, source)
    }

    fn listen(&self, door: &Arc<Door>, io: &Handle) -> Result<Acceptor, ClusterError> {
        let (identity, directory) = (self.identity.clone(), self.data_directory.clone());
        let (asked, arriving) = (Arc::clone(door), Arc::clone(door));
        let hello = move |_| {
            let role = match asked.gate() {
                Some(_) => Role::JobManager,
                None => Role::Standby {
                    leader: LeaderPlace::read(&directory).map(|place| place.address),
                },
            };
            Hello::new(identity.cluster_id.clone(), Some(identity.registry), role)
        };
        let arrived = move |caller: Caller| {
            if let Some(gate) = arriving.gate() {
                gate.do_send(CallerArrived(caller));
            }
        };
        let config = AcceptorConfig {
            host: self.host,
            ports: self.ports.clone(),
            limits: self.limits(),
            hello: Arc::new(hello),
            arrived: Arc::new(arrived),
        };
        Acceptor::start(config, io).map_err(ClusterError::Listen)
    }

    fn limits(&self) -> LinkLimits {
        LinkLimits::of(&self.options)
    }

    /// Opens the store on its thread. The receiver hears how that went.
    fn start_store(
        &self,
        watch: LeadershipWatch,
    ) -> Result<(StoreThread, Receiver<Result<(), StoreError>>), ClusterError> {
        let kind = self.options.store;
        let open: OpenStore = Box::new(move || {
            watch.check()?;
            let store = open_store(kind, &watch.path)?;
            Ok(Box::new(LedStore::new(store, watch)))
        });
        let (told, opened) = bounded(1);
        let tell = move |opened| drop(told.send(opened));
        let store = StoreThread::start(open, tell).map_err(ClusterError::Thread)?;
        Ok((store, opened))
    }
}

/// The actors of a process that leads.
struct Leading {
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Leading {
    fn start(
        manager: &JobManager,
        store: SharedStore,
        io: &Handle,
        door: &Arc<Door>,
        failed: Sender<()>,
    ) -> Result<Self, ClusterError> {
        let (stop, stopped) = oneshot::channel();
        let (started, starts) = mpsc::channel();
        let ClusterIdentity { cluster_id, registry } = manager.identity.clone();
        let config = LeadingConfig {
            data_directory: manager.data_directory.clone(),
            factory: Arc::clone(&manager.factory),
            store,
            limits: manager.limits(),
            reconnect_grace: manager.options.reconnect_grace,
            hello: Hello::new(cluster_id, Some(registry), Role::JobManager),
            io: io.clone(),
        };
        let door = Arc::clone(door);
        let lead = async move || {
            let (dispatcher, gate) = start_actors(config);
            door.open(gate);
            // Whoever waits for this is there.
            let _ = started.send(());
            // A sender that was dropped says the same.
            let _ = stopped.await;
            // A dispatcher that died has nothing to hand over.
            let _ = dispatcher.send(HandOver).await;
            let _ = failed.send(());
        };
        let thread = spawn_actor_thread(lead).map_err(ClusterError::Thread)?;
        starts.recv().map_err(|_| ClusterError::Ended)?;
        Ok(Self { stop: Some(stop), thread })
    }

    fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            // Actors that died have nothing to stop.
            let _ = stop.send(());
        }
        if self.thread.join().is_err() {
            tracing::warn!("the thread of the actors panicked");
        }
    }
}

/// What the actors of a leader are told.
struct LeadingConfig {
    data_directory: PathBuf,
    factory: Arc<dyn TaskFactory>,
    store: SharedStore,
    limits: LinkLimits,
    reconnect_grace: Duration,
    /// What this process says first to workers that it calls.
    hello: Hello,
    /// Where sockets are read and written.
    io: Handle,
}

fn start_actors(config: LeadingConfig) -> (Addr<Dispatcher>, Addr<Gate>) {
    let LeadingConfig { data_directory, factory, store, limits, reconnect_grace, hello, io } =
        config;
    let dispatcher = Dispatcher::new(DispatcherConfig {
        data_directory,
        store,
        factory: Arc::clone(&factory),
        effects: EffectRunner::Threads,
        resource_manager: ResourceManager::default().start(),
        noted: None,
    })
    .start();
    let gate = Gate::new(GateConfig {
        limits,
        reconnect_grace,
        hello,
        io,
        dispatcher: dispatcher.clone(),
        factory,
        effects: EffectRunner::Threads,
    })
    .start();
    // Before the first run comes back that may name former workers.
    dispatcher.do_send(UseDialer(gate.clone().recipient()));
    dispatcher.do_send(RecoverAll);
    (dispatcher, gate)
}
