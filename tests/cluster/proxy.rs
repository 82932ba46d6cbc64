//! A network that does what a test wants: it passes on, holds back, delays, or cuts.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Bytes that are passed on at once.
const PIECE_BYTES: usize = 16 << 10;

/// Stands between clients and a server.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    network: Mutex<Network>,
    changed: Condvar,
}

struct Network {
    target: Option<SocketAddr>,
    weather: Weather,
    open: Vec<TcpStream>,
    /// Connections that were made so far.
    connections: usize,
}

impl Default for Network {
    fn default() -> Self {
        Self { target: None, weather: Weather::Fair, open: Vec::new(), connections: 0 }
    }
}

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// They are passed on.
    Fair,
    /// Each piece is passed on after a while.
    Slow(Duration),
    /// They are held back, as by a cable that is unplugged: nobody is told.
    Held,
    /// Connections are closed at once.
    Cut,
    /// The proxy is gone.
    Over,
}

impl Proxy {
    /// Listens on a port that the system chooses, for clients of `target`.
    pub(crate) fn new(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::<State>::default();
        state.network().target = Some(target.parse().expect("it is an address"));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let clients = listener.incoming().map_while(Result::ok);
            let lives = |_: &TcpStream| shared.network().weather != Weather::Over;
            clients.take_while(lives).for_each(|client| shared.connect(client));
        });
        Self { address, state }
    }

    /// Where clients reach it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were made through it.
    pub(crate) fn connections(&self) -> usize {
        self.state.network().connections
    }

    /// Passes all on, what was held back first.
    pub(crate) fn heal(&self) {
        self.state.set(Weather::Fair);
    }

    /// Passes on each piece after `wait`.
    pub(crate) fn delay(&self, wait: Duration) {
        self.state.set(Weather::Slow(wait));
    }

    /// Holds all back: nobody is told, and new connections stay silent.
    pub(crate) fn hold(&self) {
        self.state.set(Weather::Held);
    }

    /// Closes all connections, and each new one at once, until it is healed.
    pub(crate) fn cut(&self) {
        self.state.set(Weather::Cut);
        self.state.close_all();
    }

    /// Closes all connections once; new ones are passed on.
    pub(crate) fn flap(&self) {
        self.state.close_all();
    }

    /// What stands behind it from now on.
    pub(crate) fn lead_to(&self, target: &str) {
        self.state.network().target = Some(target.parse().expect("it is an address"));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.set(Weather::Over);
        self.state.close_all();
        // Wakes the thread that listens.
        drop(TcpStream::connect(self.address));
    }
}

impl State {
    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, weather: Weather) {
        self.network().weather = weather;
        self.changed.notify_all();
    }

    fn close_all(&self) {
        for stream in self.network().open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    fn connect(self: &Arc<Self>, client: TcpStream) {
        let target = self.network().target;
        let Some(Ok(server)) = target.map(TcpStream::connect) else { return };
        let copy = |stream: &TcpStream| stream.try_clone().expect("there are descriptors");
        let mut network = self.network();
        if network.weather == Weather::Cut {
            return;
        }
        network.open.extend([copy(&client), copy(&server)]);
        network.connections += 1;
        drop(network);
        self.pump(copy(&client), copy(&server));
        self.pump(server, client);
    }

    fn pump(self: &Arc<Self>, mut from: TcpStream, mut to: TcpStream) {
        let state = Arc::clone(self);
        thread::spawn(move || {
            drop(from.set_nodelay(true));
            let mut piece = [0; PIECE_BYTES];
            let mut pass = || match from.read(&mut piece) {
                Ok(bytes @ 1..) => state.lets_through() && to.write_all(&piece[..bytes]).is_ok(),
                Ok(0) | Err(_) => false,
            };
            while pass() {}
            drop(from.shutdown(Shutdown::Both));
            drop(to.shutdown(Shutdown::Both));
        });
    }

    /// Waits as long as the weather wants; false if the bytes are lost.
    fn lets_through(&self) -> bool {
        let held = |network: &mut Network| network.weather == Weather::Held;
        let network = self.changed.wait_while(self.network(), held);
        let weather = network.unwrap_or_else(PoisonError::into_inner).weather;
        match weather {
            Weather::Fair | Weather::Held => true,
            Weather::Slow(wait) => {
                thread::sleep(wait);
                true
            }
            Weather::Cut | Weather::Over => false,
        }
    }
}
