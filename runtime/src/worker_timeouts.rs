//! How long a worker waits for a master.

use std::time::Duration;

use crate::Options;

/// How long a worker waits for a master that it lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerTimeouts {
    /// `taskmanager.reconnect-grace`: how long running tasks outlive the connection to their master.
    pub reconnect_grace: Duration,
    /// `taskmanager.registration.timeout`: how long finished work is kept without a master; none is
    /// for ever.
    pub registration_timeout: Option<Duration>,
}

impl WorkerTimeouts {
    /// What `options` say.
    pub fn of(options: &Options) -> Self {
        let limited = options.registration_timeout != Options::UNLIMITED;
        Self {
            reconnect_grace: options.reconnect_grace,
            registration_timeout: limited.then_some(options.registration_timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unlimited_has_no_time_out() {
        let limited = Options::default();
        let unlimited = Options { registration_timeout: Options::UNLIMITED, ..limited };
        let timeout = |options| WorkerTimeouts::of(options).registration_timeout;
        assert_eq!(timeout(&limited), Some(Duration::from_mins(5)));
        assert_eq!(timeout(&unlimited), None);
    }
}
