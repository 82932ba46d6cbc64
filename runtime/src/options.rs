//! The settings of a run, typed.

use std::time::Duration;

/// The settings of a run; [`Default`] gives the documented defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `execution.batch.job-recovery.enabled`: record and recover.
    pub recovery_enabled: bool,
    /// `execution.batch.job-recovery.operator-coordinator-snapshot.min-pause`: least time between
    /// snapshots of a coordinator; zero is at every finish.
    pub snapshot_min_pause: Duration,
    /// `execution.batch.job-recovery.previous-worker.recovery.timeout`: how long a new `JobMaster`
    /// waits for former workers; zero is legal.
    pub previous_worker_timeout: Duration,
    /// `job-event.store.type`: where events are stored.
    pub store: StoreKind,
    /// `job-event.store.write-buffer.size`: flush when the buffer holds this many bytes.
    pub write_buffer_bytes: u64,
    /// `job-event.store.write-buffer.flush-interval`: flush at least this often.
    pub flush_interval: Duration,
    /// `job-event.store.unavailable-timeout`: how long an end, commit or recovery waits for a log
    /// that cannot be written.
    pub store_unavailable_timeout: Duration,
    /// `taskmanager.registration.timeout`: how long a worker keeps partitions without a master.
    pub registration_timeout: Duration,
    /// `taskmanager.reconnect-grace`: how long a closed connection is no loss.
    pub reconnect_grace: Duration,
    /// `taskmanager.memory.task.size`: memory of one attempt for sorting, aggregation and outputs.
    pub task_memory_bytes: u64,
    /// `execution.batch.adaptive.auto-parallelism.min-parallelism`, at least 1.
    pub min_parallelism: u32,
    /// `execution.batch.adaptive.auto-parallelism.max-parallelism`, at least the minimum.
    pub max_parallelism: u32,
    /// `execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task`: target input per task.
    pub bytes_per_task: u64,
    /// `execution.batch.adaptive.auto-parallelism.default-source-parallelism`; none derives it from
    /// the bytes of the input.
    pub source_parallelism: Option<u32>,
    /// `restart-strategy.fixed-delay.attempts`: restarts of one subtask; one failure more fails the
    /// job.
    pub restart_attempts: u32,
    /// `restart-strategy.fixed-delay.delay`: how long a failed subtask waits for its restart.
    pub restart_delay: Duration,
}

/// Where events are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// In a sled database.
    Sled,
    /// In plain files.
    File,
    /// Nowhere that survives the process.
    Memory,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recovery_enabled: true,
            snapshot_min_pause: Duration::from_mins(3),
            previous_worker_timeout: Duration::from_secs(30),
            store: StoreKind::Sled,
            write_buffer_bytes: 1 << 20,
            flush_interval: Duration::from_secs(1),
            store_unavailable_timeout: Duration::from_mins(10),
            registration_timeout: Duration::from_mins(5),
            reconnect_grace: Duration::from_secs(5),
            task_memory_bytes: 128 << 20,
            min_parallelism: 1,
            max_parallelism: 128,
            bytes_per_task: 16 << 20,
            source_parallelism: None,
            restart_attempts: 3,
            restart_delay: Duration::from_secs(1),
        }
    }
}
