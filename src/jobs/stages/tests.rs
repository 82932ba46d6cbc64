//! Stages as jobs and as tasks.

use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};
use regrow_protocol::{PinnedSplits, SubpartitionRange};

use super::*;
use crate::{environment::BuiltJob, test_context::TestContext};

fn try_parse(line: &str) -> Result<Stages, clap::Error> {
    let matches = Stages::augment_args(Command::new("stages").no_binary_name(true))
        .try_get_matches_from(line.split(' '))?;
    Stages::from_arg_matches(&matches)
}

fn parse(line: &str) -> Stages {
    try_parse(line).unwrap()
}

fn built(line: &str) -> Result<BuiltJob, String> {
    let environment = Environment::new(None, false);
    build(&environment, parse(line))?;
    Ok(environment.into_job())
}

/// Runs attempt 0 of subtask 0 of stage 0 with `splits` splits to take.
fn run_source(line: &str, splits: u32, context: &mut TestContext) -> Result<(), TaskFailure> {
    let job = built(line).unwrap();
    match job.operators[0].discover_splits() {
        Some(all) => context.splits = all.unwrap().into_iter().take(splits as usize).collect(),
        None => context.deployment.splits = PinnedSplits::None,
    }
    let mut task = job.operators[0].task(&context.deployment).unwrap();
    context.run(&mut *task)
}

#[test]
fn stages_form_a_chain_of_the_asked_kind() {
    let job = built("--stage 20x2s --stage 3x1s --stage 1x1s --pointwise").unwrap();
    let tasks: Vec<_> = job.graph.vertices.iter().map(|vertex| vertex.parallelism).collect();
    assert_eq!(tasks, [20, 3, 1].map(Parallelism::Fixed));
    assert_eq!(job.graph.edges.len(), 2);
    assert!(job.graph.edges.iter().all(|edge| edge.distribution == Distribution::Pointwise));
    assert!(job.graph.vertices.iter().all(|vertex| vertex.coordinator.is_none()));
    assert_eq!(job.graph.validate(), Ok(()));
}

#[test]
fn only_a_first_stage_with_splits_has_a_coordinator() {
    let job = built("--stage 4x2s --stage 4x2s --splits 8").unwrap();
    let coordinators: Vec<_> = job.graph.vertices.iter().map(|vertex| vertex.coordinator).collect();
    assert_eq!(coordinators, [Some(CoordinatorKind::Source), None]);
    assert!(job.operators[1].discover_splits().is_none());
}

#[test]
fn without_splits_each_task_takes_its_length() {
    let mut context = TestContext::new(0);
    run_source("--stage 4x2s", 0, &mut context).unwrap();
    assert_eq!(context.slept, [Duration::from_secs(2)]);
}

#[test]
fn splits_share_the_length_of_the_tasks() {
    let mut context = TestContext::new(0);
    run_source("--stage 2x1s --splits 10", 10, &mut context).unwrap();
    assert_eq!(context.slept, [Duration::from_millis(200); 10]);
}

#[test]
fn pinned_splits_are_all_read_again() {
    let mut context = TestContext::new(0);
    context.deployment.splits = PinnedSplits::Exactly(Vec::new());
    run_source("--stage 4x1s --splits 4", 3, &mut context).unwrap();
    assert_eq!(context.slept.len(), 3);
}

#[test]
fn a_planned_failure_fails_only_its_attempt() {
    let line = "--stage 2x0s --fail stage=0,subtask=0,attempt=0";
    let failure = run_source(line, 1, &mut TestContext::new(0)).unwrap_err();
    assert!(matches!(failure, TaskFailure::Task { .. }), "{failure}");
    let mut second = TestContext::new(0);
    second.deployment.attempt.number = 1;
    assert_eq!(run_source(line, 1, &mut second), Ok(()));
}

#[test]
fn a_planned_panic_panics() {
    let line = "--stage 2x0s --panic stage=0,subtask=0,attempt=0";
    let panicked = std::panic::catch_unwind(|| run_source(line, 1, &mut TestContext::new(0)));
    assert!(panicked.is_err());
}

#[test]
fn a_payload_is_written_by_one_stage_and_verified_by_the_next() {
    let line = "--stage 1x0s --stage 1x1s --bytes 1mb";
    let mut producer = TestContext::new(0);
    run_source(line, 1, &mut producer).unwrap();
    let written: usize = producer.written.iter().map(|(_, _, block)| block.len()).sum();
    assert!((1 << 20..(1 << 20) + 1_000).contains(&written), "{written}");

    let mut consumer = TestContext::new(0);
    consumer.deployment.splits = PinnedSplits::None;
    consumer.deployment.outputs.clear();
    consumer.read_from(1, SubpartitionRange { start: 1, end: 3 });
    let blocks = [1, 2].into_iter().flat_map(|index| producer.subpartition(index));
    let blocks: Vec<Vec<u8>> = blocks.map(<[u8]>::to_vec).collect();
    consumer.set_input(0, blocks.clone());
    let mut damaged = blocks;
    let task = || built(line).unwrap().operators[1].task(&consumer.deployment).unwrap();
    let (mut first, mut second) = (task(), task());
    assert_eq!(consumer.run(&mut *first), Ok(()));
    assert_eq!(consumer.slept, [Duration::from_secs(1)]);

    damaged.pop();
    consumer.set_input(0, damaged);
    assert!(consumer.run(&mut *second).is_err());
}

#[test]
fn a_cancelled_task_ends() {
    let mut context = TestContext::new(0);
    context.cancelled = true;
    assert_eq!(run_source("--stage 1x9s", 1, &mut context), Err(TaskFailure::Cancelled));
    assert_eq!(context.slept, [Duration::ZERO; 0]);
}

#[test]
fn faults_and_splits_out_of_range_are_refused() {
    for line in [
        "--stage 2x1s --fail stage=1,subtask=0,attempt=0",
        "--stage 2x1s --panic stage=0,subtask=2,attempt=0",
        "--stage 2x1s --splits 0",
        "--stage 2x1s --splits 1000001",
    ] {
        assert!(built(line).is_err(), "{line}");
    }
    assert!(built("--stage 2x1s --splits 1000000").is_ok());
}

#[test]
fn a_payload_that_no_disk_holds_is_refused() {
    assert_eq!(parse("--stage 1x1s --bytes 1tb").bytes, Some(ByteCount(1 << 40)));
    for bytes in ["2tb", "18446744073709551615"] {
        let error = try_parse(&format!("--stage 1x1s --bytes {bytes}")).unwrap_err().to_string();
        assert!(error.contains("at most 1 tb"), "{error}");
    }
}
