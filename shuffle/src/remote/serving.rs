//! Answers the requests of one connection.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use regrow_protocol::{
    FromPartitionServer, ProducerPartition, ReadRefusal, ReadRequest, ToPartitionServer,
};

use super::{
    outbox::{Outbox, PassOnError},
    partition_server::PartitionServer,
};
use crate::{
    fetch_error::FetchError,
    partition_file::{PartitionFile, decode_index},
    segment::Segment,
};

/// Answers the requests of one connection.
pub(super) struct Serving<'a, R> {
    server: &'a PartitionServer,
    outbox: Outbox<'a, R>,
}

/// Why a partition was not sent.
enum Unsent {
    /// The reader is told why.
    Refused(ReadRefusal),
    /// The connection is over.
    Broken(io::Error),
}

impl From<io::Error> for Unsent {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<FetchError> for Unsent {
    fn from(error: FetchError) -> Self {
        Self::Refused(refusal(error))
    }
}

impl<'a, R: Read> Serving<'a, R> {
    /// Answers what comes in through `outbox` with the partitions of `server`.
    pub(super) fn new(server: &'a PartitionServer, outbox: Outbox<'a, R>) -> Self {
        Self { server, outbox }
    }

    /// Serves until the reader leaves.
    pub(super) fn run(mut self) -> io::Result<()> {
        while let Some(message) = self.outbox.hear()? {
            match message {
                ToPartitionServer::Credit { bytes } => self.outbox.add_credit(bytes),
                ToPartitionServer::Read(request) => self.answer(&request)?,
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: &ReadRequest) -> io::Result<()> {
        let mut skip = request.skip_bytes;
        for producer in &request.partitions {
            match self.send(*producer, request, skip) {
                Ok(()) => skip = 0,
                Err(Unsent::Refused(refusal)) => {
                    self.outbox.put(&FromPartitionServer::Refused(refusal))?;
                    return self.outbox.flush();
                }
                Err(Unsent::Broken(error)) => return Err(error),
            }
        }
        self.outbox.flush()
    }

    fn send(
        &mut self,
        producer: ProducerPartition,
        request: &ReadRequest,
        skip: u64,
    ) -> Result<(), Unsent> {
        let ProducerPartition { partition, data_directory } = producer;
        if let Some(known) = self.server.later_epoch(partition.attempt.run, request.epoch) {
            return Err(Unsent::Refused(ReadRefusal::Stale { known }));
        }
        let Some(root) = self.server.root(data_directory) else {
            return Err(Unsent::Refused(ReadRefusal::NotServed));
        };
        let path = PartitionFile::path(root, data_directory, partition);
        let mut file = PartitionFile::open(path, partition)?;
        let range = request.subpartitions;
        let index = file.index(range)?;
        let (regions, data_bytes) = (file.regions(), file.data_bytes());
        let segments = decode_index(&index, range, regions, data_bytes)
            .map_err(|error| Unsent::from(file.error(error)))?;
        self.outbox.put(&FromPartitionServer::Opened { regions, data_bytes })?;
        if skip == 0 {
            self.outbox.put_bytes(&index)?;
        }
        self.send_blocks(&mut file, &segments, skip)
    }

    fn send_blocks(
        &mut self,
        file: &mut PartitionFile,
        segments: &[Segment],
        mut skip: u64,
    ) -> Result<(), Unsent> {
        let mut position = None;
        for segment in segments {
            let skipped = segment.length.min(skip);
            skip -= skipped;
            let (start, length) = (segment.offset + skipped, segment.length - skipped);
            if length == 0 {
                continue;
            }
            if position != Some(start) {
                let sought = file.file().seek(SeekFrom::Start(start));
                sought.map_err(|error| unreadable(file.place(), &error))?;
            }
            match self.outbox.pass_on(file.file(), length) {
                Ok(()) => position = Some(start + length),
                Err(PassOnError::File(error)) => return Err(unreadable(file.place(), &error)),
                Err(PassOnError::Connection(error)) => return Err(Unsent::Broken(error)),
            }
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Unsent {
    let (path, reason) = (path.display().to_string(), error.to_string());
    Unsent::Refused(if error.kind() == io::ErrorKind::UnexpectedEof {
        ReadRefusal::Corrupt { path, reason: "it ends too early".to_owned() }
    } else {
        ReadRefusal::Unreadable { path, reason }
    })
}

fn refusal(error: FetchError) -> ReadRefusal {
    match error {
        FetchError::Gone { path, .. } => ReadRefusal::Gone { path: path.display().to_string() },
        FetchError::Corrupt { path, reason, .. } => {
            ReadRefusal::Corrupt { path: path.display().to_string(), reason }
        }
        FetchError::Unreadable { path, source, .. } => {
            let reason = source.to_string();
            if FetchError::is_out_of_descriptors(&source) {
                return ReadRefusal::Busy { reason };
            }
            ReadRefusal::Unreadable { path: path.display().to_string(), reason }
        }
        FetchError::OutOfRange { subpartitions, .. } => ReadRefusal::OutOfRange { subpartitions },
        // What a file of this host never is.
        FetchError::Unreachable { .. } | FetchError::Stale { .. } | FetchError::Stopped { .. } => {
            ReadRefusal::Busy { reason: error.to_string() }
        }
    }
}
