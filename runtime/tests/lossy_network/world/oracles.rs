//! What must hold, whatever was lost.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{ExecutionVertexId, FinishRecord, JobVertexId, SplitId, WorkerId};
use regrow_runtime::{JobEvent, JobOutcome, JobState, TASK_CANCELLATION_TIMEOUT, VertexReset};

use super::{Cancel, Faults, World};

impl World {
    /// Looks at what a worker started.
    pub(super) fn look_at_starts(&mut self, worker: WorkerId) {
        let starts = std::mem::take(&mut self.nodes.get_mut(&worker).unwrap().new_starts);
        for attempt in starts {
            let subtask = attempt.execution_vertex();
            let again = self.sealed.contains(&subtask);
            assert!(self.faults == Faults::All || !again, "P1: {attempt} ran already");
            if self.faults == Faults::Flaps {
                assert_eq!(attempt.number, 0, "4.7: as if nothing had been");
                let copies = self.nodes.values().flat_map(super::Node::subtasks);
                assert_eq!(copies.filter(|it| *it == subtask).count(), 1, "{attempt} runs twice");
            }
        }
    }

    pub(super) fn check_conclusion(&mut self, outcome: &JobOutcome) {
        let refused: u64 = self.nodes.values().map(|it| it.refused).sum();
        assert!(self.faults != Faults::Flaps || refused == 0, "O6: {refused} were refused");
        match outcome.state {
            JobState::Finished => self.check_counted(),
            JobState::Canceled => {
                self.seen.cancelled += 1;
                assert!(
                    matches!(self.cancel, Cancel::Asked | Cancel::Answered),
                    "nobody asked for it"
                );
                let busy: usize =
                    self.nodes.values().map(|node| node.executor.occupied_slots()).sum();
                assert!(self.faults != Faults::Flaps || busy == 0, "{busy} tasks were forgotten");
                let prompt = self.now < self.cancelled_at.after(TASK_CANCELLATION_TIMEOUT);
                assert!(self.faults != Faults::Flaps || prompt, "it waited for what had ended");
            }
            _ => panic!("{outcome:?}"),
        }
    }

    /// P2: each split counts in one accepted attempt.
    fn check_counted(&self) {
        let accepted = accepted(&self.stored);
        let mut read = BTreeMap::<JobVertexId, BTreeSet<SplitId>>::new();
        for record in accepted.values() {
            let splits = read.entry(record.attempt.vertex).or_default();
            for split in &record.splits {
                assert!(splits.insert(*split), "P2: {split:?} counts twice");
            }
        }
        for (id, vertex) in (0..).map(JobVertexId).zip(&self.submission.graph.vertices) {
            let expected = if vertex.coordinator.is_some() { self.splits() } else { 0 };
            let found = read.get(&id).map_or(0, BTreeSet::len);
            assert_eq!(found, usize::try_from(expected).unwrap(), "P2: every split counts");
        }
    }

    /// P5: workers hold nothing of a run that ended.
    pub(super) fn nothing_is_left(&self) -> bool {
        let idle = |node: &super::Node| {
            node.executor.occupied_slots() == 0 && node.executor.unacknowledged_reports() == 0
        };
        self.nodes.values().all(idle) && self.disks.values().all(BTreeMap::is_empty)
    }
}

/// The accepted finishes of a log.
fn accepted(events: &[JobEvent]) -> BTreeMap<ExecutionVertexId, FinishRecord> {
    let mut accepted = BTreeMap::new();
    let forget = |accepted: &mut BTreeMap<_, _>, resets: &[VertexReset]| {
        accepted.retain(|subtask, _| !resets.iter().any(|reset| reset.subtask == *subtask));
    };
    for event in events {
        match event {
            JobEvent::ExecutionVertexFinished { record, .. } => {
                accepted.insert(record.attempt.execution_vertex(), (**record).clone());
            }
            JobEvent::ExecutionVerticesReset { resets } => forget(&mut accepted, resets),
            JobEvent::RecoveryDecided(decision) => {
                let found = decision.found.iter().map(|(_, _, record)| record);
                accepted.extend(found.map(|it| (it.attempt.execution_vertex(), (**it).clone())));
                forget(&mut accepted, &decision.resets);
            }
            _ => {}
        }
    }
    accepted
}
