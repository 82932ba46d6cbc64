//! Random kills of the processes of a cluster, from one seed.

use std::{thread, time::Duration};

use super::{
    cluster::{job_manager, leader, task_manager},
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

/// Longest pause between two kills.
const PAUSE_MS_MAX: u64 = 600;

/// A cluster and what befalls it.
pub(crate) struct Storm {
    random: u64,
    managers: Vec<Running>,
    workers: Vec<Running>,
    killed: Vec<String>,
}

impl Storm {
    /// Two `JobManager`s and three `TaskManager`s.
    pub(crate) fn new(sandbox: &Sandbox, seed: u64) -> Self {
        let managers = vec![leader(sandbox, FLAGS), job_manager(sandbox, FLAGS)];
        let workers = (0..3).map(|_| task_manager(sandbox, FLAGS)).collect();
        // An odd multiple of a large prime: xorshift wants no zero, and seeds differ at once.
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { random, managers, workers, killed: Vec::new() }
    }

    /// Kills until `job` has ended, or it is enough; gives the job's exit code.
    pub(crate) fn rage(&mut self, sandbox: &Sandbox, mut job: Running) -> Option<i32> {
        for _ in 0..KILLS_MAX {
            let pause = Duration::from_millis(self.below(PAUSE_MS_MAX));
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
        if self.below(2) == 0 {
            let chosen = usize::try_from(self.below(2)).unwrap_or(0);
            end(self.managers.remove(chosen), signal);
            self.managers.push(job_manager(sandbox, FLAGS));
            self.killed.push(format!("{signal} JobManager {chosen}"));
        } else {
            let chosen = usize::try_from(self.below(3)).unwrap_or(0);
            end(self.workers.remove(chosen), signal);
            self.workers.push(task_manager(sandbox, FLAGS));
            self.killed.push(format!("{signal} TaskManager {chosen}"));
        }
    }
}

/// Ends a process; one that is told to stop may take its time beside the others.
fn end(process: Running, signal: &'static str) {
    process.signal(signal);
    if signal == "TERM" {
        thread::spawn(move || process.wait());
    } else {
        process.kill();
    }
}
