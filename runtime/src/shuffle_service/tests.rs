use std::time::Duration;

use regrow_protocol::{Envelope, Epoch, ExecutionAttemptId, JobVertexId, RunId, ToShuffleService};

use super::*;
use super::{ShuffleServiceAction as Action, ShuffleServiceInput as Input};

const RUN: RunId = RunId::from_bits(5);
const OTHER: RunId = RunId::from_bits(6);
const RETENTION_MS: u64 = 300_000;

struct Service {
    core: ShuffleService,
    now: u64,
}

impl Service {
    fn new() -> Self {
        Self::with_retention(Some(Duration::from_millis(RETENTION_MS)))
    }

    fn with_retention(registration_timeout: Option<Duration>) -> Self {
        let reconnect_grace = Duration::from_secs(5);
        let timeouts = WorkerTimeouts { reconnect_grace, registration_timeout };
        Self { core: ShuffleService::new(timeouts), now: 0 }
    }

    fn feed(&mut self, input: Input) -> Vec<Action> {
        self.core.handle(Timestamp(self.now), input)
    }

    fn tell(&mut self, life: u32, message: ToShuffleService) -> Vec<Action> {
        self.feed(Input::Command(Envelope { run: RUN, epoch: Epoch::new(1, life), message }))
    }

    fn lose(&mut self, life: u32) -> Vec<Action> {
        self.feed(Input::MasterLost { run: RUN, epoch: Epoch::new(1, life) })
    }

    fn wake(&mut self, now: u64) -> Vec<Action> {
        self.now = now;
        let mut actions = self.feed(Input::Woken);
        actions.retain(|action| !matches!(action, Action::WakeAt(_)));
        actions
    }
}

fn attempt(run: RunId) -> ExecutionAttemptId {
    let epoch = Epoch::new(1, 0);
    ExecutionAttemptId { run, vertex: JobVertexId(0), subtask: 0, epoch, number: 0 }
}

fn refusal(highest_term: u64) -> Action {
    Action::TellRefusal { run: RUN, highest_term }
}

#[test]
fn rule_5_3_all_partitions_are_reported_to_who_asks() {
    let mut service = Service::new();
    let asked = service.tell(3, ToShuffleService::GetAllPartitionsWithMetrics);
    assert_eq!(asked, [Action::ReportPartitions { run: RUN, epoch: Epoch::new(1, 3) }]);
}

#[test]
fn rule_5_3_a_report_that_cannot_be_made_is_tried_again_until_the_connection_ends() {
    let mut service = Service::new();
    let report = [Action::ReportPartitions { run: RUN, epoch: Epoch::new(1, 3) }];
    service.feed(Input::LeaderConnected);
    service.tell(3, ToShuffleService::GetAllPartitionsWithMetrics);
    let failed = Input::ReportFailed { run: RUN };
    assert_eq!(service.feed(failed.clone()), [Action::WakeAt(Timestamp(5_000))]);
    assert_eq!(service.wake(4_999), []);
    assert_eq!(service.wake(5_000), report);
    assert_eq!(service.wake(10_000), [], "this time it was made");
    service.feed(failed.clone());
    assert_eq!(service.wake(15_000), report);
    service.feed(failed);
    service.feed(Input::LeaderLost);
    service.feed(Input::LeaderConnected);
    assert_eq!(service.wake(20_000), [], "who leads next asks anew");
}

#[test]
fn rule_1_2_a_command_of_an_older_epoch_releases_nothing() {
    let mut service = Service::new();
    service.feed(Input::MasterRegistered { run: RUN, epoch: Epoch::new(1, 2) });
    assert_eq!(service.tell(1, ToShuffleService::ReleaseRun), [refusal(1)]);
    let attempts = vec![attempt(RUN)];
    let release = ToShuffleService::ReleasePartitions { attempts };
    assert_eq!(service.tell(1, release), [refusal(1)]);
}

#[test]
fn a_master_releases_by_name_and_only_what_is_its_own() {
    let mut service = Service::new();
    let attempts = vec![attempt(OTHER), attempt(RUN)];
    let actions = service.tell(1, ToShuffleService::ReleasePartitions { attempts });
    let release = Action::ReleasePartitions { attempts: vec![attempt(RUN)] };
    assert_eq!(actions, [refusal(1), release]);
}

#[test]
fn promise_p5_what_was_found_at_the_start_stays_until_its_time_out() {
    let mut service = Service::new();
    let found = service.feed(Input::RunsFound(vec![RUN, OTHER]));
    assert_eq!(found, [Action::WakeAt(Timestamp(RETENTION_MS))]);
    service.tell(1, ToShuffleService::GetAllPartitionsWithMetrics);
    assert_eq!(service.wake(RETENTION_MS), [Action::ReleaseRun { run: OTHER }]);
}

#[test]
fn rule_4_4_partitions_stay_while_the_connection_flaps() {
    let mut service = Service::new();
    service.feed(Input::MasterRegistered { run: RUN, epoch: Epoch::new(1, 1) });
    for second in 0..600 {
        service.now = second * 1_000;
        service.lose(1);
        let epoch = Epoch::new(1, 1);
        let back = service.feed(Input::MasterRegistered { run: RUN, epoch });
        assert!(!back.contains(&Action::ReleaseRun { run: RUN }));
    }
    service.lose(1);
    assert_eq!(service.wake(599_000 + RETENTION_MS - 1), []);
    assert_eq!(service.wake(599_000 + RETENTION_MS), [Action::ReleaseRun { run: RUN }]);
    assert_eq!(service.wake(u64::MAX), [], "once");
}

#[test]
fn rule_4_4_unlimited_retention_never_releases() {
    let mut service = Service::with_retention(None);
    service.feed(Input::RunsFound(vec![RUN]));
    assert_eq!(service.wake(u64::MAX), []);
}

#[test]
fn the_loss_of_an_older_master_heard_late_starts_no_timer() {
    let mut service = Service::new();
    service.feed(Input::MasterRegistered { run: RUN, epoch: Epoch::new(1, 2) });
    assert_eq!(service.lose(1), []);
}

#[test]
fn rule_3_9_the_release_of_an_ended_run_may_be_repeated_and_nothing_else_follows() {
    let mut service = Service::new();
    let release = [Action::ReleaseRun { run: RUN }];
    assert_eq!(service.tell(1, ToShuffleService::ReleaseRun), release);
    assert_eq!(service.tell(1, ToShuffleService::ReleaseRun), release);
    let asked = service.tell(2, ToShuffleService::GetAllPartitionsWithMetrics);
    assert_eq!(asked, [refusal(1)]);
}

#[test]
fn a_superseded_output_and_an_ended_run_go_at_once() {
    let mut service = Service::new();
    let discarded = service.feed(Input::Discard { attempt: attempt(RUN) });
    assert_eq!(discarded, [Action::ReleasePartitions { attempts: vec![attempt(RUN)] }]);
    assert_eq!(service.feed(Input::RunEnded { run: RUN }), [Action::ReleaseRun { run: RUN }]);
}

#[test]
fn rule_4_6_held_runs_are_told_to_a_new_leader_and_a_lost_one_starts_their_time_out() {
    let mut service = Service::new();
    service.feed(Input::RunsFound(vec![OTHER]));
    service.tell(3, ToShuffleService::GetAllPartitionsWithMetrics);
    service.feed(Input::LeaderLost);
    let told = service.feed(Input::LeaderConnected);
    let held = |run, life| Action::ReportHeldRun { run, epoch: life };
    assert_eq!(told, [held(RUN, Epoch::new(1, 3)), held(OTHER, Epoch::default())]);
    let released = service.wake(RETENTION_MS);
    assert_eq!(released, [RUN, OTHER].map(|run| Action::ReleaseRun { run }));
}

#[test]
fn rule_1_2_a_stand_alone_service_keeps_the_highest_term_before_it_answers() {
    let mut service = Service::new();
    let timeouts = service.core.timeouts;
    service.core = ShuffleService::stand_alone(timeouts, 4);
    let ask = |service: &mut Service, term| {
        let message = ToShuffleService::GetAllPartitionsWithMetrics;
        let epoch = Epoch::new(term, 0);
        service.feed(Input::Command(Envelope { run: RUN, epoch, message }))
    };
    assert_eq!(ask(&mut service, 3), [refusal(4)], "an earlier life saw a later term");
    let answer = |term| Action::ReportPartitions { run: RUN, epoch: Epoch::new(term, 0) };
    assert_eq!(ask(&mut service, 4), [answer(4)]);
    assert_eq!(ask(&mut service, 6), [Action::KeepTerm { term: 6 }, answer(6)]);
    assert_eq!(ask(&mut service, 6), [answer(6)]);
    let registered = Input::MasterRegistered { run: OTHER, epoch: Epoch::new(7, 0) };
    assert_eq!(service.feed(registered), [Action::KeepTerm { term: 7 }]);
}

#[test]
fn fault_35_the_leader_is_asked_about_what_is_found_while_it_is_there() {
    let mut service = Service::new();
    service.tell(3, ToShuffleService::ReleaseRun);
    service.feed(Input::LeaderConnected);
    let epoch = Epoch::new(1, 3);
    let asked = service.feed(Input::RunsFound(vec![RUN]));
    assert_eq!(asked[0], Action::ReportHeldRun { run: RUN, epoch });
    assert_eq!(service.feed(Input::RunsFound(vec![RUN])), [], "once");
    let ended = service.feed(Input::RunEnded { run: RUN });
    assert_eq!(ended, [Action::ReleaseRun { run: RUN }]);
}
