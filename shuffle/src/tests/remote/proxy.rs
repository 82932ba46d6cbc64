//! A way between reader and server that does harm.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::served::listen;

/// What a way does to what a server sends, counted from the first byte after its introduction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Harm {
    /// It ends before this byte.
    Cut(u64),
    /// It changes one bit of this byte.
    Flip(u64),
}

/// Passes connections on to a server, and does one harm to each of the first ones.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    /// Bytes that the server sent and that were taken from it.
    pub(super) passed: Arc<AtomicU64>,
    /// How many connections came.
    pub(super) connections: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(super) fn new(server: SocketAddr, harms: Vec<Harm>) -> Self {
        let (passed, connections) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let harms = Arc::new(Mutex::new(harms.into_iter()));
        let (count, counted) = (Arc::clone(&connections), Arc::clone(&passed));
        let answer = move |reader: TcpStream| {
            count.fetch_add(1, Ordering::Relaxed);
            let harm = harms.lock().unwrap().next();
            let server = TcpStream::connect(server).unwrap();
            let (from, to) = (reader.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(from, to));
            let counted = Arc::clone(&counted);
            thread::spawn(move || pass_with_harm(server, reader, harm, &counted));
        };
        let (address, stop, thread) = listen(0, answer);
        Self { address, passed, connections, stop, thread: Some(thread) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        drop(TcpStream::connect(self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    // Either side may leave at any time.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn pass_with_harm(
    mut server: TcpStream,
    mut reader: TcpStream,
    harm: Option<Harm>,
    passed: &AtomicU64,
) {
    let (mut cut, mut position, mut buffer) = (false, 0, vec![0; 64 << 10]);
    if !pass_introduction(&mut server, &mut reader) {
        return;
    }
    while let Ok(read) = server.read(&mut buffer)
        && read > 0
    {
        passed.fetch_add(read as u64, Ordering::AcqRel);
        let mut part = &mut buffer[..read];
        let end = position + read as u64;
        let at =
            |byte: u64| usize::try_from(byte.checked_sub(position)?).ok().filter(|at| *at < read);
        match harm {
            Some(Harm::Cut(byte)) if !cut => {
                if let Some(index) = at(byte) {
                    part = &mut part[..index];
                    cut = true;
                }
            }
            Some(Harm::Flip(byte)) => {
                if let Some(index) = at(byte) {
                    part[index] ^= 1 << (byte % 8);
                }
            }
            Some(Harm::Cut(_)) | None => {}
        }
        if reader.write_all(part).is_err() || cut {
            break;
        }
        position = end;
    }
    let _ = reader.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn pass_introduction(server: &mut TcpStream, reader: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    if server.read_exact(&mut length).is_err() {
        return false;
    }
    let mut hello = vec![0; u32::from_be_bytes(length) as usize];
    server.read_exact(&mut hello).is_ok()
        && reader.write_all(&length).is_ok()
        && reader.write_all(&hello).is_ok()
}
