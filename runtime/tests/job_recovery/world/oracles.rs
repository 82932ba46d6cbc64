//! What must hold, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{
    ExecutionAttemptId, ExecutionVertexId, FinishRecord, JobVertexId, SplitId, TaskDeployment,
};
use regrow_runtime::{
    CoordinatorKind, Input, JobEvent, JobOutcome, JobState, ResetReason, VertexReset,
};

use super::{Faults, World};

impl World {
    /// The recorded part of the live state is what a replay of all events gives.
    pub(super) fn check_replay(&self) {
        assert!(self.replay.agrees_with(&self.job), "replay differs from live");
    }

    pub(super) fn check_dispatch(&self, deployment: &TaskDeployment) {
        let attempt = deployment.attempt;
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
        for producer in deployment.inputs.iter().flat_map(|gate| gate.producers.iter()) {
            let heard = self.heard.contains(&producer.partition.attempt);
            assert!(heard, "5.8: {attempt} is to read {producer:?}, which nobody reported");
        }
    }

    /// Notes the outputs that a message tells of.
    pub(super) fn note_outputs(&mut self, input: &Input) {
        match input {
            Input::PartitionsReported { finished, .. } => {
                self.heard.extend(finished.iter().map(|record| record.attempt));
            }
            Input::WorkerRegistered { inventory, .. } => {
                let reports = inventory.unacknowledged.iter();
                self.heard.extend(reports.map(|record| record.attempt));
            }
            Input::TaskFinished { record, .. } => {
                self.heard.insert(record.attempt);
            }
            _ => {}
        }
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
        for (id, vertex) in (0..).map(JobVertexId).zip(&self.submission.graph.vertices) {
            let expected = match vertex.coordinator {
                None => continue,
                Some(CoordinatorKind::Source) => discovered,
                Some(CoordinatorKind::OneListingSource) => self.check_last_listing(id, &accepted),
            };
            let read = splits.get(&id).map_or(0, BTreeSet::len);
            assert_eq!(read, expected, "P2: every split counts");
        }
        self.contents.check(&accepted);
    }
}

/// The accepted finishes of a log, folded by rules of this test's own.
pub(super) fn accepted<'a>(
    events: impl IntoIterator<Item = &'a JobEvent>,
) -> BTreeMap<ExecutionVertexId, FinishRecord> {
    let mut accepted = Accepted::default();
    for event in events {
        match event {
            JobEvent::ExecutionVertexFinished { record, .. } => accepted.finish(record),
            JobEvent::ExecutionVerticesReset { resets } => accepted.reset(resets),
            JobEvent::RecoveryDecided(decision) => {
                decision.found.iter().for_each(|(_, _, record)| accepted.finish(record));
                accepted.reset(&decision.resets);
            }
            _ => {}
        }
    }
    accepted.present
}

#[derive(Default)]
struct Accepted {
    present: BTreeMap<ExecutionVertexId, FinishRecord>,
    /// Attempts that were accepted and are void for good.
    void: BTreeSet<ExecutionAttemptId>,
}

impl Accepted {
    fn finish(&mut self, record: &FinishRecord) {
        assert!(!self.void.contains(&record.attempt), "5.5: {} counts again", record.attempt);
        self.present.insert(record.attempt.execution_vertex(), record.clone());
    }

    fn reset(&mut self, resets: &[VertexReset]) {
        for reset in resets {
            let void = self.present.remove(&reset.subtask).map(|record| record.attempt);
            self.void.extend(void.filter(|_| reset.reason != ResetReason::OutputMissing));
        }
    }
}
