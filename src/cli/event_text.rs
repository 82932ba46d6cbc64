//! Events in words and in JSON.

use regrow_protocol::FinishRecord;
use regrow_runtime::{CoordinatorDelta, JobEvent, PreviousLife, RecoveryDecision};
use serde_json::{Map, Value, json};

use super::stored_events::StoredEvent;

/// An event as one JSON object: `epoch`, `sequence`, `event` (its name) and its fields.
pub(crate) fn event_json(stored: &StoredEvent) -> Value {
    let mut object = Map::new();
    match serde_json::to_value(&stored.event) {
        Ok(Value::Object(variant)) => {
            for (name, fields) in variant {
                object.insert("event".to_owned(), Value::String(name));
                object.extend(fields.as_object().cloned().unwrap_or_default());
            }
        }
        Ok(name) => {
            object.insert("event".to_owned(), name);
        }
        Err(error) => {
            object.insert("error".to_owned(), Value::String(error.to_string()));
        }
    }
    // Last: an event's own field of that name is the same epoch in another form.
    object.insert("epoch".to_owned(), json!(stored.epoch.number()));
    object.insert("sequence".to_owned(), json!(stored.sequence));
    Value::Object(object)
}

/// What was before an epoch.
fn previous_text(previous: &PreviousLife) -> String {
    match previous {
        PreviousLife::None => "the first".to_owned(),
        PreviousLife::Unknown => "after one whose process is gone".to_owned(),
        PreviousLife::Panicked { message } => format!("after one that panicked: {message}"),
        PreviousLife::KilledAsPlanned => "after one that was killed as planned".to_owned(),
    }
}

/// An event as one line for people.
pub(crate) fn event_line(stored: &StoredEvent) -> String {
    let text = match &stored.event {
        JobEvent::JobSubmitted(submission) => format!(
            "JobSubmitted: job {} ({}), run {}, {} stages",
            submission.job,
            submission.job_name,
            submission.run,
            submission.graph.vertices.len()
        ),
        JobEvent::EpochStarted { epoch, previous, .. } => {
            format!("EpochStarted: epoch {epoch}, {}", previous_text(previous))
        }
        JobEvent::RecoveryDecided(decision) => decision_line(decision),
        JobEvent::JobVertexInitialized { vertex, plan } => {
            format!("JobVertexInitialized: stage {vertex}, parallelism {}", plan.parallelism)
        }
        JobEvent::WorkerUsed { worker, data_directory: _, shuffle_service, addresses: _ } => {
            let kept =
                shuffle_service.map(|service| format!(", kept by shuffle service {service}"));
            format!("WorkerUsed: {worker}{}", kept.unwrap_or_default())
        }
        JobEvent::WorkerLost { worker } => format!("WorkerLost: {worker}"),
        JobEvent::ExecutionVertexFinished { record, .. } => finish_line(record),
        JobEvent::ExecutionVerticesReset { resets } => {
            let each: Vec<String> = resets
                .iter()
                .map(|reset| format!("{} ({:?})", reset.subtask, reset.reason))
                .collect();
            format!("ExecutionVerticesReset: {}", each.join(", "))
        }
        JobEvent::ResetTakenBack { attempts } => {
            let each: Vec<String> = attempts.iter().map(ToString::to_string).collect();
            format!("ResetTakenBack: {}", each.join(", "))
        }
        JobEvent::CoordinatorChanged { vertex, number, delta } => {
            format!("CoordinatorChanged: stage {vertex}, change {number}: {}", delta_text(delta))
        }
        JobEvent::CoordinatorSnapshot { vertex, last_delta, state } => format!(
            "CoordinatorSnapshot: stage {vertex}, up to change {last_delta}, {} bytes",
            state.len()
        ),
        JobEvent::CommitStarted(plan) => format!("CommitStarted: {} files", plan.winners.len()),
        JobEvent::CommitFinished => "CommitFinished".to_owned(),
        JobEvent::CancelRequested => "CancelRequested".to_owned(),
        JobEvent::FailureDecided { error } => format!("FailureDecided: {error}"),
        JobEvent::JobTerminated { state, error } => {
            let error = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            format!("JobTerminated: {state}{error}")
        }
        JobEvent::Snapshot { state } => format!("Snapshot: {} bytes", state.len()),
    };
    format!("{:>6} {:>9}  {text}", stored.sequence, stored.epoch)
}

fn finish_line(record: &FinishRecord) -> String {
    let bytes: u64 = record.outputs.iter().map(|output| output.subpartition_bytes.total()).sum();
    format!(
        "ExecutionVertexFinished: attempt {}, {} bytes, {} splits, {} files, {} ms",
        record.attempt,
        bytes,
        record.splits.len(),
        record.staged_files.len(),
        record.metrics.duration_ms
    )
}

fn decision_line(decision: &RecoveryDecision) -> String {
    format!(
        "RecoveryDecided: {} finishes found, {} subtasks reset, {} workers lost",
        decision.found.len(),
        decision.resets.len(),
        decision.lost_workers.len()
    )
}

fn delta_text(delta: &CoordinatorDelta) -> String {
    match delta {
        CoordinatorDelta::SplitsDiscovered { splits } => format!("{} splits found", splits.len()),
        CoordinatorDelta::SplitsAssigned { attempt, splits, .. } if splits.is_empty() => {
            format!("no split is left for attempt {attempt}")
        }
        CoordinatorDelta::SplitsAssigned { attempt, splits, .. } => {
            let each: Vec<String> = splits.iter().map(|split| split.0.to_string()).collect();
            format!("splits {} to attempt {attempt}", each.join(" "))
        }
        CoordinatorDelta::SplitsReturned { attempts } => {
            let each: Vec<String> = attempts.iter().map(ToString::to_string).collect();
            format!("splits returned by {}", each.join(" "))
        }
        CoordinatorDelta::SubtaskReset { subtask, .. } => format!("subtask {subtask} reset"),
        CoordinatorDelta::ListingMade { listing, splits, .. } => {
            format!("{} splits found by listing {listing}", splits.len())
        }
        CoordinatorDelta::ListingForgotten { listing } => format!("listing {listing} forgotten"),
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::Epoch;
    use regrow_runtime::PreviousLife;

    use super::*;

    #[test]
    fn json_names_the_event_beside_its_fields() {
        let event = JobEvent::FailureDecided { error: "no".to_owned() };
        let stored = StoredEvent { epoch: Epoch::new(1, 0), sequence: 7, event };
        assert_eq!(
            event_json(&stored),
            json!({"epoch": 1_048_576, "sequence": 7, "event": "FailureDecided", "error": "no"})
        );
        let previous = PreviousLife::None;
        let event = JobEvent::EpochStarted {
            epoch: Epoch::new(1, 0),
            previous,
            sealed: None,
            log_lacks: false,
        };
        let stored = StoredEvent { event, ..stored };
        assert_eq!(event_json(&stored)["epoch"], 1_048_576);
        let stored = StoredEvent { event: JobEvent::CommitFinished, ..stored };
        assert_eq!(event_json(&stored)["event"], "CommitFinished");
    }
}
