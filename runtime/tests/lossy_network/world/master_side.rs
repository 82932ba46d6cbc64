//! The process of the master: what is heard, what is done, and how it dies.

use regrow_protocol::{
    Envelope, Epoch, RunStanding, Split, SplitId, ToJobMaster, ToShuffleService, ToTaskExecutor,
    WorkerId,
};
use regrow_runtime::{
    Action, Decision, Input, Job, JobEvent, PreviousLife, ResourceAction, ResourceInput,
    ResourceManager,
};

use super::{super::network::Down, Cancel, Present, World, life};
use crate::graphs::RUN;

impl World {
    /// A worker's message arrives.
    pub(super) fn hear_from(&mut self, from: WorkerId, envelope: Envelope<ToJobMaster>) {
        if self.outcome.is_some() {
            let holds = matches!(
                envelope.message,
                ToJobMaster::Registered { .. } | ToJobMaster::RunHeld { .. }
            );
            if holds {
                self.tell_ended(from);
            }
            return;
        }
        if let Some(input) = Input::reported(envelope, self.epoch) {
            self.feed(input);
        }
    }

    fn send(&mut self, worker: WorkerId, said: Down) {
        if let Some(Present { connection: Some(number), .. }) = self.gate.get(&worker) {
            self.network.send_down(*number, said);
        }
    }

    fn command(&mut self, worker: WorkerId, message: ToTaskExecutor) {
        let envelope = Envelope { run: RUN, epoch: self.epoch, message };
        self.send(worker, Down::Executor(envelope));
    }

    fn command_service(&mut self, worker: WorkerId, message: ToShuffleService) {
        let envelope = Envelope { run: RUN, epoch: self.epoch, message };
        self.send(worker, Down::Service(envelope));
    }

    fn tell_ended(&mut self, worker: WorkerId) {
        self.command(worker, ToTaskExecutor::RunEnded { standing: RunStanding::Ended });
        self.command_service(worker, ToShuffleService::ReleaseRun);
    }

    pub(super) fn manage(&mut self, input: ResourceInput) {
        for ResourceAction::Grant { worker, count, .. } in self.resources.handle(input) {
            self.local.push_back(Input::SlotsGranted { worker, count });
        }
    }

    pub(super) fn carry_out(&mut self, decision: Decision) {
        for event in decision.events {
            self.trace("records", &event);
            self.seen.taken_back += usize::from(matches!(event, JobEvent::ResetTakenBack { .. }));
            self.buffer.push_back(event);
        }
        for action in decision.actions {
            self.trace("wants", &action);
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::AnnounceMaster { worker } => {
                self.command(worker, ToTaskExecutor::JobMasterStarted);
            }
            Action::GetAllPartitionsWithMetrics { worker } => {
                self.command_service(worker, ToShuffleService::GetAllPartitionsWithMetrics);
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
            Action::ReleasePartitions { worker, attempts, .. } => {
                self.command_service(worker, ToShuffleService::ReleasePartitions { attempts });
            }
            other => self.perform_locally(other),
        }
    }

    fn perform_locally(&mut self, action: Action) {
        let run = RUN;
        match action {
            Action::DeclareDemand { slots, avoid } => {
                self.manage(ResourceInput::DemandDeclared { run, slots, avoid });
            }
            Action::ReturnSlots { worker, count } => {
                self.manage(ResourceInput::SlotsReturned { run, worker, count });
            }
            Action::DiscoverSplits { vertex } => {
                let split =
                    |id| Split { id: SplitId(id), size_bytes: 9 << 20, payload: Vec::new() };
                let result = Ok((0..self.splits()).map(split).collect());
                self.local.push_back(Input::SplitsDiscovered { vertex, result });
            }
            Action::PrepareOutput(preparation) => {
                let result = Ok(preparation.sinks.iter().map(|_| "/staging".to_owned()).collect());
                self.local.push_back(Input::OutputPrepared { result });
            }
            Action::VerifyStagedFiles(_) => {
                self.local.push_back(Input::StagedFilesVerified { result: Ok(Vec::new()) });
            }
            Action::Commit(_) => self.local.push_back(Input::CommitEnded { result: Ok(()) }),
            Action::Conclude(outcome) => {
                self.check_conclusion(&outcome);
                self.outcome = Some(*outcome);
                for worker in self.gate.keys().copied().collect::<Vec<_>>() {
                    self.tell_ended(worker);
                }
            }
            Action::AcknowledgeCancel { refused } => {
                self.cancel = if refused.is_some() { Cancel::Never } else { Cancel::Answered };
            }
            Action::WakeAt(_) | Action::AcknowledgeSubmission | Action::ReportRecovery(_) => {}
            other => panic!("nobody asked for {other:?}"),
        }
    }

    /// How many splits each source has.
    pub(super) fn splits(&self) -> u32 {
        2 * u32::try_from(self.submission.graph.vertices.len()).unwrap()
    }

    /// A master dies, its buffer with it, and perhaps its process with all connections.
    pub(super) fn kill_master(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        self.seen.lives += 1;
        let survives = self.rng.below(self.buffer.len() + 1);
        self.stored.extend(self.buffer.drain(..survives));
        self.buffer.clear();
        self.local.clear();
        if self.rng.chance(50) {
            self.epoch = self.epoch.next_life();
        } else {
            self.epoch = Epoch::new(self.epoch.term + 1, 0);
            self.gate.clear();
            self.resources = ResourceManager::new();
            for number in self.network.those(|_| true) {
                self.network.break_one(number, self.step, &mut self.rng);
                self.network.close_master_end(number);
            }
        }
        let life = life(self.epoch, self.faults, PreviousLife::Unknown);
        let log = self.compacted();
        let (job, decision) = Job::recover(self.now, self.submission.clone(), log, life).unwrap();
        self.job = job;
        self.lead(decision);
        for worker in self.gate.keys().copied().collect::<Vec<_>>() {
            self.feed(Input::WorkerConnected { worker });
        }
        if self.cancel == Cancel::Asked {
            self.feed(Input::CancelRequested);
        }
    }

    pub(super) fn lead(&mut self, decision: Decision) {
        self.manage(ResourceInput::RunStarted(RUN));
        self.carry_out(decision);
    }

    /// The log as a store may have kept it: from its last snapshot on.
    fn compacted(&self) -> &[JobEvent] {
        let snapshot = |event: &JobEvent| matches!(event, JobEvent::Snapshot { .. });
        &self.stored[self.stored.iter().rposition(snapshot).unwrap_or(0)..]
    }
}
