//! The decisions of Regrow, pure: `handle(now, input) -> Decision { events, actions }`.
//!
//! Invariants:
//! - No clock, randomness, input and output, logging or actor: they come as arguments and leave as
//!   actions.
//! - State changes in one place, by events. Replaying the log gives the recorded part of the live
//!   state.
//! - Nothing iterates in an order that is not determined.

mod action;
mod alarm;
mod chunked_queue;
mod commit;
mod coordinator;
mod decision;
mod epoch_fence;
mod error_text;
mod event_weight;
mod input;
mod job;
mod job_event;
mod job_graph;
mod job_outcome;
mod kill_plan;
mod log_batch;
mod lsn;
mod one_listing_coordinator;
mod options;
mod planning;
mod read_log;
mod recovery_report;
mod resource_manager;
mod shuffle_service;
mod source_coordinator;
mod split_enumerator;
mod task_executor;
mod timestamp;
mod vertex_plan;
mod vertex_reset;
mod worker_timeouts;

pub use action::Action;
pub use chunked_queue::ChunkedQueue;
pub use commit::{CommitPlan, OutputPreparation};
pub use coordinator::{CoordinatorDelta, NO_CHECKPOINT, OperatorCoordinator, Reply};
pub use decision::{Decision, Flush};
pub use error_text::with_causes;
pub use input::Input;
pub use job::{
    FORMER_ATTEMPTS_TIMEOUT, FRUITLESS_PANICS_MAX, Job, LOSSES_MAX, LifeStart, RecoveryError,
    Replay, TASK_CANCELLATION_TIMEOUT,
};
pub use job_event::{JobEvent, JobSubmission, LogPosition, PreviousLife, RecoveryDecision};
pub use job_graph::{
    CoordinatorKind, Determinacy, Distribution, GraphError, JobEdge, JobGraph, JobVertex,
    Parallelism, SinkSpec,
};
pub use job_outcome::{JobOutcome, JobState, JobStatus, VertexStatus};
pub use kill_plan::{KillHow, KillPoint, KillPointError, KillWhen};
pub use log_batch::{BatchError, EventBatch, decode_batch, encode_batch};
pub use lsn::Lsn;
pub(crate) use one_listing_coordinator::OneListingCoordinator;
pub use options::{
    ConfigOption, OptionError, Options, StoreKind, ValueKind, format_size, parse_duration,
    parse_size,
};
pub(crate) use planning::{InputStatistics, plan_vertex};
pub use read_log::{LogDefect, ReadLog, StoredBatch, read_log};
pub use recovery_report::{Fate, FateLine, RecoveryPhases, RecoveryReport};
pub use resource_manager::{ResourceAction, ResourceInput, ResourceManager};
pub use shuffle_service::{ShuffleService, ShuffleServiceAction, ShuffleServiceInput};
pub(crate) use source_coordinator::SourceCoordinator;
pub use task_executor::{FAREWELL_TIMEOUT, TaskExecutor, TaskExecutorAction, TaskExecutorInput};
pub use timestamp::Timestamp;
pub(crate) use vertex_plan::input_id;
pub use vertex_plan::{InputRange, VertexPlan};
pub use vertex_reset::{ResetReason, VertexReset};
pub use worker_timeouts::WorkerTimeouts;
