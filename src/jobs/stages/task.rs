//! One attempt of a stage.

use std::time::Duration;

use regrow_actors::task::{NextSplit, Step, Task, TaskContext};
use regrow_protocol::{Accumulator, PinnedSplits, TaskDeployment, TaskFailure};

use super::{
    payload::{BlockHeader, Verifier},
    spec::PlannedFault,
};

/// What each attempt of a stage does.
#[derive(Clone, Debug)]
pub(super) struct StageWork {
    /// How long it takes, for a stage that reads no splits.
    pub(super) length: Duration,
    pub(super) payload_bytes: u64,
    pub(super) faults: Vec<(PlannedFault, FaultKind)>,
    /// How many splits the stage reads in all; 0 for a stage that reads none.
    pub(super) splits: u32,
    /// How long each of them takes.
    pub(super) split_length: Duration,
}

/// How an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    Failure,
    Panic,
}

/// One attempt of a stage: verifies its inputs, takes its time, writes its payload.
pub(super) struct StageTask {
    work: StageWork,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    Verify,
    TakeSplit,
    Write,
}

impl StageTask {
    pub(super) fn new(work: StageWork, deployment: &TaskDeployment) -> Self {
        let phase = match deployment.splits {
            PinnedSplits::None => Phase::Verify,
            PinnedSplits::OnRequest | PinnedSplits::Exactly(_) => Phase::TakeSplit,
        };
        Self { work, phase }
    }

    fn verify(&self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let gates: Vec<_> = (0..).zip(context.deployment().inputs.clone()).collect();
        let mut block = Vec::new();
        for (input, gate) in gates {
            let producers = gate.producers.iter().map(|p| p.partition.attempt.subtask).collect();
            let subpartitions = gate.subpartitions.start..gate.subpartitions.end;
            let mut verifier = Verifier::new(producers, subpartitions, self.work.payload_bytes);
            while context.read_block(input, &mut block)? {
                check_cancelled(context)?;
                verifier.block(&block).map_err(TaskFailure::unrecoverable)?;
            }
            verifier.finish().map_err(TaskFailure::unrecoverable)?;
        }
        Ok(())
    }

    /// Whether to go on with a split, and how; none while the next one is asked for.
    fn take_split(&self, context: &mut dyn TaskContext) -> Option<(Phase, Duration)> {
        match context.take_split()? {
            NextSplit::End => Some((Phase::Write, Duration::ZERO)),
            NextSplit::Split(_) => {
                context.accumulators().add("splits", Accumulator::Sum(1));
                Some((Phase::TakeSplit, self.work.split_length))
            }
        }
    }

    #[expect(clippy::panic, reason = "the user planned it")]
    fn fail_as_planned(&self, context: &dyn TaskContext) -> Result<(), TaskFailure> {
        let attempt = context.deployment().attempt;
        let planned =
            self.work.faults.iter().find(|(fault, _)| {
                fault.subtask == attempt.subtask && fault.attempt == attempt.number
            });
        match planned {
            Some((fault, FaultKind::Failure)) => {
                Err(TaskFailure::task(format!("failed as planned: {fault}")))
            }
            Some((fault, FaultKind::Panic)) => panic!("panicked as planned: {fault}"),
            None => Ok(()),
        }
    }

    fn write(&self, context: &mut dyn TaskContext) -> Result<(), TaskFailure> {
        let producer = context.deployment().attempt.subtask;
        let outputs: Vec<_> = (0..).zip(context.deployment().outputs.clone()).collect();
        let bytes = self.work.payload_bytes;
        let mut block = Vec::new();
        for (index, output) in outputs {
            let blocks = (0..output.subpartitions).flat_map(|subpartition| {
                BlockHeader::of_subpartition(producer, output.subpartitions, subpartition, bytes)
            });
            for header in blocks {
                check_cancelled(context)?;
                header.fill(&mut block);
                context.write_block(index, header.subpartition(), &block, 1)?;
            }
        }
        context.accumulators().add("tasks", Accumulator::Sum(1));
        Ok(())
    }

    /// Does what the phase asks for and goes on to the next one. Says when the thread is to be
    /// handed back.
    fn step(&mut self, context: &mut dyn TaskContext) -> Result<Option<Step>, TaskFailure> {
        let length = match self.phase {
            Phase::Verify => {
                self.verify(context)?;
                self.phase = Phase::Write;
                self.work.length
            }
            Phase::TakeSplit => {
                let Some((next, length)) = self.take_split(context) else {
                    return Ok(Some(Step::AwaitSplit));
                };
                self.phase = next;
                length
            }
            Phase::Write => {
                self.fail_as_planned(context)?;
                self.write(context)?;
                return Ok(Some(Step::Finished));
            }
        };
        Ok((!length.is_zero()).then_some(Step::Sleep(length)))
    }
}

impl Task for StageTask {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        loop {
            check_cancelled(context)?;
            if let Some(step) = self.step(context)? {
                return Ok(step);
            }
        }
    }
}

fn check_cancelled(context: &dyn TaskContext) -> Result<(), TaskFailure> {
    if context.is_cancelled() {
        return Err(TaskFailure::Cancelled);
    }
    Ok(())
}
