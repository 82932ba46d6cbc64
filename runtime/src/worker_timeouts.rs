//! How long a worker waits for a master.

use std::time::Duration;

/// How long a worker waits for a master that it lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerTimeouts {
    /// `taskmanager.reconnect-grace`: how long running tasks outlive the connection to their master.
    pub reconnect_grace: Duration,
    /// `taskmanager.registration.timeout`: how long finished work is kept without a master; none is
    /// for ever.
    pub registration_timeout: Option<Duration>,
}
