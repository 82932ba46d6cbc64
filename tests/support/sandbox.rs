//! A directory in which the program runs, and what it left there.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env, fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long a test waits for something that is to happen, before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long a test waits for the end of a program.
const END_PATIENCE: Duration = Duration::from_mins(2);

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(3);

/// A directory in which the program runs.
pub(crate) struct Sandbox {
    directory: tempfile::TempDir,
}

/// What the program said and how it ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A program that runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    /// What it says on standard error, line by line; ends with it.
    lines: Receiver<String>,
    /// What it said so far.
    pub(crate) said: Vec<String>,
}

/// A line of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerLine {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) epoch: u64,
    /// Stage and subtask; none for a kill.
    pub(crate) subtask: Option<(u32, u32)>,
    pub(crate) event: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("the system gives temporary directories") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program with the words of `line`; those before its command that hold a `=` are its
    /// environment, as in a shell.
    fn command(&self, line: &str) -> Command {
        let mut words = line.split_whitespace().peekable();
        // Another build of it, for long tests and measurements.
        let program = env::var_os("REGROW_PROGRAM");
        let mut command =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_regrow").into()));
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            command.env(name, value);
            words.next();
        }
        command
            .args(words)
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program with the words of `line` to its end.
    pub(crate) fn regrow(&self, line: &str) -> Answer {
        let output = self.command(line).output().expect("the program starts");
        Answer::new(&output)
    }

    /// Runs the program and expects success.
    pub(crate) fn fine(&self, line: &str) -> Answer {
        let answer = self.regrow(line);
        assert_eq!(answer.code, Some(0), "regrow {line}\n{}\n{}", answer.out, answer.err);
        answer
    }

    /// Runs a shell script, in which `$0` is the program, with mounts of its own; none where the
    /// system does not let it mount, which the script says with exit code 99.
    #[expect(clippy::print_stdout, reason = "who reads the tests' output is told")]
    pub(crate) fn with_mounts(&self, script: &str) -> Option<Answer> {
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_regrow")]);
        let output = shell.current_dir(self.directory.path()).stdin(Stdio::null()).output();
        let answer = output.ok().map(|output| Answer::new(&output));
        let answer = answer
            .filter(|answer| answer.code != Some(99) && !answer.err.contains("unshare failed"));
        if answer.is_none() {
            println!("skipped: this system lets nobody mount a disk in a namespace of its own");
        }
        answer
    }

    /// Starts the program.
    pub(crate) fn start(&self, line: &str) -> Running {
        let mut child = self.command(line).spawn().expect("the program starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        // A thread of its own, so that a program that says nothing more does not hold the test up.
        thread::spawn(move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        Running { child, lines, said: Vec::new() }
    }

    /// Waits until `happened`; fails the test if it never does.
    pub(crate) fn wait_until(&self, what: &str, happened: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !happened(self) {
            assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until the ledger called `name` tells of `count` starts in `stage`.
    pub(crate) fn wait_for_starts(&self, name: &str, stage: u32, count: usize) {
        self.wait_until(&format!("{count} tasks of stage {stage} started"), |sandbox| {
            let text = fs::read_to_string(sandbox.path(name)).unwrap_or_default();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let lines = whole.lines().map(LedgerLine::read);
            let starts = lines.filter(|line| {
                line.event == "start" && line.subtask.is_some_and(|subtask| subtask.0 == stage)
            });
            starts.count() >= count
        });
    }

    /// Waits until a commit to the output directory called `name` has come to `step`, a file that it
    /// makes: or further, for on a busy machine the manifest may come and go unseen.
    pub(crate) fn wait_for_commit(&self, name: &str, step: &str) {
        self.wait_until(&format!("the commit makes {step}"), |sandbox| {
            let mut files = sandbox.files(name, "/").into_iter();
            files.any(|path| {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let is_published = path.parent() == Some(&sandbox.path(name));
                file == step || is_published && file.starts_with("part-")
            })
        });
    }

    /// All files under `name` whose path holds `part`, sorted.
    pub(crate) fn files(&self, name: &str, part: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut directories = vec![self.path(name)];
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let (below, files): (Vec<_>, Vec<_>) =
                entries.map(|entry| entry.path()).partition(|path| path.is_dir());
            directories.extend(below);
            found.extend(files);
        }
        found.retain(|path| path.to_string_lossy().contains(part));
        found.sort();
        found
    }

    /// The one file under `name` whose path holds `part`.
    pub(crate) fn file(&self, name: &str, part: &str) -> PathBuf {
        let mut found = self.files(name, part);
        let file = found.pop().unwrap_or_else(|| panic!("{name} holds no {part}"));
        assert!(found.is_empty(), "{name} holds several {part}: {found:?}");
        file
    }

    /// Checks that nothing of any run is left but its archive (P5).
    pub(crate) fn assert_nothing_left(&self) {
        let left: Vec<PathBuf> = fs::read_dir(self.path(".regrow/runs"))
            .expect("there were runs")
            .map(|entry| entry.expect("it can be listed").path())
            .collect();
        assert!(left.is_empty(), "this is left: {left:?}");
    }

    /// The ledger called `name`.
    pub(crate) fn ledger(&self, name: &str) -> Vec<LedgerLine> {
        let text = fs::read_to_string(self.path(name)).expect("there is a ledger");
        text.lines().map(LedgerLine::read).collect()
    }

    /// The published files of an output directory, which must hold nothing else.
    pub(crate) fn published(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(name))
            .expect("there is an output")
            .map(|entry| entry.expect("it can be listed").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        assert!(names.iter().all(|name| name.starts_with("part-")), "{names:?}");
        names
    }

    /// The lines of all published files, sorted.
    pub(crate) fn output(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for file in self.published(name) {
            let text = fs::read_to_string(self.path(name).join(file)).expect("it can be read");
            lines.extend(text.lines().map(str::to_owned));
        }
        lines.sort();
        lines
    }

    /// What `wordcount` must give for a file without quotes and commas around words.
    pub(crate) fn counted(&self, name: &str) -> Vec<String> {
        counted(&self.path(name))
    }
}

fn counted(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("there is an input").to_lowercase();
    let mut counts = HashMap::<&str, u64>::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    let quoted = |word: &str| {
        if word.contains([',', '"']) {
            format!("\"{}\"", word.replace('"', "\"\""))
        } else {
            word.to_owned()
        }
    };
    let mut lines: Vec<_> =
        counts.iter().map(|(word, count)| format!("{},{count}", quoted(word))).collect();
    lines.sort();
    lines
}

impl Answer {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The one JSON object that it printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("one JSON object")
    }

    /// The JSON lines that it printed.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }
}

impl Running {
    /// Reads what the program says until a line is as `what` describes it; fails the test if none
    /// comes.
    pub(crate) fn until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) {
        let began = Instant::now();
        loop {
            let line = self.lines.recv_timeout(PATIENCE.saturating_sub(began.elapsed()));
            let said = &mut self.said;
            match line {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("waited {PATIENCE:?} in vain until {what}; the program said {said:#?}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the program ended before {what}; it said {said:#?}")
                }
            }
            if said.last().is_some_and(|line| is_it(line)) {
                return;
            }
        }
    }

    /// Ends the program as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Lets the program run for `time`, or to its end; says whether it ended.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < time {
            if self.child.try_wait().expect("it can be asked").is_some() {
                return true;
            }
            thread::sleep(LOOK_INTERVAL);
        }
        false
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends the signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        let arguments = [format!("-{name}"), self.child.id().to_string()];
        let sent = Command::new("kill").args(arguments).status();
        assert!(sent.expect("there is a kill").success());
    }

    /// Reads what it has said by now.
    pub(crate) fn listen(&mut self) -> &[String] {
        self.said.extend(self.lines.try_iter());
        &self.said
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }

    /// Waits for its end and gives all that it said; fails the test if it does not end.
    pub(crate) fn answer(mut self) -> Answer {
        let code = self.end();
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut out).expect("UTF-8");
        Answer { code, out, err: self.said.join("\n") }
    }

    /// Waits for its end and gives the exit code; fails the test if it does not end.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.end()
    }

    fn end(&mut self) -> Option<i32> {
        let began = Instant::now();
        let left = || END_PATIENCE.saturating_sub(began.elapsed());
        while let Ok(line) = self.lines.recv_timeout(left()) {
            self.said.push(line);
        }
        let ended = self.ends_within(left().max(LOOK_INTERVAL));
        let said = &self.said;
        assert!(ended, "waited {END_PATIENCE:?} in vain for its end; the program said {said:#?}");
        self.child.wait().expect("it has ended").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl LedgerLine {
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, epoch, stage, subtask, _, event] = words[..] else {
            panic!("the ledger has another form: {line}");
        };
        Self {
            at_ms: at.parse().expect("a time is a number"),
            epoch: epoch.parse().expect("an epoch is a number"),
            subtask: stage.parse().ok().zip(subtask.parse().ok()),
            event: event.to_owned(),
        }
    }
}

/// How many lines have `event`.
pub(crate) fn count(ledger: &[LedgerLine], event: &str) -> usize {
    ledger.iter().filter(|line| line.event == event).count()
}

/// What started in a later epoch than the first, sorted.
pub(crate) fn later_starts(ledger: &[LedgerLine]) -> Vec<(u32, u32)> {
    let first = ledger.iter().map(|line| line.epoch).min();
    let later = |line: &&LedgerLine| line.event == "start" && Some(line.epoch) > first;
    let mut starts: Vec<(u32, u32)> =
        ledger.iter().filter(later).filter_map(|line| line.subtask).collect();
    starts.sort_unstable();
    starts
}

/// Checks P1: what ended in an epoch starts in no later one.
pub(crate) fn assert_finished_stays_finished(ledger: &[LedgerLine]) {
    let mut ended: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for line in ledger.iter().filter(|line| line.event == "end") {
        let subtask = line.subtask.expect("an end names its subtask");
        let epoch = ended.entry(subtask).or_insert(line.epoch);
        *epoch = line.epoch.min(*epoch);
    }
    let again: BTreeSet<(u32, u32)> = ledger
        .iter()
        .filter(|line| line.event == "start")
        .filter_map(|line| Some((line.subtask?, line.epoch)))
        .filter(|(subtask, epoch)| ended.get(subtask).is_some_and(|end| end < epoch))
        .map(|(subtask, _)| subtask)
        .collect();
    assert!(again.is_empty(), "these ran again after their end: {again:?}\n{ledger:#?}");
}
