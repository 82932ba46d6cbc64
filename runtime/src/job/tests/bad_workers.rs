//! Workers on which tasks fail, or which do not tell what they hold.

use std::time::Duration;

use regrow_protocol::{ExecutionAttemptId, TaskFailure, WorkerId};

use super::{
    bench::{Bench, description, stages},
    *,
};
use crate::{Action, PreviousLife};

const BAD: WorkerId = WorkerId::from_bits(1);

/// The default of `restart-strategy.fixed-delay.delay`.
const RESTART_DELAY: Duration = Duration::from_secs(1);

fn fail(bench: &mut Bench, attempt: ExecutionAttemptId) -> Decision {
    let failure = TaskFailure::task("a bad disk");
    bench.feed(Input::TaskFailed { worker: BAD, attempt, failure })
}

/// Subtasks that are sent somewhere.
#[expect(clippy::wildcard_enum_match_arm, reason = "one kind of action is looked for")]
fn sent(decision: &Decision) -> Vec<(u32, u128)> {
    let sent = decision.actions.iter().filter_map(|action| match action {
        Action::SubmitTask { worker, deployment } => {
            Some((deployment.attempt.subtask, worker.bits()))
        }
        _ => None,
    });
    sent.collect()
}

#[test]
fn a_task_that_waits_for_its_restart_wants_no_slot_meanwhile() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    let failed = fail(&mut bench, attempt);
    let demand = Action::DeclareDemand { slots: 0, avoid: Vec::new() };
    let back = Action::ReturnSlots { worker: BAD, count: 1 };
    assert!(failed.actions.contains(&demand) && failed.actions.contains(&back), "{failed:?}");
}

#[test]
fn a_slot_for_a_task_that_failed_is_asked_of_another_worker_whoever_has_it_now() {
    let mut bench = Bench::new(stages(&[1]));
    bench.run_worker(1, 1);
    bench.connect(description(2, 1), Vec::new());
    let attempt = bench.submitted()[0];
    fail(&mut bench, attempt);
    bench.persist();
    let restart = bench.pass(RESTART_DELAY);
    let demand = Action::DeclareDemand { slots: 1, avoid: vec![BAD] };
    assert!(restart.actions.contains(&demand), "{restart:?}");
    // On its way when that was said.
    let granted = bench.feed(Input::SlotsGranted { worker: BAD, count: 1 });
    assert_eq!(granted.actions, [Action::ReturnSlots { worker: BAD, count: 1 }]);
    let away = bench.feed(Input::WorkerDisconnected { worker: WorkerId::from_bits(2) });
    assert_eq!(
        away.actions.iter().filter(|it| matches!(it, Action::DeclareDemand { .. })).count(),
        0
    );
    // Nobody else is left.
    let lost = bench.feed(Input::WorkerLost { worker: WorkerId::from_bits(2) });
    let demand = Action::DeclareDemand { slots: 1, avoid: Vec::new() };
    assert!(lost.actions.contains(&demand), "{lost:?}");
    bench.grant(1, 1);
    bench.persist();
    assert_eq!(bench.last_sent().attempt.subtask, 0);
    assert_ne!(bench.last_sent().attempt, attempt);
}

#[test]
fn a_task_that_failed_lets_others_have_the_slots_of_that_worker_and_takes_them_at_last() {
    let mut bench = Bench::new(stages(&[5]));
    bench.run_worker(1, 1);
    bench.run_worker(2, 1);
    let [first, second] = bench.submitted()[..] else { panic!("two slots") };
    assert_eq!(sent(&fail(&mut bench, first)), [(2, 1)]);
    bench.persist();
    assert_eq!(sent(&bench.pass(RESTART_DELAY)), []);
    // All slots are taken, and subtasks 0, 3 and 4 are ready.
    let third = bench.last_sent().attempt;
    let freed = |bench: &mut Bench, worker: u128, attempt| {
        let record = Arc::new(bench.sealed(attempt));
        let data_directory = DataDirectoryId::from_bits(worker);
        let worker = WorkerId::from_bits(worker);
        sent(&bench.feed(Input::TaskFinished { worker, data_directory, record }))
    };
    assert_eq!(freed(&mut bench, 1, third), [(3, 1)]);
    assert_eq!(freed(&mut bench, 2, second), [(0, 2)], "not where it failed");
    let fourth = bench.sent(3);
    assert_eq!(freed(&mut bench, 1, fourth), [(4, 1)]);
}

#[test]
fn a_worker_that_does_not_tell_what_it_holds_is_named_and_others_make_up_for_it() {
    let mut bench = Bench::new(stages(&[2, 1]));
    bench.run_worker(1, 1);
    let attempt = bench.submitted()[0];
    bench.finish(attempt);
    bench.persist();
    bench.kill(PreviousLife::Unknown);
    bench.persist();
    bench.connect(description(1, 1), Vec::new());
    bench.pass(Duration::from_mins(5));
    bench.persist();
    bench.grant(1, 1);
    let status = bench.job.status();
    assert_eq!(status.waiting_for.as_deref(), Some("a worker to list its data directory"));
}
