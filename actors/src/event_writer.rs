//! The buffered writer of one life's events.
//!
//! Invariants:
//! - One write is under way at a time; what comes meanwhile goes into the next (group commit).
//! - `Persisted` follows the order of the appends and never runs ahead of the disk.
//! - After a failed write nothing is written but a full snapshot, on a store that was reopened.
//! - The buffer dies with the `JobMaster` that filled it.

mod log_size;
#[cfg(test)]
mod tests;
mod write_buffer;

use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, Recipient};
use regrow_protocol::{Epoch, RunId};
use regrow_runtime::{Flush, JobEvent, Lsn, Options, encode_batch, with_causes};
use regrow_store::{BatchPosition, EventStore, StoreError};
use tokio::time::Instant;
use tracing::{info, warn};

pub(crate) use self::log_size::LogSize;
use self::write_buffer::{Batch, WriteBuffer};
use crate::{
    hand_over::HandOverPart,
    store_runner::{SharedStore, ask},
};

/// First wait before a sick store is opened again; doubles each time.
const REOPEN_DELAY_MIN: Duration = Duration::from_millis(100);

/// Longest wait before a sick store is opened again.
const REOPEN_DELAY_MAX: Duration = Duration::from_secs(5);

/// Stores events of a decision.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    /// The events, in order; perhaps none, to hurry earlier ones.
    pub events: Vec<JobEvent>,
    /// The position after them.
    pub upto: Lsn,
    /// How soon they must be stored.
    pub flush: Flush,
}

impl Message for Append {
    type Result = ();
}

/// What the writer tells its `JobMaster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogUpdate {
    /// All events up to a position are on stable storage.
    Persisted {
        /// The position after the newest of them.
        upto: Lsn,
    },
    /// The log cannot be written.
    Degraded {
        /// What went wrong.
        reason: String,
    },
    /// The log can be written again: events count from the next full snapshot on.
    Reopened,
    /// The log has grown out of proportion to its last snapshot.
    Outgrown,
    /// Another life has opened the log: this one must end.
    Fenced {
        /// What the store said.
        reason: String,
    },
}

impl Message for LogUpdate {
    type Result = ();
}

/// Where a life's events go.
pub(crate) enum Recording {
    /// Into the log of the run.
    Stored {
        /// The store.
        store: SharedStore,
        /// How large the log is already.
        size: LogSize,
    },
    /// Nowhere: recovery is switched off, and all counts as persisted.
    Off,
}

/// Writes the events of one life.
pub(crate) struct EventWriter {
    run: RunId,
    epoch: Epoch,
    store: Option<SharedStore>,
    master: Recipient<LogUpdate>,
    buffer: WriteBuffer,
    size: LogSize,
    state: State,
    /// The next time at which the buffer is looked at.
    armed: Option<Instant>,
    reopen_delay: Duration,
    /// Held until all that was handed over is stored, or cannot be.
    draining: Option<HandOverPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is under way.
    Idle,
    /// A write is under way.
    Writing,
    /// The store is sick. What comes now is not kept: the snapshot will hold it.
    Sick,
    /// The store is well again, and the snapshot was asked for.
    AwaitSnapshot,
    /// Another life has the log.
    Fenced,
}

/// A write ended.
struct Written {
    upto: Lsn,
    result: Result<Stored, WriteError>,
}

/// What became of a batch that is stored.
struct Stored {
    bytes: u64,
    is_snapshot: bool,
}

/// Why a batch is not stored.
enum WriteError {
    /// Another life has the log.
    Fenced(String),
    /// The store is sick.
    Sick(String),
}

impl Message for Written {
    type Result = ();
}

/// An attempt to open the store again ended.
struct ReopenEnded(Result<(), String>);

impl Message for ReopenEnded {
    type Result = ();
}

/// The `JobMaster` is gone.
struct Abandon;

impl Message for Abandon {
    type Result = ();
}

/// Nothing more comes: store what was handed over, at once.
struct Drain(HandOverPart);

impl Message for Drain {
    type Result = ();
}

/// How a `JobMaster` holds its writer: the writer ends with it, and what it has not handed to the
/// store is lost.
pub(crate) struct EventWriterHandle(Addr<EventWriter>);

impl EventWriterHandle {
    /// Hands events over; never blocks.
    pub(crate) fn append(&self, append: Append) {
        self.0.do_send(append);
    }

    /// Has all that was handed over stored at once; `part` is dropped when it is, or cannot be.
    pub(crate) fn drain(&self, part: HandOverPart) {
        self.0.do_send(Drain(part));
    }
}

impl Drop for EventWriterHandle {
    fn drop(&mut self) {
        self.0.do_send(Abandon);
    }
}

impl EventWriter {
    /// Starts the writer of life `epoch` of `run`, which tells `master` what becomes of its events.
    pub(crate) fn launch(
        run: RunId,
        epoch: Epoch,
        recording: Recording,
        options: &Options,
        master: Recipient<LogUpdate>,
    ) -> EventWriterHandle {
        let (store, size) = match recording {
            Recording::Stored { store, size } => (Some(store), size),
            Recording::Off => (None, LogSize::default()),
        };
        let buffer = WriteBuffer::new(options.write_buffer_bytes, options.flush_interval);
        let writer = Self {
            run,
            epoch,
            store,
            master,
            buffer,
            size,
            state: State::Idle,
            armed: None,
            reopen_delay: REOPEN_DELAY_MIN,
            draining: None,
        };
        EventWriterHandle(writer.start())
    }

    /// Writes what is due, or sees to it that it is written when it is.
    fn drive(&mut self, ctx: &mut Context<Self>) {
        match self.state {
            State::Idle => {}
            State::Writing => return,
            State::Sick | State::AwaitSnapshot | State::Fenced => {
                self.draining = None;
                return;
            }
        }
        let Some(due) = self.buffer.due() else {
            self.draining = None;
            return;
        };
        if due > Instant::now() {
            self.wake_at(due, ctx);
            return;
        }
        if let Some(batch) = self.buffer.take() {
            self.write(batch, ctx);
        }
    }

    /// Sees to it that the buffer is looked at when it is due. A timer is never cancelled: in actix
    /// 0.13.5 an actor that stops in the same turn would spin for ever. A stale one does no harm.
    fn wake_at(&mut self, due: Instant, ctx: &mut Context<Self>) {
        if self.armed.is_some_and(|armed| armed <= due) {
            return;
        }
        self.armed = Some(due);
        ctx.run_later(due.duration_since(Instant::now()), |writer, ctx| {
            writer.armed = writer.armed.filter(|armed| *armed > Instant::now());
            writer.drive(ctx);
        });
    }

    fn write(&mut self, batch: Batch, ctx: &mut Context<Self>) {
        let Some(store) = &self.store else { return };
        self.state = State::Writing;
        let (run, epoch, upto, this) = (self.run, self.epoch, batch.upto, ctx.address());
        ask(
            &**store,
            move |store| store_batch(store, run, epoch, &batch),
            move |result| {
                let result = result.unwrap_or_else(|text| Err(WriteError::Sick(text)));
                this.do_send(Written { upto, result });
            },
        );
    }

    fn fall_sick(&mut self, reason: String, ctx: &mut Context<Self>) {
        warn!(run = %self.run, %reason, "the event log cannot be written; recovery is degraded");
        self.state = State::Sick;
        self.buffer.clear();
        self.draining = None;
        self.master.do_send(LogUpdate::Degraded { reason });
        self.reopen_later(ctx);
    }

    fn reopen_later(&mut self, ctx: &mut Context<Self>) {
        let delay = self.reopen_delay;
        self.reopen_delay = REOPEN_DELAY_MAX.min(delay.saturating_mul(2));
        ctx.run_later(delay, |writer, ctx| writer.reopen(ctx));
    }

    fn reopen(&self, ctx: &Context<Self>) {
        let Some(store) = &self.store else { return };
        let this = ctx.address();
        ask(
            &**store,
            |store| store.reopen().map_err(|error| with_causes(&error)),
            move |result| this.do_send(ReopenEnded(result.unwrap_or_else(Err))),
        );
    }
}

/// Appends a batch; one that begins with a snapshot takes the place of all before it.
fn store_batch(
    store: &mut dyn EventStore,
    run: RunId,
    epoch: Epoch,
    batch: &Batch,
) -> Result<Stored, WriteError> {
    let bytes = encode_batch(epoch, batch.first, &batch.events)
        .map_err(|error| WriteError::Sick(with_causes(&error)))?;
    let position = store.append(run, epoch, &bytes).map_err(WriteError::from)?;
    let is_snapshot = matches!(batch.events.front(), Some(JobEvent::Snapshot { .. }));
    if is_snapshot {
        remove_before(store, run, epoch, position);
    }
    Ok(Stored { bytes: bytes.len() as u64, is_snapshot })
}

/// The batch itself is durable: if the removal fails, the next append finds the store sick, and
/// the next snapshot removes more.
fn remove_before(store: &mut dyn EventStore, run: RunId, epoch: Epoch, position: BatchPosition) {
    if let Err(error) = store.remove_before(run, epoch, position) {
        warn!(%run, error = %with_causes(&error), "old events cannot be removed");
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        let text = with_causes(&error);
        if matches!(error, StoreError::Fenced { .. } | StoreError::Withdrawn { .. }) {
            return Self::Fenced(text);
        }
        Self::Sick(text)
    }
}

impl Actor for EventWriter {
    type Context = Context<Self>;
}

impl Handler<Append> for EventWriter {
    type Result = ();

    fn handle(&mut self, append: Append, ctx: &mut Self::Context) {
        if self.store.is_none() {
            self.master.do_send(LogUpdate::Persisted { upto: append.upto });
            return;
        }
        match self.state {
            State::Idle | State::Writing => self.buffer.add(append, Instant::now()),
            State::AwaitSnapshot => {
                if self.buffer.add_from_snapshot(append, Instant::now()) {
                    self.state = State::Idle;
                }
            }
            State::Sick | State::Fenced => {}
        }
        self.drive(ctx);
    }
}

impl Handler<Written> for EventWriter {
    type Result = ();

    fn handle(&mut self, written: Written, ctx: &mut Self::Context) {
        match written.result {
            Ok(stored) => {
                self.state = State::Idle;
                self.reopen_delay = REOPEN_DELAY_MIN;
                self.master.do_send(LogUpdate::Persisted { upto: written.upto });
                if self.size.note(stored.bytes, stored.is_snapshot) {
                    self.master.do_send(LogUpdate::Outgrown);
                }
                self.drive(ctx);
            }
            Err(WriteError::Sick(reason)) => self.fall_sick(reason, ctx),
            Err(WriteError::Fenced(reason)) => {
                info!(run = %self.run, epoch = %self.epoch, %reason, "fenced");
                self.state = State::Fenced;
                self.buffer.clear();
                self.draining = None;
                self.master.do_send(LogUpdate::Fenced { reason });
            }
        }
    }
}

impl Handler<ReopenEnded> for EventWriter {
    type Result = ();

    fn handle(&mut self, ReopenEnded(result): ReopenEnded, ctx: &mut Self::Context) {
        match result {
            Ok(()) => {
                info!(run = %self.run, "the event log is open again");
                self.state = State::AwaitSnapshot;
                self.master.do_send(LogUpdate::Reopened);
            }
            Err(reason) => {
                self.master.do_send(LogUpdate::Degraded { reason });
                self.reopen_later(ctx);
            }
        }
    }
}

impl Handler<Drain> for EventWriter {
    type Result = ();

    fn handle(&mut self, Drain(part): Drain, ctx: &mut Self::Context) {
        self.draining = Some(part);
        let hurry = Append { events: Vec::new(), upto: Lsn::default(), flush: Flush::Now };
        self.buffer.add(hurry, Instant::now());
        self.drive(ctx);
    }
}

impl Handler<Abandon> for EventWriter {
    type Result = ();

    fn handle(&mut self, _: Abandon, ctx: &mut Self::Context) {
        ctx.terminate();
    }
}
