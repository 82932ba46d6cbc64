//! The `ResourceManager` actor: a shell around what [`regrow_runtime::ResourceManager`] decides.

use std::collections::BTreeMap;

use actix::{Actor, Context, Handler, Message, Recipient};
use regrow_protocol::{RunId, WorkerId};
use regrow_runtime::{ResourceAction, ResourceInput, ResourceManager as Decisions};
use tracing::debug;

use crate::{gateway::WorkerConnected, watch::Terminated};

/// Gives the slots of all workers to the runs.
#[derive(Default)]
pub(crate) struct ResourceManager {
    decisions: Decisions,
    masters: BTreeMap<RunId, Recipient<SlotsGranted>>,
}

/// What a `JobMaster` says about slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlotRequest {
    /// It could use this many, all together.
    Declare {
        /// Which run.
        run: RunId,
        /// Slots held plus slots wanted.
        slots: u32,
        /// Whose slots it is to get last.
        avoid: Vec<WorkerId>,
    },
    /// It gives slots back.
    Return {
        /// Which run.
        run: RunId,
        /// Whose slots.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
}

impl Message for SlotRequest {
    type Result = ();
}

/// Slots of a worker are a run's own until it returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotsGranted {
    /// Whose slots.
    pub worker: WorkerId,
    /// How many more than before.
    pub count: u32,
}

impl Message for SlotsGranted {
    type Result = ();
}

/// A life of a run begins; it holds no slots yet.
pub(crate) struct RunLed {
    /// Which run.
    pub run: RunId,
    /// Who gets its slots.
    pub master: Recipient<SlotsGranted>,
}

impl Message for RunLed {
    type Result = ();
}

/// A run is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnded {
    /// Which one.
    pub run: RunId,
}

impl Message for RunEnded {
    type Result = ();
}

impl ResourceManager {
    fn feed(&mut self, input: ResourceInput) {
        debug!(?input, "input");
        for action in self.decisions.handle(input) {
            let ResourceAction::Grant { run, worker, count } = action;
            if let Some(master) = self.masters.get(&run) {
                master.do_send(SlotsGranted { worker, count });
            }
        }
    }
}

impl Actor for ResourceManager {
    type Context = Context<Self>;
}

impl Handler<WorkerConnected> for ResourceManager {
    type Result = ();

    fn handle(&mut self, connected: WorkerConnected, _: &mut Self::Context) {
        self.feed(ResourceInput::WorkerRegistered(connected.worker));
    }
}

impl Handler<Terminated<WorkerId>> for ResourceManager {
    type Result = ();

    fn handle(&mut self, Terminated(worker): Terminated<WorkerId>, _: &mut Self::Context) {
        self.feed(ResourceInput::WorkerLost(worker));
    }
}

impl Handler<RunLed> for ResourceManager {
    type Result = ();

    fn handle(&mut self, RunLed { run, master }: RunLed, _: &mut Self::Context) {
        self.masters.insert(run, master);
        self.feed(ResourceInput::RunStarted(run));
    }
}

impl Handler<RunEnded> for ResourceManager {
    type Result = ();

    fn handle(&mut self, RunEnded { run }: RunEnded, _: &mut Self::Context) {
        self.masters.remove(&run);
        self.feed(ResourceInput::RunEnded(run));
    }
}

impl Handler<SlotRequest> for ResourceManager {
    type Result = ();

    fn handle(&mut self, request: SlotRequest, _: &mut Self::Context) {
        self.feed(match request {
            SlotRequest::Declare { run, slots, avoid } => {
                ResourceInput::DemandDeclared { run, slots, avoid }
            }
            SlotRequest::Return { run, worker, count } => {
                ResourceInput::SlotsReturned { run, worker, count }
            }
        });
    }
}
