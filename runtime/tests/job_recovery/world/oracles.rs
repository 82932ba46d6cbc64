//! What must hold, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{ExecutionAttemptId, ExecutionVertexId, FinishRecord, SplitId};
use regrow_runtime::{JobEvent, JobOutcome, JobState};

use super::{Faults, World};

impl World {
    /// The recorded part of the live state is what a replay of all events gives.
    pub(super) fn check_replay(&self) {
        assert!(self.replay.agrees_with(&self.job), "replay differs from live");
    }

    pub(super) fn check_dispatch(&self, attempt: ExecutionAttemptId) {
        assert_eq!(attempt.epoch, self.epoch);
        let decided = self.stored[..usize::try_from(self.acknowledged.0).unwrap()]
            .iter()
            .rev()
            .take_while(|event| !matches!(event, JobEvent::EpochStarted { .. }))
            .any(|event| matches!(event, JobEvent::RecoveryDecided(_)));
        assert!(decided, "5.10: nothing but questions before the decision is durable");
        let again = self.sealed.contains(&attempt.execution_vertex());
        assert!(
            self.faults == Faults::All || !again,
            "P1: {attempt} runs although it had finished"
        );
    }

    pub(super) fn check_end(&self, outcome: &JobOutcome) {
        if outcome.state != JobState::Finished {
            assert_eq!(self.faults, Faults::All, "{outcome:?}");
            assert!(outcome.error.is_some());
            return;
        }
        let accepted = accepted(&self.stored);
        let mut splits = BTreeMap::<_, BTreeSet<SplitId>>::new();
        for record in accepted.values() {
            let read = splits.entry(record.attempt.vertex).or_default();
            for split in &record.splits {
                assert!(read.insert(*split), "P2: split {split:?} counts twice");
            }
        }
        let discovered = self.submission.graph.edges.len() * 2;
        for (id, vertex) in (0..).zip(&self.submission.graph.vertices) {
            if vertex.coordinator.is_some() {
                let read = splits.get(&regrow_protocol::JobVertexId(id)).map_or(0, BTreeSet::len);
                assert_eq!(read, discovered, "P2: every split counts");
            }
        }
        self.contents.check(&accepted);
    }
}

/// The accepted finishes of a log, folded by rules of this test's own.
fn accepted(events: &[JobEvent]) -> BTreeMap<ExecutionVertexId, FinishRecord> {
    let mut accepted = BTreeMap::new();
    for event in events {
        match event {
            JobEvent::ExecutionVertexFinished { record, .. } => {
                accepted.insert(record.attempt.execution_vertex(), (**record).clone());
            }
            JobEvent::ExecutionVerticesReset { resets } => {
                accepted.retain(|id, _| resets.iter().all(|reset| reset.subtask != *id));
            }
            JobEvent::RecoveryDecided(decision) => {
                for (_, _, record) in &decision.found {
                    accepted.insert(record.attempt.execution_vertex(), (**record).clone());
                }
                accepted.retain(|id, _| decision.resets.iter().all(|reset| reset.subtask != *id));
            }
            _ => {}
        }
    }
    accepted
}
