//! Reads what one server has of an input.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use regrow_protocol::{
    Epoch, FromPartitionServer, Hello, PartitionId, ProducerPartition, ReadRefusal, ReadRequest,
    SubpartitionRange, ToPartitionServer,
};

use super::{
    connection::Connection, frames::PARTITIONS_PER_REQUEST_MAX, outage::Outage,
    patient_stream::StopFlag, trouble::Trouble,
};
use crate::{
    block_cursor::{BlockCursor, NextBlock},
    block_header::BlockHeader,
    fetch_error::FetchError,
    footer::REGIONS_MAX,
    partition_file::{decode_index, index_bytes},
};

/// How a process reads partitions of others.
#[derive(Clone, Debug)]
pub struct RemoteReads {
    /// How it introduces itself.
    pub hello: Hello,
    /// How long a reader tries to reach a server before it gives up.
    pub grace: Duration,
    /// A server that owes bytes and says nothing for this long is taken for dead.
    pub silence_timeout: Duration,
}

/// What a reader wants of one server.
#[derive(Clone, Debug)]
pub struct RemoteInput {
    /// Where the server listens.
    pub address: SocketAddr,
    /// Epoch of the attempt that reads.
    pub epoch: Epoch,
    /// Which subpartitions of each partition; not empty.
    pub subpartitions: SubpartitionRange,
    /// Which partitions, in the order in which they are read; at least one.
    pub partitions: Vec<ProducerPartition>,
    /// Bytes that may be under way to the reader; at least 1.
    pub window_bytes: u64,
}

/// Reads what one server has of an input: one partition after the other, each like a
/// [`PartitionReader`](crate::PartitionReader) does. A connection that breaks is made again, and
/// reading goes on at the next block that was not given yet.
#[derive(Debug)]
pub struct RemoteReader {
    reads: Arc<RemoteReads>,
    input: RemoteInput,
    stop: StopFlag,
    connection: Option<Connection>,
    outage: Outage,
    /// What came was not what was written, and was asked for again.
    doubted: bool,
    /// Index of the partition that is read or opened next.
    position: usize,
    /// Index behind the last partition that this connection was asked for.
    asked: usize,
    /// Whether there may be more of the current partition.
    is_open: bool,
    /// Bytes of the blocks of the current partition that were given, with their headers.
    given: u64,
    cursor: BlockCursor,
}

impl RemoteReader {
    /// A reader that connects when it is first asked. All its waits end when `stop` is set.
    ///
    /// # Panics
    /// When it is to read no partition, or nothing of each.
    pub fn new(reads: Arc<RemoteReads>, input: RemoteInput, stop: Arc<AtomicBool>) -> Self {
        let range = input.subpartitions;
        assert!(!input.partitions.is_empty() && range.start < range.end, "nothing to read");
        Self {
            reads,
            input,
            stop: StopFlag(stop),
            connection: None,
            outage: Outage::default(),
            doubted: false,
            position: 0,
            asked: 0,
            is_open: false,
            given: 0,
            cursor: BlockCursor::default(),
        }
    }

    /// Opens the next partition, and tells how many records of it will come. The one before must
    /// have been read to its end.
    ///
    /// # Errors
    /// As [`FetchError`] tells.
    pub fn open_next(&mut self) -> Result<u64, FetchError> {
        self.given = 0;
        self.is_open = true;
        self.insist(|reader| {
            if reader.connection.is_some() {
                reader.hear_opened()?;
            } else {
                reader.connect()?;
            }
            Ok(reader.cursor.records())
        })
    }

    /// Reads the next block of the open partition into `block`, in place of what is in it; false at
    /// the end.
    ///
    /// # Errors
    /// As [`FetchError`] tells.
    pub fn next_block(&mut self, block: &mut Vec<u8>) -> Result<bool, FetchError> {
        if !self.is_open {
            block.clear();
            return Ok(false);
        }
        let found = self.insist(|reader| {
            reader.connect()?;
            reader.try_next(block)
        });
        match found {
            Ok(true) => {}
            Ok(false) => {
                block.clear();
                self.is_open = false;
                self.position += 1;
            }
            Err(_) => block.clear(),
        }
        found
    }

    /// Makes the connection unless it is there; then the current partition is open on it.
    fn connect(&mut self) -> Result<(), Trouble> {
        if self.connection.is_some() {
            return Ok(());
        }
        let RemoteInput { address, window_bytes, .. } = self.input;
        self.connection = Some(Connection::open(&self.reads, address, window_bytes, &self.stop)?);
        self.asked = self.position;
        self.hear_opened()
    }

    /// Asks for the current partition, unless it was asked for, and hears that it is open.
    fn hear_opened(&mut self) -> Result<(), Trouble> {
        let lost = || Trouble::Broken("it is not connected".to_owned());
        let connection = self.connection.as_mut().ok_or_else(lost)?;
        let RemoteInput { epoch, subpartitions, partitions, .. } = &self.input;
        if self.asked <= self.position {
            let wanted = partitions.get(self.position..).unwrap_or_default();
            let now = wanted.len().min(PARTITIONS_PER_REQUEST_MAX);
            connection.say(&ToPartitionServer::Read(ReadRequest {
                epoch: *epoch,
                subpartitions: *subpartitions,
                partitions: wanted.get(..now).unwrap_or_default().to_vec(),
                skip_bytes: self.given,
            }))?;
            self.asked = self.position + now;
        }
        let (regions, data_bytes) = match connection.hear()? {
            FromPartitionServer::Opened { regions, data_bytes } => (regions, data_bytes),
            FromPartitionServer::Refused(refusal) => return Err(Trouble::Refused(refusal)),
        };
        if self.given > 0 {
            // The index is here already.
            return Ok(());
        }
        if regions > REGIONS_MAX {
            return Err(Trouble::Broken(format!("it told of {regions} regions")));
        }
        let mut index = vec![0; index_bytes(*subpartitions, regions)];
        connection.take(&mut index)?;
        let segments = decode_index(&index, *subpartitions, regions, data_bytes)?;
        self.cursor = BlockCursor::new(segments);
        Ok(())
    }

    fn try_next(&mut self, block: &mut Vec<u8>) -> Result<bool, Trouble> {
        match self.cursor.advance()? {
            NextBlock::None => return Ok(false),
            NextBlock::Follows | NextBlock::Begins { .. } => {}
        }
        let lost = || Trouble::Broken("it is not connected".to_owned());
        let connection = self.connection.as_mut().ok_or_else(lost)?;
        self.cursor.expect_header()?;
        let mut header = [0; BlockHeader::BYTES];
        connection.take(&mut header)?;
        let header = BlockHeader::from_bytes(header);
        let length = self.cursor.expect_block(header)?;
        // Not cleared first: that would make `resize` zero all of it each time.
        block.resize(length, 0);
        connection.take(block)?;
        self.cursor.accept(header, block)?;
        self.given += (BlockHeader::BYTES + length) as u64;
        Ok(true)
    }

    /// Does a step until it succeeds, or there is no point in trying on.
    fn insist<T>(
        &mut self,
        mut step: impl FnMut(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, FetchError> {
        loop {
            let trouble = match step(self) {
                Ok(done) => {
                    self.outage.over();
                    self.doubted = false;
                    return Ok(done);
                }
                Err(trouble) => trouble,
            };
            self.connection = None;
            let reason = match trouble {
                Trouble::Broken(reason) => reason,
                Trouble::Refused(refusal) => self.judge(refusal)?,
                Trouble::Damaged(reason) => {
                    self.doubt(reason)?;
                    continue;
                }
                Trouble::Stopped => return Err(self.stopped()),
            };
            self.pause(reason)?;
        }
    }

    /// Waits before the next try, if there is to be one.
    fn pause(&mut self, reason: String) -> Result<(), FetchError> {
        let jitter = RandomState::new().build_hasher().finish() >> 32;
        let jitter = u32::try_from(jitter).unwrap_or_default();
        let address = self.input.address;
        let waited = self.outage.lasted(Instant::now()).as_millis();
        let Some(pause) = self.outage.pause(Instant::now(), self.reads.grace, jitter) else {
            return Err(FetchError::Unreachable {
                partition: self.partition(),
                reason: format!("{address}: {reason} (tried for {waited} ms)"),
            });
        };
        self.stop.wait(pause).map_err(|_| self.stopped())
    }

    /// What came is wrong: the first time it may have been the way.
    fn doubt(&mut self, reason: String) -> Result<(), FetchError> {
        if self.doubted {
            let path = PathBuf::from(self.input.address.to_string());
            let reason = format!("{reason}, twice");
            return Err(FetchError::Corrupt { partition: self.partition(), path, reason });
        }
        self.doubted = true;
        Ok(())
    }

    /// The error that a refusal is, or why it is worth another try.
    fn judge(&self, refusal: ReadRefusal) -> Result<String, FetchError> {
        let partition = self.partition();
        let place = |path: String| PathBuf::from(format!("{}:{path}", self.input.address));
        Err(match refusal {
            ReadRefusal::Gone { path } => FetchError::Gone { partition, path: place(path) },
            ReadRefusal::Corrupt { path, reason } => {
                FetchError::Corrupt { partition, path: place(path), reason }
            }
            ReadRefusal::Unreadable { path, reason } => {
                let source = std::io::Error::other(reason);
                FetchError::Unreadable { partition, path: place(path), source }
            }
            ReadRefusal::OutOfRange { subpartitions } => {
                let range = self.input.subpartitions;
                FetchError::OutOfRange { partition, range, subpartitions }
            }
            ReadRefusal::Stale { known } => FetchError::Stale { partition, known },
            ReadRefusal::NotServed => {
                return Ok("whoever listens there does not hold its data directory".to_owned());
            }
            ReadRefusal::Busy { reason } => {
                return Ok(format!("its server is short of something: {reason}"));
            }
        })
    }

    fn stopped(&self) -> FetchError {
        FetchError::Stopped { partition: self.partition() }
    }

    /// The partition that is read, or the last one.
    fn partition(&self) -> PartitionId {
        let last = self.input.partitions.len() - 1;
        self.input.partitions[self.position.min(last)].partition
    }
}
