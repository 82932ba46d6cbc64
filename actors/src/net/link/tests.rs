use tokio::{io::duplex, task::JoinHandle, time::Instant};

use super::*;

fn limits() -> LinkLimits {
    LinkLimits { frame_bytes_max: 1 << 10, queue_bytes_max: 4 << 10, ..LinkLimits::default() }
}

/// Runs one side of a connection; what it hears comes out of the receiver.
fn side(
    stream: tokio::io::DuplexStream,
    limits: LinkLimits,
) -> (Link, mpsc::UnboundedReceiver<Vec<u8>>, JoinHandle<LinkEnd>) {
    let (sender, task) = link(limits);
    let (heard, hearing) = mpsc::unbounded_channel();
    let hear = move |frame: &[u8]| heard.send(frame.to_vec()).map_err(|error| error.to_string());
    let end = tokio::spawn(task.run(stream, BytesMut::new(), hear));
    (sender, hearing, end)
}

#[tokio::test(start_paused = true)]
async fn frames_arrive_whole_and_in_order_however_the_stream_is_cut() {
    let (a, b) = duplex(7);
    let (sender, _heard, _end) = side(a, LinkLimits::default());
    let (_back, mut heard, _end) = side(b, LinkLimits::default());
    for length in 1..200_u8 {
        sender.send(vec![length; usize::from(length)]);
    }
    for length in 1..200_u8 {
        assert_eq!(heard.recv().await, Some(vec![length; usize::from(length)]));
    }
    tokio::task::yield_now().await;
    assert_eq!(sender.queued_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_is_written_before_this_side_closes() {
    let (a, b) = duplex(16);
    let (sender, _heard, end) = side(a, limits());
    let (_back, mut heard, peer_end) = side(b, limits());
    sender.send(vec![1; 500]);
    sender.send(vec![2]);
    drop(sender);
    assert_eq!(heard.recv().await, Some(vec![1; 500]));
    assert_eq!(heard.recv().await, Some(vec![2]));
    assert!(matches!(end.await.unwrap(), LinkEnd::ClosedHere));
    assert!(matches!(peer_end.await.unwrap(), LinkEnd::ClosedByPeer));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_an_idle_connection_and_silence_ends_it() {
    let (a, b) = duplex(64);
    let (_kept, _heard, end) = side(a, limits());
    let (_back, _heard_back, peer_end) = side(b, limits());
    let began = Instant::now();
    tokio::time::sleep(limits().heartbeat_timeout * 20).await;
    assert!(!end.is_finished() && !peer_end.is_finished());

    // A peer that hangs: it neither writes nor closes.
    let (a, _silent) = duplex(1 << 20);
    let (_kept, _heard, end) = side(a, limits());
    assert!(matches!(end.await.unwrap(), LinkEnd::Silent(_)));
    assert!(began.elapsed() > limits().heartbeat_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_loses_the_connection_and_memory_is_bounded() {
    let (a, _never_reads) = duplex(16);
    let (sender, _heard, end) = side(a, limits());
    for _ in 0..100 {
        sender.send(vec![0; 1 << 10]);
    }
    assert!(matches!(end.await.unwrap(), LinkEnd::Overflow(bytes) if bytes == 4 << 10));

    let (a, mut talks) = duplex(16);
    let (sender, _heard, end) = side(a, limits());
    sender.send(vec![0; 1 << 10]);
    let talking = tokio::spawn(async move {
        while talks.write_all(&[0; 4]).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert!(matches!(end.await.unwrap(), LinkEnd::Stuck(_)));
    talking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fault_45_an_oversized_frame_and_a_wrong_message_end_only_the_connection() {
    let (a, mut b) = duplex(64);
    let (_sender, _heard, end) = side(a, limits());
    b.write_all(&[0x7f, 0xff, 0xff, 0xff]).await.unwrap();
    assert!(matches!(end.await.unwrap(), LinkEnd::BadFrame(_)));

    let (a, mut b) = duplex(64);
    let (_sender, task) = link(limits());
    let end = tokio::spawn(task.run(a, BytesMut::new(), |_| Err("no message".to_owned())));
    b.write_all(&[0, 0, 0, 1, 9]).await.unwrap();
    assert!(matches!(end.await.unwrap(), LinkEnd::BadMessage(text) if text == "no message"));
}

#[tokio::test(start_paused = true)]
async fn what_was_read_with_the_hello_is_heard_first() {
    let (a, mut b) = duplex(64);
    let (_sender, task) = link(limits());
    let (heard, mut hearing) = mpsc::unbounded_channel();
    let hear = move |frame: &[u8]| heard.send(frame.to_vec()).map_err(|error| error.to_string());
    tokio::spawn(task.run(a, BytesMut::from(&[0, 0, 0, 2, 1][..]), hear));
    b.write_all(&[2]).await.unwrap();
    assert_eq!(hearing.recv().await, Some(vec![1, 2]));
}
