//! What people and programs read.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

/// Writes text for people to standard error and results to standard output. A closed pipe ends the
/// output, not the program.
pub(crate) struct Console {
    out: Mutex<Box<dyn Write + Send>>,
    err: Mutex<Box<dyn Write + Send>>,
    is_terminal: bool,
}

impl Console {
    /// The console of this process.
    pub(crate) fn standard() -> Self {
        Self {
            out: Mutex::new(Box::new(io::BufWriter::new(io::stdout()))),
            err: Mutex::new(Box::new(io::stderr())),
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Whether people watch standard error.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line of a result to standard output.
    pub(crate) fn result(&self, line: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody reads it: there is no one to tell.
        let _ = writeln!(out, "{line}");
    }

    /// Writes a line for people to standard error.
    pub(crate) fn say(&self, line: &str) {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(err, "{line}");
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&self) {
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }
}
