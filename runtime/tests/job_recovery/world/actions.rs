//! What the master wants done, done to the model.

use regrow_protocol::{ReportAnswer, WorkerId};
use regrow_runtime::{Action, Decision, Input, JobEvent};

use super::{super::workers::Kind, World};

impl World {
    pub(super) fn carry_out(&mut self, decision: Decision) {
        for event in decision.events {
            self.trace("records", &event);
            self.replay.apply(&event).unwrap();
            if let JobEvent::RecoveryDecided(decision) = &event {
                self.seen.found += u32::try_from(decision.found.len()).unwrap();
            }
            if matches!(event, JobEvent::ResetTakenBack { .. }) {
                self.seen.taken_back += 1;
            }
            self.buffer.push_back(event.clone());
            self.check_listings(&event);
        }
        for action in decision.actions {
            self.trace("wants", &action);
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::AnnounceMaster { worker } => {
                let epoch = self.epoch;
                let Some(there) = self.workers.get_mut(&worker) else { return };
                for input in there.announced(epoch) {
                    self.post(worker, input);
                }
            }
            Action::GetAllPartitionsWithMetrics { worker } => self.report_partitions(worker),
            // What a worker had not heard when it registered is said again.
            Action::SubmitTask { worker, deployment }
                if self.dispatched.get(&deployment.attempt) == Some(&worker) => {}
            Action::SubmitTask { worker, deployment } => {
                let before = self.dispatched.insert(deployment.attempt, worker);
                assert_eq!(before, None, "{} is dispatched to one worker", deployment.attempt);
                self.check_dispatch(&deployment);
                self.check_listed(deployment.attempt);
                self.listings.note_dispatch(deployment.attempt);
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.submitted(*deployment);
                }
            }
            Action::CancelTask { worker, attempt } => {
                let Some(there) = self.workers.get_mut(&worker) else { return };
                for input in there.cancelled(attempt) {
                    self.post(worker, input);
                }
            }
            Action::AnswerSplitRequest { worker, attempt, request, split } => {
                self.check_answer(attempt, split.as_ref());
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.split_answered(attempt, request, split);
                }
            }
            Action::AnswerReport { worker, attempt, answer } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.report_answered(attempt, answer, &mut self.disks);
                }
            }
            Action::AcceptReports { worker, attempts } => {
                let Some(worker) = self.workers.get_mut(&worker) else { return };
                for attempt in attempts {
                    worker.report_answered(attempt, ReportAnswer::Accepted, &mut self.disks);
                }
            }
            Action::ReleasePartitions { data_directory, attempts, .. } => {
                let disk = self.disks.entry(data_directory).or_default();
                for attempt in attempts {
                    disk.remove(&attempt);
                }
            }
            other => self.perform_locally(other),
        }
    }

    /// What concerns no worker.
    fn perform_locally(&mut self, action: Action) {
        match action {
            Action::DeclareDemand { slots, avoid } => (self.demand, self.avoided) = (slots, avoid),
            Action::ReturnSlots { worker, count } => {
                if let Some(granted) = self.granted.get_mut(&worker) {
                    *granted -= count;
                }
            }
            Action::DiscoverSplits { vertex } => {
                let result = Ok(self.list(vertex));
                self.post_local(Input::SplitsDiscovered { vertex, result });
            }
            Action::PrepareOutput(preparation) => {
                let result = Ok(preparation.sinks.iter().map(|_| "/staging".to_owned()).collect());
                self.post_local(Input::OutputPrepared { result });
            }
            Action::VerifyStagedFiles(_) => {
                self.post_local(Input::StagedFilesVerified { result: Ok(Vec::new()) });
            }
            Action::Commit(_) => self.post_local(Input::CommitEnded { result: Ok(()) }),
            Action::Conclude(outcome) => self.outcome = Some(*outcome),
            Action::WakeAt(_)
            | Action::AcknowledgeSubmission
            | Action::AcknowledgeCancel { .. }
            | Action::ReportRecovery(_) => {}
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn report_partitions(&mut self, worker: WorkerId) {
        let Some(there) = self.workers.get(&worker) else { return };
        if there.kind == Kind::Writer {
            return;
        }
        let data_directory = there.data_directory;
        let finished = self.disks[&data_directory].values().cloned().collect();
        self.post(worker, Input::PartitionsReported { worker, data_directory, finished });
    }
}
