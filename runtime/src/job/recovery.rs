//! How a life begins: a new job, or one that comes back (recovery.md 5).

use std::sync::Arc;

use regrow_protocol::{
    DataDirectoryId, Epoch, FinishRecord, Inventory, PartitionKeeper, WorkerDescription, WorkerId,
};
use thiserror::Error;

use super::{
    FORMER_ATTEMPTS_TIMEOUT, Job, Phase,
    held::HeldAction,
    proofs::{Proof, ProofSource},
    reconciliation::{Findings, Reconciliation, reconcile},
    recorded::{CommitStage, Recorded, SnapshotError},
};
use crate::{
    Action, Decision, FateLine, Flush, JobEvent, JobSubmission, KillPoint, LogPosition, Options,
    PreviousLife, RecoveryDecision, RecoveryPhases, RecoveryReport, Timestamp,
};

/// Said of a log without any record of a run of which workers hold output.
const LOG_GONE: &str = "it holds nothing, though workers hold output of the run; their finish \
                        records stand in for it";

/// What a life of a `JobMaster` starts with.
#[derive(Clone, Debug)]
pub struct LifeStart {
    /// Its epoch, claimed.
    pub epoch: Epoch,
    /// How the life before ended.
    pub previous: PreviousLife,
    /// The end of what older epochs wrote.
    pub sealed: Option<LogPosition>,
    /// Planned kills by percentage that have not fired.
    pub kills: Vec<KillPoint>,
    /// How long opening and reading the log took.
    pub read_log_ms: u64,
    /// What was found wrong with the log, with the position.
    pub log_damage: Option<String>,
    /// The settings of the run.
    pub options: Options,
}

/// The log of a run cannot be replayed: the run fails, with this cause.
#[derive(Debug, Error)]
#[error("the event log cannot be replayed")]
pub struct RecoveryError(#[source] pub(super) SnapshotError);

/// A recovery under way.
pub(super) struct Recovering {
    since: Timestamp,
    decided_at: Timestamp,
    /// When the wait ends, whoever is missing.
    deadline: Timestamp,
    /// Whether the log held nothing of the run: then only workers can tell.
    log_was_empty: bool,
    previous: PreviousLife,
    read_log_ms: u64,
    log_damage: Option<String>,
    lines: Vec<FateLine>,
    /// Whether this is a new job, of which nothing is to be reported.
    new: bool,
}

impl Recovering {
    fn new(now: Timestamp, life: &LifeStart) -> Self {
        Self {
            since: now,
            decided_at: now,
            deadline: now.after(life.options.previous_worker_timeout),
            log_was_empty: false,
            previous: life.previous.clone(),
            read_log_ms: life.read_log_ms,
            log_damage: life.log_damage.clone(),
            lines: Vec::new(),
            new: false,
        }
    }
}

impl Job {
    /// Begins a new run; its acceptance is acknowledged once it is durable.
    pub fn submit(now: Timestamp, submission: JobSubmission, life: LifeStart) -> (Self, Decision) {
        let recovering = Recovering { new: true, ..Recovering::new(now, &life) };
        let recorded = Recorded::new(submission.clone());
        let mut job = Self::begin(now, recorded, &life, Phase::Deciding(Box::new(recovering)));
        let mut out = Decision::default();
        job.record(JobEvent::JobSubmitted(Box::new(submission)), &mut out);
        job.start_epoch(&life, false, &mut out);
        let lsn = job.record(JobEvent::RecoveryDecided(Box::default()), &mut out);
        job.hold_action(lsn, Flush::Now, Action::AcknowledgeSubmission, &mut out);
        job.hold(lsn, Flush::Now, HeldAction::Activate, &mut out);
        (job, out)
    }

    /// Begins a further life of a run: replays its log and asks what the workers hold.
    ///
    /// # Errors
    /// When the log holds a snapshot that cannot be used.
    pub fn recover(
        now: Timestamp,
        submission: JobSubmission,
        events: &[JobEvent],
        life: LifeStart,
    ) -> Result<(Self, Decision), RecoveryError> {
        let mut recorded = Recorded::new(submission.clone());
        for event in events {
            recorded.replay(event).map_err(RecoveryError)?;
        }
        let mut recovering = Recovering::new(now, &life);
        recovering.log_was_empty = events.is_empty();
        let mut job = Self::begin(now, recorded, &life, Phase::Reconciling(Box::new(recovering)));
        let mut out = Decision::default();
        if events.is_empty() {
            job.record(JobEvent::JobSubmitted(Box::new(submission)), &mut out);
        }
        let log_lacks = events.is_empty() || life.log_damage.is_some();
        let started = job.start_epoch(&life, log_lacks, &mut out);
        job.hold_action(started, Flush::Now, Action::AcknowledgeSubmission, &mut out);
        if job.recorded.facts.terminated.is_some() {
            job.conclude(started, &mut out);
        } else {
            job.fail_after_panics(&life.previous, &mut out);
            job.advance(&mut out);
            job.ask_for_wake(&mut out);
        }
        Ok((job, out))
    }

    fn start_epoch(&mut self, life: &LifeStart, log_lacks: bool, out: &mut Decision) -> crate::Lsn {
        let LifeStart { epoch, previous, sealed, .. } = life;
        let (epoch, previous, sealed) = (*epoch, previous.clone(), *sealed);
        out.flush = Flush::Now;
        self.record(JobEvent::EpochStarted { epoch, previous, sealed, log_lacks }, out)
    }

    fn fail_after_panics(&mut self, previous: &PreviousLife, out: &mut Decision) {
        let facts = &self.recorded.facts;
        if facts.fruitless_panics < super::FRUITLESS_PANICS_MAX || facts.failure.is_some() {
            return;
        }
        let text = match previous {
            PreviousLife::Panicked { message } => message.as_str(),
            PreviousLife::None | PreviousLife::Unknown | PreviousLife::KilledAsPlanned => "unknown",
        };
        let error = format!(
            "the JobMaster panicked {} times in a row without progress; the last time: {text}",
            facts.fruitless_panics
        );
        self.record(JobEvent::FailureDecided { error }, out);
    }

    pub(super) fn worker_connected(&mut self, worker: WorkerId, out: &mut Decision) {
        self.workers.connect(worker);
        self.executions.connected(worker);
        let started = self.epoch_started();
        self.hold_action(started, Flush::Now, Action::AnnounceMaster { worker }, out);
        let question = Action::GetAllPartitionsWithMetrics { worker };
        self.hold_action(started, Flush::Now, question, out);
    }

    /// The position before which this life must not send anything.
    fn epoch_started(&self) -> crate::Lsn {
        match self.phase {
            Phase::Reconciling(_) | Phase::Deciding(_) => self.recorded.lsn(),
            Phase::Active | Phase::Over => crate::Lsn(0),
        }
    }

    pub(super) fn worker_registered(
        &mut self,
        worker: WorkerDescription,
        inventory: Inventory,
        out: &mut Decision,
    ) {
        self.workers.register(worker);
        let used = |data_directory| {
            self.recorded.facts.workers.values().any(|used| used.data_directory == data_directory)
        };
        if worker.keeper == PartitionKeeper::Worker && !used(worker.data_directory) {
            self.workers.report(worker.data_directory, worker.worker);
        }
        if matches!(self.phase, Phase::Active) && !self.is_ending() {
            self.note_keeper_of(worker.data_directory, out);
        }
        self.resync(worker.worker, &inventory, out);
        let epoch = self.epoch();
        let former = inventory.running.into_iter().filter(|attempt| attempt.epoch < epoch);
        self.former.extend(former.map(|attempt| (attempt, worker.worker)));
        for record in inventory.unacknowledged {
            self.proofs.add(Proof {
                worker: worker.worker,
                data_directory: worker.data_directory,
                record,
                source: ProofSource::Report,
            });
        }
        self.settle_proofs(out);
    }

    pub(super) fn partitions_reported(
        &mut self,
        worker: WorkerId,
        data_directory: DataDirectoryId,
        finished: Vec<FinishRecord>,
        out: &mut Decision,
    ) {
        self.workers.report(data_directory, worker);
        let before = self.asked.remove(&data_directory);
        let missing = self.missing_from(data_directory, before, &finished);
        let attempts = finished.iter().map(|record| record.attempt);
        self.tracker.report(data_directory, attempts);
        for record in finished {
            let source = ProofSource::FinishFile;
            let record = Arc::new(record);
            self.proofs.add(Proof { worker, data_directory, record, source });
        }
        self.reset_missing(data_directory, missing, out);
        self.settle_proofs(out);
    }

    pub(super) fn recovery_deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Reconciling(recovering) if self.former.is_empty() => Some(recovering.deadline),
            Phase::Reconciling(recovering) => {
                Some(recovering.deadline.min(recovering.since.after(FORMER_ATTEMPTS_TIMEOUT)))
            }
            Phase::Deciding(_) | Phase::Active | Phase::Over => None,
        }
    }

    pub(super) fn decide_if_due(&mut self, out: &mut Decision) {
        let Phase::Reconciling(recovering) = &self.phase else { return };
        if self.now < recovering.deadline && !self.wait_is_over(recovering) {
            return;
        }
        let Phase::Reconciling(mut recovering) = std::mem::replace(&mut self.phase, Phase::Over)
        else {
            return;
        };
        let Reconciliation { decision, lines } = self.reconcile();
        recovering.lines = lines;
        recovering.decided_at = self.now;
        // A first dispatch waits for the first batch of the log: who holds output saw one (5.13).
        if recovering.log_was_empty && self.options.recovery_enabled && !self.proofs.is_empty() {
            recovering.log_damage.get_or_insert_with(|| LOG_GONE.to_owned());
        }
        self.phase = Phase::Deciding(recovering);
        let lsn = self.record(JobEvent::RecoveryDecided(Box::new(decision)), out);
        self.hold(lsn, Flush::Now, HeldAction::Activate, out);
    }

    /// Whether everybody who may know something has spoken (recovery.md 5.3).
    fn wait_is_over(&self, recovering: &Recovering) -> bool {
        if self.is_ending() || self.recorded.all_complete() {
            return true;
        }
        let mut former = self.recorded.facts.workers.values().filter(|worker| !worker.lost);
        // A log that lacks something may lack all who held output: then anybody is waited for.
        let complete = !recovering.log_was_empty && recovering.log_damage.is_none();
        let somebody = complete || !self.workers.is_empty();
        // An attempt that is about to stop may just have been sealed: its report is on the way.
        let quiet =
            self.former.is_empty() || self.now >= recovering.since.after(FORMER_ATTEMPTS_TIMEOUT);
        somebody
            && quiet
            && self.workers.all_registered()
            && self.workers.descriptions().all(|worker| match worker.keeper {
                // A service that holds anything is a former worker itself, if the log is complete.
                PartitionKeeper::ShuffleService if complete => true,
                PartitionKeeper::ShuffleService | PartitionKeeper::Worker => {
                    self.tracker.knows(worker.data_directory)
                }
            })
            && former.all(|worker| self.tracker.knows(worker.data_directory))
    }

    fn reconcile(&self) -> Reconciliation {
        let decided = self.is_ending() || self.recorded.facts.commit != CommitStage::None;
        if decided || !self.options.recovery_enabled {
            let decision = RecoveryDecision::default();
            return Reconciliation { decision, lines: Vec::new() };
        }
        let former = self.recorded.facts.workers.iter().filter(|(_, worker)| !worker.lost);
        let lost_workers = former
            .filter(|(_, worker)| !self.tracker.knows(worker.data_directory))
            .map(|(id, _)| *id)
            .collect();
        let findings = Findings { tracker: &self.tracker, proofs: &self.proofs, lost_workers };
        reconcile(&self.recorded, &findings)
    }

    /// Begins to act: the recovery decision is durable.
    pub(super) fn activate(&mut self, out: &mut Decision) {
        let Phase::Deciding(recovering) = std::mem::replace(&mut self.phase, Phase::Active) else {
            return;
        };
        if !recovering.new {
            let report = self.report(*recovering);
            out.actions.push(Action::ReportRecovery(Box::new(report)));
        }
        for keeper in self.workers.descriptions().collect::<Vec<_>>() {
            self.note_keeper_of(keeper.data_directory, out);
        }
        self.settle_proofs(out);
        for vertex in self.recorded.vertices() {
            self.refresh_ready(vertex);
            self.hold_release_of_inputs(vertex, out);
        }
    }

    fn report(&self, recovering: Recovering) -> RecoveryReport {
        let previous_end = match recovering.previous {
            PreviousLife::None => "there was none".to_owned(),
            PreviousLife::Unknown => "its process ended".to_owned(),
            PreviousLife::Panicked { message } => format!("it panicked: {message}"),
            PreviousLife::KilledAsPlanned => "it was killed as planned".to_owned(),
        };
        let ms = |from: Timestamp, to: Timestamp| to.0.saturating_sub(from.0);
        RecoveryReport {
            epoch: self.epoch(),
            previous_end,
            lines: recovering.lines,
            log_damage: recovering.log_damage,
            phases: RecoveryPhases {
                read_log_ms: recovering.read_log_ms,
                wait_workers_ms: ms(recovering.since, recovering.decided_at),
                decide_ms: ms(recovering.decided_at, self.now),
            },
        }
    }
}
