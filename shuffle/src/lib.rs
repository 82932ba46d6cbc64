//! The data plane: partition files, their writers, readers and inventory.
//!
//! Knows partitions and epochs, nothing of jobs or actors.
