//! The settings of a run, typed.

mod config_option;
mod option_error;
mod table;
mod value;

use std::{collections::BTreeMap, time::Duration};

pub use config_option::{ConfigOption, ValueKind};
pub use option_error::OptionError;
pub use value::{format_size, parse_duration, parse_size};

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
    /// `taskmanager.registration.timeout`: how long a worker keeps partitions without a master; may
    /// be [`Options::UNLIMITED`].
    pub registration_timeout: Duration,
    /// `taskmanager.reconnect-grace`: how long a closed connection is no loss.
    pub reconnect_grace: Duration,
    /// `taskmanager.drain-timeout`: how long tasks of a worker that is told to stop may go on.
    pub drain_timeout: Duration,
    /// `heartbeat.interval`: a connection on which nothing was sent for this long gets a heartbeat.
    pub heartbeat_interval: Duration,
    /// `heartbeat.timeout`: a peer that was silent for this long is gone; above the interval.
    pub heartbeat_timeout: Duration,
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
            drain_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(50),
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

impl Options {
    /// Stands for a wait without an end: longer than any process lives, and yet safe to add to a
    /// clock.
    pub const UNLIMITED: Duration = Duration::from_millis(u64::MAX);

    /// Every option, with its default, in the order in which people should read them.
    pub fn table() -> Vec<ConfigOption> {
        table::ROWS.iter().map(table::Row::describe).collect()
    }

    /// Reads settings; what none is given for has its default, and the last of several counts.
    ///
    /// # Errors
    /// When a key is unknown, a value is not allowed, or two values contradict each other; the text
    /// says what to do.
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, OptionError> {
        Self::from_settings_beside(settings, &[])
    }

    /// Like [`from_settings`](Self::from_settings), where keys of `others` are legal too and left
    /// to the caller.
    ///
    /// # Errors
    /// As [`from_settings`](Self::from_settings).
    pub fn from_settings_beside<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
        others: &[ConfigOption],
    ) -> Result<Self, OptionError> {
        let mut values = BTreeMap::new();
        for (key, value) in settings {
            match table::ROWS.iter().position(|row| row.is_named(key)) {
                Some(row) => {
                    values.insert(row, (key, value.trim()));
                }
                None if others.iter().any(|other| other.is_named(key)) => {}
                None => return Err(OptionError::unknown(key, others)),
            }
        }
        let mut options = Self::default();
        // In the order of the table: `restart-strategy.type` comes after what it may overrule.
        for (row, (key, value)) in values {
            let row = &table::ROWS[row];
            row.set(&mut options, value).ok_or_else(|| OptionError::BadValue {
                key: key.to_owned(),
                value: value.to_owned(),
                allowed: row.kind().allowed(),
            })?;
        }
        options.check()
    }

    /// The settings that differ from the defaults; reading them gives these options again.
    pub fn to_settings(&self) -> Vec<(String, String)> {
        let default = Self::default();
        let differing = table::ROWS.iter().filter(|row| row.get(self) != row.get(&default));
        differing.filter_map(|row| Some((row.key.to_owned(), row.get(self)?))).collect()
    }

    fn check(self) -> Result<Self, OptionError> {
        let (min, max) = (self.min_parallelism, self.max_parallelism);
        if min > max {
            return Err(OptionError::Bounds { min, max });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
