//! A worker under test: a real one, whose master is the test.

use std::{fs, path::Path, sync::Arc, time::Duration};

use actix::{Actor, Context, Handler, Recipient};
use regrow_protocol::{
    DataDirectoryId, Envelope, Epoch, ExecutionAttemptId, FinishRecord, JobVertexId, OutputSpec,
    PinnedSplits, PlanId, RunId, Split, TaskDeployment, TaskFailure, ToJobMaster, ToShuffleService,
    ToTaskExecutor, WorkerId,
};
use regrow_runtime::{JobGraph, WorkerTimeouts};
use tempfile::TempDir;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

use super::{Sharing, SpawnedWorker, WorkerConfig, WorkerDirectories, spawn_worker};
use crate::{
    gateway::Post,
    runner::RunnerKind,
    task::{Step, Task, TaskContext, TaskFactory},
    task_executor::MasterLost,
    watch::Terminated,
};

pub(crate) const RUN: RunId = RunId::from_bits(77);

/// Longer than any wait of a test.
const PATIENCE: Duration = Duration::from_hours(1);

pub(crate) struct Bench {
    pub(crate) root: TempDir,
    pub(crate) worker: SpawnedWorker,
    inbox: UnboundedReceiver<ToJobMaster>,
    gone: UnboundedReceiver<WorkerId>,
}

/// Stands where masters and parents stand.
struct Outside {
    posts: UnboundedSender<ToJobMaster>,
    deaths: UnboundedSender<WorkerId>,
}

impl Bench {
    pub(crate) fn new(runner: RunnerKind, slots: u32, factory: impl TaskFactory + 'static) -> Self {
        Self::in_root(tempfile::tempdir().unwrap(), 1, runner, slots, factory)
    }

    pub(crate) fn in_root(
        root: TempDir,
        life: u128,
        runner: RunnerKind,
        slots: u32,
        factory: impl TaskFactory + 'static,
    ) -> Self {
        let new = [DataDirectoryId::from_bits(life)];
        let directories = WorkerDirectories::open(root.path(), &new).unwrap().pop().unwrap();
        Self::with(root, (life, directories), runner, slots, factory)
    }

    /// A stand-alone shuffle service.
    pub(crate) fn service(root: TempDir, life: u128, factory: impl TaskFactory + 'static) -> Self {
        let directories = WorkerDirectories::keep(root.path(), DataDirectoryId::from_bits(life));
        Self::with(root, (life, directories.unwrap()), RunnerKind::LockStep, 0, factory)
    }

    fn with(
        root: TempDir,
        (life, directories): (u128, WorkerDirectories),
        runner: RunnerKind,
        slots: u32,
        factory: impl TaskFactory + 'static,
    ) -> Self {
        let (posts, inbox) = unbounded_channel();
        let (deaths, gone) = unbounded_channel();
        let outside = Outside { posts, deaths }.start();
        let worker = spawn_worker(WorkerConfig {
            worker: WorkerId::from_bits(life),
            slots,
            sharing: Sharing::default(),
            timeouts: WorkerTimeouts {
                reconnect_grace: Duration::from_secs(5),
                registration_timeout: Some(Duration::from_mins(5)),
            },
            directories,
            factory: Arc::new(factory),
            runner,
            master: outside.clone().recipient(),
            watcher: outside.recipient(),
        });
        Self { root, worker: worker.unwrap(), inbox, gone }
    }

    pub(crate) fn tell(&self, life: u32, message: ToTaskExecutor) {
        post(&self.worker.connected.task_executor, life, message);
    }

    pub(crate) fn tell_shuffle(&self, life: u32, message: ToShuffleService) {
        post(&self.worker.connected.shuffle_service, life, message);
    }

    pub(crate) fn submit(&self, deployment: TaskDeployment) {
        let life = deployment.attempt.epoch.life;
        self.tell(life, ToTaskExecutor::SubmitTask(Box::new(deployment)));
    }

    pub(crate) fn lose_master(&self, life: u32) {
        self.worker.task_executor.do_send(MasterLost { run: RUN, epoch: Epoch::new(1, life) });
    }

    /// What the master hears next.
    pub(crate) async fn hear(&mut self) -> ToJobMaster {
        timeout(PATIENCE, self.inbox.recv()).await.expect("a message").expect("an open inbox")
    }

    /// Whether nothing more was said, but of commands that were refused.
    pub(crate) fn hears_nothing_more(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(ToJobMaster::CommandRefused { .. }) => {}
                other => return other.is_err(),
            }
        }
    }

    pub(crate) async fn hear_finish(&mut self) -> FinishRecord {
        let heard = self.hear().await;
        let ToJobMaster::TaskFinished { record, .. } = heard else {
            panic!("expected a finish, heard {heard:?}");
        };
        Arc::unwrap_or_clone(record)
    }

    pub(crate) async fn hear_failure(&mut self) -> TaskFailure {
        let heard = self.hear().await;
        let ToJobMaster::TaskFailed { failure, .. } = heard else {
            panic!("expected a failure, heard {heard:?}");
        };
        failure
    }

    pub(crate) async fn hear_partitions(&mut self) -> (DataDirectoryId, Vec<ExecutionAttemptId>) {
        let heard = self.hear().await;
        let ToJobMaster::AllPartitionsWithMetrics { data_directory, finished, .. } = heard else {
            panic!("expected partitions, heard {heard:?}");
        };
        (data_directory, finished.iter().map(|record| record.attempt).collect())
    }

    pub(crate) async fn hear_of_death(&mut self) -> WorkerId {
        timeout(PATIENCE, self.gone.recv()).await.expect("a death").expect("an open channel")
    }

    /// Names of all files of the run, in all data directories.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for directory in entries(self.root.path()) {
            for run in entries(&directory) {
                names.extend(entries(&run).iter().map(|path| file_name(path)));
            }
        }
        names.sort_unstable();
        names
    }

    pub(crate) fn ledger_path(&self) -> String {
        self.root.path().join("ledger.txt").to_str().unwrap().to_owned()
    }

    /// The lines of the ledger, without their times.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.ledger_path()).unwrap_or_default();
        text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }
}

fn post<M: Send + 'static>(gateway: &Recipient<Post<M>>, life: u32, message: M) {
    gateway.do_send(Post(Envelope { run: RUN, epoch: Epoch::new(1, life), message }));
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    if !directory.is_dir() {
        return Vec::new();
    }
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl Actor for Outside {
    type Context = Context<Self>;
}

impl Handler<Post<ToJobMaster>> for Outside {
    type Result = ();

    fn handle(&mut self, Post(envelope): Post<ToJobMaster>, _: &mut Self::Context) {
        let _ = self.posts.send(envelope.message);
    }
}

impl Handler<Terminated<WorkerId>> for Outside {
    type Result = ();

    fn handle(&mut self, Terminated(worker): Terminated<WorkerId>, _: &mut Self::Context) {
        let _ = self.deaths.send(worker);
    }
}

/// A program whose tasks all do what a function does.
pub(crate) struct Program<F>(pub(crate) F);

struct FunctionTask<F>(Arc<F>);

impl<F> Program<Arc<F>>
where
    F: Fn(&mut dyn TaskContext) -> Result<Step, TaskFailure> + Send + Sync + 'static,
{
    pub(crate) fn new(run: F) -> Self {
        Self(Arc::new(run))
    }
}

impl<F> Task for FunctionTask<F>
where
    F: Fn(&mut dyn TaskContext) -> Result<Step, TaskFailure> + Send + Sync,
{
    fn run(&mut self, context: &mut dyn TaskContext) -> Result<Step, TaskFailure> {
        (self.0)(context)
    }
}

impl<F> TaskFactory for Program<Arc<F>>
where
    F: Fn(&mut dyn TaskContext) -> Result<Step, TaskFailure> + Send + Sync + 'static,
{
    fn build(&self, _: &str, _: &[u8]) -> Result<JobGraph, String> {
        Err("no graph".to_owned())
    }

    fn create(&self, _: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        Ok(Box::new(FunctionTask(Arc::clone(&self.0))))
    }

    fn discover_splits(&self, _: &str, _: &[u8], _: JobVertexId) -> Result<Vec<Split>, String> {
        Ok(Vec::new())
    }
}

pub(crate) fn attempt(life: u32, subtask: u32) -> ExecutionAttemptId {
    let epoch = Epoch::new(1, life);
    ExecutionAttemptId { run: RUN, vertex: JobVertexId(0), subtask, epoch, number: 0 }
}

/// A task with `outputs` outputs of two subpartitions each.
pub(crate) fn deployment(attempt: ExecutionAttemptId, outputs: u32) -> TaskDeployment {
    let output =
        |index| OutputSpec { data_set: regrow_protocol::DataSetId(index), subpartitions: 2 };
    TaskDeployment {
        attempt,
        job: "job".parse().unwrap(),
        job_name: "job".to_owned(),
        arguments: Vec::new(),
        graph_hash: 0,
        parallelism: 4,
        plan: PlanId(5),
        inputs: Vec::new(),
        outputs: (0..outputs).map(output).collect(),
        sinks: Vec::new(),
        splits: PinnedSplits::None,
        ledger: None,
        memory_bytes: 1 << 20,
        locations: Vec::new(),
    }
}
