//! Random kills of the processes of a cluster, from one seed.

use std::time::Duration;

use crate::{
    proxy::Proxy,
    roles::{DATA, address, job_manager, leader},
    sandbox::{Running, Sandbox},
};

/// What processes and jobs are told, so that a loss is noticed and made good soon, and a job has
/// many tasks.
pub(crate) const FLAGS: &str = "-D taskmanager.reconnect-grace=500ms \
    -D taskmanager.drain-timeout=200ms \
    -D execution.batch.job-recovery.previous-worker.recovery.timeout=1s \
    -D execution.batch.adaptive.auto-parallelism.default-source-parallelism=16 \
    -D execution.batch.adaptive.auto-parallelism.min-parallelism=4";

/// Kills at most: a task that lost its worker ten times would fail the job, as it should.
const KILLS_MAX: u32 = 8;

/// Who keeps what tasks write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Each `TaskManager`, in one data directory of all.
    Shared,
    /// A stand-alone shuffle service.
    Service,
    /// Each `TaskManager`, on a host of its own: others read it over the network.
    Hosts,
}

/// A cluster and what befalls it.
pub(crate) struct Storm {
    random: u64,
    ground: Ground,
    managers: Vec<Running>,
    /// Where workers on other hosts find each of the managers.
    proxies: Vec<Proxy>,
    /// Each with the flags that start another one in its place.
    workers: Vec<(Running, String)>,
    service: Option<Running>,
    killed: Vec<String>,
}

impl Storm {
    /// Two `JobManager`s and three `TaskManager`s, on a ground that the seed chooses.
    pub(crate) fn new(sandbox: &Sandbox, seed: u64) -> Self {
        let ground = match seed % 3 {
            0 => Ground::Shared,
            1 => Ground::Service,
            _ => Ground::Hosts,
        };
        let managers = vec![leader(sandbox, FLAGS), job_manager(sandbox, FLAGS)];
        let proxies = match ground {
            Ground::Hosts => managers.iter().map(|it| Proxy::new(&address(it))).collect(),
            Ground::Shared | Ground::Service => Vec::new(),
        };
        let service = (ground == Ground::Service).then(|| start_service(sandbox));
        // An odd multiple of a large prime: xorshift wants no zero, and seeds differ at once.
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let (workers, killed) = (Vec::new(), vec![format!("{ground:?}")]);
        let mut storm = Self { random, ground, managers, proxies, workers, service, killed };
        for index in 0..3 {
            let flags = storm.worker(index);
            storm.workers.push((sandbox.start(&flags), flags));
        }
        storm
    }

    /// What starts a worker.
    fn worker(&self, index: usize) -> String {
        let of_all = format!("taskmanager -D taskmanager.numberOfTaskSlots=2 {FLAGS}");
        match self.ground {
            Ground::Shared => format!("{of_all} {DATA}"),
            Ground::Service => format!("{of_all} {DATA} -D shuffle-service.type=stand-alone"),
            Ground::Hosts => {
                let places: Vec<_> =
                    self.proxies.iter().map(|proxy| proxy.address().to_string()).collect();
                let places = places.join(",");
                format!("{of_all} --data-dir host{index} -D jobmanager.rpc.addresses={places}")
            }
        }
    }

    /// Kills, after pauses of up to `pause_ms`, until `job` has ended or it is enough; gives the job's
    /// exit code.
    pub(crate) fn rage(
        &mut self,
        sandbox: &Sandbox,
        mut job: Running,
        pause_ms: u64,
    ) -> Option<i32> {
        for _ in 0..KILLS_MAX {
            let pause = Duration::from_millis(self.below(pause_ms));
            if job.ends_within(pause) {
                break;
            }
            self.strike(sandbox);
        }
        job.wait()
    }

    /// What was killed, in order.
    pub(crate) fn told(&self) -> String {
        self.killed.join(", ")
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    /// Somebody is killed, or told to stop, and another one is started in its place.
    fn strike(&mut self, sandbox: &Sandbox) {
        let signal = if self.below(4) == 0 { "TERM" } else { "KILL" };
        let who = self.below(5);
        if who < 2 {
            let chosen = usize::try_from(who).unwrap_or(0);
            end(self.managers.remove(chosen), signal);
            let next = job_manager(sandbox, FLAGS);
            if let Some(proxy) = self.proxies.get(chosen) {
                proxy.lead_to(&address(&next));
            }
            self.managers.insert(chosen, next);
            self.killed.push(format!("{signal} JobManager {chosen}"));
        } else if let Some(service) = self.service.take_if(|_| who == 2) {
            end(service, signal);
            self.service = Some(start_service(sandbox));
            self.killed.push(format!("{signal} shuffle service"));
        } else {
            let chosen = usize::try_from(self.below(3)).unwrap_or(0);
            let (worker, flags) = self.workers.remove(chosen);
            end(worker, signal);
            self.workers.push((sandbox.start(&flags), flags));
            self.killed.push(format!("{signal} TaskManager {chosen}"));
        }
    }
}

/// Starts a shuffle service; it keeps its directory as soon as the one before has ended.
fn start_service(sandbox: &Sandbox) -> Running {
    let mut service = sandbox.start(&format!("shuffle-service {DATA} {FLAGS}"));
    service.until("it keeps a directory", |line| line.starts_with("keeping partitions"));
    service
}

/// Ends a process: whoever follows it finds its directories free, as after a supervisor.
fn end(process: Running, signal: &str) {
    process.signal(signal);
    let _ = process.wait();
}
