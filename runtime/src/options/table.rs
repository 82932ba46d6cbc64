//! The table of all options of a run: key, meaning, and the field that holds the value.

use std::time::Duration;

use super::{
    ConfigOption, Options, StoreKind, ValueKind, format_size, parse_duration, parse_size,
    value::format_duration,
};
use crate::JobGraph;

const STORES: &[&str] = &["sled", "file", "memory"];
const RESTART_STRATEGIES: &[&str] = &["fixed-delay", "none"];
const UNLIMITED: &str = "unlimited";

/// How many subtasks a vertex may have.
const PARALLELISM: ValueKind = ValueKind::Count { min: 1, max: JobGraph::PARALLELISM_MAX };

/// One option.
pub(super) struct Row {
    pub(super) key: &'static str,
    aliases: &'static [&'static str],
    meaning: &'static str,
    flink: bool,
    field: Field,
}

/// Where the value is, and what it looks like.
enum Field {
    Duration(fn(&mut Options) -> &mut Duration),
    Retention(fn(&mut Options) -> &mut Duration),
    Size(fn(&mut Options) -> &mut u64),
    Parallelism(fn(&mut Options) -> &mut u32),
    Restarts(fn(&mut Options) -> &mut u32),
    Flag(fn(&mut Options) -> &mut bool),
    Store,
    SourceParallelism,
    /// `none` is no restart, whatever their number says; so this row comes after it.
    RestartStrategy,
}

impl Row {
    const fn flink(key: &'static str, meaning: &'static str, field: Field) -> Self {
        Self { key, aliases: &[], meaning, flink: true, field }
    }

    const fn ours(key: &'static str, meaning: &'static str, field: Field) -> Self {
        Self { key, aliases: &[], meaning, flink: false, field }
    }

    pub(super) fn is_named(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }

    pub(super) const fn kind(&self) -> ValueKind {
        match self.field {
            Field::Duration(_) => ValueKind::Duration,
            Field::Retention(_) => ValueKind::Retention,
            Field::Size(_) => ValueKind::Size,
            Field::Parallelism(_) | Field::SourceParallelism => PARALLELISM,
            Field::Restarts(_) => ValueKind::Count { min: 0, max: u32::MAX },
            Field::Flag(_) => ValueKind::Flag,
            Field::Store => ValueKind::Choice(STORES),
            Field::RestartStrategy => ValueKind::Choice(RESTART_STRATEGIES),
        }
    }

    pub(super) fn describe(&self) -> ConfigOption {
        let default = self.get(&Options::default());
        ConfigOption {
            key: self.key,
            aliases: self.aliases,
            default: default.unwrap_or_else(|| {
                "input bytes / avg-data-volume-per-task, from 1 to 1024".to_owned()
            }),
            kind: self.kind(),
            meaning: self.meaning,
            flink: self.flink,
        }
    }

    /// Takes a value over; none if it is not allowed.
    pub(super) fn set(&self, options: &mut Options, value: &str) -> Option<()> {
        match self.field {
            Field::Duration(field) => *field(options) = parse_duration(value)?,
            Field::Retention(field) => {
                let unlimited = value.eq_ignore_ascii_case(UNLIMITED);
                let time = if unlimited { Options::UNLIMITED } else { parse_duration(value)? };
                *field(options) = time;
            }
            Field::Size(field) => {
                *field(options) = parse_size(value).filter(|bytes| *bytes > 0)?;
            }
            Field::Parallelism(field) => *field(options) = parse_parallelism(value)?,
            Field::Restarts(field) => *field(options) = parse_count(value)?,
            Field::Flag(field) => *field(options) = value.to_ascii_lowercase().parse().ok()?,
            Field::Store => options.store = parse_store(value)?,
            Field::SourceParallelism => {
                options.source_parallelism = Some(parse_parallelism(value)?);
            }
            Field::RestartStrategy => match value.to_ascii_lowercase().as_str() {
                "fixed-delay" => {}
                "none" => options.restart_attempts = 0,
                _ => return None,
            },
        }
        Some(())
    }

    /// The value as [`set`](Self::set) reads it; none where there is nothing to say.
    pub(super) fn get(&self, options: &Options) -> Option<String> {
        let mut copy = options.clone();
        Some(match self.field {
            Field::Duration(field) => format_duration(*field(&mut copy)),
            Field::Retention(field) => match *field(&mut copy) {
                Options::UNLIMITED => UNLIMITED.to_owned(),
                time => format_duration(time),
            },
            Field::Size(field) => format_size(*field(&mut copy)),
            Field::Parallelism(field) | Field::Restarts(field) => field(&mut copy).to_string(),
            Field::Flag(field) => field(&mut copy).to_string(),
            Field::Store => match options.store {
                StoreKind::Sled => "sled".to_owned(),
                StoreKind::File => "file".to_owned(),
                StoreKind::Memory => "memory".to_owned(),
            },
            Field::SourceParallelism => options.source_parallelism?.to_string(),
            Field::RestartStrategy if options.restart_attempts == 0 => "none".to_owned(),
            Field::RestartStrategy => "fixed-delay".to_owned(),
        })
    }
}

fn parse_store(value: &str) -> Option<StoreKind> {
    match value.to_ascii_lowercase().as_str() {
        "sled" => Some(StoreKind::Sled),
        "file" => Some(StoreKind::File),
        "memory" => Some(StoreKind::Memory),
        _ => None,
    }
}

/// A plain number: `parse` alone would take a sign.
fn parse_count(value: &str) -> Option<u32> {
    value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()))
}

fn parse_parallelism(value: &str) -> Option<u32> {
    parse_count(value).filter(|count| (1..=JobGraph::PARALLELISM_MAX).contains(count))
}

/// All options, grouped as people should read them.
pub(super) const ROWS: &[Row] = &[
    Row::flink(
        "execution.batch.job-recovery.enabled",
        "record what happens, and recover a job whose JobMaster was lost",
        Field::Flag(|options| &mut options.recovery_enabled),
    ),
    Row {
        key: "execution.batch.job-recovery.operator-coordinator-snapshot.min-pause",
        aliases: &["execution.batch.job-recovery.snapshot.min-pause"],
        meaning: "least time between two snapshots of a coordinator; 0 is one at every finish",
        flink: true,
        field: Field::Duration(|options| &mut options.snapshot_min_pause),
    },
    Row::flink(
        "execution.batch.job-recovery.previous-worker.recovery.timeout",
        "how long a new JobMaster waits for former workers; 0 is not at all",
        Field::Duration(|options| &mut options.previous_worker_timeout),
    ),
    Row::ours(
        "job-event.store.type",
        "where events are stored; memory survives the JobMaster, not the process",
        Field::Store,
    ),
    Row::flink(
        "job-event.store.write-buffer.size",
        "store buffered events when they take this much",
        Field::Size(|options| &mut options.write_buffer_bytes),
    ),
    Row::flink(
        "job-event.store.write-buffer.flush-interval",
        "store buffered events at least this often",
        Field::Duration(|options| &mut options.flush_interval),
    ),
    Row::ours(
        "job-event.store.unavailable-timeout",
        "how long an end, commit or recovery waits for a log that cannot be written",
        Field::Duration(|options| &mut options.store_unavailable_timeout),
    ),
    Row::flink(
        "taskmanager.registration.timeout",
        "how long a worker keeps a job's partitions without a master",
        Field::Retention(|options| &mut options.registration_timeout),
    ),
    Row::ours(
        "taskmanager.reconnect-grace",
        "how long a worker whose connection closed is not counted as lost",
        Field::Duration(|options| &mut options.reconnect_grace),
    ),
    Row::ours(
        "taskmanager.drain-timeout",
        "how long a TaskManager that is told to stop lets its tasks go on; 0 gives them back at once",
        Field::Duration(|options| &mut options.drain_timeout),
    ),
    Row::flink(
        "heartbeat.interval",
        "a connection on which nothing was said for this long gets a heartbeat",
        Field::Duration(|options| &mut options.heartbeat_interval),
    ),
    Row::flink(
        "heartbeat.timeout",
        "a peer that said nothing for this long is gone",
        Field::Duration(|options| &mut options.heartbeat_timeout),
    ),
    Row::ours(
        "taskmanager.memory.task.size",
        "memory of one attempt for sorting, aggregation, joins and outputs",
        Field::Size(|options| &mut options.task_memory_bytes),
    ),
    Row::flink(
        "execution.batch.adaptive.auto-parallelism.min-parallelism",
        "least parallelism that is decided for a vertex",
        Field::Parallelism(|options| &mut options.min_parallelism),
    ),
    Row::flink(
        "execution.batch.adaptive.auto-parallelism.max-parallelism",
        "greatest parallelism that is decided for a vertex",
        Field::Parallelism(|options| &mut options.max_parallelism),
    ),
    Row::flink(
        "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
        "how much input a task should have, for a vertex whose parallelism is decided",
        Field::Size(|options| &mut options.bytes_per_task),
    ),
    Row::flink(
        "execution.batch.adaptive.auto-parallelism.default-source-parallelism",
        "parallelism of a source for which none is given",
        Field::SourceParallelism,
    ),
    Row::flink(
        "restart-strategy.fixed-delay.attempts",
        "how often one task is restarted after failures of its own",
        Field::Restarts(|options| &mut options.restart_attempts),
    ),
    Row::flink(
        "restart-strategy.fixed-delay.delay",
        "how long a failed task waits for its restart",
        Field::Duration(|options| &mut options.restart_delay),
    ),
    Row::flink(
        "restart-strategy.type",
        "whether a failed task is restarted; none fails the job at once",
        Field::RestartStrategy,
    ),
];
