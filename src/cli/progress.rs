//! Shows how a run goes.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use regrow_actors::launch::RunUpdate;
use regrow_runtime::{JobState, JobStatus, KillHow};

use super::{console::Console, recovery_summary::summary};

/// Plain lines of progress come at most this often.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Updates that wait to be shown at most; then the run waits for the screen.
const UPDATES_MAX: usize = 256;

/// Shows how a run goes: bars on a terminal, plain lines elsewhere, nothing if it is to be quiet.
///
/// A thread of its own shows it, so that a line that came too soon after another is shown later.
pub(crate) struct Progress {
    shown: Option<(SyncSender<RunUpdate>, JoinHandle<()>)>,
}

struct Screen {
    console: Arc<Console>,
    view: View,
}

enum View {
    Lines(Lines),
    Bars(Bars),
}

#[derive(Default)]
struct Lines {
    last: String,
    last_at: Option<Instant>,
    state: Option<JobState>,
    /// What came too soon after the last line.
    pending: Option<String>,
}

struct Bars {
    all: MultiProgress,
    state: Option<JobState>,
    stages: Vec<ProgressBar>,
}

impl Progress {
    /// Shows on `console`, unless it is to be quiet.
    pub(crate) fn new(console: Arc<Console>, quiet: bool) -> Self {
        if quiet {
            return Self { shown: None };
        }
        let view = if console.is_terminal() {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            View::Bars(Bars { all, state: None, stages: Vec::new() })
        } else {
            View::Lines(Lines::default())
        };
        let (sender, updates) = sync_channel(UPDATES_MAX);
        let screen = Screen { console, view };
        Self { shown: Some((sender, thread::spawn(move || screen.run(&updates)))) }
    }

    /// Shows an update.
    pub(crate) fn show(&self, update: &RunUpdate) {
        if let Some((sender, _)) = &self.shown {
            // It is gone only if it panicked: then the job goes on unseen.
            let _ = sender.send(update.clone());
        }
    }

    /// Shows what is left and leaves it as it is.
    pub(crate) fn finish(self) {
        if let Some((sender, screen)) = self.shown {
            drop(sender);
            let _ = screen.join();
        }
    }
}

impl Screen {
    fn run(mut self, updates: &Receiver<RunUpdate>) {
        loop {
            let next = match self.due() {
                Some(wait) => updates.recv_timeout(wait),
                None => updates.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(update) => self.show(&update),
                Err(RecvTimeoutError::Timeout) => self.show_pending(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let View::Bars(bars) = &self.view {
            bars.stages.iter().for_each(ProgressBar::abandon);
        }
    }

    /// When to show what waits, if anything does.
    fn due(&self) -> Option<Duration> {
        match &self.view {
            View::Lines(Lines { pending: Some(_), last_at: Some(at), .. }) => {
                Some(LINE_INTERVAL.saturating_sub(at.elapsed()))
            }
            View::Lines(_) | View::Bars(_) => None,
        }
    }

    fn show_pending(&mut self) {
        if let View::Lines(lines) = &mut self.view
            && let Some(line) = lines.pending.take()
        {
            lines.say(line, &self.console);
        }
    }

    fn show(&mut self, update: &RunUpdate) {
        match update {
            RunUpdate::StoreLost(loss) => self.say(&loss.to_string()),
            RunUpdate::Accepted { resumed: false, .. } => {}
            RunUpdate::Accepted { job, resumed: true, .. } => {
                self.say(&format!("resuming the interrupted run of job {job}"));
            }
            RunUpdate::Status(status) => match &mut self.view {
                View::Lines(lines) => lines.show(status, &self.console),
                View::Bars(bars) => bars.show(status, &self.console),
            },
            RunUpdate::JobMasterLost { planned, panic } => {
                self.say(&lost(*planned, panic.as_deref()));
            }
            RunUpdate::Recovered(report) => {
                for line in summary(report) {
                    self.say(&line);
                }
            }
            RunUpdate::CancelAnswered { refused: None } => self.say("the cancel is recorded"),
            RunUpdate::CancelAnswered { refused: Some(cause) } => {
                self.say(&format!("the job cannot be cancelled any more: {cause}"));
            }
        }
    }

    fn say(&self, line: &str) {
        match &self.view {
            View::Lines(_) => self.console.say(line),
            View::Bars(bars) => bars.all.suspend(|| self.console.say(line)),
        }
    }
}

impl Lines {
    /// Shows a changed status: at once if the state of the job changed or the last line is old
    /// enough, else later.
    fn show(&mut self, status: &JobStatus, console: &Console) {
        let line = line(status);
        let new_state = self.state != Some(status.state);
        self.state = Some(status.state);
        if line == self.last {
            self.pending = None;
        } else if new_state || self.last_at.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
            self.say(line, console);
        } else {
            self.pending = Some(line);
        }
    }

    fn say(&mut self, line: String, console: &Console) {
        console.say(&line);
        self.last = line;
        self.last_at = Some(Instant::now());
        self.pending = None;
    }
}

impl Bars {
    fn show(&mut self, status: &JobStatus, console: &Console) {
        if self.state != Some(status.state) {
            self.state = Some(status.state);
            self.all.suspend(|| console.say(status.state.name()));
        }
        for (index, vertex) in status.vertices.iter().enumerate() {
            if index == self.stages.len() {
                let bar = ProgressBar::no_length().with_style(style());
                self.stages.push(self.all.add(bar));
            }
            let bar = &self.stages[index];
            if let Some(parallelism) = vertex.parallelism {
                bar.set_length(u64::from(parallelism));
            }
            bar.set_position(u64::from(vertex.finished));
            bar.set_prefix(vertex.name.clone());
            bar.set_message(message(status, vertex.running));
        }
    }
}

/// What stands behind a bar.
fn message(status: &JobStatus, running: u32) -> String {
    let waiting = status
        .waiting_for
        .as_ref()
        .map_or_else(String::new, |what| format!(", waiting for {what}"));
    let degraded = if status.degraded.is_some() { ", recovery degraded" } else { "" };
    format!("{running} running{waiting}{degraded}")
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// A status in one line.
fn line(status: &JobStatus) -> String {
    let mut parts = vec![status.state.name().to_owned()];
    for vertex in &status.vertices {
        let total = vertex.parallelism.map_or_else(|| "?".to_owned(), |total| total.to_string());
        let running = match vertex.running {
            0 => String::new(),
            count => format!(" ({count} running)"),
        };
        parts.push(format!("{} {}/{total}{running}", vertex.name, vertex.finished));
    }
    parts.extend(status.waiting_for.iter().map(|what| format!("waiting for {what}")));
    parts.extend(status.degraded.iter().map(|cause| format!("recovery degraded: {cause}")));
    parts.join("  ")
}

fn lost(planned: Option<KillHow>, panic: Option<&str>) -> String {
    match (planned, panic) {
        (Some(KillHow::Stop), _) => "the JobMaster was killed as planned".to_owned(),
        (Some(KillHow::Panic), _) => "the JobMaster panicked as planned".to_owned(),
        (None, Some(text)) => format!("the JobMaster panicked: {text}"),
        (None, None) => "the JobMaster is gone".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::{JobId, RunId};
    use regrow_runtime::VertexStatus;

    use super::*;

    #[test]
    fn a_line_shows_state_stages_and_what_is_waited_for() {
        let vertex = |name: &str, parallelism, finished, running| VertexStatus {
            name: name.to_owned(),
            parallelism,
            finished,
            running,
        };
        let status = JobStatus {
            job: JobId::from_bits(1),
            run: RunId::from_bits(1),
            state: JobState::Running,
            waiting_for: Some("slots".to_owned()),
            degraded: None,
            recoveries: 0,
            refused_commands: 0,
            vertices: vec![vertex("read", Some(20), 3, 2), vertex("write", None, 0, 0)],
        };
        assert_eq!(line(&status), "RUNNING  read 3/20 (2 running)  write 0/?  waiting for slots");
    }
}
