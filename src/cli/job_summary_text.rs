//! How a job of a cluster stands, in words and in JSON.

use std::time::Duration;

use regrow_actors::cluster::JobSummary;
use serde_json::json;

/// A job as one JSON object.
pub(super) fn json_line(job: &JobSummary) -> String {
    let vertices: Vec<_> = job
        .vertices
        .iter()
        .map(|vertex| {
            json!({
                "name": vertex.name,
                "parallelism": vertex.parallelism,
                "finished": vertex.finished,
                "running": vertex.running,
            })
        })
        .collect();
    json!({
        "job_id": job.job,
        "run_id": job.run,
        "job_name": job.job_name,
        "state": job.state,
        "waiting_for": job.waiting_for,
        "degraded": job.degraded,
        "recoveries": job.recoveries,
        "error": job.error,
        "refused_commands": job.refused_commands,
        "ended_ago_ms": job.ended_ago_ms,
        "vertices": vertices,
    })
    .to_string()
}

/// Jobs, each in one line, in columns.
pub(super) fn lines(jobs: &[JobSummary]) -> Vec<String> {
    let cells =
        |job: &JobSummary| [job.job.to_string(), job.state.to_string(), job.job_name.clone()];
    let rows: Vec<_> = jobs.iter().map(|job| (cells(job), ago(job).unwrap_or_default())).collect();
    let width = |column: usize| {
        rows.iter().map(|(cells, _)| cells[column].chars().count()).max().unwrap_or_default()
    };
    let (ids, states, names) = (width(0), width(1), width(2));
    let line = |([id, state, name], ago): &([String; 3], String)| {
        format!("{id:ids$}  {state:states$}  {name:names$}  {ago}").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// How long ago a job ended, to the second.
fn ago(job: &JobSummary) -> Option<String> {
    let age = Duration::from_secs(job.ended_ago_ms? / 1000);
    Some(format!("ended {} ago", humantime::format_duration(age)))
}

/// A job in some lines for people.
pub(super) fn text(job: &JobSummary) -> String {
    let name = match job.job_name.as_str() {
        "" => "of unknown kind",
        name => name,
    };
    let mut lines = vec![format!("{} ({name}) is {}", job.job, job.state)];
    lines.extend(ago(job));
    lines.extend(job.waiting_for.iter().map(|what| format!("waits for {what}")));
    lines.extend(job.degraded.iter().map(|reason| format!("recovery degraded: {reason}")));
    match job.recoveries {
        0 => {}
        1 => lines.push("recovered once".to_owned()),
        count => lines.push(format!("recovered {count} times")),
    }
    if job.refused_commands > 0 {
        lines.push(format!(
            "{} commands of former masters were refused by its workers",
            job.refused_commands
        ));
    }
    lines.extend(job.error.iter().map(|error| format!("error: {error}")));
    for vertex in &job.vertices {
        let of = vertex.parallelism.map_or_else(|| "?".to_owned(), |tasks| tasks.to_string());
        let (name, finished, running) = (&vertex.name, vertex.finished, vertex.running);
        lines.push(format!("  {name}: {finished} of {of} finished, {running} running"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use regrow_protocol::RunId;
    use regrow_runtime::JobState;

    use super::*;

    fn job() -> JobSummary {
        JobSummary {
            job: "nightly".parse().unwrap(),
            run: RunId::from_bits(1),
            job_name: "sort".to_owned(),
            state: JobState::Failed,
            waiting_for: None,
            degraded: None,
            recoveries: 2,
            error: Some("no space".to_owned()),
            refused_commands: 3,
            ended_ago_ms: Some(61_500),
            vertices: Vec::new(),
        }
    }

    #[test]
    fn people_read_what_counts() {
        let other = JobSummary {
            job: "j".parse().unwrap(),
            job_name: "wordcount".to_owned(),
            state: JobState::Running,
            ended_ago_ms: None,
            ..job()
        };
        assert_eq!(
            lines(&[job(), other]),
            ["nightly  FAILED   sort       ended 1m 1s ago", "j        RUNNING  wordcount"]
        );
        assert_eq!(
            text(&job()),
            "nightly (sort) is FAILED\nended 1m 1s ago\nrecovered 2 times\n3 commands of former \
             masters were refused by its workers\nerror: no space"
        );
        let live = JobSummary { ended_ago_ms: None, job_name: String::new(), ..job() };
        assert!(text(&live).starts_with("nightly (of unknown kind) is FAILED\nrecovered"));
    }

    #[test]
    fn programs_read_states_and_durations() {
        let value: serde_json::Value = serde_json::from_str(&json_line(&job())).unwrap();
        assert_eq!((&value["state"], &value["ended_ago_ms"]), (&json!("FAILED"), &json!(61_500)));
        assert_eq!(value["refused_commands"], 3);
    }
}
