//! Something between a host and its store that can be made to fail.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bench::pause;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Connections are taken and stand, but nothing moves; it does once this is over.
    Hang,
    /// What is asked arrives, and instead of an answer the connection is cut.
    Mute,
    /// Connections are cut, and new ones refused.
    Cut,
}

/// Listens on a port of its own for as long as it lives.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    ended: bool,
    connections: Vec<TcpStream>,
}

impl Proxy {
    /// Passes everything on to `server` until it is told otherwise.
    pub(crate) fn to(server: &str) -> Self {
        let listener = listen("127.0.0.1:0".parse().expect("an address"));
        let address = listener.local_addr().expect("an address");
        let state = State { mode: Mode::Pass, ended: false, connections: Vec::new() };
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&acceptor, listener, address));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// A store's URL with the proxy in place of the server.
    pub(crate) fn instead_of_server(&self, url: &str) -> String {
        url.replace(&self.shared.server, &self.address.to_string())
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn set(&self, mode: Mode) {
        let mut state = self.shared.state();
        state.mode = mode;
        if mode == Mode::Cut {
            for connection in state.connections.drain(..) {
                // It may be gone already.
                let _cut = connection.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.set(Mode::Cut);
        let ended = self.acceptor.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the proxy failed");
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while it is locked")
    }

    /// Waits while nothing moves. Whether anything may.
    fn may_pass(&self) -> bool {
        let state = self.state();
        let state = self.changed.wait_while(state, |state| state.mode == Mode::Hang);
        matches!(state.expect("nobody panics while it is locked").mode, Mode::Pass | Mode::Mute)
    }

    /// Takes note of a connection, or drops it.
    fn take(self: &Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(&self.server) else { return };
        let mut state = self.state();
        if state.mode == Mode::Cut {
            return;
        }
        for (from, to, answers) in [(&client, &server, false), (&server, &client, true)] {
            let from = from.try_clone().expect("a handle");
            let to = to.try_clone().expect("a handle");
            let shared = Arc::clone(self);
            std::thread::spawn(move || pump(&shared, from, to, answers));
        }
        state.connections.extend([client, server]);
    }
}

fn listen(address: SocketAddr) -> TcpListener {
    let listener = TcpListener::bind(address).expect("the proxy's port");
    listener.set_nonblocking(true).expect("a listener that does not block");
    listener
}

fn accept(shared: &Arc<Shared>, first: TcpListener, address: SocketAddr) {
    let mut listener = Some(first);
    loop {
        let (mode, ended) = {
            let state = shared.state();
            (state.mode, state.ended)
        };
        match (&listener, mode) {
            _ if ended => return,
            (_, Mode::Cut) => listener = None,
            (None, Mode::Pass | Mode::Hang | Mode::Mute) => listener = Some(listen(address)),
            (Some(open), Mode::Pass | Mode::Hang | Mode::Mute) => match open.accept() {
                Ok((client, _)) => {
                    client.set_nonblocking(false).expect("a connection that blocks");
                    shared.take(client);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("the proxy cannot accept: {error}"),
            },
        }
        pause(Duration::from_millis(2));
    }
}

fn pump(shared: &Shared, mut from: TcpStream, mut to: TcpStream, answers: bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if answers && shared.state().mode == Mode::Mute {
            let _cut = from.shutdown(Shutdown::Both);
            break;
        }
        if !shared.may_pass() || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // One half that ends takes the other one with it.
    if shared.may_pass() {
        let _ended = to.shutdown(Shutdown::Both);
    }
}
