//! What a user plans: stages and faults.

use std::{fmt, str::FromStr, time::Duration};

use regrow_runtime::JobGraph;
use serde::{Deserialize, Serialize};

/// Tasks of a stage at most.
const TASKS_MAX: u32 = JobGraph::PARALLELISM_MAX;

/// Length of a task at most: what is longer is a slip of the keyboard that holds its slot.
const LENGTH_MAX: Duration = Duration::from_hours(30 * 24);

/// A stage: so many tasks of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StageSpec {
    pub(super) tasks: u32,
    pub(super) length: Duration,
}

/// An attempt that is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedFault {
    pub(super) stage: u32,
    pub(super) subtask: u32,
    pub(super) attempt: u32,
}

impl FromStr for StageSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no stage: write tasks (1 to {TASKS_MAX}), x and the length of each, \
                 like 20x2s or 4x500ms"
            )
        };
        let (tasks, length) = text.split_once('x').ok_or_else(wrong)?;
        let tasks = tasks.trim().parse().map_err(|_| wrong())?;
        let length = humantime::parse_duration(length.trim()).map_err(|_| wrong())?;
        if !(1..=TASKS_MAX).contains(&tasks) {
            return Err(wrong());
        }
        if length > LENGTH_MAX {
            let most = humantime::format_duration(LENGTH_MAX);
            return Err(format!(
                "{text:?} has tasks that are too long: let each take at most {most}"
            ));
        }
        Ok(Self { tasks, length })
    }
}

impl FromStr for PlannedFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no fault: write it like stage=0,subtask=2,attempt=0");
        let (mut stage, mut subtask, mut attempt) = (None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let place = match key.trim() {
                "stage" => &mut stage,
                "subtask" => &mut subtask,
                "attempt" => &mut attempt,
                _ => return Err(wrong()),
            };
            let value: u32 = value.trim().parse().map_err(|_| wrong())?;
            if place.replace(value).is_some() {
                return Err(wrong());
            }
        }
        match (stage, subtask, attempt) {
            (Some(stage), Some(subtask), Some(attempt)) => Ok(Self { stage, subtask, attempt }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stage={},subtask={},attempt={}", self.stage, self.subtask, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_as_tasks_and_length() {
        let read = |text: &str| text.parse::<StageSpec>();
        assert_eq!(read("20x2s"), Ok(StageSpec { tasks: 20, length: Duration::from_secs(2) }));
        assert_eq!(read("1x500ms"), Ok(StageSpec { tasks: 1, length: Duration::from_millis(500) }));
        assert_eq!(read("3x0s"), Ok(StageSpec { tasks: 3, length: Duration::ZERO }));
        for wrong in ["", "20", "x2s", "0x1s", "20x", "20x2parsec", "-1x1s", "2000000x1s"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_no_job_can_have_is_refused_with_the_limit() {
        let read = |text: &str| text.parse::<StageSpec>();
        assert!(read("100000x30days").is_ok());
        for (wrong, limit) in [
            ("100001x1s", "1 to 100000"),
            ("1x31days", "at most 30days"),
            ("1x99999999999999999s", "at most 30days"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains(limit), "{error}");
        }
    }

    #[test]
    fn faults_name_one_attempt() {
        let fault = PlannedFault { stage: 1, subtask: 2, attempt: 0 };
        assert_eq!("stage=1,subtask=2,attempt=0".parse(), Ok(fault));
        assert_eq!("attempt=0, subtask=2, stage=1".parse(), Ok(fault));
        assert_eq!(fault.to_string().parse(), Ok(fault));
        for wrong in ["", "stage=1", "stage=1,subtask=2,attempt=x", "stage=1,stage=1,attempt=0"] {
            assert!(wrong.parse::<PlannedFault>().is_err(), "{wrong}");
        }
    }
}
