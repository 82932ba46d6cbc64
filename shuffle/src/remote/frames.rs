//! Frames of a connection between a reader and a server, drawn in
//! [`ToPartitionServer`](regrow_protocol::ToPartitionServer).

use std::io::{self, Read};

use regrow_protocol::{Hello, decode, encode};
use serde::{Serialize, de::DeserializeOwned};

/// Bytes of a message at most: a request for [`PARTITIONS_PER_REQUEST_MAX`] partitions has half.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Bytes of the stream in one frame at most.
pub(super) const BYTES_MAX: usize = 64 << 10;

/// Partitions that a reader asks for at once at most, so that neither side keeps long lists.
pub(super) const PARTITIONS_PER_REQUEST_MAX: usize = 512;

/// Bytes before the body.
const HEADER_BYTES: usize = 5;

/// What the body of a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A message of this many bytes.
    Message(usize),
    /// This many bytes of the stream.
    Bytes(usize),
}

impl Frame {
    /// Reads what stands before the body; `None` when the peer closed the connection between two
    /// frames.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        if !read_unless_closed(input, &mut header)? {
            return Ok(None);
        }
        let [l0, l1, l2, l3, kind] = header;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        match (kind, length.checked_sub(1)) {
            (0, Some(body)) if body <= MESSAGE_BYTES_MAX => Ok(Some(Self::Message(body))),
            (1, Some(body)) if body <= BYTES_MAX => Ok(Some(Self::Bytes(body))),
            _ => Err(invalid(format!("a frame of kind {kind} has {length} bytes"))),
        }
    }

    /// Adds what stands before the body.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        let (kind, body) = match self {
            Self::Message(body) => (0, body),
            Self::Bytes(body) => (1, body),
        };
        // Both are limited far below.
        let length = u32::try_from(body + 1).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.push(kind);
    }
}

/// Adds a frame with a message.
pub(super) fn put_message(out: &mut Vec<u8>, message: &impl Serialize) -> io::Result<()> {
    let body = encode(message).map_err(io::Error::other)?;
    Frame::Message(body.len()).put(out);
    out.extend_from_slice(&body);
    Ok(())
}

/// Reads the body of a frame with a message.
pub(super) fn read_message<T: DeserializeOwned>(
    input: &mut impl Read,
    body: usize,
) -> io::Result<T> {
    let mut bytes = vec![0; body];
    input.read_exact(&mut bytes)?;
    decode(&bytes).map_err(invalid)
}

/// Adds the first frame of a connection, which has no kind.
pub(super) fn put_hello(out: &mut Vec<u8>, hello: &Hello) -> io::Result<()> {
    let body = encode(hello).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// Reads the first frame of a connection.
pub(super) fn read_hello(input: &mut impl Read) -> io::Result<Hello> {
    let mut length = [0; 4];
    if !read_unless_closed(input, &mut length)? {
        return Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "it closed the connection before it introduced itself",
        ));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > Hello::BYTES_MAX {
        return Err(invalid("its first frame is none of ours"));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    decode(&bytes).map_err(invalid)
}

/// Fills `bytes`; false when the connection was closed before the first of them.
fn read_unless_closed(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    let Some((first, rest)) = bytes.split_first_mut() else { return Ok(true) };
    match input.read_exact(std::slice::from_mut(first)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    input.read_exact(rest)?;
    Ok(true)
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_bytes() {
        let mut out = Vec::new();
        Frame::Bytes(2).put(&mut out);
        out.extend_from_slice(b"ab");
        Frame::Message(0).put(&mut out);
        assert_eq!(out, [0, 0, 0, 3, 1, b'a', b'b', 0, 0, 0, 1, 0]);
        let mut input = out.as_slice();
        assert_eq!(Frame::read(&mut input).unwrap(), Some(Frame::Bytes(2)));
        input.read_exact(&mut [0; 2]).unwrap();
        assert_eq!(Frame::read(&mut input).unwrap(), Some(Frame::Message(0)));
        assert_eq!(Frame::read(&mut input).unwrap(), None, "closed between two frames");
    }

    #[test]
    fn fault_45_garbage_is_refused_before_memory_is_taken_for_it() {
        let frames: [&[u8]; 5] =
            [&[0, 0, 0, 0, 0], &[0xff; 5], &[0, 1, 0, 2, 1], &[0, 5, 0, 0, 0], &[0, 0, 0, 3, 2]];
        for frame in frames {
            let error = Frame::read(&mut &*frame).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{frame:?}");
        }
        assert!(Frame::read(&mut &[0, 0][..]).is_err(), "cut within a header");
        assert!(read_hello(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
    }
}
