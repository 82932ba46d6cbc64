//! How a job of a cluster stands, in words and in JSON.

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
        "vertices": vertices,
    })
    .to_string()
}

/// A job in one line.
pub(super) fn line(job: &JobSummary) -> String {
    format!("{}  {}  {}", job.job, job.state, job.job_name)
}

/// A job in some lines for people.
pub(super) fn text(job: &JobSummary) -> String {
    let name = match job.job_name.as_str() {
        "" => "of unknown kind",
        name => name,
    };
    let mut lines = vec![format!("{} ({name}) is {}", job.job, job.state)];
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
