//! What holds after any sequence of inputs.

use std::collections::BTreeSet;

use proptest::prelude::*;
use regrow_protocol::{ExecutionAttemptId, ReportAnswer, RunStanding, TaskFailure, ToTaskExecutor};

use super::worker::{Worker, attempt, cancel, submit};
use crate::{TaskExecutorAction as Action, TaskExecutorInput as Input};

const SLOTS: u32 = 2;

#[derive(Clone, Debug)]
enum Step {
    Tell(u32, Command),
    Finish(usize),
    Fail(usize),
    WantSplit(usize),
    LoseMaster(u32),
    Wake(u64),
}

#[derive(Clone, Debug)]
enum Command {
    Started,
    Submit(u32, u32),
    Cancel(u32, u32),
    Answer(u32, u32, ReportAnswer),
    End(RunStanding),
}

fn commands() -> impl Strategy<Value = Command> {
    let id = (0..4_u32, 0..3_u32);
    let standing = prop_oneof![
        8 => Just(RunStanding::Running),
        8 => Just(RunStanding::Unknown),
        1 => Just(RunStanding::Ended),
    ];
    prop_oneof![
        4 => Just(Command::Started),
        12 => id.clone().prop_map(|(subtask, number)| Command::Submit(subtask, number)),
        4 => id.clone().prop_map(|(subtask, number)| Command::Cancel(subtask, number)),
        2 => id.clone().prop_map(|(s, n)| Command::Answer(s, n, ReportAnswer::Accepted)),
        2 => id.prop_map(|(s, n)| Command::Answer(s, n, ReportAnswer::Superseded)),
        1 => standing.prop_map(Command::End),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => (0..4_u32, commands()).prop_map(|(life, command)| Step::Tell(life, command)),
        8 => (0..4_usize).prop_map(Step::Finish),
        4 => (0..4_usize).prop_map(Step::Fail),
        2 => (0..4_usize).prop_map(Step::WantSplit),
        2 => (0..4_u32).prop_map(Step::LoseMaster),
        // Short of the grace: a master that is forgotten does not repeat itself.
        2 => (0..40_u64).prop_map(Step::Wake),
    ]
}

/// What a bystander knows of the worker.
#[derive(Default)]
struct Bystander {
    started: BTreeSet<ExecutionAttemptId>,
    running: BTreeSet<ExecutionAttemptId>,
    unanswered: BTreeSet<ExecutionAttemptId>,
    ended: bool,
}

impl Bystander {
    fn watch(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Start(deployment) => {
                    assert!(self.started.insert(deployment.attempt), "started twice");
                    self.running.insert(deployment.attempt);
                    assert!(self.running.len() <= SLOTS as usize, "more than the slots");
                }
                Action::ReleaseRun { .. } => {
                    self.ended = true;
                    self.unanswered.clear();
                }
                Action::Discard { attempt } => {
                    assert!(!self.unanswered.contains(attempt), "an unanswered finish is dropped");
                }
                Action::DeliverSplit { attempt, .. } => {
                    assert!(self.running.contains(attempt), "a split for nobody");
                }
                Action::Cancel { attempt } => {
                    assert!(self.running.contains(attempt), "nothing to cancel");
                }
                Action::Post(_)
                | Action::TellRefusal { .. }
                | Action::FollowMaster { .. }
                | Action::Left
                | Action::WakeAt(_) => {}
            }
        }
    }
}

fn take(worker: &mut Worker, seen: &mut Bystander, step: Step) {
    let nth = |index: usize| seen.running.iter().nth(index).copied();
    let actions = match step {
        Step::Tell(life, command) => {
            let epoch_before = worker.core.fence.epoch(super::RUN);
            if let Command::Answer(subtask, number, _) = command
                && super::epoch(life) >= epoch_before
            {
                seen.unanswered.remove(&attempt(life, subtask, number));
            }
            worker.tell(life, message(life, command))
        }
        Step::Finish(index) => {
            let Some(task) = nth(index) else { return };
            seen.running.remove(&task);
            if !seen.ended {
                seen.unanswered.insert(task);
            }
            worker.finish(task)
        }
        Step::Fail(index) => {
            let Some(task) = nth(index) else { return };
            seen.running.remove(&task);
            worker.fail(task, TaskFailure::Cancelled)
        }
        Step::WantSplit(index) => {
            let Some(task) = nth(index) else { return };
            worker.want_split(task, 0)
        }
        Step::LoseMaster(life) => worker.lose(life),
        Step::Wake(wait) => {
            worker.now += wait;
            worker.feed(Input::Woken)
        }
    };
    seen.watch(&actions);
}

fn message(life: u32, command: Command) -> ToTaskExecutor {
    match command {
        Command::Started => ToTaskExecutor::JobMasterStarted,
        Command::Submit(subtask, number) => submit(attempt(life, subtask, number)),
        Command::Cancel(subtask, number) => cancel(attempt(life, subtask, number)),
        Command::Answer(subtask, number, ReportAnswer::Accepted) => {
            ToTaskExecutor::ReportsAccepted { attempts: vec![attempt(life, subtask, number)] }
        }
        Command::Answer(subtask, number, answer) => {
            ToTaskExecutor::ReportAnswered { attempt: attempt(life, subtask, number), answer }
        }
        Command::End(standing) => ToTaskExecutor::RunEnded { standing },
    }
}

proptest! {
    #[test]
    fn slots_hold_no_attempt_starts_twice_and_no_unanswered_finish_is_lost(
        steps in proptest::collection::vec(steps(), 0..100),
    ) {
        let mut worker = Worker::new(SLOTS);
        let mut seen = Bystander::default();
        for step in steps {
            take(&mut worker, &mut seen, step);
            prop_assert_eq!(worker.core.occupied_slots(), seen.running.len());
            prop_assert_eq!(worker.core.unacknowledged_reports(), seen.unanswered.len());
        }
        if !seen.ended {
            let told = worker.tell(9, ToTaskExecutor::JobMasterStarted);
            let unanswered: Vec<_> = seen.unanswered.into_iter().collect();
            prop_assert_eq!(Worker::inventory(&told).1, unanswered);
        }
    }
}
