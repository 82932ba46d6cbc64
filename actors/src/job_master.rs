//! Leads one life of one job.
//!
//! A thin shell around [`Job`]: messages become inputs, events go to the writer, actions are
//! carried out in order. Nothing here decides anything about the job.

mod hearing;
mod life_watch;
mod status_pacer;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    path::Path,
    time::Duration,
};

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Message, Recipient};
use regrow_protocol::{
    Envelope, Epoch, JobVertexId, RunId, ToShuffleService, ToTaskExecutor, WorkerId,
};
use regrow_runtime::{
    Action, CommitPlan, Decision, Flush, Input, Job, JobEvent, JobSubmission, KillHow, LifeStart,
    OutputPreparation, Timestamp, with_causes,
};
use tokio::time::Instant;
use tracing::{debug, info, warn};

pub(crate) use self::life_watch::{LifeEnd, LifeEnded, LifeNews, News, PlannedBy};
use self::{
    life_watch::LifeWatch,
    status_pacer::{Look, StatusPacer},
};
use crate::{
    effects::EffectRunner,
    event_writer::{Append, EventWriter, EventWriterHandle, Recording},
    gateway::{Post, WorkerConnected},
    hand_over::HandOverPart,
    ledger::{Ledger, kill_line},
    operator_coordinator::{DiscoverSplits, DiscoveryContext, OperatorCoordinator},
    output::OutputCommitter,
    panic_watch::KILLED_AS_PLANNED,
    resource_manager::SlotRequest,
};

/// What a life begins with.
pub(crate) enum Beginning {
    /// The run is new.
    New,
    /// The run comes back, with what its log holds.
    Again(Vec<JobEvent>),
}

/// What a `JobMaster` is made of.
pub(crate) struct JobMasterConfig {
    /// The job as it was accepted.
    pub submission: JobSubmission,
    /// New, or again.
    pub beginning: Beginning,
    /// The life: its epoch, and what it starts with.
    pub life: LifeStart,
    /// Where its events go.
    pub recording: Recording,
    /// Publishes its files.
    pub output: OutputCommitter,
    /// Lists its splits.
    pub discovery: DiscoveryContext,
    /// Who gives it slots.
    pub resource_manager: Recipient<SlotRequest>,
    /// Who hears of it.
    pub dispatcher: Recipient<LifeNews>,
    /// Who hears of its end.
    pub watcher: Recipient<LifeEnded>,
}

/// Leads one life of one job.
pub(crate) struct JobMaster {
    run: RunId,
    epoch: Epoch,
    /// Not yet begun; taken when the actor starts, so that a panic in replay is this life's own.
    beginning: Option<(JobSubmission, Beginning, LifeStart)>,
    /// There once the actor has started, unless its log cannot be replayed.
    job: Option<Job>,
    writer: EventWriterHandle,
    workers: BTreeMap<WorkerId, WorkerConnected>,
    coordinators: BTreeMap<JobVertexId, Addr<OperatorCoordinator>>,
    discovery: DiscoveryContext,
    output: OutputCommitter,
    effects: EffectRunner,
    ledger: Option<String>,
    resource_manager: Recipient<SlotRequest>,
    dispatcher: Recipient<LifeNews>,
    origin: Instant,
    /// When the job wants to be woken.
    alarms: BTreeSet<Timestamp>,
    /// The moment for which a timer runs, of those that are still to come.
    armed: Option<Timestamp>,
    pacer: StatusPacer,
    watch: LifeWatch,
    /// How many pieces of work on files are under way.
    files_under_way: usize,
    /// Held until no work on files is under way, once this life is handed over.
    handing_over: Option<HandOverPart>,
}

/// Cancel the job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CancelJob;

impl Message for CancelJob {
    type Result = ();
}

/// Die, because the user planned it for this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KillMaster(pub KillHow);

impl Message for KillMaster {
    type Result = ();
}

/// End this life; there is nothing more to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopMaster;

impl Message for StopMaster {
    type Result = ();
}

/// Decide nothing more, so that another process may lead the run: what was recorded is stored, and
/// what is being done on files comes to its end. The part is dropped when that is so.
pub(crate) struct HandOverLife(pub(crate) HandOverPart);

impl Message for HandOverLife {
    type Result = ();
}

/// Something that work on files led to.
struct EffectEnded(Input);

impl Message for EffectEnded {
    type Result = ();
}

/// Whether a life goes on after an action.
type Fate = ControlFlow<()>;

impl JobMaster {
    /// Begins a life on the current thread.
    pub(crate) fn launch(config: JobMasterConfig) -> Addr<Self> {
        let JobMasterConfig { submission, beginning, life, recording, .. } = config;
        let (run, epoch) = (submission.run, life.epoch);
        Self::create(move |ctx| Self {
            run,
            epoch,
            writer: EventWriter::launch(
                run,
                epoch,
                recording,
                &life.options,
                ctx.address().recipient(),
            ),
            ledger: submission.ledger.clone(),
            beginning: Some((submission, beginning, life)),
            job: None,
            workers: BTreeMap::new(),
            coordinators: BTreeMap::new(),
            effects: config.discovery.effects,
            discovery: config.discovery,
            output: config.output,
            resource_manager: config.resource_manager,
            dispatcher: config.dispatcher,
            origin: Instant::now(),
            alarms: BTreeSet::new(),
            armed: None,
            pacer: StatusPacer::default(),
            watch: LifeWatch::new(run, epoch, config.watcher),
            files_under_way: 0,
            handing_over: None,
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp::default().after(self.origin.elapsed())
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        debug!(run = %self.run, epoch = %self.epoch, ?input, "input");
        let now = self.now();
        let Some(job) = &mut self.job else { return };
        let decision = job.handle(now, input);
        self.carry_out(decision, ctx);
    }

    fn carry_out(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let Some(job) = &self.job else { return };
        let Decision { events, flush, actions } = decision;
        if !events.is_empty() || flush != Flush::Whenever {
            self.writer.append(Append { events, upto: job.recorded_lsn(), flush });
        }
        for action in actions {
            debug!(run = %self.run, epoch = %self.epoch, ?action, "action");
            if self.perform(action, ctx).is_break() {
                return;
            }
        }
        self.show_status(ctx);
    }

    fn perform(&mut self, action: Action, ctx: &mut Context<Self>) -> Fate {
        match action {
            Action::AnnounceMaster { worker } => {
                self.command(worker, ToTaskExecutor::JobMasterStarted);
            }
            Action::SubmitTask { worker, deployment } => {
                self.command(worker, ToTaskExecutor::SubmitTask(deployment));
            }
            Action::CancelTask { worker, attempt } => {
                self.command(worker, ToTaskExecutor::CancelTask { attempt });
            }
            Action::AnswerSplitRequest { worker, attempt, request, split } => {
                self.command(worker, ToTaskExecutor::SplitAnswered { attempt, request, split });
            }
            Action::AnswerReport { worker, attempt, answer } => {
                self.command(worker, ToTaskExecutor::ReportAnswered { attempt, answer });
            }
            Action::AcceptReports { worker, attempts } => {
                self.command(worker, ToTaskExecutor::ReportsAccepted { attempts });
            }
            Action::GetAllPartitionsWithMetrics { worker } => {
                self.command_shuffle(worker, ToShuffleService::GetAllPartitionsWithMetrics);
            }
            Action::ReleasePartitions { worker, data_directory: _, attempts } => {
                self.command_shuffle(worker, ToShuffleService::ReleasePartitions { attempts });
            }
            Action::DeclareDemand { slots, avoid } => {
                let run = self.run;
                self.resource_manager.do_send(SlotRequest::Declare { run, slots, avoid });
            }
            Action::ReturnSlots { worker, count } => {
                self.resource_manager.do_send(SlotRequest::Return { run: self.run, worker, count });
            }
            Action::DiscoverSplits { vertex } => self.discover(vertex, ctx),
            Action::PrepareOutput(preparation) => self.prepare_output(preparation, ctx),
            Action::VerifyStagedFiles(plan) => self.verify_staged_files(plan, ctx),
            Action::Commit(plan) => self.commit(plan, ctx),
            Action::WakeAt(moment) => self.wake_at(moment, ctx),
            Action::AcknowledgeSubmission => self.tell(News::Accepted),
            Action::AcknowledgeCancel { refused } => self.tell(News::CancelAnswered { refused }),
            Action::ReportRecovery(report) => self.tell(News::Recovered(report)),
            Action::Conclude(outcome) => self.tell(News::Concluded(outcome)),
            Action::StepDown { reason } => {
                self.tell(News::SteppedDown { reason });
                ctx.terminate();
                return Fate::Break(());
            }
            Action::Die(how) => {
                self.die(how, PlannedBy::Progress, ctx);
                return Fate::Break(());
            }
        }
        Fate::Continue(())
    }

    /// A worker that vanished since the decision is no error: its loss is, or will be, an input.
    fn command(&self, worker: WorkerId, message: ToTaskExecutor) {
        if let Some(peer) = self.workers.get(&worker) {
            peer.task_executor.do_send(self.post(message));
        }
    }

    fn command_shuffle(&self, worker: WorkerId, message: ToShuffleService) {
        if let Some(peer) = self.workers.get(&worker) {
            peer.shuffle_service.do_send(self.post(message));
        }
    }

    fn post<M>(&self, message: M) -> Post<M> {
        Post(Envelope { run: self.run, epoch: self.epoch, message })
    }

    fn tell(&self, news: News) {
        self.dispatcher.do_send(LifeNews { run: self.run, epoch: self.epoch, news });
    }

    fn discover(&mut self, vertex: JobVertexId, ctx: &Context<Self>) {
        let coordinator = self.coordinators.entry(vertex).or_insert_with(|| {
            let master = ctx.address().recipient();
            OperatorCoordinator::new(vertex, self.discovery.clone(), master).start()
        });
        coordinator.do_send(DiscoverSplits);
    }

    fn prepare_output(&mut self, preparation: OutputPreparation, ctx: &Context<Self>) {
        let work = move |output: &OutputCommitter| {
            output.prepare(&preparation).map_err(|error| with_causes(&error))
        };
        self.on_files(ctx, work, |result| Input::OutputPrepared { result });
    }

    fn verify_staged_files(&mut self, plan: Box<CommitPlan>, ctx: &Context<Self>) {
        let work = move |output: &OutputCommitter| Ok(output.lost_staged_files(&plan));
        self.on_files(ctx, work, |result| Input::StagedFilesVerified { result });
    }

    fn commit(&mut self, plan: Box<CommitPlan>, ctx: &Context<Self>) {
        let work = move |output: &OutputCommitter| {
            output.commit(&plan).map_err(|error| with_causes(&error))
        };
        self.on_files(ctx, work, |result| Input::CommitEnded { result });
    }

    /// Has `work` done on the output's files; `ended` says as an input what became of it, also when
    /// it panicked or no thread could be had for it, so that the job never waits for it in vain.
    fn on_files<T: 'static>(
        &mut self,
        ctx: &Context<Self>,
        work: impl FnOnce(&OutputCommitter) -> Result<T, String> + Send + 'static,
        ended: impl FnOnce(Result<T, String>) -> Input + Send + 'static,
    ) {
        let (output, this) = (self.output.clone(), ctx.address());
        self.files_under_way += 1;
        self.effects.run(
            "regrow-output",
            move || work(&output),
            move |result| this.do_send(EffectEnded(ended(result.flatten()))),
        );
    }

    fn wake_at(&mut self, moment: Timestamp, ctx: &mut Context<Self>) {
        self.alarms.insert(moment);
        self.arm(ctx);
    }

    /// Arms the timer for the first alarm. It is never cancelled: in actix 0.13.5 an actor that
    /// stops in the same turn would spin for ever. A stale one does no harm.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(first) = self.alarms.first().copied() else { return };
        if self.armed.is_some_and(|armed| armed <= first) {
            return;
        }
        self.armed = Some(first);
        // A moment is a whole millisecond: not before it has come.
        let wait = first.since(self.now()).saturating_add(Duration::from_millis(1));
        ctx.run_later(wait, Self::wake);
    }

    fn wake(&mut self, ctx: &mut Context<Self>) {
        let now = self.now();
        self.armed = self.armed.filter(|armed| *armed > now);
        let later = self.alarms.split_off(&Timestamp(now.0.saturating_add(1)));
        let due = std::mem::replace(&mut self.alarms, later);
        self.arm(ctx);
        if !due.is_empty() {
            self.feed(Input::Woken, ctx);
        }
    }

    fn show_status(&mut self, ctx: &mut Context<Self>) {
        let Some(job) = &self.job else { return };
        match self.pacer.look(job, Instant::now()) {
            Look::Show(status) => self.tell(News::Status(Box::new(status))),
            Look::Later(wait) => {
                ctx.run_later(wait, |master, ctx| {
                    master.pacer.disarm();
                    master.show_status(ctx);
                });
            }
            Look::Nothing => {}
        }
    }

    fn die(&mut self, how: KillHow, by: PlannedBy, ctx: &mut Context<Self>) {
        info!(run = %self.run, epoch = %self.epoch, ?how, "the JobMaster dies as planned");
        self.watch.plan(how, by);
        if let Some(path) = &self.ledger
            && let Err(error) = Ledger::open(Path::new(path))
                .and_then(|ledger| ledger.append(&kill_line(self.epoch)))
        {
            warn!(error = %with_causes(&error), "the kill is not in the ledger");
        }
        match how {
            KillHow::Stop => ctx.terminate(),
            KillHow::Panic => killed_as_planned(),
        }
    }
}

#[expect(clippy::panic, reason = "the user asked for a panic")]
fn killed_as_planned() -> ! {
    panic!("{KILLED_AS_PLANNED}")
}

impl Actor for JobMaster {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some((submission, beginning, life)) = self.beginning.take() else { return };
        info!(run = %self.run, job = %submission.job, epoch = %self.epoch, "a JobMaster leads");
        let begun = match beginning {
            Beginning::New => Ok(Job::submit(self.now(), submission, life)),
            Beginning::Again(events) => Job::recover(self.now(), submission, &events, life),
        };
        match begun {
            Ok((job, decision)) => {
                let addresses = job.former_addresses();
                if !addresses.is_empty() {
                    self.tell(News::FormerWorkers { addresses });
                }
                self.job = Some(job);
                self.carry_out(decision, ctx);
            }
            Err(error) => self.tell(News::RecoveryFailed { error: with_causes(&error) }),
        }
    }
}
