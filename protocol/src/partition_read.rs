//! What readers and servers of partitions say to each other, once both have introduced themselves.
//!
//! ```text
//! frame    length (4 bytes, big endian, of what follows)  kind (1 byte)  body
//! kind 0   a message of this module
//! kind 1   bytes of what was opened last: its index, then its blocks as they lie in the file
//! ```
//!
//! A reader asks for partitions and gives credit, in bytes of frames of kind 1. The server answers
//! each partition in turn: [`FromPartitionServer::Opened`] and its bytes, no more at a time than it
//! has credit for, or [`FromPartitionServer::Refused`], after which it sends nothing more.

use serde::{Deserialize, Serialize};

use crate::{Epoch, ProducerPartition, SubpartitionRange};

/// What a reader says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToPartitionServer {
    /// It wants partitions; said again once all of the request before have come.
    Read(ReadRequest),
    /// It takes this many bytes more.
    Credit {
        /// How many; they add up.
        bytes: u64,
    },
}

/// Partitions that a reader wants of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRequest {
    /// Epoch of the attempt that reads.
    pub epoch: Epoch,
    /// Which subpartitions of each.
    pub subpartitions: SubpartitionRange,
    /// Which ones, in the order in which they are read; all of one run.
    pub partitions: Vec<ProducerPartition>,
    /// Bytes of the blocks of the first one that the reader has already: whole blocks. Unless it is
    /// 0, the reader has the index too, and the index is left out.
    pub skip_bytes: u64,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromPartitionServer {
    /// The next partition follows.
    Opened {
        /// Entries of its index for each subpartition.
        regions: u32,
        /// Bytes of all blocks of the partition; no entry of its index points beyond.
        data_bytes: u64,
    },
    /// The next partition, or the rest of the one that was opened, cannot be had.
    Refused(ReadRefusal),
}

/// Why a partition cannot be had; each variant is an action of the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadRefusal {
    /// Its file is not there: run the producer again.
    Gone {
        /// Where it should be.
        path: String,
    },
    /// The file does not hold what was written: run the producer again.
    Corrupt {
        /// Where it lies.
        path: String,
        /// What was found.
        reason: String,
    },
    /// The system of the server refuses to read it: run the producer again.
    Unreadable {
        /// Where it lies.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// It has no such subpartitions, which no other try cures.
    OutOfRange {
        /// How many there are.
        subpartitions: u32,
    },
    /// A later master leads the run: what the reader does counts for nobody.
    Stale {
        /// The highest epoch of the run that was seen there.
        known: Epoch,
    },
    /// The server does not hold the data directory, which says nothing of the partition: ask who
    /// does.
    NotServed,
    /// The server is short of something: ask again later.
    Busy {
        /// Of what.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DataDirectoryId, DataSetId, ExecutionAttemptId, JobVertexId, PartitionId, RunId, decode,
        encode,
    };

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }

    #[test]
    fn a_request_keeps_its_bytes() {
        let attempt = ExecutionAttemptId {
            run: RunId::from_bits(1),
            vertex: JobVertexId(2),
            subtask: 3,
            epoch: Epoch::new(4, 5),
            number: 6,
        };
        let request = ToPartitionServer::Read(ReadRequest {
            epoch: Epoch::new(7, 8),
            subpartitions: SubpartitionRange { start: 9, end: 10 },
            partitions: vec![ProducerPartition {
                partition: PartitionId { attempt, data_set: DataSetId(11) },
                data_directory: DataDirectoryId::from_bits(12),
            }],
            skip_bytes: 13,
        });
        let bytes = encode(&request).unwrap();
        assert_eq!(
            hex(&bytes),
            "81a45265616484a565706f636882a47465726d07a46c69666508ad737562706172746974696f6e73\
             82a5737461727409a3656e640aaa706172746974696f6e739182a9706172746974696f6e82a76174\
             74656d707485a372756ec41000000000000000000000000000000001a676657274657802a7737562\
             7461736b03a565706f636882a47465726d04a46c69666505a66e756d62657206a8646174615f7365\
             740bae646174615f6469726563746f7279c4100000000000000000000000000000000caa736b6970\
             5f62797465730d"
        );
        assert_eq!(decode::<ToPartitionServer>(&bytes).unwrap(), request);
    }

    #[test]
    fn answers_keep_their_bytes() {
        let opened = FromPartitionServer::Opened { regions: 1, data_bytes: 2 };
        let stale = FromPartitionServer::Refused(ReadRefusal::Stale { known: Epoch::new(3, 4) });
        assert_eq!(
            hex(&encode(&opened).unwrap()),
            "81a64f70656e656482a7726567696f6e7301aa646174615f627974657302"
        );
        assert_eq!(
            hex(&encode(&stale).unwrap()),
            "81a75265667573656481a55374616c6581a56b6e6f776e82a47465726d03a46c69666504"
        );
    }
}
