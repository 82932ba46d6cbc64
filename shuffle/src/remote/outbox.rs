//! What a server sends on one connection.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::TcpStream,
};

use regrow_protocol::{FromPartitionServer, ToPartitionServer};

use super::frames::{BYTES_MAX, Frame, put_message, read_message};

/// Bytes that come together before they are written.
const WRITE_BYTES: usize = BYTES_MAX;

/// What a server sends on one connection, no more than its reader gave credit for.
pub(super) struct Outbox<'a, R> {
    stream: &'a TcpStream,
    /// What the reader says.
    input: R,
    /// What was not written yet.
    buffer: Vec<u8>,
    /// Bytes of the stream that may still be sent.
    credit: u64,
}

/// Bytes of a file could not be passed on.
#[derive(Debug)]
pub(super) enum PassOnError {
    /// The file cannot be read; the connection is as it was.
    File(io::Error),
    /// The connection is over.
    Connection(io::Error),
}

impl<'a, R: Read> Outbox<'a, R> {
    /// Sends on `stream`; what its reader says comes from `input`.
    pub(super) fn new(stream: &'a TcpStream, input: R) -> Self {
        Self { stream, input, buffer: Vec::new(), credit: 0 }
    }

    /// What the reader says next; `None` when it left.
    pub(super) fn hear(&mut self) -> io::Result<Option<ToPartitionServer>> {
        match Frame::read(&mut self.input)? {
            None => Ok(None),
            Some(Frame::Message(body)) => read_message(&mut self.input, body).map(Some),
            Some(Frame::Bytes(_)) => Err(unasked("bytes")),
        }
    }

    /// The reader takes `bytes` more.
    pub(super) fn add_credit(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_add(bytes);
    }

    /// Adds a message.
    pub(super) fn put(&mut self, message: &FromPartitionServer) -> io::Result<()> {
        put_message(&mut self.buffer, message)
    }

    /// Adds bytes of the stream.
    pub(super) fn put_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let now = self.room(bytes.len() as u64)?;
            let (first, rest) = bytes.split_at(now);
            Frame::Bytes(now).put(&mut self.buffer);
            self.buffer.extend_from_slice(first);
            bytes = rest;
        }
        Ok(())
    }

    /// Adds the next `length` bytes of `file`.
    pub(super) fn pass_on(&mut self, file: &mut File, length: u64) -> Result<(), PassOnError> {
        let mut left = length;
        while left > 0 {
            let now = self.room(left).map_err(PassOnError::Connection)?;
            let before = self.buffer.len();
            Frame::Bytes(now).put(&mut self.buffer);
            let body = self.buffer.len();
            self.buffer.resize(body + now, 0);
            let target = self.buffer.get_mut(body..).unwrap_or_default();
            if let Err(error) = file.read_exact(target) {
                self.buffer.truncate(before);
                return Err(PassOnError::File(error));
            }
            left -= now as u64;
        }
        Ok(())
    }

    /// Writes what has come together.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// How many of `wanted` bytes may go into the next frame, at least one; waits for credit.
    fn room(&mut self, wanted: u64) -> io::Result<usize> {
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        while self.credit == 0 {
            self.flush()?;
            match self.hear()? {
                Some(ToPartitionServer::Credit { bytes }) => self.add_credit(bytes),
                Some(ToPartitionServer::Read(_)) => return Err(unasked("a second request")),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let room = wanted.min(self.credit).min(BYTES_MAX as u64);
        self.credit -= room;
        // At most BYTES_MAX.
        Ok(usize::try_from(room).unwrap_or(BYTES_MAX))
    }
}

fn unasked(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the reader sent {what} in between"))
}
