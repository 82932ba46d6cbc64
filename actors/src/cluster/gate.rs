//! Lets workers into a `JobManager`'s process, and tells when they are gone.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use regrow_protocol::{
    FromWorker, Hello, PartitionKeeper, Role, WorkerDescription, WorkerId, decode,
};
use regrow_runtime::with_causes;
use tokio::runtime::Handle;
use tracing::{debug, info};

use super::{
    acceptor::Caller,
    client_session::{ClientGone, ClientSession, Said},
    remote_worker::{LinkClosed, RemoteWorker},
    worker_dialer::{CALL_PAUSE, CallList, DialWorkers, call_worker},
};
use crate::{
    dispatcher::Dispatcher,
    effects::EffectRunner,
    gateway::{Post, WorkerConnected, WorkerReplaced},
    net::{LinkEnd, LinkLimits, link},
    task::TaskFactory,
    watch::Terminated,
};

/// Lets workers in. One actor stands for each connection; a worker counts as there until the grace
/// of its last one has passed.
pub(crate) struct Gate {
    config: GateConfig,
    workers: BTreeMap<WorkerId, Present>,
    /// Former workers that may not know who leads.
    to_call: CallList,
    /// Counts connections, so that the end of an old one is told from that of its successor.
    connections: u64,
}

/// What a gate is told at its start.
pub(crate) struct GateConfig {
    pub(crate) limits: LinkLimits,
    pub(crate) reconnect_grace: Duration,
    /// What this process says first to workers that it calls.
    pub(crate) hello: Hello,
    /// Where sockets are read and written.
    pub(crate) io: Handle,
    /// Who hears of workers and what they say, and whom clients ask.
    pub(crate) dispatcher: Addr<Dispatcher>,
    pub(crate) factory: Arc<dyn TaskFactory>,
    /// Where blocking work for clients runs.
    pub(crate) effects: EffectRunner,
}

/// A worker whose process may live.
struct Present {
    description: WorkerDescription,
    actor: Addr<RemoteWorker>,
    /// Number of the newest connection.
    connection: u64,
    open: bool,
    /// Whether what comes on it still counts.
    heard: Arc<AtomicBool>,
}

/// Somebody may talk to us.
pub(crate) struct CallerArrived(pub(crate) Caller);

impl Message for CallerArrived {
    type Result = ();
}

/// The connection to a worker closed; it may come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerDisconnected(pub(crate) WorkerId);

impl Message for WorkerDisconnected {
    type Result = ();
}

/// A worker is about to stop: it takes no task any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerLeaving(pub(crate) WorkerId);

impl Message for WorkerLeaving {
    type Result = ();
}

/// The call of a worker is over.
struct CallEnded {
    address: SocketAddr,
    /// The worker, if it takes this process for its leader.
    answer: Option<Caller>,
}

impl Message for CallEnded {
    type Result = ();
}

/// A connection ended.
struct ConnectionEnded {
    worker: WorkerId,
    connection: u64,
    end: LinkEnd,
}

impl Message for ConnectionEnded {
    type Result = ();
}

impl Gate {
    /// A gate through which nobody has come yet.
    pub(crate) fn new(config: GateConfig) -> Self {
        Self { config, workers: BTreeMap::new(), to_call: CallList::default(), connections: 0 }
    }

    /// Calls former workers that are not here, again and again.
    fn call_workers(&mut self, ctx: &mut Context<Self>) {
        let open = self.workers.values().filter(|present| present.open);
        let here = open.filter_map(|present| present.description.shuffle_address).collect();
        for address in self.to_call.next_round(&here) {
            let (hello, limits) = (self.config.hello.clone(), self.config.limits);
            let this = ctx.address();
            self.config.io.spawn(async move {
                let answer = call_worker(address, &hello, limits).await;
                this.do_send(CallEnded { address, answer });
            });
        }
        if self.to_call.is_empty() {
            return;
        }
        ctx.run_later(CALL_PAUSE, Self::call_workers);
    }

    fn let_in(&mut self, description: WorkerDescription, caller: Caller, ctx: &mut Context<Self>) {
        let worker = description.worker;
        info!(%worker, peer = %caller.peer, slots = description.slots, "a worker is connected");
        self.replace_former(description);
        self.connections += 1;
        let connection = self.connections;
        let (link, task) = link(self.config.limits);
        if let Some(before) = self.workers.remove(&worker) {
            // Whoever connects again has given the connection before up, noticed here or not.
            before.heard.store(false, Ordering::Release);
            before.actor.do_send(LinkClosed);
        }
        let actor = RemoteWorker::new(worker, link).start();
        // Before anything that it says.
        self.config.dispatcher.do_send(WorkerConnected {
            worker: description,
            task_executor: actor.clone().recipient(),
            shuffle_service: actor.clone().recipient(),
        });
        let (dispatcher, this) = (self.config.dispatcher.clone(), ctx.address());
        let heard = Arc::new(AtomicBool::new(true));
        let counts = Arc::clone(&heard);
        self.config.io.spawn(async move {
            let hear = |frame: &[u8]| hear_worker(frame, worker, &counts, &dispatcher);
            let end = task.run(caller.stream, caller.read, hear).await;
            drop(caller.permit);
            this.do_send(ConnectionEnded { worker, connection, end });
        });
        self.workers.insert(worker, Present { description, actor, connection, open: true, heard });
    }

    /// Lets a client ask.
    fn serve(&self, caller: Caller) {
        debug!(peer = %caller.peer, "a client is connected");
        let GateConfig { dispatcher, factory, effects, .. } = &self.config;
        let (link, task) = link(self.config.limits);
        let session =
            ClientSession::new(link, dispatcher.clone(), Arc::clone(factory), *effects).start();
        self.config.io.spawn(async move {
            let hear = |frame: &[u8]| {
                session.do_send(Said(decode(frame).map_err(|error| with_causes(&error))?));
                Ok(())
            };
            let end = task.run(caller.stream, caller.read, hear).await;
            debug!(peer = %caller.peer, end = %with_causes(&end), "a client left");
            drop(caller.permit);
            session.do_send(ClientGone);
        });
    }

    /// A new process that keeps a data directory says that the former one is gone.
    fn replace_former(&mut self, new: WorkerDescription) {
        let WorkerDescription { worker: by, data_directory, keeper, .. } = new;
        let is_former = |present: &Present| {
            let WorkerDescription { worker, data_directory: kept, keeper, .. } =
                present.description;
            keeper == PartitionKeeper::Worker && kept == data_directory && worker != by
        };
        if keeper != PartitionKeeper::Worker {
            return;
        }
        let former = self.workers.iter().find(|(_, present)| is_former(present));
        if let Some((&worker, _)) = former {
            self.workers.remove(&worker);
            info!(%worker, %by, "a new process keeps the directory of a worker");
            self.config.dispatcher.do_send(WorkerReplaced { worker, data_directory, by });
        }
    }

    /// Counts a worker as gone.
    fn forget(&mut self, worker: WorkerId) {
        if self.workers.remove(&worker).is_some() {
            info!(%worker, "a worker is gone");
            self.config.dispatcher.do_send(Terminated(worker));
        }
    }
}

/// Passes on what a worker says, if its connection still counts.
fn hear_worker(
    frame: &[u8],
    worker: WorkerId,
    counts: &AtomicBool,
    dispatcher: &Addr<Dispatcher>,
) -> Result<(), String> {
    if !counts.load(Ordering::Acquire) {
        return Err("it has connected again".to_owned());
    }
    match decode(frame).map_err(|error| with_causes(&error))? {
        FromWorker::JobMaster(envelope) => dispatcher.do_send(Post(envelope)),
        FromWorker::Leaving => dispatcher.do_send(WorkerLeaving(worker)),
    }
    Ok(())
}

impl Actor for Gate {
    type Context = Context<Self>;
}

impl Handler<CallerArrived> for Gate {
    type Result = ();

    fn handle(&mut self, CallerArrived(caller): CallerArrived, ctx: &mut Self::Context) {
        match caller.role.clone() {
            Role::TaskManager(description) | Role::ShuffleService(description) => {
                self.let_in(description, caller, ctx);
            }
            Role::JobManager | Role::Standby { .. } => {
                info!(peer = %caller.peer, "a JobManager has nothing to say to another one");
            }
            Role::PartitionReader => {
                info!(peer = %caller.peer, "a JobManager has no partitions to read");
            }
            Role::Client => self.serve(caller),
        }
    }
}

impl Handler<DialWorkers> for Gate {
    type Result = ();

    fn handle(&mut self, DialWorkers(addresses): DialWorkers, ctx: &mut Self::Context) {
        if self.to_call.add(addresses) {
            ctx.run_later(CALL_PAUSE, Self::call_workers);
        }
    }
}

impl Handler<CallEnded> for Gate {
    type Result = ();

    fn handle(&mut self, CallEnded { address, answer }: CallEnded, ctx: &mut Self::Context) {
        self.to_call.ended(address);
        let Some(caller) = answer else { return };
        let (Role::TaskManager(description) | Role::ShuffleService(description)) = caller.role
        else {
            return;
        };
        // The worker has given up the connection that it had made, if it had.
        self.let_in(description, caller, ctx);
    }
}

impl Handler<ConnectionEnded> for Gate {
    type Result = ();

    fn handle(&mut self, ended: ConnectionEnded, ctx: &mut Self::Context) {
        let ConnectionEnded { worker, connection, end } = ended;
        let Some(present) = self.workers.get_mut(&worker) else { return };
        if present.connection != connection {
            return;
        }
        info!(%worker, end = %with_causes(&end), "the connection of a worker ended");
        present.open = false;
        present.actor.do_send(LinkClosed);
        self.config.dispatcher.do_send(WorkerDisconnected(worker));
        ctx.run_later(self.config.reconnect_grace, move |gate, _| {
            let away = |present: &Present| present.connection == connection && !present.open;
            if gate.workers.get(&worker).is_some_and(away) {
                gate.forget(worker);
            }
        });
    }
}
