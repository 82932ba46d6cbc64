//! A worker's way to whoever leads.

use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, Recipient};
use crossbeam_channel::Sender;
use regrow_protocol::{
    FromWorker, ToJobMaster, ToShuffleService, ToTaskExecutor, ToWorker, decode, encode,
};
use regrow_runtime::with_causes;
use tokio::{runtime::Handle, task::JoinHandle};
use tracing::{error, info};

use super::{
    acceptor::Caller,
    dialer::{Dialed, DialerConfig},
    leader_search::{StillLooking, search},
};
use crate::{
    gateway::{Gateway, Post},
    net::{Link, LinkEnd, LinkLimits, link},
    task_executor::LeaderNews,
};

/// Keeps a connection to the leader, whoever that is. While there is none, nothing is kept: what
/// matters is said again when the leader asks the worker to register.
pub(crate) struct MasterLink {
    config: Arc<DialerConfig>,
    limits: LinkLimits,
    io: Handle,
    no_leader: Sender<StillLooking>,
    behind: Option<Behind>,
    link: Option<Link>,
    /// Number of the newest connection, so that the end of an older one is told from its.
    connection: u64,
    /// Looks for the leader, while there is no connection.
    looking: Option<JoinHandle<()>>,
    /// Whether the worker is about to stop, which each leader is told first of all.
    leaving: bool,
}

/// What a link is told at its start.
pub(crate) struct MasterLinkConfig {
    pub(crate) dialer: DialerConfig,
    pub(crate) limits: LinkLimits,
    /// Where sockets are read and written.
    pub(crate) io: Handle,
    /// Told what was tried when no leader was found for long, once each time.
    pub(crate) no_leader: Sender<StillLooking>,
}

/// The actors of the worker.
#[derive(Clone)]
pub(crate) struct Behind {
    pub(crate) task_executor: Gateway<ToTaskExecutor>,
    pub(crate) shuffle_service: Gateway<ToShuffleService>,
    /// Told when the connection to the leader opens and closes.
    pub(crate) news: Recipient<LeaderNews>,
}

impl Message for Behind {
    type Result = ();
}

impl Behind {
    fn hear(&self, said: ToWorker) {
        match said {
            ToWorker::TaskExecutor(envelope) => self.task_executor.do_send(Post(envelope)),
            ToWorker::ShuffleService(envelope) => self.shuffle_service.do_send(Post(envelope)),
        }
    }
}

/// The worker is about to stop: tell whoever leads.
pub(crate) struct SayLeaving;

impl Message for SayLeaving {
    type Result = ();
}

/// The leader is found.
struct Found(Dialed);

impl Message for Found {
    type Result = ();
}

/// A leader called, which this worker may not have found.
pub(crate) struct MasterCalled(pub(crate) Caller);

impl Message for MasterCalled {
    type Result = ();
}

/// A connection ended.
struct Ended {
    connection: u64,
    end: LinkEnd,
}

impl Message for Ended {
    type Result = ();
}

impl MasterLink {
    /// A link that looks for the leader as soon as it knows its worker.
    pub(crate) fn new(config: MasterLinkConfig) -> Self {
        let MasterLinkConfig { dialer, limits, io, no_leader } = config;
        Self {
            config: Arc::new(dialer),
            limits,
            io,
            no_leader,
            behind: None,
            link: None,
            connection: 0,
            looking: None,
            leaving: false,
        }
    }

    fn look(&mut self, ctx: &Context<Self>) {
        let (config, this) = (Arc::clone(&self.config), ctx.address());
        let no_leader = self.no_leader.clone();
        let looking = self.io.spawn(async move {
            let slow = |looking| {
                // What was told before may not have been read yet.
                let _ = no_leader.try_send(looking);
            };
            // Without a limit it does not end in vain.
            if let Ok(dialed) = search(&config, None, slow).await {
                this.do_send(Found(dialed));
            }
        });
        self.looking = Some(looking);
    }

    fn say(&self, message: &FromWorker) {
        let Some(link) = &self.link else { return };
        match encode(message) {
            Ok(frame) => link.send(frame),
            Err(error) => error!(error = %with_causes(&error), "a report cannot be sent"),
        }
    }

    fn talk(&mut self, dialed: Dialed, ctx: &Context<Self>) {
        let Some(behind) = self.behind.clone() else { return };
        let (link, task) = link(self.limits);
        self.link = Some(link);
        self.connection += 1;
        let connection = self.connection;
        if self.leaving {
            self.say(&FromWorker::Leaving);
        }
        behind.news.do_send(LeaderNews::Connected);
        let this: Addr<Self> = ctx.address();
        self.io.spawn(async move {
            let hear = |frame: &[u8]| {
                decode(frame).map(|said| behind.hear(said)).map_err(|error| with_causes(&error))
            };
            let end = task.run(dialed.stream, dialed.read, hear).await;
            drop(dialed.permit);
            this.do_send(Ended { connection, end });
        });
    }
}

impl Actor for MasterLink {
    type Context = Context<Self>;
}

impl Handler<Behind> for MasterLink {
    type Result = ();

    fn handle(&mut self, behind: Behind, ctx: &mut Self::Context) {
        self.behind = Some(behind);
        self.look(ctx);
    }
}

impl Handler<Found> for MasterLink {
    type Result = ();

    fn handle(&mut self, Found(dialed): Found, ctx: &mut Self::Context) {
        // A leader may have called meanwhile: of two connections that of the worker is closed.
        if self.link.is_none() {
            self.talk(dialed, ctx);
        }
    }
}

impl Handler<MasterCalled> for MasterLink {
    type Result = ();

    fn handle(&mut self, MasterCalled(caller): MasterCalled, ctx: &mut Self::Context) {
        let Some(behind) = &self.behind else { return };
        info!(leader = %caller.peer, "a leader called");
        if let Some(looking) = self.looking.take() {
            looking.abort();
        }
        if self.link.take().is_some() {
            behind.news.do_send(LeaderNews::Lost);
        }
        let Caller { peer, stream, read, permit, role: _ } = caller;
        self.talk(Dialed { address: peer.to_string(), stream, read, permit }, ctx);
    }
}

impl Handler<Ended> for MasterLink {
    type Result = ();

    fn handle(&mut self, Ended { connection, end }: Ended, ctx: &mut Self::Context) {
        if connection != self.connection {
            return;
        }
        info!(end = %with_causes(&end), "the connection to the leader ended");
        self.link = None;
        if let Some(behind) = &self.behind {
            behind.news.do_send(LeaderNews::Lost);
        }
        self.look(ctx);
    }
}

impl Handler<SayLeaving> for MasterLink {
    type Result = ();

    fn handle(&mut self, _: SayLeaving, _: &mut Self::Context) {
        self.leaving = true;
        self.say(&FromWorker::Leaving);
    }
}

impl Handler<Post<ToJobMaster>> for MasterLink {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToJobMaster>, _: &mut Self::Context) {
        self.say(&FromWorker::JobMaster(envelope));
    }
}
