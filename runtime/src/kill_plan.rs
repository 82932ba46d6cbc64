//! Kills that a user plans, to watch a job regrow.

use std::time::Duration;

/// When and how a `JobMaster` is to die; fires once over all lives of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillPoint {
    /// When.
    pub when: KillWhen,
    /// How.
    pub how: KillHow,
}

/// When a planned kill fires, always before the job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillWhen {
    /// When this part of the known tasks has finished, 0 to 100; an undecided vertex counts one.
    Percent(u32),
    /// When this long has passed since the run began in this process.
    Elapsed(Duration),
}

/// How a `JobMaster` dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillHow {
    /// The actor is dropped between two messages, its event buffer with it.
    Stop,
    /// The actor panics.
    Panic,
}
