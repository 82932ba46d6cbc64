//! A socket whose reads end when the reader is told to stop, or the peer is silent for too long.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::trouble::Trouble;

/// How often a reader that waits looks whether it was told to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How long one try to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A flag that ends all waits of a reader.
#[derive(Clone, Debug)]
pub(super) struct StopFlag(pub(super) Arc<AtomicBool>);

/// A socket that waits for its peer with patience.
#[derive(Debug)]
pub(super) struct PatientStream {
    stream: TcpStream,
    stop: StopFlag,
    silence_timeout: Duration,
}

impl StopFlag {
    /// Whether it is time to stop.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Waits; fails when it is time to stop.
    pub(super) fn wait(&self, time: Duration) -> Result<(), Trouble> {
        let began = Instant::now();
        loop {
            if self.is_set() {
                return Err(Trouble::Stopped);
            }
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK_INTERVAL));
        }
    }
}

impl PatientStream {
    /// Connects.
    pub(super) fn connect(
        address: SocketAddr,
        stop: StopFlag,
        silence_timeout: Duration,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_INTERVAL))?;
        // Zero is no time-out at all.
        stream.set_write_timeout(Some(silence_timeout.max(LOOK_INTERVAL)))?;
        Ok(Self { stream, stop, silence_timeout })
    }

    /// Writes all of it: little enough to find room at once, unless the peer hangs.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }
}

impl Read for PatientStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.stream.read(out) {
                Err(error) if is_timeout(&error) => {}
                result => return result,
            }
            if self.stop.is_set() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if began.elapsed() >= self.silence_timeout {
                let silence = self.silence_timeout.as_millis();
                let text = format!("it said nothing for {silence} ms");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
