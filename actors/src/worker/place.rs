//! Where a worker is, for errors that are about its host.

use std::{fs, process};

use regrow_protocol::{TaskFailure, WorkerId};

/// Where a worker of a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlace(String);

impl WorkerPlace {
    /// The place of `worker`, which runs in this process.
    pub(crate) fn here(worker: WorkerId) -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "a host without a name",
            name => name,
        };
        Self(format!("worker {worker}, process {} on {host}", process::id()))
    }

    /// A failure with its place: what is missing here may be there elsewhere.
    pub(crate) fn of(&self, failure: TaskFailure) -> TaskFailure {
        let placed = |message: String| format!("{message} (at {})", self.0);
        match failure {
            TaskFailure::Task { message } => TaskFailure::Task { message: placed(message) },
            TaskFailure::Panicked { message, location } => {
                TaskFailure::Panicked { message: placed(message), location }
            }
            TaskFailure::Unrecoverable { message } => {
                TaskFailure::Unrecoverable { message: placed(message) }
            }
            TaskFailure::InputLost { partition, reason } => {
                TaskFailure::InputLost { partition, reason: placed(reason) }
            }
            TaskFailure::InputUnreachable { partition, reason } => {
                TaskFailure::InputUnreachable { partition, reason: placed(reason) }
            }
            TaskFailure::Cancelled => TaskFailure::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_where_it_was() {
        let place = WorkerPlace::here(WorkerId::from_bits(7));
        let failure = place.of(TaskFailure::task("cannot read /input")).to_string();
        assert!(failure.starts_with("cannot read /input (at worker 0000"), "{failure}");
        assert!(failure.contains(&format!("process {} on ", process::id())), "{failure}");
        assert_eq!(place.of(TaskFailure::Cancelled), TaskFailure::Cancelled);
    }
}
