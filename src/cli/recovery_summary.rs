//! A recovery in words.

use std::collections::BTreeMap;

use regrow_runtime::{Fate, FateLine, RecoveryReport};
use serde_json::{Value, json};

/// A recovery in a few lines: what was kept, what is to run and why, and how long it took.
pub(crate) fn summary(report: &RecoveryReport) -> Vec<String> {
    let count = |fate| report.lines.iter().filter(|line| line.fate == fate).count();
    let phases = report.phases;
    let mut lines = vec![format!(
        "recovered as epoch {}: {} kept from the log, {} kept from finish files, {} adopted, {} \
         to run (log {} ms, workers {} ms, decision {} ms)",
        report.epoch,
        tasks(count(Fate::KeptLog)),
        count(Fate::KeptFile),
        count(Fate::Adopted),
        count(Fate::Rerun),
        phases.read_log_ms,
        phases.wait_workers_ms,
        phases.decide_ms,
    )];
    if !report.previous_end.is_empty() {
        lines.push(format!("  the coordinator before: {}", report.previous_end));
    }
    let mut reasons: BTreeMap<(u32, &str), usize> = BTreeMap::new();
    for line in report.lines.iter().filter(|line| line.fate == Fate::Rerun) {
        *reasons.entry((line.subtask.vertex.0, line.reason.as_str())).or_default() += 1;
    }
    for ((stage, reason), count) in reasons {
        lines.push(format!("  stage {stage}: {} to run: {reason}", tasks(count)));
    }
    if let Some(damage) = &report.log_damage {
        lines.push(format!("  the log is damaged: {damage}"));
    }
    lines
}

/// All fates of a recovery, one a line, for people.
pub(crate) fn full(report: &RecoveryReport) -> Vec<String> {
    let mut lines = summary(report);
    for line in &report.lines {
        let attempt = line.attempt.map_or_else(|| "-".to_owned(), |id| id.number.to_string());
        lines.push(format!(
            "  {:>12}  {:<9}  attempt {attempt}  {}",
            format!("{}/{}", line.subtask.vertex, line.subtask.subtask),
            fate_name(line.fate),
            line.reason
        ));
    }
    lines
}

/// A fate as the contract of `--json` has it.
pub(crate) fn fate_json(report: &RecoveryReport, line: &FateLine) -> Value {
    json!({
        "epoch": report.epoch.number(),
        "stage": line.subtask.vertex.0,
        "subtask": line.subtask.subtask,
        "attempt": line.attempt.map(|attempt| attempt.number),
        "fate": fate_name(line.fate),
        "reason": line.reason,
    })
}

fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::KeptLog => "kept_log",
        Fate::KeptFile => "kept_file",
        Fate::Adopted => "adopted",
        Fate::Rerun => "rerun",
    }
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{Epoch, ExecutionVertexId, JobVertexId};
    use regrow_runtime::RecoveryPhases;

    use super::*;

    fn report() -> RecoveryReport {
        let line = |subtask, fate, reason: &str| FateLine {
            subtask: ExecutionVertexId { vertex: JobVertexId(0), subtask },
            attempt: None,
            fate,
            reason: reason.to_owned(),
        };
        RecoveryReport {
            epoch: Epoch::new(1, 1),
            previous_end: "stopped as planned".to_owned(),
            lines: vec![
                line(0, Fate::KeptLog, "in the log"),
                line(1, Fate::KeptFile, "sealed"),
                line(2, Fate::Rerun, "had not finished"),
                line(3, Fate::Rerun, "had not finished"),
            ],
            log_damage: None,
            phases: RecoveryPhases { read_log_ms: 1, wait_workers_ms: 2, decide_ms: 3 },
        }
    }

    #[test]
    fn a_summary_counts_fates_and_reasons() {
        assert_eq!(
            summary(&report()),
            [
                "recovered as epoch 1048577: 1 task kept from the log, 1 kept from finish files, \
                 0 adopted, 2 to run (log 1 ms, workers 2 ms, decision 3 ms)",
                "  the coordinator before: stopped as planned",
                "  stage 0: 2 tasks to run: had not finished",
            ]
        );
    }

    #[test]
    fn a_fate_in_json_has_the_fields_of_the_contract() {
        let report = report();
        let text = fate_json(&report, &report.lines[1]).to_string();
        let fields: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["attempt", "epoch", "fate", "reason", "stage", "subtask"]);
        assert_eq!(fields["fate"], "kept_file");
        assert_eq!(fields["epoch"], 1_048_577);
    }
}
