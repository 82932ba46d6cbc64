//! What the Dispatcher knows of one run.

use std::time::Duration;

use actix::{Addr, Recipient};
use regrow_protocol::Epoch;
use regrow_runtime::{
    JobOutcome, JobState, JobStatus, JobSubmission, KillHow, KillPoint, Options, PreviousLife,
};
use tokio::time::Instant;

use super::ClientUpdate;
use crate::{
    cluster::JobSummary,
    job_master::{JobMaster, LifeEnd, PlannedBy},
    launch::RunUpdate,
    output::OutputCommitter,
};

/// Deaths of `JobMaster`s after which the next life begins at once.
const DEATHS_WITHOUT_DELAY: u32 = 2;

/// Wait before the life after the third death; doubles with each.
const LIFE_DELAY_MIN: Duration = Duration::from_millis(100);

/// Longest wait before a life (rule 5.14).
const LIFE_DELAY_MAX: Duration = Duration::from_secs(10);

/// A life that lasted this long makes up for the deaths before it.
const LONG_LIFE: Duration = Duration::from_mins(1);

/// First wait before a store that refused is tried again; doubles each time.
const STORE_DELAY_MIN: Duration = Duration::from_millis(100);

/// Longest wait before a store that refused is tried again.
const STORE_DELAY_MAX: Duration = Duration::from_secs(5);

/// One run that is not over.
pub(super) struct Run {
    pub(super) submission: JobSubmission,
    pub(super) options: Options,
    /// Planned kills by percentage that have not fired, lowest first.
    pub(super) kills: Vec<KillPoint>,
    pub(super) clients: Vec<Recipient<ClientUpdate>>,
    pub(super) output: OutputCommitter,
    /// The newest life, or the one that is to begin.
    pub(super) epoch: Epoch,
    pub(super) previous: PreviousLife,
    pub(super) life: Life,
    /// Whether an earlier process accepted it.
    pub(super) resumed: bool,
    pub(super) acceptance: Acceptance,
    /// What is lost of it, until a recovery has told.
    pub(super) lacks: Option<String>,
    /// The newest status from before it was announced.
    early_status: Option<Box<JobStatus>>,
    /// The newest status of all.
    status: Option<Box<JobStatus>>,
    /// Whether its result is durable: before, nobody is told of it.
    pub(super) concluded: bool,
    /// How it ended, once its clients were told.
    pub(super) outcome: Option<Box<JobOutcome>>,
    /// A cancel that no life has answered yet.
    pub(super) cancel: bool,
    /// A planned kill that came while nobody led.
    pub(super) kill: Option<KillHow>,
    began: Instant,
    deaths: u32,
    trouble: Option<Trouble>,
}

/// How far the acceptance of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// No life has recorded its beginning: an empty log is a new one.
    Unrecorded,
    /// There may be something to recover.
    Recorded,
    /// The clients know of it.
    Announced,
}

/// Whether somebody leads a run.
pub(super) enum Life {
    /// Its log is being opened, or will be.
    Opening,
    /// Somebody does.
    Led(Addr<JobMaster>),
    /// Nobody need: it is terminal, and its result is being stored.
    Concluding(Box<JobOutcome>),
    /// All is stored and told; what is left is being removed.
    Forgetting,
}

/// A store that refuses.
struct Trouble {
    since: Instant,
    delay: Duration,
}

impl Run {
    pub(super) fn new(
        submission: JobSubmission,
        options: Options,
        mut kills: Vec<KillPoint>,
        client: Recipient<ClientUpdate>,
        epoch: Epoch,
    ) -> Self {
        kills.sort_by_key(|kill| kill.percent());
        Self {
            output: OutputCommitter::new(submission.job.clone()),
            submission,
            options,
            kills,
            clients: vec![client],
            epoch,
            previous: PreviousLife::None,
            life: Life::Opening,
            resumed: false,
            acceptance: Acceptance::Unrecorded,
            lacks: None,
            early_status: None,
            status: None,
            concluded: false,
            outcome: None,
            cancel: false,
            kill: None,
            began: Instant::now(),
            deaths: 0,
            trouble: None,
        }
    }

    pub(super) fn tell(&self, update: &RunUpdate) {
        for client in &self.clients {
            client.do_send(ClientUpdate::Run(update.clone()));
        }
    }

    /// Tells the clients once that the run is accepted.
    pub(super) fn announce(&mut self) {
        if std::mem::replace(&mut self.acceptance, Acceptance::Announced) == Acceptance::Announced {
            return;
        }
        let JobSubmission { job, run, .. } = &self.submission;
        self.tell(&RunUpdate::Accepted { job: job.clone(), run: *run, resumed: self.resumed });
        if let Some(status) = self.early_status.take() {
            self.tell(&RunUpdate::Status(status));
        }
    }

    /// Tells how the job stands, once the clients know that there is one.
    pub(super) fn show(&mut self, status: Box<JobStatus>) {
        self.status = Some(status.clone());
        if self.acceptance == Acceptance::Announced {
            self.tell(&RunUpdate::Status(status));
        } else {
            self.early_status = Some(status);
        }
    }

    /// Lets a client hear how it goes on; one that asks again hears it once.
    pub(super) fn join(&mut self, client: Recipient<ClientUpdate>) {
        if let Some(outcome) = &self.outcome {
            client.do_send(ClientUpdate::Ended { outcome: outcome.clone(), joined: true });
            client.do_send(ClientUpdate::Closed);
            return;
        }
        if self.acceptance == Acceptance::Announced {
            let JobSubmission { job, run, .. } = &self.submission;
            let accepted = RunUpdate::Accepted { job: job.clone(), run: *run, resumed: true };
            client.do_send(ClientUpdate::Run(accepted));
            if let Some(status) = &self.status {
                client.do_send(ClientUpdate::Run(RunUpdate::Status(status.clone())));
            }
        }
        self.clients.retain(|known| known.connected() && *known != client);
        self.clients.push(client);
    }

    /// How it stands, in short.
    pub(super) fn summary(&self) -> JobSummary {
        let JobSubmission { job, run, job_name, .. } = &self.submission;
        let status = self.status.as_deref();
        let outcome = self.outcome.as_deref().or(match &self.life {
            Life::Concluding(outcome) if self.concluded => Some(outcome),
            Life::Concluding(_) | Life::Opening | Life::Led(_) | Life::Forgetting => None,
        });
        let between = if self.resumed || self.epoch.life > 0 {
            JobState::Reconciling
        } else {
            JobState::Initializing
        };
        let state = match (&self.life, status) {
            (Life::Led(_), Some(status)) => before_its_end(status.state),
            (Life::Concluding(outcome), _) => before_its_end(outcome.state),
            (Life::Led(_) | Life::Opening | Life::Forgetting, _) => between,
        };
        JobSummary {
            job: job.clone(),
            run: *run,
            job_name: job_name.clone(),
            state: outcome.map_or(state, |outcome| outcome.state),
            waiting_for: status.and_then(|status| status.waiting_for.clone()),
            degraded: status.and_then(|status| status.degraded.clone()),
            recoveries: outcome
                .map(|outcome| outcome.recoveries)
                .or_else(|| status.map(|status| status.recoveries))
                .unwrap_or(self.epoch.life),
            error: outcome.and_then(|outcome| outcome.error.clone()),
            ended_ago_ms: None,
            refused_commands: status.map_or(0, |status| status.refused_commands),
            vertices: status.map(|status| status.vertices.clone()).unwrap_or_default(),
        }
    }

    pub(super) fn led_by(&mut self, master: Addr<JobMaster>) {
        self.began = Instant::now();
        self.life = Life::Led(master);
    }

    /// Notes the end of the newest life, and says how long to wait before the next.
    pub(super) fn life_ended(&mut self, end: &LifeEnd) -> Duration {
        let (planned, panic) = match end {
            LifeEnd::Stopped => (None, None),
            LifeEnd::Panicked { message } => (None, Some(message.clone())),
            LifeEnd::Planned { how, by } => {
                if *by == PlannedBy::Progress && !self.kills.is_empty() {
                    self.kills.remove(0);
                }
                (Some(*how), None)
            }
        };
        self.previous = match (planned, &panic) {
            (Some(_), _) => PreviousLife::KilledAsPlanned,
            (None, Some(message)) => PreviousLife::Panicked { message: message.clone() },
            (None, None) => PreviousLife::Unknown,
        };
        self.tell(&RunUpdate::JobMasterLost { planned, panic });
        self.epoch = self.epoch.next_life();
        self.life = Life::Opening;
        if self.began.elapsed() >= LONG_LIFE {
            self.deaths = 0;
        }
        self.deaths = self.deaths.saturating_add(1);
        life_delay(self.deaths)
    }

    /// The store refused; gives the wait before the next try, or none if it refused for too long.
    pub(super) fn store_refused(&mut self) -> Option<Duration> {
        let first = Trouble { since: Instant::now(), delay: STORE_DELAY_MIN };
        let trouble = self.trouble.get_or_insert(first);
        if trouble.since.elapsed() >= self.options.store_unavailable_timeout {
            return None;
        }
        let delay = trouble.delay;
        trouble.delay = STORE_DELAY_MAX.min(delay.saturating_mul(2));
        Some(delay)
    }

    pub(super) fn store_obeyed(&mut self) {
        self.trouble = None;
    }
}

/// The state to show while the result of a job is not durable: its end may be decided once more.
fn before_its_end(state: JobState) -> JobState {
    match state {
        JobState::Finished => JobState::Running,
        JobState::Failed => JobState::Failing,
        JobState::Canceled => JobState::Cancelling,
        JobState::Initializing
        | JobState::Running
        | JobState::Reconciling
        | JobState::Failing
        | JobState::Cancelling => state,
    }
}

fn life_delay(deaths: u32) -> Duration {
    let Some(late) = deaths.checked_sub(DEATHS_WITHOUT_DELAY + 1) else { return Duration::ZERO };
    LIFE_DELAY_MAX.min(LIFE_DELAY_MIN.saturating_mul(1 << late.min(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_5_14_from_the_third_death_on_the_next_life_backs_off_up_to_10_s() {
        let delays: Vec<u128> = (1..14).map(|deaths| life_delay(deaths).as_millis()).collect();
        assert_eq!(delays[..6], [0, 0, 100, 200, 400, 800]);
        assert_eq!(delays[12], 10_000);
        assert_eq!(life_delay(u32::MAX), LIFE_DELAY_MAX);
    }
}
