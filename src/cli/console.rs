//! What people and programs read.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

/// Writes text for people to standard error and results to standard output. A closed pipe ends the
/// output, not the program: who closed it has read enough.
pub(crate) struct Console {
    out: Mutex<Results>,
    err: Mutex<Box<dyn Write + Send>>,
    is_terminal: bool,
}

/// Where results go.
struct Results {
    out: Box<dyn Write + Send>,
    /// Why one of them could not be written.
    lost: Option<io::Error>,
}

impl Console {
    /// The console of this process.
    pub(crate) fn standard() -> Self {
        Self {
            out: Mutex::new(Results::new(Box::new(io::BufWriter::new(io::stdout())))),
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
        let mut results = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(results.out, "{line}");
        results.note(written);
    }

    /// Writes a line of a result so that who reads it need not wait for the end of the program.
    pub(crate) fn result_at_once(&self, line: &str) {
        let mut results = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(results.out, "{line}").and_then(|()| results.out.flush());
        results.note(written);
    }

    /// Writes a line for people to standard error.
    pub(crate) fn say(&self, line: &str) {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(err, "{line}");
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// When a result could not be written, now or before, although somebody may wait for it.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let mut results = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = results.out.flush();
        results.note(written);
        results.lost.take().map_or(Ok(()), Err)
    }
}

impl Results {
    fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out, lost: None }
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn flushed(kind: io::ErrorKind) -> io::Result<()> {
        let console = Console {
            out: Mutex::new(Results::new(Box::new(Broken(kind)))),
            ..Console::standard()
        };
        console.result("{}");
        console.flush()
    }

    #[test]
    fn p4_a_result_that_cannot_be_written_is_noticed_unless_nobody_reads_it() {
        let error = flushed(io::ErrorKind::StorageFull).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(flushed(io::ErrorKind::BrokenPipe).is_ok());
    }
}
