//! How a job stands, for people.

use regrow_protocol::PartitionKeeper;

use super::{Job, Output, Phase, recorded::CommitStage};
use crate::{JobState, JobStatus, OperatorCoordinator, VertexStatus};

impl Job {
    /// How the job stands. A finish of a task without partitions shows once it is durable.
    pub fn status(&self) -> JobStatus {
        let facts = &self.recorded.facts;
        JobStatus {
            job: facts.submission.job.clone(),
            run: facts.submission.run,
            state: self.state(),
            waiting_for: self.waiting_for(),
            degraded: self.degraded.as_ref().map(|degraded| degraded.reason.clone()),
            recoveries: facts.lives.saturating_sub(1),
            refused_commands: self.refused_commands,
            vertices: self.vertex_statuses(),
        }
    }

    fn state(&self) -> JobState {
        let facts = &self.recorded.facts;
        if let Some(termination) = &facts.terminated {
            return if self.held.is_empty() { termination.state } else { self.ending_state() };
        }
        match self.phase {
            Phase::Reconciling(_) => JobState::Reconciling,
            Phase::Deciding(_) if facts.lives > 1 => JobState::Reconciling,
            Phase::Deciding(_) => JobState::Initializing,
            Phase::Active | Phase::Over => self.ending_state(),
        }
    }

    fn ending_state(&self) -> JobState {
        let facts = &self.recorded.facts;
        let dispatched = !facts.workers.is_empty();
        if facts.failure.is_some() {
            JobState::Failing
        } else if facts.cancel_requested {
            JobState::Cancelling
        } else if dispatched {
            JobState::Running
        } else {
            JobState::Initializing
        }
    }

    fn waiting_for(&self) -> Option<String> {
        let waits_for_log = !self.held.is_empty() && self.degraded.is_some();
        let undiscovered = self.recorded.coordinators.vertices().any(|vertex| {
            self.recorded.coordinators.get(vertex).is_some_and(OperatorCoordinator::start)
        });
        let what = match self.phase {
            _ if waits_for_log => "log",
            Phase::Reconciling(_) => "former workers",
            Phase::Active if self.recorded.facts.commit != CommitStage::None => "commit",
            Phase::Active if self.workers.is_empty() => "workers",
            Phase::Active if self.output == Output::Preparing => "output directory",
            Phase::Active if undiscovered => "splits",
            Phase::Active if self.executions.len() == 0 && !self.ready.is_empty() => {
                match self.workers.stranded_by() {
                    None => "slots",
                    Some(PartitionKeeper::ShuffleService) => "shuffle service",
                    Some(PartitionKeeper::Worker) => "a worker to list its data directory",
                }
            }
            Phase::Active if self.executions.len() == 0 && !self.delayed.is_empty() => "restart",
            Phase::Deciding(_) | Phase::Active | Phase::Over => return None,
        };
        Some(what.to_owned())
    }

    fn vertex_statuses(&self) -> Vec<VertexStatus> {
        let graph = self.recorded.graph();
        let statuses = self.recorded.vertices().zip(&graph.vertices).map(|(id, vertex)| {
            let record = self.recorded.vertex(id);
            let unshown = self.unshown.values().filter(|unshown| **unshown == id).count();
            let unshown = u32::try_from(unshown).unwrap_or(u32::MAX);
            VertexStatus {
                name: vertex.name.clone(),
                parallelism: record.plan.as_ref().map(|plan| plan.parallelism),
                finished: record.finished.saturating_sub(unshown),
                running: self.executions.count(id),
            }
        });
        statuses.collect()
    }
}
