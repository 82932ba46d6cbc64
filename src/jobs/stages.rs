//! The built-in job `stages`: the instrument for tests and demos of failures.

mod payload;
mod spec;
mod task;

use clap::Args;
use regrow_actors::task::Task;
use regrow_protocol::{Split, SplitId, TaskDeployment, TaskFailure};
use regrow_runtime::{CoordinatorKind, Determinacy, Distribution, JobGraph, Parallelism};
use serde::{Deserialize, Serialize};

use self::{
    spec::{PlannedFault, StageSpec},
    task::{FaultKind, StageTask, StageWork},
};
use crate::{
    byte_count::{ByteCount, ByteCountError},
    chain::VertexOperator,
    environment::{Environment, NewVertex, VertexInput},
};

/// What a task writes at most: more is a slip of the keyboard that fills the disk.
const PAYLOAD_BYTES_MAX: ByteCount = ByteCount(1 << 40);

/// Runs stages of tasks that take a given time, one stage after the other
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  regrow run stages --stage 20x2s --stage 20x2s --stage 1x1s
  regrow run stages --stage 8x1s --stage 8x1s --pointwise --bytes 10mb
  regrow run stages --stage 4x1s --fail stage=0,subtask=2,attempt=0
  regrow run stages --stage 20x500ms --stage 10x500ms --kill-jobmaster-at 50%")]
pub(crate) struct Stages {
    /// A stage of so many tasks of that length, such as 20x2s; repeat it for more stages
    #[arg(id = "stage", long = "stage", value_name = "TASKSxLENGTH", required = true)]
    plan: Vec<StageSpec>,
    /// Connect the stages task by task instead of all to all
    #[arg(long)]
    pointwise: bool,
    /// Bytes that each task writes to the next stage, which reads and verifies them, such as 10mb
    #[arg(long, value_name = "SIZE", value_parser = payload_bytes)]
    bytes: Option<ByteCount>,
    /// Let an attempt fail at the end of its time, such as stage=0,subtask=2,attempt=0 (all from 0)
    #[arg(long = "fail", value_name = "FAULT")]
    failures: Vec<PlannedFault>,
    /// Let an attempt panic at the end of its time
    #[arg(long = "panic", value_name = "FAULT")]
    panics: Vec<PlannedFault>,
    /// Splits that stage 0 reads, handed out on request; each takes the length of a task, divided by
    /// the splits per task. Without it each task takes its length, and there is nothing to hand out
    #[arg(long, value_name = "N")]
    splits: Option<u32>,
}

/// Builds the job.
pub(crate) fn build(env: &Environment, arguments: Stages) -> Result<(), String> {
    check(&arguments)?;
    let mut before = None;
    for (stage, spec) in (0_u32..).zip(&arguments.plan) {
        let distribution =
            if arguments.pointwise { Distribution::Pointwise } else { Distribution::AllToAll };
        let inputs = before.map(|producer| VertexInput { producer, distribution });
        before = Some(env.add_vertex(NewVertex {
            name: format!("stage-{stage}"),
            parallelism: Parallelism::Fixed(spec.tasks),
            coordinator: arguments.splits.filter(|_| stage == 0).map(|_| CoordinatorKind::Source),
            determinacy: Determinacy::Determinate,
            inputs: inputs.into_iter().collect(),
            operator: Box::new(StageOperator { work: work(&arguments, stage, *spec) }),
        }));
    }
    Ok(())
}

/// What each attempt of a stage does.
fn work(arguments: &Stages, stage: u32, spec: StageSpec) -> StageWork {
    let faults = |planned: &[PlannedFault], kind: FaultKind| -> Vec<(PlannedFault, FaultKind)> {
        planned.iter().filter(|fault| fault.stage == stage).map(|fault| (*fault, kind)).collect()
    };
    let mut planned = faults(&arguments.failures, FaultKind::Failure);
    planned.extend(faults(&arguments.panics, FaultKind::Panic));
    let splits = arguments.splits.filter(|_| stage == 0).unwrap_or(0);
    let splits_per_task = f64::from(splits.max(1)) / f64::from(spec.tasks);
    StageWork {
        length: spec.length,
        payload_bytes: arguments.bytes.map_or(0, |bytes| bytes.0),
        faults: planned,
        splits,
        split_length: spec.length.div_f64(splits_per_task),
    }
}

/// Reads the size of a task's payload.
fn payload_bytes(text: &str) -> Result<ByteCount, String> {
    let bytes: ByteCount = text.parse().map_err(|error: ByteCountError| error.to_string())?;
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(format!("a task writes at most {PAYLOAD_BYTES_MAX}"));
    }
    Ok(bytes)
}

fn check(arguments: &Stages) -> Result<(), String> {
    let splits_max = JobGraph::SPLITS_MAX;
    if let Some(splits) = arguments.splits
        && !(1..=splits_max).contains(&splits)
    {
        return Err(format!("--splits {splits} is out of range: use 1 to {splits_max}"));
    }
    for fault in arguments.failures.iter().chain(&arguments.panics) {
        let Some(stage) = arguments.plan.get(fault.stage as usize) else {
            return Err(format!(
                "the fault {fault} names stage {}, but the last of the {} stages is {}",
                fault.stage,
                arguments.plan.len(),
                arguments.plan.len() - 1
            ));
        };
        if fault.subtask >= stage.tasks {
            return Err(format!(
                "the fault {fault} names subtask {}, but the last of the {} subtasks is {}",
                fault.subtask,
                stage.tasks,
                stage.tasks - 1
            ));
        }
    }
    Ok(())
}

struct StageOperator {
    work: StageWork,
}

impl VertexOperator for StageOperator {
    fn task(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        Ok(Box::new(StageTask::new(self.work.clone(), deployment)))
    }

    fn discover_splits(&self) -> Option<Result<Vec<Split>, String>> {
        let split = |id| Split { id: SplitId(id), size_bytes: 1, payload: Vec::new() };
        (self.work.splits > 0).then(|| Ok((0..self.work.splits).map(split).collect()))
    }
}

#[cfg(test)]
mod tests;
