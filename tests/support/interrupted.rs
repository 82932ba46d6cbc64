//! A run of two stages that was killed when its second stage was running, to be harmed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::sandbox::{Answer, Sandbox, later_starts};

/// Tasks of the first stage, all finished; each wrote a partition.
pub(crate) const PRODUCERS: u32 = 4;

/// Both tasks of the second stage, which ran when the process was killed.
pub(crate) const CONSUMERS: [(u32, u32); 2] = [(1, 0), (1, 1)];

/// A run that was killed: the job `x`, with the ledger `ledger`.
pub(crate) struct Interrupted {
    pub(crate) sandbox: Sandbox,
}

impl Interrupted {
    /// Runs and kills it, with its events in a store of `kind`.
    pub(crate) fn new(kind: &str) -> Self {
        let sandbox = Sandbox::new();
        let running = sandbox.start(&format!(
            "run stages --stage {PRODUCERS}x0s --stage 2x1s --bytes 100kb --slots 2 --job-id x \
             --ledger ledger -D job-event.store.type={kind} --quiet"
        ));
        sandbox.wait_for_starts("ledger", 1, 2);
        running.kill();
        Self { sandbox }
    }

    /// What a task of the first stage wrote.
    pub(crate) fn partition(&self, subtask: u32) -> PathBuf {
        self.sandbox.file(".regrow/runs/x/shuffle", &format!("/0-{subtask}-"))
    }

    /// Where its store is.
    pub(crate) fn store(&self) -> PathBuf {
        self.sandbox.path(".regrow/runs/x/store")
    }

    /// Resumes it to its end and checks the result and that nothing is left.
    pub(crate) fn resume(&self) -> Answer {
        let answer = self.sandbox.fine("run --resume --slots 2 --json");
        assert_eq!(answer.json()["state"], "FINISHED");
        self.sandbox.assert_nothing_left();
        answer
    }

    /// What ran after it was resumed, sorted.
    pub(crate) fn ran_again(&self) -> Vec<(u32, u32)> {
        later_starts(&self.sandbox.ledger("ledger"))
    }

    /// What `recovery` says about it.
    pub(crate) fn recovery(&self) -> String {
        self.sandbox.fine("recovery x").out
    }
}

/// Turns all bits of one byte in the middle of a file.
pub(crate) fn flip_a_byte(path: &Path) {
    let mut bytes = fs::read(path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(path, bytes).expect("it can be written");
}

/// Cuts a file to half of its length.
pub(crate) fn cut_in_half(path: &Path) {
    let bytes = fs::read(path).expect("it can be read");
    fs::write(path, &bytes[..bytes.len() / 2]).expect("it can be written");
}
