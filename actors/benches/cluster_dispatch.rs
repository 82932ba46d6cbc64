//! What a task costs a `JobManager` whose workers are many and far: 100 peers on real sockets, which
//! answer each task at once. Prints tasks per second, and CPU time of the whole process, peers
//! included.
//!
//! `cargo bench -p regrow-actors --bench cluster_dispatch`; arguments: how many tasks, how many peers.

use std::{
    fs,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use crossbeam_channel::{bounded, never};
use regrow_actors::{
    cluster::{
        ClusterClient, ClusterIdentity, ClusterSubmission, Followed, JobManager, JobManagerNews,
    },
    task::{Task, TaskFactory},
};
use regrow_protocol::{
    Accumulators, DataDirectoryId, Envelope, FinishRecord, FromWorker, Hello, Inventory, JobId,
    JobVertexId, PartitionKeeper, Role, Split, TaskDeployment, TaskFailure, TaskMetrics,
    ToJobMaster, ToShuffleService, ToTaskExecutor, ToWorker, WorkerDescription, WorkerId, decode,
    encode,
};
use regrow_runtime::{Determinacy, JobGraph, JobState, JobVertex, Options, Parallelism};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};
use tokio_util::codec::{Decoder as _, Encoder as _, LengthDelimitedCodec};

const TASKS: u32 = 10_000;
const PEERS: u32 = 100;

/// Slots of each peer.
const SLOTS: u32 = 2;

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn identity() -> ClusterIdentity {
    ClusterIdentity { cluster_id: "bench".to_owned(), registry: 1 }
}

/// One stage of tasks without output.
struct Program {
    tasks: u32,
}

impl TaskFactory for Program {
    fn build(&self, _: &str, _: &[u8]) -> Result<JobGraph, String> {
        let vertex = JobVertex {
            name: "nothing".to_owned(),
            parallelism: Parallelism::Fixed(self.tasks),
            coordinator: None,
            determinacy: Determinacy::Determinate,
        };
        Ok(JobGraph { vertices: vec![vertex], ..JobGraph::default() })
    }

    fn create(&self, _: &TaskDeployment) -> Result<Box<dyn Task>, TaskFailure> {
        Err(TaskFailure::unrecoverable("tasks run at peers"))
    }

    fn discover_splits(&self, _: &str, _: &[u8], _: JobVertexId) -> Result<Vec<Split>, String> {
        Ok(Vec::new())
    }
}

/// A worker that has done each task before it is asked to.
struct Peer {
    description: WorkerDescription,
}

impl Peer {
    fn new(number: u32) -> Self {
        let bits = u128::from(number) + 1;
        let description = WorkerDescription {
            worker: WorkerId::from_bits(bits),
            data_directory: DataDirectoryId::from_bits(bits),
            slots: SLOTS,
            shuffle_address: None,
            keeper: PartitionKeeper::Worker,
        };
        Self { description }
    }

    fn answer(&self, said: ToWorker) -> Option<Envelope<ToJobMaster>> {
        let WorkerDescription { worker, data_directory, .. } = self.description;
        let (run, epoch, message) = match said {
            ToWorker::TaskExecutor(Envelope { run, epoch, message }) => match message {
                ToTaskExecutor::JobMasterStarted => {
                    let (worker, inventory) = (self.description, Inventory::default());
                    (run, epoch, ToJobMaster::Registered { worker, inventory })
                }
                ToTaskExecutor::SubmitTask(deployment) => {
                    let record = Arc::new(finish(&deployment));
                    (run, epoch, ToJobMaster::TaskFinished { worker, data_directory, record })
                }
                ToTaskExecutor::CancelTask { .. }
                | ToTaskExecutor::SplitAnswered { .. }
                | ToTaskExecutor::ReportAnswered { .. }
                | ToTaskExecutor::ReportsAccepted { .. }
                | ToTaskExecutor::RunEnded { .. } => return None,
            },
            ToWorker::ShuffleService(Envelope { run, epoch, message }) => match message {
                ToShuffleService::GetAllPartitionsWithMetrics => {
                    let finished = Vec::new();
                    let report =
                        ToJobMaster::AllPartitionsWithMetrics { worker, data_directory, finished };
                    (run, epoch, report)
                }
                ToShuffleService::ReleasePartitions { .. } | ToShuffleService::ReleaseRun => {
                    return None;
                }
            },
        };
        Some(Envelope { run, epoch, message })
    }

    /// Talks until the leader is gone.
    async fn work(self, leader: SocketAddr) -> Result<(), Failed> {
        let mut stream = TcpStream::connect(leader).await?;
        stream.set_nodelay(true)?;
        let mut codec = LengthDelimitedCodec::builder().max_frame_length(64 << 20).new_codec();
        let ClusterIdentity { cluster_id, registry } = identity();
        let hello = Hello::new(cluster_id, Some(registry), Role::TaskManager(self.description));
        let (mut read, mut written) = (BytesMut::new(), BytesMut::new());
        codec.encode(Bytes::from(encode(&hello)?), &mut written)?;
        stream.write_all_buf(&mut written).await?;
        // The leader's hello comes first.
        let mut frames = 0;
        while stream.read_buf(&mut read).await? > 0 {
            while let Some(frame) = codec.decode(&mut read)? {
                frames += 1;
                let answer = (frames > 1).then(|| self.hear(&frame)).transpose()?.flatten();
                answer.map_or(Ok(()), |answer| codec.encode(answer, &mut written))?;
            }
            stream.write_all_buf(&mut written).await?;
        }
        Ok(())
    }

    /// The answer to a frame; none to a heartbeat, and to what wants none.
    fn hear(&self, frame: &[u8]) -> Result<Option<Bytes>, Failed> {
        if frame.is_empty() {
            return Ok(None);
        }
        let Some(answer) = self.answer(decode(frame)?) else { return Ok(None) };
        Ok(Some(Bytes::from(encode(&FromWorker::JobMaster(answer))?)))
    }
}

fn finish(deployment: &TaskDeployment) -> FinishRecord {
    FinishRecord {
        attempt: deployment.attempt,
        plan: deployment.plan,
        inputs: Vec::new(),
        outputs: Vec::new(),
        metrics: TaskMetrics::default(),
        accumulators: Accumulators::default(),
        splits: Vec::new(),
        staged_files: Vec::new(),
    }
}

/// Starts a leader; gives its address.
fn lead(data_directory: PathBuf, tasks: u32) -> Result<SocketAddr, Failed> {
    let (says, news) = mpsc::channel();
    thread::spawn(move || {
        let manager = JobManager {
            identity: identity(),
            data_directory,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: 0..=0,
            options: Options::default(),
            factory: Arc::new(Program { tasks }),
        };
        // Ends with the process.
        drop(manager.run(&never(), |news| drop(says.send(news))));
    });
    let mut address = None;
    loop {
        match news.recv()? {
            JobManagerNews::Listening(listening) => address = Some(listening),
            JobManagerNews::StandsBy { .. } | JobManagerNews::DirectoryAway => {}
            JobManagerNews::Leads => return Ok(address.ok_or("it listens nowhere")?),
        }
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

fn start_peers(leader: SocketAddr, peers: u32) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let peers: Vec<_> =
                (0..peers).map(|peer| tokio::spawn(Peer::new(peer).work(leader))).collect();
            for peer in peers {
                // One that fails leaves its tasks to the others.
                drop(peer.await);
            }
        });
    });
    Ok(())
}

fn main() -> Result<(), Failed> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (tasks, peers) = (numbers.next().unwrap_or(TASKS), numbers.next().unwrap_or(PEERS));
    let root = tempfile::tempdir()?;
    let leader = lead(root.path().to_owned(), tasks)?;
    start_peers(leader, peers)?;
    let client = ClusterClient {
        identity: identity(),
        data_directory: root.path().to_owned(),
        leaders: vec![leader.to_string()],
        leader_timeout: Duration::from_secs(10),
        still_looking: Arc::new(drop),
    };
    let submission = ClusterSubmission {
        job: JobId::from_bits(1),
        job_name: "nothing".to_owned(),
        arguments: Vec::new(),
        graph_hash: Program { tasks }.build("nothing", &[])?.hash(),
        ledger: None,
        settings: Vec::new(),
    };
    let (_wish, wishes) = bounded(1);
    let (began, cpu_before) = (Instant::now(), cpu_time()?);
    let ended = client.submit(submission, &wishes, |_| ())?;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_time()?.saturating_sub(cpu_before));
    let Followed::Ended { outcome, .. } = ended else { return Err("nobody followed it".into()) };
    if outcome.state != JobState::Finished {
        return Err(format!("the job ended {}: {:?}", outcome.state, outcome.error).into());
    }
    writeln!(
        io::stdout(),
        "{tasks} tasks on {peers} workers: {:.0} a second, {:.1} us of CPU each",
        f64::from(tasks) / elapsed,
        cpu.as_secs_f64() * 1e6 / f64::from(tasks),
    )?;
    Ok(())
}
