//! What a `ShuffleService` decides: whose partitions it keeps, and for how long.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use regrow_protocol::{Envelope, Epoch, ExecutionAttemptId, RunId, ToShuffleService};

use crate::{
    Timestamp, WorkerTimeouts,
    alarm::Alarm,
    epoch_fence::{Admission, EpochFence},
};

/// After this time a report that could not be made is tried again: a master that has no report from a
/// worker gives it nothing to do.
const REPORT_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Keeps the partitions of runs until a master releases them by name, the run ends, or no master
/// came back within the retention time-out.
#[derive(Debug)]
pub struct ShuffleService {
    timeouts: WorkerTimeouts,
    fence: EpochFence,
    /// Runs that may have partitions here, with the time since which their master is lost.
    runs: BTreeMap<RunId, Option<Timestamp>>,
    connected: bool,
    /// Reports that could not be made, with the time at which they are tried again.
    failed_reports: BTreeMap<RunId, Timestamp>,
    /// The highest term that was given to be kept; none where it need not be.
    kept_term: Option<u64>,
    alarm: Alarm,
}

/// Something that happened to a `ShuffleService`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShuffleServiceInput {
    /// Data directories hold partitions of these runs. Of those that are not known here, nobody is
    /// known to own them: they stay, their time-out begins, and the leader is asked about them.
    RunsFound(Vec<RunId>),
    /// A master says something.
    Command(Envelope<ToShuffleService>),
    /// A master registered with this process.
    MasterRegistered {
        /// Of which run.
        run: RunId,
        /// Which master.
        epoch: Epoch,
    },
    /// A master is gone, or its connection is.
    MasterLost {
        /// Of which run.
        run: RunId,
        /// Which master.
        epoch: Epoch,
    },
    /// The connection to the leader closed: the masters of all runs are out of reach.
    LeaderLost,
    /// A connection to a leader is open: who leads a run, if anybody does, is not known yet.
    LeaderConnected,
    /// What is here of a run cannot be reported for now.
    ReportFailed {
        /// Which run.
        run: RunId,
    },
    /// The output of an attempt is superseded.
    Discard {
        /// Whose.
        attempt: ExecutionAttemptId,
    },
    /// The worker knows that a run ended, or gave it up.
    RunEnded {
        /// Which one.
        run: RunId,
    },
    /// A moment asked for by [`ShuffleServiceAction::WakeAt`] has come.
    Woken,
}

/// A wish; the shell carries it out, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShuffleServiceAction {
    /// Keep the highest term that was seen on stable storage, before anything is answered.
    KeepTerm {
        /// The term.
        term: u64,
    },
    /// Tell the leader that partitions of a run are here, so that it says how the run stands.
    ReportHeldRun {
        /// Which run.
        run: RunId,
        /// The highest epoch of it that was seen here.
        epoch: Epoch,
    },
    /// Tell of a command that was refused: its epoch is an older one, its run has ended, or it names
    /// what is another run's.
    TellRefusal {
        /// For which run it was.
        run: RunId,
        /// The highest term that was seen.
        highest_term: u64,
    },
    /// Report all partitions of a run with metrics, one message per data directory.
    ReportPartitions {
        /// Which run.
        run: RunId,
        /// The epoch to report in.
        epoch: Epoch,
    },
    /// Remove outputs, the finish record of each first.
    ReleasePartitions {
        /// Whose.
        attempts: Vec<ExecutionAttemptId>,
    },
    /// Remove all outputs of a run.
    ReleaseRun {
        /// Which one.
        run: RunId,
    },
    /// Say `Woken` at a moment, or as soon as possible after it. A later wish does not replace it.
    WakeAt(Timestamp),
}

type Actions = Vec<ShuffleServiceAction>;

impl ShuffleService {
    /// A service that knows of no run.
    pub fn new(timeouts: WorkerTimeouts) -> Self {
        Self {
            timeouts,
            fence: EpochFence::default(),
            runs: BTreeMap::new(),
            connected: false,
            failed_reports: BTreeMap::new(),
            kept_term: None,
            alarm: Alarm::default(),
        }
    }

    /// The highest epoch that was seen of a run of which partitions may be here.
    pub fn epoch(&self, run: RunId) -> Option<Epoch> {
        self.runs.contains_key(&run).then(|| self.fence.epoch(run))
    }

    /// A stand-alone service, of which an earlier life kept `term`.
    pub fn stand_alone(timeouts: WorkerTimeouts, term: u64) -> Self {
        let fence = EpochFence::above(term);
        Self { fence, kept_term: Some(term), ..Self::new(timeouts) }
    }

    /// Handles one input; the actions are to be carried out in order.
    pub fn handle(&mut self, now: Timestamp, input: ShuffleServiceInput) -> Actions {
        let mut actions = Vec::new();
        match input {
            ShuffleServiceInput::RunsFound(runs) => self.find(now, runs, &mut actions),
            ShuffleServiceInput::Command(envelope) => self.command(envelope, &mut actions),
            ShuffleServiceInput::MasterRegistered { run, epoch } => self.follow(run, epoch),
            ShuffleServiceInput::MasterLost { run, epoch } => self.lose_master(now, run, epoch),
            ShuffleServiceInput::LeaderLost => {
                self.connected = false;
                // Who leads next asks anew.
                self.failed_reports.clear();
                for lost_at in self.runs.values_mut() {
                    lost_at.get_or_insert(now);
                }
            }
            ShuffleServiceInput::LeaderConnected => {
                self.connected = true;
                actions.extend(self.runs.keys().map(|run| self.report_held(*run)));
            }
            ShuffleServiceInput::ReportFailed { run } => {
                let has_master = self.runs.get(&run).is_some_and(Option::is_none);
                if has_master {
                    self.failed_reports.insert(run, now.after(REPORT_RETRY_DELAY));
                }
            }
            ShuffleServiceInput::Discard { attempt } => {
                actions.push(ShuffleServiceAction::ReleasePartitions { attempts: vec![attempt] });
            }
            ShuffleServiceInput::RunEnded { run } => {
                self.release_run(run, &mut actions);
                self.fence.forget(run);
            }
            ShuffleServiceInput::Woken => self.alarm.rang(now),
        }
        self.report_again(now, &mut actions);
        self.expire(now, &mut actions);
        self.keep_term(&mut actions);
        if let Some(moment) = self.alarm.set(self.next_deadline()) {
            actions.push(ShuffleServiceAction::WakeAt(moment));
        }
        actions
    }

    /// A term that was raised is kept before anything else is done.
    fn keep_term(&mut self, actions: &mut Actions) {
        let term = self.fence.term();
        if self.kept_term.is_some_and(|kept| kept < term) {
            self.kept_term = Some(term);
            actions.insert(0, ShuffleServiceAction::KeepTerm { term });
        }
    }

    fn find(&mut self, now: Timestamp, found: Vec<RunId>, actions: &mut Actions) {
        for run in found {
            if self.runs.contains_key(&run) {
                continue;
            }
            self.runs.insert(run, Some(now));
            if self.connected {
                actions.push(self.report_held(run));
            }
        }
    }

    fn report_held(&self, run: RunId) -> ShuffleServiceAction {
        ShuffleServiceAction::ReportHeldRun { run, epoch: self.fence.epoch(run) }
    }

    fn refusal(&self, run: RunId) -> ShuffleServiceAction {
        ShuffleServiceAction::TellRefusal { run, highest_term: self.fence.term() }
    }

    fn command(&mut self, envelope: Envelope<ToShuffleService>, actions: &mut Actions) {
        let Envelope { run, epoch, message } = envelope;
        match self.fence.admit(run, epoch) {
            Admission::Refused => return actions.push(self.refusal(run)),
            Admission::Ended => {
                match message {
                    // Repeated, because it may have failed the first time.
                    ToShuffleService::ReleaseRun => {
                        actions.push(ShuffleServiceAction::ReleaseRun { run });
                    }
                    ToShuffleService::GetAllPartitionsWithMetrics
                    | ToShuffleService::ReleasePartitions { .. } => {
                        actions.push(self.refusal(run));
                    }
                }
                return;
            }
            Admission::Raised => {
                self.runs.insert(run, None);
            }
            Admission::Current => {}
        }
        match message {
            ToShuffleService::GetAllPartitionsWithMetrics => {
                self.runs.insert(run, None);
                self.failed_reports.remove(&run);
                actions.push(ShuffleServiceAction::ReportPartitions { run, epoch });
            }
            ToShuffleService::ReleasePartitions { mut attempts } => {
                // A master releases what is its own.
                let named = attempts.len();
                attempts.retain(|attempt| attempt.run == run);
                if attempts.len() < named {
                    actions.push(self.refusal(run));
                }
                if !attempts.is_empty() {
                    actions.push(ShuffleServiceAction::ReleasePartitions { attempts });
                }
            }
            ToShuffleService::ReleaseRun => {
                self.release_run(run, actions);
                self.fence.end(run);
            }
        }
    }

    fn follow(&mut self, run: RunId, epoch: Epoch) {
        match self.fence.admit(run, epoch) {
            Admission::Refused | Admission::Ended => {}
            Admission::Current | Admission::Raised => {
                self.runs.insert(run, None);
            }
        }
    }

    fn lose_master(&mut self, now: Timestamp, run: RunId, epoch: Epoch) {
        if epoch < self.fence.epoch(run) {
            return;
        }
        if let Some(lost_at) = self.runs.get_mut(&run) {
            lost_at.get_or_insert(now);
            self.failed_reports.remove(&run);
        }
    }

    fn report_again(&mut self, now: Timestamp, actions: &mut Actions) {
        for (run, _) in self.failed_reports.extract_if(.., |_, due| *due <= now) {
            let epoch = self.fence.epoch(run);
            actions.push(ShuffleServiceAction::ReportPartitions { run, epoch });
        }
    }

    fn expire(&mut self, now: Timestamp, actions: &mut Actions) {
        let Some(timeout) = self.timeouts.registration_timeout else { return };
        let due = |lost_at: &Option<Timestamp>| lost_at.is_some_and(|at| at.after(timeout) <= now);
        let expired: Vec<RunId> =
            self.runs.iter().filter(|(_, lost_at)| due(lost_at)).map(|(run, _)| *run).collect();
        for run in expired {
            self.release_run(run, actions);
            self.fence.forget(run);
        }
    }

    fn release_run(&mut self, run: RunId, actions: &mut Actions) {
        self.runs.remove(&run);
        self.failed_reports.remove(&run);
        actions.push(ShuffleServiceAction::ReleaseRun { run });
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let lost = self.runs.values().flatten().min();
        let expires = self.timeouts.registration_timeout.zip(lost);
        let expires = expires.map(|(timeout, lost_at)| lost_at.after(timeout));
        self.failed_reports.values().copied().chain(expires).min()
    }
}
