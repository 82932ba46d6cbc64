//! The first frame of each side: who is there, and whether the two may talk.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use regrow_protocol::{DecodeError, EncodeError, Hello, HelloError, decode, encode};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::{LinkLimits, link::codec};

/// The two sides do not come to talk: the connection is closed.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    /// They may not.
    #[error(transparent)]
    Refused(#[from] HelloError),
    /// The first frame is none of ours: a port scan, or another program.
    #[error("the first frame of the peer is refused")]
    BadFrame(#[source] io::Error),
    /// It is a frame, and not a `Hello`.
    #[error("the peer did not introduce itself")]
    NoHello(#[source] DecodeError),
    /// Nothing came.
    #[error("the peer said nothing for {} ms", .0.as_millis())]
    Silent(Duration),
    /// The peer left.
    #[error("the peer closed the connection before it introduced itself")]
    Closed,
    /// The system says so.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// A defect of ours.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Says `ours`, hears the peer's, and checks it. Returns it with what was read beyond.
///
/// Both sides send before they read, so that each can name what it does not like of the other.
pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    ours: &Hello,
    limits: LinkLimits,
) -> Result<(Hello, BytesMut), HandshakeError> {
    let exchange = async {
        let mut frame = BytesMut::new();
        codec(Hello::BYTES_MAX)
            .encode(Bytes::from(encode(ours)?), &mut frame)
            .map_err(HandshakeError::BadFrame)?;
        stream.write_all(&frame).await.map_err(HandshakeError::Broken)?;
        hear_hello(stream).await
    };
    let (theirs, read) = timeout(limits.hello_timeout, exchange)
        .await
        .map_err(|_| HandshakeError::Silent(limits.hello_timeout))??;
    ours.check(&theirs)?;
    Ok((theirs, read))
}

async fn hear_hello<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<(Hello, BytesMut), HandshakeError> {
    let mut codec = codec(Hello::BYTES_MAX);
    let mut read = BytesMut::with_capacity(1 << 10);
    loop {
        if let Some(frame) = codec.decode(&mut read).map_err(HandshakeError::BadFrame)? {
            return Ok((decode(&frame).map_err(HandshakeError::NoHello)?, read));
        }
        if stream.read_buf(&mut read).await.map_err(HandshakeError::Broken)? == 0 {
            return Err(HandshakeError::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::Role;
    use tokio::io::duplex;

    use super::*;

    fn hello(cluster: &str) -> Hello {
        Hello::new(cluster.to_owned(), None, Role::Client)
    }

    #[tokio::test(start_paused = true)]
    async fn two_of_one_cluster_learn_who_the_other_is() {
        let (mut a, mut b) = duplex(1 << 10);
        let (ours, theirs) = (hello("c"), Hello::new("c".to_owned(), Some(1), Role::JobManager));
        let (heard_by_a, heard_by_b) = tokio::join!(
            handshake(&mut a, &ours, LinkLimits::default()),
            handshake(&mut b, &theirs, LinkLimits::default()),
        );
        assert_eq!(heard_by_a.unwrap().0, theirs);
        assert_eq!(heard_by_b.unwrap().0, ours);
    }

    #[tokio::test(start_paused = true)]
    async fn fault_45_both_sides_name_a_wrong_cluster() {
        let (mut a, mut b) = duplex(1 << 10);
        let (one, other) = (hello("one"), hello("other"));
        let (heard_by_a, heard_by_b) = tokio::join!(
            handshake(&mut a, &one, LinkLimits::default()),
            handshake(&mut b, &other, LinkLimits::default()),
        );
        for refused in [heard_by_a, heard_by_b] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("\"one\"") && text.contains("\"other\""), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn fault_45_garbage_is_refused_and_silence_ends() {
        let first_bytes: [&[u8]; 4] =
            [b"GET / HTTP/1.1\r\n\r\n", &[0xff; 8], &[0, 0, 0, 3, 1, 2, 3], &[0, 0, 0, 0]];
        for bytes in first_bytes {
            let (mut a, mut b) = duplex(1 << 10);
            b.write_all(bytes).await.unwrap();
            let refused = handshake(&mut a, &hello("c"), LinkLimits::default()).await.unwrap_err();
            assert!(
                matches!(refused, HandshakeError::BadFrame(_) | HandshakeError::NoHello(_)),
                "{refused}"
            );
        }
        let (mut a, _b) = duplex(1 << 10);
        let refused = handshake(&mut a, &hello("c"), LinkLimits::default()).await.unwrap_err();
        assert!(matches!(refused, HandshakeError::Silent(_)), "{refused}");
        let (mut a, b) = duplex(1 << 10);
        drop(b);
        let refused = handshake(&mut a, &hello("c"), LinkLimits::default()).await.unwrap_err();
        assert!(matches!(refused, HandshakeError::Broken(_) | HandshakeError::Closed), "{refused}");
    }
}
