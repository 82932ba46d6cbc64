//! What a task costs on the side of a worker: submit, run, seal, report, acknowledge, with user code
//! that does nothing and no outputs. Prints CPU time of the whole process, this master included.
//!
//! `cargo bench -p regrow-actors --bench task_dispatch`

use std::{
    fs,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use actix::{Actor, Context, Handler, Recipient, System};
use regrow_actors::{
    gateway::{Gateway, Post},
    runner::RunnerKind,
    task::{Step, Task, TaskContext, TaskFactory},
    watch::Terminated,
    worker::{Sharing, WorkerConfig, WorkerDirectories, spawn_worker},
};
use regrow_protocol::{
    DataDirectoryId, Envelope, Epoch, ExecutionAttemptId, JobVertexId, PinnedSplits, PlanId,
    ReportAnswer, RunId, Split, TaskDeployment, TaskFailure, ToJobMaster, ToTaskExecutor, WorkerId,
};
use regrow_runtime::{JobGraph, WorkerTimeouts};
use tokio::{sync::oneshot, time::Instant};

const TASKS: u32 = 20_000;
const SLOTS: u32 = 2;
const RUN: RunId = RunId::from_bits(1);
const EPOCH: Epoch = Epoch::new(1, 0);

type Failed = Box<dyn std::error::Error>;

/// Keeps all slots busy until all tasks have finished.
struct Master {
    executor: Option<Gateway<ToTaskExecutor>>,
    submitted: u32,
    finished: u32,
    done: Option<oneshot::Sender<()>>,
}

/// Begin.
struct Lead(Gateway<ToTaskExecutor>);

impl actix::Message for Lead {
    type Result = ();
}

impl Master {
    fn tell(&self, message: ToTaskExecutor) {
        if let Some(executor) = &self.executor {
            executor.do_send(Post(Envelope { run: RUN, epoch: EPOCH, message }));
        }
    }

    fn submit_next(&mut self) {
        if self.submitted < TASKS {
            self.tell(ToTaskExecutor::SubmitTask(Box::new(deployment(self.submitted))));
            self.submitted += 1;
        }
    }
}

impl Actor for Master {
    type Context = Context<Self>;
}

impl Handler<Lead> for Master {
    type Result = ();

    fn handle(&mut self, Lead(executor): Lead, _: &mut Self::Context) {
        self.executor = Some(executor);
        self.tell(ToTaskExecutor::JobMasterStarted);
        for _ in 0..SLOTS {
            self.submit_next();
        }
    }
}

impl Handler<Post<ToJobMaster>> for Master {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToJobMaster>, _: &mut Self::Context) {
        let ToJobMaster::TaskFinished { record, .. } = envelope.message else { return };
        let answer = ReportAnswer::Accepted;
        self.tell(ToTaskExecutor::ReportAnswered { attempt: record.attempt, answer });
        self.finished += 1;
        self.submit_next();
        if self.finished == TASKS
            && let Some(done) = self.done.take()
        {
            let _ = done.send(());
        }
    }
}

impl Handler<Terminated<WorkerId>> for Master {
    type Result = ();

    fn handle(&mut self, _: Terminated<WorkerId>, _: &mut Self::Context) {}
}

struct Nothing;

impl Task for Nothing {
    fn run(&mut self, _: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        Ok(Step::Finished)
    }
}

impl TaskFactory for Nothing {
    fn build(&self, _: &str, _: &[u8]) -> Result<JobGraph, String> {
        Err("there is no graph".to_owned())
    }

    fn create(&self, _: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        Ok(Box::new(Self))
    }

    fn discover_splits(&self, _: &str, _: &[u8], _: JobVertexId) -> Result<Vec<Split>, String> {
        Ok(Vec::new())
    }
}

fn deployment(subtask: u32) -> TaskDeployment {
    let vertex = JobVertexId(0);
    TaskDeployment {
        attempt: ExecutionAttemptId { run: RUN, vertex, subtask, epoch: EPOCH, number: 0 },
        job: regrow_protocol::JobId::from_bits(1),
        job_name: "nothing".to_owned(),
        arguments: Vec::new(),
        graph_hash: 0,
        parallelism: TASKS,
        plan: PlanId(0),
        inputs: Vec::new(),
        outputs: Vec::new(),
        sinks: Vec::new(),
        splits: PinnedSplits::None,
        ledger: None,
        memory_bytes: 1 << 20,
        locations: Vec::new(),
    }
}

/// User and system time of this process so far, in the kernel's ticks of 10 ms.
fn cpu_time() -> Result<Duration, Failed> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no process name")?;
    let mut ticks = 0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<u64>()?;
    }
    Ok(Duration::from_millis(10 * ticks))
}

async fn measure(root: &std::path::Path) -> Result<(), Failed> {
    let (done, all_done) = oneshot::channel();
    let master = Master { executor: None, submitted: 0, finished: 0, done: Some(done) }.start();
    let mut directories = WorkerDirectories::open(root, &[DataDirectoryId::from_bits(1)])?;
    let watcher: Recipient<Terminated<WorkerId>> = master.clone().recipient();
    let worker = spawn_worker(WorkerConfig {
        worker: WorkerId::from_bits(1),
        slots: SLOTS,
        sharing: Sharing::default(),
        timeouts: WorkerTimeouts {
            reconnect_grace: Duration::from_secs(5),
            registration_timeout: None,
        },
        directories: directories.pop().ok_or("no directory")?,
        factory: Arc::new(Nothing),
        runner: RunnerKind::SlotThreads,
        master: master.clone().recipient(),
        watcher,
    })?;
    let (begin, cpu_before) = (Instant::now(), cpu_time()?);
    master.do_send(Lead(worker.connected.task_executor.clone()));
    all_done.await?;
    let (elapsed, cpu) = (begin.elapsed(), cpu_time()?.saturating_sub(cpu_before));
    writeln!(
        io::stdout(),
        "{TASKS} tasks on {SLOTS} slots: {:.1} us each, {:.1} us of CPU each",
        elapsed.as_secs_f64() * 1e6 / f64::from(TASKS),
        cpu.as_secs_f64() * 1e6 / f64::from(TASKS),
    )?;
    Ok(())
}

fn main() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    System::new().block_on(measure(root.path()))
}
