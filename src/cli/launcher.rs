//! Runs a job in this process and shows how it goes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use regrow_actors::launch::{CancelHandle, LaunchError, LocalResult, LocalRun, RunUpdate};
use regrow_runtime::{JobState, RecoveryReport, with_causes};
use serde_json::json;

use super::{accumulator_text, console::Console, error::CliError, progress::Progress};

/// Exit code after a second Ctrl-C, as shells have it for an interrupt.
const INTERRUPTED: i32 = 130;

/// What a run left for those who watched.
pub(crate) struct Launched {
    pub(crate) result: LocalResult,
    /// Each recovery, oldest first.
    pub(crate) recoveries: Vec<RecoveryReport>,
}

/// Runs `run` to its end. Ctrl-C cancels it, a second one leaves at once.
pub(crate) fn launch(
    run: LocalRun,
    console: &Arc<Console>,
    quiet: bool,
) -> Result<Launched, CliError> {
    let cancel = CancelHandle::default();
    // Before the job is named: who reads its name may send Ctrl-C.
    cancel_on_interrupt(cancel.clone(), Arc::clone(console))?;
    console.say(&format!("job {}", run.job));
    let accepted = Arc::new(AtomicBool::new(false));
    let progress = Progress::new(Arc::clone(console), quiet);
    let mut recoveries = Vec::new();
    let result = run.run(
        |update| {
            progress.show(&update);
            match update {
                RunUpdate::Accepted { .. } => accepted.store(true, Ordering::Relaxed),
                RunUpdate::Recovered(report) => recoveries.push(*report),
                RunUpdate::StoreLost(_)
                | RunUpdate::Status(_)
                | RunUpdate::JobMasterLost { .. }
                | RunUpdate::CancelAnswered { .. } => {}
            }
        },
        cancel,
    );
    progress.finish();
    match result {
        Ok(result) => Ok(Launched { result, recoveries }),
        Err(error) => Err(launch_error(&error, accepted.load(Ordering::Relaxed))),
    }
}

/// What is wrong before a job is accepted is usage; after it the job failed.
fn launch_error(error: &LaunchError, accepted: bool) -> CliError {
    let text = with_causes(error);
    if accepted { CliError::Failed(text) } else { CliError::Usage(text) }
}

fn cancel_on_interrupt(cancel: CancelHandle, console: Arc<Console>) -> Result<(), CliError> {
    let interrupts = AtomicUsize::new(0);
    let handler = move || {
        if interrupts.fetch_add(1, Ordering::Relaxed) > 0 {
            std::process::exit(INTERRUPTED);
        }
        console.say("cancelling the job; press Ctrl-C again to leave at once");
        cancel.cancel();
    };
    ctrlc::set_handler(handler)
        .map_err(|error| CliError::Failed(format!("cannot watch for Ctrl-C: {error}")))
}

/// Prints how a run ended, and says how the program ends.
pub(crate) fn report(
    result: &LocalResult,
    json: bool,
    quiet: bool,
    console: &Console,
) -> Result<(), CliError> {
    let outcome = &result.outcome;
    if json {
        let object = json!({
            "job_id": outcome.job,
            "run_id": outcome.run,
            "state": outcome.state,
            "duration_ms": u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
            "recoveries": outcome.recoveries,
            "error": outcome.error,
            "accumulators": accumulator_text::object(&outcome.accumulators),
        });
        console.result(&object.to_string());
    }
    if !quiet {
        console.say(&last_line(result));
        for line in accumulator_text::lines(&outcome.accumulators) {
            console.say(&line);
        }
    }
    match outcome.state {
        JobState::Finished => Ok(()),
        JobState::Canceled => Err(CliError::Cancelled),
        JobState::Failed
        | JobState::Initializing
        | JobState::Running
        | JobState::Reconciling
        | JobState::Failing
        | JobState::Cancelling => {
            let error = outcome.error.as_deref().unwrap_or("no cause is recorded");
            Err(CliError::Failed(format!("job {} failed: {error}", outcome.job)))
        }
    }
}

fn last_line(result: &LocalResult) -> String {
    let outcome = &result.outcome;
    if result.joined {
        return format!("job {} was {} before", outcome.job, outcome.state);
    }
    let recoveries = match outcome.recoveries {
        0 => String::new(),
        1 => ", after 1 recovery".to_owned(),
        count => format!(", after {count} recoveries"),
    };
    format!(
        "job {} {} in {:.1} s{recoveries}",
        outcome.job,
        outcome.state,
        result.duration.as_secs_f64()
    )
}
