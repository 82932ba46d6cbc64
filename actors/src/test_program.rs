//! A small program for tests.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use regrow_protocol::{
    JobVertexId, PinnedSplits, Split, SplitId, StagedFile, TaskDeployment, TaskFailure,
};
use regrow_runtime::{
    CoordinatorKind, Determinacy, Distribution, JobEdge, JobGraph, JobVertex, Parallelism, SinkSpec,
};

use crate::task::{NextSplit, Step, Task, TaskContext, TaskFactory};

/// How many splits there are, and numbers in the output.
pub(crate) const SPLITS: u32 = 12;

/// How long each split takes.
const SLEEP: Duration = Duration::from_millis(20);

/// Two stages: the first reads splits and writes their numbers, the second writes them to files.
/// Arguments: the output directory, then `:` and what goes wrong.
pub(crate) struct Program {
    failed_once: AtomicBool,
}

/// The program.
pub(crate) fn program() -> Arc<Program> {
    Arc::new(Program { failed_once: AtomicBool::new(false) })
}

fn parse(arguments: &[u8]) -> (String, String) {
    let text = String::from_utf8(arguments.to_vec()).unwrap();
    let (directory, trouble) = text.split_once(':').unwrap();
    (directory.to_owned(), trouble.to_owned())
}

fn vertex(name: &str, parallelism: u32, coordinator: Option<CoordinatorKind>) -> JobVertex {
    JobVertex {
        name: name.to_owned(),
        parallelism: Parallelism::Fixed(parallelism),
        coordinator,
        determinacy: Determinacy::Determinate,
    }
}

impl TaskFactory for Program {
    fn build(&self, _: &str, arguments: &[u8]) -> Result<JobGraph, String> {
        let (directory, trouble) = parse(arguments);
        if trouble == "graph" {
            return Err("there is no such column".to_owned());
        }
        let vertices =
            vec![vertex("read", 6, Some(CoordinatorKind::Source)), vertex("write", 2, None)];
        let (producer, consumer) = (JobVertexId(0), JobVertexId(1));
        let edges = vec![JobEdge { producer, consumer, distribution: Distribution::AllToAll }];
        let sinks = vec![SinkSpec { vertex: consumer, directory, overwrite: false }];
        Ok(JobGraph { vertices, edges, sinks })
    }

    fn create(&self, deployment: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        let (_, trouble) = parse(&deployment.arguments);
        let sound = trouble != "panic" || self.failed_once.swap(true, Ordering::Relaxed);
        assert!(sound, "a planned defect");
        if trouble == "bad input" {
            return Err(TaskFailure::unrecoverable("line 7 of the input is not UTF-8"));
        }
        let forever = trouble == "forever";
        Ok(match deployment.attempt.vertex {
            JobVertexId(0) => Box::new(Read { current: None, forever }),
            _ => Box::new(Write),
        })
    }

    fn discover_splits(&self, _: &str, _: &[u8], _: JobVertexId) -> Result<Vec<Split>, String> {
        let split =
            |id: u32| Split { id: SplitId(id), size_bytes: 4, payload: id.to_le_bytes().to_vec() };
        Ok((0..SPLITS).map(split).collect())
    }
}

struct Read {
    current: Option<Split>,
    forever: bool,
}

impl Task for Read {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        if context.is_cancelled() {
            return Err(TaskFailure::Cancelled);
        }
        if let Some(split) = self.current.take() {
            let target = u32::from(split.payload[0]) % 2;
            context.write_block(0, target, &split.payload, 1)?;
        }
        if self.forever {
            return Ok(Step::Sleep(Duration::from_mins(10)));
        }
        match context.take_split() {
            None => {
                assert_ne!(context.deployment().splits, PinnedSplits::None);
                Ok(Step::AwaitSplit)
            }
            Some(NextSplit::End) => Ok(Step::Finished),
            Some(NextSplit::Split(split)) => {
                self.current = Some(split);
                Ok(Step::Sleep(SLEEP))
            }
        }
    }
}

struct Write;

impl Task for Write {
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        let (mut block, mut numbers) = (Vec::new(), Vec::new());
        while context.read_block(0, &mut block)? {
            let records = block.chunks(4).map(|record| u32::from(record[0]));
            numbers.extend(records);
        }
        numbers.sort_unstable();
        let lines: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let text = lines.join("\n");
        let deployment = context.deployment();
        let attempt = deployment.attempt;
        let target = &deployment.sinks[0];
        let staged_name = format!("{}-{}-{}", attempt.subtask, attempt.epoch, attempt.number);
        let path = Path::new(&target.staging_directory).join(&staged_name);
        fs::write(path, &text).map_err(|error| TaskFailure::task(error.to_string()))?;
        let file = StagedFile {
            sink: target.sink,
            staged_name,
            final_name: format!("part-{:05}.txt", attempt.subtask),
            bytes: text.len() as u64,
            checksum: crc32c::crc32c(text.as_bytes()),
        };
        context.add_staged_file(file);
        Ok(Step::Finished)
    }
}
