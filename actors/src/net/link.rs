//! One open connection: frames in both directions, and heartbeats.

#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::codec::{Decoder as _, Encoder as _, LengthDelimitedCodec};

use super::LinkLimits;

/// Frames that go out with one write at most.
const FRAMES_PER_WRITE_MAX: usize = 64;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Where to put what is to go out. Closes the connection when the last copy is dropped, after what
/// is queued was written.
#[derive(Clone)]
pub(crate) struct Link {
    frames: mpsc::UnboundedSender<Bytes>,
    queued_bytes: Arc<AtomicUsize>,
    overflow: Arc<watch::Sender<bool>>,
    queue_bytes_max: usize,
}

/// Why a connection ended.
#[derive(Debug, Error)]
pub(crate) enum LinkEnd {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    ClosedByPeer,
    /// This side closed it.
    #[error("this side closed the connection")]
    ClosedHere,
    /// The peer is silent.
    #[error("the peer was silent for {} ms", .0.as_millis())]
    Silent(Duration),
    /// The peer does not read what it is sent.
    #[error("the peer took nothing for {} ms", .0.as_millis())]
    Stuck(Duration),
    /// More waits to be sent than is allowed.
    #[error("the peer does not keep up: more than {0} bytes wait to be sent to it")]
    Overflow(usize),
    /// A frame that cannot be one of ours.
    #[error("the peer sent a frame that is refused")]
    BadFrame(#[source] io::Error),
    /// What a frame holds is no message.
    #[error("the peer sent what is no message: {0}")]
    BadMessage(String),
    /// The system says so.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

impl Link {
    /// Queues a frame. One too many ends the connection; nobody waits.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let bytes = frame.len();
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if queued > self.queue_bytes_max {
            self.overflow.send_replace(true);
            return;
        }
        // A connection that ended has said so, or will.
        let _ = self.frames.send(Bytes::from(frame));
    }

    /// How many bytes wait to be written.
    #[cfg(test)]
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes.load(Ordering::Relaxed)
    }
}

/// What a connection runs on.
pub(crate) struct LinkTask {
    limits: LinkLimits,
    frames: mpsc::UnboundedReceiver<Bytes>,
    queued_bytes: Arc<AtomicUsize>,
    overflow: watch::Receiver<bool>,
}

/// Makes the two ends of a connection's queue: one to send, one to run.
pub(crate) fn link(limits: LinkLimits) -> (Link, LinkTask) {
    let (sender, frames) = mpsc::unbounded_channel();
    let (overflow, overflowed) = watch::channel(false);
    let queued_bytes = Arc::<AtomicUsize>::default();
    let link = Link {
        frames: sender,
        queued_bytes: Arc::clone(&queued_bytes),
        overflow: Arc::new(overflow),
        queue_bytes_max: limits.queue_bytes_max,
    };
    (link, LinkTask { limits, frames, queued_bytes, overflow: overflowed })
}

impl LinkTask {
    /// Carries frames until the connection ends. `read` is what was read of it already, `hear` gets
    /// each frame that arrives.
    pub(crate) async fn run<S: AsyncRead + AsyncWrite>(
        self,
        stream: S,
        read: BytesMut,
        hear: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> LinkEnd {
        let Self { limits, frames, queued_bytes, mut overflow } = self;
        let (reader, writer) = tokio::io::split(stream);
        let overflowed = async {
            // An error means that all senders are gone; then the writer ends.
            if overflow.wait_for(|overflowed| *overflowed).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = overflowed => LinkEnd::Overflow(limits.queue_bytes_max),
            end = read_frames(reader, read, limits, hear) => end,
            end = write_frames(writer, frames, &queued_bytes, limits) => end,
        }
    }
}

/// The codec of frames: four bytes of length, then that many bytes. An empty frame is a heartbeat.
pub(super) fn codec(frame_bytes_max: usize) -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(frame_bytes_max).new_codec()
}

async fn read_frames(
    mut reader: impl AsyncRead + Unpin,
    mut buffer: BytesMut,
    limits: LinkLimits,
    mut hear: impl FnMut(&[u8]) -> Result<(), String>,
) -> LinkEnd {
    let mut codec = codec(limits.frame_bytes_max);
    loop {
        if let Err(end) = hear_frames(&mut codec, &mut buffer, &mut hear) {
            return end;
        }
        buffer.reserve(READ_BYTES);
        match timeout(limits.heartbeat_timeout, reader.read_buf(&mut buffer)).await {
            Err(_) => return LinkEnd::Silent(limits.heartbeat_timeout),
            Ok(Ok(0)) => return LinkEnd::ClosedByPeer,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return LinkEnd::Broken(error),
        }
    }
}

/// Passes on all whole frames that were read, but heartbeats.
fn hear_frames(
    codec: &mut LengthDelimitedCodec,
    buffer: &mut BytesMut,
    hear: &mut impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), LinkEnd> {
    while let Some(frame) = codec.decode(buffer).map_err(LinkEnd::BadFrame)? {
        if !frame.is_empty() {
            hear(&frame).map_err(LinkEnd::BadMessage)?;
        }
    }
    Ok(())
}

async fn write_frames(
    mut writer: impl AsyncWrite + Unpin,
    mut frames: mpsc::UnboundedReceiver<Bytes>,
    queued_bytes: &AtomicUsize,
    limits: LinkLimits,
) -> LinkEnd {
    let mut codec = codec(limits.frame_bytes_max);
    let mut batch = Vec::with_capacity(FRAMES_PER_WRITE_MAX);
    let mut buffer = BytesMut::new();
    loop {
        let received = frames.recv_many(&mut batch, FRAMES_PER_WRITE_MAX);
        match timeout(limits.heartbeat_interval, received).await {
            Err(_) => batch.push(Bytes::new()),
            Ok(0) => {
                // The peer learns of the end by it; that it is gone already is no news.
                let _ = writer.shutdown().await;
                return LinkEnd::ClosedHere;
            }
            Ok(_) => {}
        }
        let mut bytes = 0;
        for frame in batch.drain(..) {
            bytes += frame.len();
            if let Err(error) = codec.encode(frame, &mut buffer) {
                return LinkEnd::BadFrame(error);
            }
        }
        match timeout(limits.heartbeat_timeout, writer.write_all_buf(&mut buffer)).await {
            Err(_) => return LinkEnd::Stuck(limits.heartbeat_timeout),
            Ok(Err(error)) => return LinkEnd::Broken(error),
            Ok(Ok(())) => {}
        }
        queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
