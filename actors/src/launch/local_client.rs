//! The actor that stands for the caller of a local run.

use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use crossbeam_channel::Sender;
use regrow_protocol::{JobId, WorkerId};
use regrow_runtime::{KillHow, KillPoint, KillWhen};

use super::RunUpdate;
use crate::{
    dispatcher::{ClientUpdate, Dispatcher, KillRun},
    watch::Terminated,
};

/// Statuses that wait for a caller who is slow; more are left out, since the next is newer anyway.
const WAITING_UPDATES_MAX: usize = 64;

/// Passes on what the Dispatcher says, and lets `JobMaster`s die at planned times.
pub(super) struct LocalClient {
    pub(super) job: JobId,
    pub(super) kills: Vec<KillPoint>,
    pub(super) caller: Sender<ClientUpdate>,
    /// Whom it tells of kills and lost workers; there once it has started.
    pub(super) dispatcher: Option<Addr<Dispatcher>>,
    /// Workers that live.
    pub(super) workers: u32,
}

/// Who the client's Dispatcher is.
pub(super) struct Meet(pub(super) Addr<Dispatcher>);

impl Message for Meet {
    type Result = ();
}

impl LocalClient {
    fn plan(at: Duration, how: KillHow, ctx: &mut Context<Self>) {
        ctx.run_later(at, move |client, _| {
            if let Some(dispatcher) = &client.dispatcher {
                dispatcher.do_send(KillRun { job: client.job.clone(), how });
            }
        });
    }

    fn pass_on(&self, update: ClientUpdate) {
        let waiting = self.caller.len();
        let is_status = matches!(update, ClientUpdate::Run(RunUpdate::Status(_)));
        if is_status && waiting >= WAITING_UPDATES_MAX {
            return;
        }
        // A caller that is gone needs no news.
        drop(self.caller.send(update));
    }
}

impl Actor for LocalClient {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        for KillPoint { when, how } in self.kills.clone() {
            match when {
                KillWhen::Elapsed(at) => Self::plan(at, how, ctx),
                KillWhen::Percent(_) => {}
            }
        }
    }
}

impl Handler<Meet> for LocalClient {
    type Result = ();

    fn handle(&mut self, Meet(dispatcher): Meet, _: &mut Self::Context) {
        self.dispatcher = Some(dispatcher);
    }
}

impl Handler<ClientUpdate> for LocalClient {
    type Result = ();

    fn handle(&mut self, update: ClientUpdate, _: &mut Self::Context) {
        self.pass_on(update);
    }
}

impl Handler<Terminated<WorkerId>> for LocalClient {
    type Result = ();

    /// With its last worker a process has lost what makes it go on.
    fn handle(&mut self, terminated: Terminated<WorkerId>, _: &mut Self::Context) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.do_send(terminated);
        }
        self.workers = self.workers.saturating_sub(1);
        if self.workers == 0 {
            let reason = "all task executors of this process died".to_owned();
            self.pass_on(ClientUpdate::Abandoned { reason });
        }
    }
}
