//! What tells one cluster from another.

/// What tells one cluster from another, and one program from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `high-availability.cluster-id`.
    pub cluster_id: String,
    /// Hash of the names of the jobs that the program offers.
    pub registry: u64,
}
