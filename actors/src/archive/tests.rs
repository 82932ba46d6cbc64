use std::collections::BTreeSet;

use regrow_protocol::{Accumulator, Accumulators, RunId};
use regrow_runtime::JobState;

use super::*;

fn ended(job: &str, run: u128) -> ArchivedJob {
    let mut accumulators = Accumulators::default();
    accumulators.add("lines", Accumulator::Sum(7));
    let outcome = JobOutcome {
        job: job.parse().unwrap(),
        run: RunId::from_bits(run),
        state: JobState::Finished,
        recoveries: 2,
        error: None,
        accumulators,
    };
    ArchivedJob {
        outcome,
        job_name: "sort".to_owned(),
        arguments: vec![0, 255],
        submission: None,
        reports: vec![],
    }
}

#[test]
fn an_ended_job_is_read_back_with_its_events() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let batches = vec![b"first".to_vec(), Vec::new(), vec![0; 100_000]];
    archive.write(&ended("a", 1), &batches).unwrap();
    let job = "a".parse().unwrap();
    assert_eq!(archive.read(&job).unwrap(), Some(ended("a", 1)));
    assert_eq!(archive.read_batches(&job).unwrap(), Some(batches));
    assert_eq!(archive.read(&"b".parse().unwrap()).unwrap(), None);
}

#[test]
fn the_events_of_an_ended_job_are_read_part_by_part() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let batches: Vec<Vec<u8>> = (0..9).map(|byte| vec![byte; 400]).collect();
    archive.write(&ended("a", 7), &batches).unwrap();
    let job = "a".parse().unwrap();
    let part = |place| archive.read_part(&job, place, 1_000).unwrap().unwrap();
    let (mut place, mut read, mut parts) = (Some(ArchivePlace::Beginning), Vec::new(), 0);
    while let Some(from) = place {
        let part = part(from);
        assert_eq!((part.run, part.missed), (RunId::from_bits(7), false));
        read.extend(part.batches);
        (place, parts) = (part.next.map(ArchivePlace::At), parts + 1);
    }
    assert_eq!((read, parts), (batches.clone(), 5));
    let behind = part(ArchivePlace::Behind(crc32c::crc32c(&batches[7])));
    assert_eq!((behind.batches, behind.next), (batches[8..].to_vec(), None));
    let missed = part(ArchivePlace::Behind(0));
    assert_eq!((missed.missed, missed.batches), (true, batches[..2].to_vec()));
    let large = archive.read_part(&job, ArchivePlace::Beginning, 0).unwrap().unwrap();
    assert_eq!(large.batches.len(), 1, "one at least");
    for place in [0, 1_000, u64::MAX / 2].map(ArchivePlace::At) {
        let _ = archive.read_part(&job, place, 1_000);
    }
    assert!(
        archive.read_part(&"b".parse().unwrap(), ArchivePlace::Beginning, 9).unwrap().is_none()
    );
}

#[test]
fn a_later_run_of_a_job_takes_the_place_of_an_earlier_one() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    archive.write(&ended("a", 1), &[b"old".to_vec()]).unwrap();
    archive.write(&ended("a", 2), &[]).unwrap();
    let job = "a".parse().unwrap();
    assert_eq!(archive.read(&job).unwrap(), Some(ended("a", 2)));
    assert_eq!(archive.read_batches(&job).unwrap(), Some(Vec::new()));
    assert_eq!(archive.jobs().unwrap(), [job]);
}

#[test]
fn the_oldest_jobs_are_forgotten() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let epoch = std::time::UNIX_EPOCH;
    for number in 0..ARCHIVED_JOBS_MAX + 5 {
        let job = ended(&format!("job-{number}"), 1);
        archive.write(&job, &[]).unwrap();
        let file = File::options().append(true).open(archive.path(&job.outcome.job));
        let age = Duration::from_secs(number as u64);
        file.and_then(|file| file.set_modified(epoch + age)).unwrap_or_default();
    }
    let kept: BTreeSet<JobId> = archive.jobs().unwrap().into_iter().collect();
    assert_eq!(kept.len(), ARCHIVED_JOBS_MAX);
    let newest = format!("job-{}", ARCHIVED_JOBS_MAX + 4).parse().unwrap();
    assert!(kept.contains(&newest) && !kept.contains(&"job-0".parse().unwrap()));
}

#[test]
fn a_damage_ends_the_events_and_is_no_panic() {
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::new(data.path());
    let job = "a".parse().unwrap();
    archive.write(&ended("a", 1), &[b"first".to_vec(), b"second".to_vec()]).unwrap();
    let path = archive.path(&job);
    let mut content = fs::read(&path).unwrap();
    *content.last_mut().unwrap() ^= 1;
    fs::write(&path, &content).unwrap();
    assert_eq!(archive.read_batches(&job).unwrap(), Some(vec![b"first".to_vec()]));
    for length in 0..content.len() {
        fs::write(&path, &content[..length]).unwrap();
        let _ = archive.read_batches(&job);
    }
    fs::write(&path, b"{}\n").unwrap();
    assert!(matches!(archive.read(&job), Err(ArchiveError::Damaged { .. })));
}
