mod properties;
mod worker;

use std::time::Duration;

use regrow_protocol::{
    ReportAnswer, RunStanding, Split, SplitId, TaskFailure, ToJobMaster, ToTaskExecutor,
};

use super::{TaskExecutorAction as Action, TaskExecutorInput as Input};
use worker::{RUN, Worker, attempt, cancel, epoch, submit};

const START: ToTaskExecutor = ToTaskExecutor::JobMasterStarted;
const REFUSAL: Action = Action::TellRefusal { run: RUN, highest_term: 1 };

#[test]
fn rule_1_2_a_command_of_an_older_epoch_is_refused_and_told() {
    let mut worker = Worker::new(1);
    worker.tell(2, START);
    assert_eq!(worker.tell(1, submit(attempt(1, 0, 0))), [REFUSAL]);
    let ended = ToTaskExecutor::RunEnded { standing: RunStanding::Ended };
    assert_eq!(worker.tell(1, ended), [REFUSAL]);
}

#[test]
fn rule_1_2_the_epoch_is_raised_before_the_answer() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    let answered = worker.tell(7, START);
    assert!(answered.contains(&Action::FollowMaster { run: RUN, epoch: epoch(7) }));
    assert!(Worker::posts(&answered).iter().all(|post| post.epoch == epoch(7)));
}

#[test]
fn rule_4_3_a_higher_epoch_cancels_what_older_ones_dispatched() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    for subtask in 0..3 {
        worker.tell(1, submit(attempt(1, subtask, 0)));
    }
    let actions = worker.tell(2, START);
    let cancelled = Worker::cancelled(&actions);
    assert_eq!(cancelled, [attempt(1, 0, 0), attempt(1, 1, 0)]);
    let (running, unacknowledged) = Worker::inventory(&actions);
    assert_eq!((running, unacknowledged), (vec![attempt(1, 0, 0), attempt(1, 1, 0)], vec![]));
    let ended = worker.fail(attempt(1, 0, 0), TaskFailure::Cancelled);
    assert_eq!(Worker::started(&ended), [], "the third never starts");
    assert_eq!(Worker::posts(&ended).len(), 1, "the new master hears that the first has ended");
}

#[test]
fn rule_4_3_a_first_command_of_a_higher_epoch_does_the_same_without_an_announcement() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    let actions = worker.tell(2, submit(attempt(2, 0, 1)));
    assert_eq!(Worker::cancelled(&actions), [attempt(1, 0, 0)]);
    assert_eq!(Worker::started(&actions), [], "the slot is not free yet");
    let actions = worker.fail(attempt(1, 0, 0), TaskFailure::Cancelled);
    assert_eq!(Worker::started(&actions), [attempt(2, 0, 1)]);
}

#[test]
fn attempts_wait_in_order_while_cancelled_ones_wind_down() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.tell(1, submit(attempt(1, 2, 0)));
    worker.tell(1, submit(attempt(1, 1, 0)));
    assert_eq!(Worker::started(&worker.finish(attempt(1, 0, 0))), [attempt(1, 2, 0)]);
    assert_eq!(Worker::started(&worker.finish(attempt(1, 2, 0))), [attempt(1, 1, 0)]);
}

#[test]
fn the_queue_is_bounded_and_says_so() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    for subtask in 0..5 {
        assert_eq!(Worker::failures(&worker.tell(1, submit(attempt(1, subtask, 0)))), []);
    }
    let failures = Worker::failures(&worker.tell(1, submit(attempt(1, 5, 0))));
    let [(refused, TaskFailure::Task { message })] = failures.as_slice() else {
        panic!("{failures:?}");
    };
    assert_eq!(*refused, attempt(1, 5, 0));
    assert!(message.contains("4 tasks wait for the 1 slots"), "{message}");
}

#[test]
fn repeating_a_submit_is_harmless() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    let task = attempt(1, 0, 0);
    assert_eq!(Worker::started(&worker.tell(1, submit(task))), [task]);
    assert_eq!(worker.tell(1, submit(task)), [], "it runs");
    worker.finish(task);
    assert_eq!(Worker::finishes(&worker.tell(1, submit(task))), [task], "it is reported again");
    worker.answer(1, task, ReportAnswer::Accepted);
    assert_eq!(worker.tell(1, submit(task)), [], "the master knows");
}

#[test]
fn an_attempt_cancelled_before_it_starts_never_starts() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    assert_eq!(worker.tell(1, cancel(attempt(1, 0, 0))), [], "the submit is on its way");
    let late = worker.tell(1, submit(attempt(1, 0, 0)));
    assert_eq!(Worker::failures(&late), [(attempt(1, 0, 0), TaskFailure::Cancelled)]);

    worker.tell(1, submit(attempt(1, 1, 0)));
    worker.tell(1, submit(attempt(1, 2, 0)));
    let queued = worker.tell(1, cancel(attempt(1, 2, 0)));
    assert_eq!(Worker::failures(&queued), [(attempt(1, 2, 0), TaskFailure::Cancelled)]);
    assert_eq!(Worker::started(&worker.finish(attempt(1, 1, 0))), []);
}

#[test]
fn a_late_submit_of_an_attempt_below_the_newest_of_its_subtask_never_starts() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 3)));
    let late = worker.tell(1, submit(attempt(1, 0, 2)));
    assert_eq!(late.len(), 1);
    assert_eq!(Worker::failures(&late), [(attempt(1, 0, 2), TaskFailure::Cancelled)]);
}

#[test]
fn rule_4_1_a_cancel_after_the_seal_keeps_the_finish() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    let task = attempt(1, 0, 0);
    worker.tell(1, submit(task));
    assert_eq!(Worker::cancelled(&worker.tell(1, cancel(task))), [task]);
    assert_eq!(Worker::finishes(&worker.finish(task)), [task], "sealed before the runner heard");
    assert_eq!(worker.tell(1, cancel(task)), []);
    let (_, unacknowledged) = Worker::inventory(&worker.tell(2, START));
    assert_eq!(unacknowledged, [task]);
}

#[test]
fn rule_4_1_a_finish_sealed_while_its_epoch_ended_is_reported_to_the_next_master() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    let task = attempt(1, 0, 0);
    worker.tell(1, submit(task));
    worker.tell(2, START);
    let posts = worker.finish(task);
    assert_eq!(Worker::finishes(&posts), [task]);
    assert!(Worker::posts(&posts).iter().all(|post| post.epoch == epoch(2)));
}

#[test]
fn rule_4_6_a_report_is_sent_again_to_each_new_master_until_it_is_answered() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    for subtask in 0..2 {
        worker.tell(1, submit(attempt(1, subtask, 0)));
        worker.finish(attempt(1, subtask, 0));
    }
    worker.answer(1, attempt(1, 0, 0), ReportAnswer::Accepted);
    for life in 2..4 {
        let actions = worker.tell(life, START);
        assert_eq!(Worker::inventory(&actions).1, [attempt(1, 1, 0)]);
        assert_eq!(Worker::finishes(&actions), [attempt(1, 1, 0)]);
    }
    let answered = worker.answer(3, attempt(1, 1, 0), ReportAnswer::Superseded);
    assert_eq!(answered, [Action::Discard { attempt: attempt(1, 1, 0) }]);
    assert_eq!(worker.core.unacknowledged_reports(), 0);
    assert_eq!(worker.answer(3, attempt(1, 1, 0), ReportAnswer::Superseded), [], "once");
}

#[test]
fn a_failure_is_reported_and_not_retained() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    let failed = worker.fail(attempt(1, 0, 0), TaskFailure::task("no"));
    assert_eq!(Worker::failures(&failed), [(attempt(1, 0, 0), TaskFailure::task("no"))]);
    assert_eq!(Worker::failures(&worker.tell(1, START)), []);
}

#[test]
fn rule_4_7_tasks_outlive_a_closed_connection_for_the_grace() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    assert_eq!(worker.lose(1), [Action::WakeAt(Worker::time(5_000))]);
    assert_eq!(worker.wake(4_999), []);
    let actions = worker.wake(5_000);
    assert_eq!(Worker::cancelled(&actions), [attempt(1, 0, 0)]);
}

#[test]
fn rule_4_7_a_reconnect_within_the_grace_goes_on_as_if_nothing_had_been() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.lose(1);
    worker.now = 4_000;
    let (running, _) = Worker::inventory(&worker.tell(1, START));
    assert_eq!(running, [attempt(1, 0, 0)]);
    assert_eq!(Worker::cancelled(&worker.wake(900_000)), []);
}

#[test]
fn rule_1_3_an_attempt_that_was_given_up_does_not_start_again_when_it_is_sent_again() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.lose(1);
    worker.wake(5_000);
    worker.fail(attempt(1, 0, 0), TaskFailure::Cancelled);
    worker.wake(6_000);
    let actions = worker.tell(1, submit(attempt(1, 0, 0)));
    assert_eq!(Worker::started(&actions), []);
    assert_eq!(Worker::failures(&actions), [(attempt(1, 0, 0), TaskFailure::Cancelled)]);
}

#[test]
fn the_loss_of_an_older_master_heard_late_changes_nothing() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(2, START);
    worker.tell(2, submit(attempt(2, 0, 0)));
    assert_eq!(worker.lose(1), []);
    assert_eq!(worker.wake(900_000), []);
}

#[test]
fn rule_4_4_a_report_is_kept_until_the_retention_time_out_and_no_longer() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.finish(attempt(1, 0, 0));
    worker.lose(1);
    worker.wake(5_000);
    worker.wake(299_999);
    assert_eq!(worker.core.unacknowledged_reports(), 1);
    assert_eq!(worker.wake(300_000), [Action::ReleaseRun { run: RUN }]);
    assert_eq!(worker.core.unacknowledged_reports(), 0);
}

#[test]
fn rule_4_4_a_later_outage_starts_the_timer_afresh() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.finish(attempt(1, 0, 0));
    for second in 0..600 {
        worker.now = second * 1_000;
        worker.lose(1);
        worker.now += 500;
        worker.tell(1, START);
    }
    assert_eq!(worker.core.unacknowledged_reports(), 1);
}

#[test]
fn rule_4_4_unlimited_retention_never_gives_a_report_up() {
    let mut worker = Worker::with_retention(1, None);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.finish(attempt(1, 0, 0));
    worker.lose(1);
    worker.wake(u64::MAX);
    assert_eq!(Worker::finishes(&worker.tell(2, START)), [attempt(1, 0, 0)]);
}

#[test]
fn rule_4_4_a_run_without_reports_is_forgotten_but_not_its_epoch() {
    let mut worker = Worker::with_retention(1, Some(Duration::from_hours(1)));
    worker.tell(2, START);
    worker.lose(2);
    worker.wake(5_000);
    assert!(worker.core.runs.is_empty());
    assert_eq!(worker.tell(1, START), [REFUSAL]);
}

#[test]
fn every_wait_may_be_zero() {
    let mut worker = Worker::with_retention(1, Some(Duration::ZERO));
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    let lost = worker.lose(1);
    assert_eq!(Worker::cancelled(&lost), [attempt(1, 0, 0)]);
    let sealed = worker.finish(attempt(1, 0, 0));
    assert_eq!(sealed, [Action::Discard { attempt: attempt(1, 0, 0) }]);
}

#[test]
fn rule_4_6_an_ended_run_is_released_at_once_and_stays_ended() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    for subtask in 0..2 {
        worker.tell(1, submit(attempt(1, subtask, 0)));
    }
    worker.finish(attempt(1, 0, 0));
    let ended = ToTaskExecutor::RunEnded { standing: RunStanding::Ended };
    let release = Action::ReleaseRun { run: RUN };
    let actions = worker.tell(1, ended.clone());
    assert_eq!(actions, [Action::Cancel { attempt: attempt(1, 1, 0) }, release.clone()]);
    assert_eq!(worker.tell(1, ended), [release], "again, should the release have failed");
    assert_eq!(worker.tell(1, submit(attempt(1, 2, 0))), [REFUSAL]);
    let sealed = worker.finish(attempt(1, 1, 0));
    assert_eq!(sealed, [Action::Discard { attempt: attempt(1, 1, 0) }]);
}

#[test]
fn rule_4_6_unknown_keeps_the_timer_and_running_stops_it() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.finish(attempt(1, 0, 0));
    worker.lose(1);
    worker.tell(1, ToTaskExecutor::RunEnded { standing: RunStanding::Unknown });
    assert!(worker.core.runs[&RUN].lost_at.is_some());
    worker.tell(1, ToTaskExecutor::RunEnded { standing: RunStanding::Running });
    assert_eq!(worker.wake(900_000), []);
    assert_eq!(worker.core.unacknowledged_reports(), 1);
}

#[test]
fn a_split_is_handed_over_once_and_asked_for_again_upon_a_reconnect() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    let task = attempt(1, 0, 0);
    worker.tell(1, submit(task));
    let asks = |actions: &[Action]| {
        let posts = Worker::posts(actions);
        posts
            .iter()
            .filter(|post| matches!(post.message, ToJobMaster::SplitRequested { .. }))
            .count()
    };
    assert_eq!(asks(&worker.want_split(task, 0)), 1);
    assert_eq!(asks(&worker.tell(1, START)), 1);
    let split = Some(Split { id: SplitId(4), size_bytes: 1, payload: vec![] });
    let answer = ToTaskExecutor::SplitAnswered { attempt: task, request: 0, split: split.clone() };
    let delivered = worker.tell(1, answer.clone());
    assert_eq!(delivered, [Action::DeliverSplit { attempt: task, split }]);
    assert_eq!(worker.tell(1, answer), [], "the answer to the repeated question");
    assert_eq!(asks(&worker.tell(1, START)), 0);
}

#[test]
fn rule_4_7_a_lost_leader_is_the_lost_master_of_every_run() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    assert_eq!(Worker::cancelled(&worker.feed(Input::LeaderLost)), []);
    assert_eq!(Worker::cancelled(&worker.wake(5_001)), [attempt(1, 0, 0)]);
}

#[test]
fn rule_4_6_upon_a_new_connection_a_worker_says_what_it_holds_of_every_run() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    for subtask in 0..2 {
        worker.tell(1, submit(attempt(1, subtask, 0)));
    }
    worker.finish(attempt(1, 0, 0));
    worker.feed(Input::LeaderLost);
    let actions = worker.feed(Input::LeaderConnected);
    let (running, unacknowledged) = Worker::inventory(&actions);
    assert_eq!((running, unacknowledged), (vec![attempt(1, 1, 0)], vec![attempt(1, 0, 0)]));
}

#[test]
fn a_failure_that_nobody_heard_is_reported_again_when_its_attempt_is_asked_for() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    let failure = TaskFailure::task("boom");
    worker.fail(attempt(1, 0, 0), failure.clone());
    let actions = worker.tell(1, submit(attempt(1, 0, 0)));
    assert_eq!(Worker::failures(&actions), [(attempt(1, 0, 0), failure)]);
    assert_eq!(Worker::started(&actions), []);
}

#[test]
fn a_worker_that_leaves_takes_nothing_new_and_lets_its_tasks_go_on_for_a_while() {
    let mut worker = Worker::new(1);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.tell(1, submit(attempt(1, 1, 0)));
    let drain = Duration::from_secs(3);
    let actions = worker.feed(Input::LeaveWanted { drain });
    let cancelled = |subtask| (attempt(1, subtask, 0), TaskFailure::Cancelled);
    assert_eq!(Worker::failures(&actions), [cancelled(1)], "what waits is given back");
    let actions = worker.tell(1, submit(attempt(1, 2, 0)));
    assert_eq!(
        (Worker::started(&actions), Worker::failures(&actions)),
        (vec![], vec![cancelled(2)])
    );
    assert_eq!(Worker::cancelled(&worker.wake(2_999)), []);
    let finished = worker.finish(attempt(1, 0, 0));
    assert!(!finished.contains(&Action::Left), "its report is not answered");
    let answered = worker.answer(1, attempt(1, 0, 0), ReportAnswer::Accepted);
    assert!(answered.contains(&Action::Left));
    assert!(!worker.wake(9_000).contains(&Action::Left), "it is said once");
}

#[test]
fn a_worker_that_leaves_gives_back_what_does_not_end_and_waits_for_nobody_for_ever() {
    let mut worker = Worker::new(2);
    worker.tell(1, START);
    worker.tell(1, submit(attempt(1, 0, 0)));
    worker.tell(1, submit(attempt(1, 1, 0)));
    worker.feed(Input::LeaveWanted { drain: Duration::from_secs(3) });
    let actions = worker.wake(3_000);
    assert_eq!(Worker::cancelled(&actions), [attempt(1, 0, 0), attempt(1, 1, 0)]);
    let given_back = worker.fail(attempt(1, 0, 0), TaskFailure::Cancelled);
    assert_eq!(Worker::failures(&given_back), [(attempt(1, 0, 0), TaskFailure::Cancelled)]);
    assert!(!worker.wake(4_999).contains(&Action::Left));
    assert!(worker.wake(5_000).contains(&Action::Left));
}

#[test]
fn a_worker_with_nothing_to_do_leaves_at_once() {
    let drain = Duration::from_mins(1);
    assert_eq!(Worker::new(1).feed(Input::LeaveWanted { drain }), [Action::Left]);
}
