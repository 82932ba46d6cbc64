//! Which sealed attempts' outputs are there (Flink: `JobMasterPartitionTracker`).

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{DataDirectoryId, ExecutionAttemptId};

use super::recorded::Recorded;

/// The outputs that workers hold of a run, as far as they told.
#[derive(Debug, Default)]
pub(super) struct PartitionTracker {
    directories: BTreeMap<DataDirectoryId, BTreeSet<ExecutionAttemptId>>,
    /// Directories of which a full report has come.
    reported: BTreeSet<DataDirectoryId>,
}

impl PartitionTracker {
    /// Adds a full report of a directory. What it lacks may have been sealed since it was made.
    pub(super) fn report(
        &mut self,
        data_directory: DataDirectoryId,
        attempts: impl IntoIterator<Item = ExecutionAttemptId>,
    ) {
        self.reported.insert(data_directory);
        self.directories.entry(data_directory).or_default().extend(attempts);
    }

    /// One attempt sealed its outputs there.
    pub(super) fn add(&mut self, data_directory: DataDirectoryId, attempt: ExecutionAttemptId) {
        self.directories.entry(data_directory).or_default().insert(attempt);
    }

    /// The outputs of one attempt are gone or about to be.
    pub(super) fn remove(&mut self, data_directory: DataDirectoryId, attempt: &ExecutionAttemptId) {
        if let Some(attempts) = self.directories.get_mut(&data_directory) {
            attempts.remove(attempt);
        }
    }

    /// Nobody serves a directory any more.
    pub(super) fn lose(&mut self, data_directory: DataDirectoryId) {
        self.directories.remove(&data_directory);
        self.reported.remove(&data_directory);
    }

    pub(super) fn holds(&self, place: DataDirectoryId, attempt: &ExecutionAttemptId) -> bool {
        self.directories.get(&place).is_some_and(|attempts| attempts.contains(attempt))
    }

    /// Whether the directory has been reported and is still served.
    pub(super) fn knows(&self, data_directory: DataDirectoryId) -> bool {
        self.reported.contains(&data_directory)
    }

    /// Whether the outputs of a finished subtask are there; one without outputs lacks nothing.
    pub(super) fn is_available(
        &self,
        recorded: &Recorded,
        subtask: regrow_protocol::ExecutionVertexId,
    ) -> bool {
        let Some(finish) = recorded.finish(subtask) else { return false };
        !recorded.has_outputs(subtask.vertex)
            || self.holds(finish.data_directory, &finish.record.attempt)
    }
}
