//! A reader's side of a connection.

use std::{
    io::{self, BufReader, Read},
    net::SocketAddr,
};

use regrow_protocol::{FromPartitionServer, Role, ToPartitionServer};

use super::{
    frames::{Frame, put_hello, put_message, read_hello, read_message},
    patient_stream::{PatientStream, StopFlag},
    remote_reader::RemoteReads,
    trouble::Trouble,
};

/// Bytes that are read ahead of what is wanted: frames of bytes go straight to where they belong.
const BUFFER_BYTES: usize = 4 << 10;

/// A reader's side of a connection that is open.
#[derive(Debug)]
pub(super) struct Connection {
    input: BufReader<PatientStream>,
    stop: StopFlag,
    /// Bytes of the stream that the current frame still has.
    frame_left: usize,
    /// Bytes that were taken and for which no credit was given back.
    taken: u64,
    /// How much may be under way.
    window_bytes: u64,
}

impl Connection {
    /// Connects to whoever listens at `address`, which must serve partitions.
    pub(super) fn open(
        reads: &RemoteReads,
        address: SocketAddr,
        window_bytes: u64,
        stop: &StopFlag,
    ) -> Result<Self, Trouble> {
        let stream = PatientStream::connect(address, stop.clone(), reads.silence_timeout)?;
        let input = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut connection =
            Self { input, stop: stop.clone(), frame_left: 0, taken: 0, window_bytes };
        let mut first = Vec::new();
        put_hello(&mut first, &reads.hello)?;
        put_message(&mut first, &ToPartitionServer::Credit { bytes: window_bytes })?;
        connection.write(&first)?;
        let theirs = connection.attempt(read_hello)?;
        reads.hello.check(&theirs).map_err(|error| Trouble::Broken(error.to_string()))?;
        match theirs.role {
            Role::TaskManager(_) | Role::ShuffleService(_) => Ok(connection),
            Role::JobManager | Role::Standby { .. } | Role::Client | Role::PartitionReader => {
                Err(Trouble::Broken("whoever listens there serves no partitions".to_owned()))
            }
        }
    }

    /// Says something.
    pub(super) fn say(&mut self, message: &ToPartitionServer) -> Result<(), Trouble> {
        let mut frame = Vec::new();
        put_message(&mut frame, message)?;
        self.write(&frame)
    }

    /// Hears what the server says next, which must be a message.
    pub(super) fn hear(&mut self) -> Result<FromPartitionServer, Trouble> {
        if self.frame_left > 0 {
            return Err(Trouble::Broken("it sent more bytes than it said".to_owned()));
        }
        match self.next_frame()? {
            Frame::Message(body) => self.attempt(|input| read_message(input, body)),
            Frame::Bytes(_) => Err(Trouble::Broken("it sent bytes of nothing".to_owned())),
        }
    }

    /// Fills `out` with the next bytes of the stream.
    pub(super) fn take(&mut self, mut out: &mut [u8]) -> Result<(), Trouble> {
        while !out.is_empty() {
            if self.frame_left == 0 {
                self.frame_left = self.next_bytes()?;
            }
            let now = out.len().min(self.frame_left);
            let (filled, rest) = out.split_at_mut(now);
            self.attempt(|input| input.read_exact(filled))?;
            out = rest;
            self.frame_left -= now;
            self.taken += now as u64;
            if self.taken >= self.window_bytes.div_ceil(2) {
                let bytes = std::mem::take(&mut self.taken);
                self.say(&ToPartitionServer::Credit { bytes })?;
            }
        }
        Ok(())
    }

    /// Reads up to the bytes of the next frame, which must be of the stream.
    fn next_bytes(&mut self) -> Result<usize, Trouble> {
        match self.next_frame()? {
            Frame::Bytes(body) => Ok(body),
            Frame::Message(body) => match self.attempt(|input| read_message(input, body))? {
                FromPartitionServer::Refused(refusal) => Err(Trouble::Refused(refusal)),
                FromPartitionServer::Opened { .. } => {
                    Err(Trouble::Broken("it left out bytes that it had promised".to_owned()))
                }
            },
        }
    }

    fn next_frame(&mut self) -> Result<Frame, Trouble> {
        let closed = || Trouble::Broken("it closed the connection".to_owned());
        self.attempt(Frame::read)?.ok_or_else(closed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.attempt(|input| input.get_mut().write_all(bytes))
    }

    fn attempt<T>(
        &mut self,
        what: impl FnOnce(&mut BufReader<PatientStream>) -> io::Result<T>,
    ) -> Result<T, Trouble> {
        what(&mut self.input)
            .map_err(|error| if self.stop.is_set() { Trouble::Stopped } else { error.into() })
    }
}
