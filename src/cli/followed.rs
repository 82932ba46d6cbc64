//! Shows how a job of a cluster goes on.

use std::{sync::Arc, time::Instant};

use regrow_actors::{
    cluster::FollowUpdate,
    launch::{LocalResult, RunUpdate},
};
use regrow_runtime::JobOutcome;

use super::{console::Console, error::CliError, launcher, progress::Progress};

/// Shows how a job of a cluster goes on, over the deaths of its leaders.
pub(crate) struct Follower {
    console: Arc<Console>,
    progress: Progress,
    quiet: bool,
    began: Instant,
    /// Whether the leader was lost and no other was found yet.
    alone: bool,
    /// Whether a leader was lost before.
    lost: bool,
}

impl Follower {
    /// Shows on `console`, unless it is to be quiet.
    pub(crate) fn new(console: Arc<Console>, quiet: bool) -> Self {
        let progress = Progress::new(Arc::clone(&console), quiet);
        Self { console, progress, quiet, began: Instant::now(), alone: false, lost: false }
    }

    /// Shows what was heard.
    pub(crate) fn hear(&mut self, update: FollowUpdate) {
        match update {
            // Nothing was interrupted that this client knows of: the job was submitted before.
            FollowUpdate::Run(RunUpdate::Accepted { job, resumed: true, .. }) if !self.lost => {
                self.say(&format!("following job {job}, which was submitted before"));
            }
            FollowUpdate::Run(update) => self.progress.show(&update),
            FollowUpdate::LeaderLost { reason } => {
                self.lost = true;
                if !std::mem::replace(&mut self.alone, true) {
                    self.say(&format!(
                        "the JobManager is out of reach ({reason}); looking for the one that leads"
                    ));
                }
            }
            FollowUpdate::LeaderFound { address } => {
                if std::mem::replace(&mut self.alone, false) {
                    self.say(&format!("the JobManager at {address} leads"));
                }
            }
        }
    }

    /// Ends the showing; says since when the job was followed.
    pub(crate) fn finish(self) -> Instant {
        self.progress.finish();
        self.began
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            self.console.say(text);
        }
    }
}

/// Prints how a job ended, and says how the program ends.
pub(crate) fn report(
    outcome: JobOutcome,
    (began, joined): (Instant, bool),
    (json, quiet): (bool, bool),
    console: &Console,
) -> Result<(), CliError> {
    let result = LocalResult { outcome, duration: began.elapsed(), joined };
    launcher::report(&result, json, quiet, console)
}
