//! How much a connection may take, and how long it may be silent.

use std::time::Duration;

use regrow_runtime::Options;

/// How much a connection may take, and how long it may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkLimits {
    /// Bytes of one frame; a longer one is no message of ours.
    pub(crate) frame_bytes_max: usize,
    /// Bytes that wait to be written; a peer that lets more come together does not keep up.
    pub(crate) queue_bytes_max: usize,
    /// A heartbeat is sent when nothing else was for this long.
    pub(crate) heartbeat_interval: Duration,
    /// A peer that was silent for this long is gone.
    pub(crate) heartbeat_timeout: Duration,
    /// How long the first frame may take.
    pub(crate) hello_timeout: Duration,
}

impl LinkLimits {
    /// The limits with the heartbeats of `options`.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            heartbeat_interval: options.heartbeat_interval,
            heartbeat_timeout: options.heartbeat_timeout,
            // Who is not heard of for longer is gone later, too.
            hello_timeout: Self::default().hello_timeout.min(options.heartbeat_timeout),
            ..Self::default()
        }
    }
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            frame_bytes_max: 64 << 20,
            queue_bytes_max: 256 << 20,
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(50),
            hello_timeout: Duration::from_secs(10),
        }
    }
}
