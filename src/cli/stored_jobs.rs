//! What a data directory tells of a job while nobody leads the cluster.

use std::{fs, path::Path, time::Duration};

use regrow_actors::{
    archive::Archive,
    cluster::{ClusterPlace, Unled},
};
use regrow_protocol::JobId;

use super::stored_events;

/// What is known of `job` without a leader, to go behind the error that there is none: how it ended,
/// or whether it can go on, and since when nobody records anything (fault 49).
pub(super) fn without_leader(data_directory: &Path, job: &JobId) -> String {
    // Somebody who leads and cannot be reached knows more than this.
    let Ok(ClusterPlace::Free(unled)) = ClusterPlace::of(data_directory) else {
        return String::new();
    };
    said(data_directory, job, &unled).map_or_else(String::new, |text| format!("; {text}"))
}

fn said(data_directory: &Path, job: &JobId, _unled: &Unled) -> Option<String> {
    if let Ok(Some(events)) = stored_events::of_cluster(data_directory, job) {
        let since = last_written(&data_directory.join("store")).map_or_else(String::new, |age| {
            let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
            format!(", the last about {age} ago")
        });
        return Some(format!(
            "job {job} has not ended: {} events of it are recorded{since}, and it goes on with all \
             that finished as soon as a JobManager leads {}",
            events.events.len(),
            data_directory.display()
        ));
    }
    match Archive::new(data_directory).read(job) {
        Ok(Some(ended)) => Some(format!("job {job} is {}", ended.outcome.state)),
        Ok(None) => {
            Some(format!("the data directory {} knows no job {job}", data_directory.display()))
        }
        Err(_) => None,
    }
}

/// How long ago a file of `directory` was written for the last time.
fn last_written(directory: &Path) -> Option<Duration> {
    let ages = fs::read_dir(directory).ok()?.flatten().filter_map(|entry| {
        entry.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok()?.elapsed().ok()
    });
    ages.min()
}
