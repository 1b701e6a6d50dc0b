//! Something in front of DynamoDB that turns requests away, as the service does with those of whom it has had enough.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Which requests are turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    None,
    EverySecond,
    All,
}

/// Listens on a port of its own for as long as it lives.
#[derive(Debug)]
pub(crate) struct Throttle {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    share: Share,
    asked: u64,
    turned_away: u64,
    ended: bool,
    connections: Vec<TcpStream>,
}

impl Throttle {
    /// Lets everything through until it is told otherwise.
    pub(crate) fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = State {
            share: Share::None,
            asked: 0,
            turned_away: 0,
            ended: false,
            connections: Vec::new(),
        };
        let shared = Arc::new(Shared { server: server.to_owned(), state: Mutex::new(state) });
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&own, &listener));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// A store's URL with this in place of the server.
    pub(crate) fn instead_of_server(&self, url: &str) -> String {
        url.replace(&self.shared.server, &self.address.to_string())
    }

    pub(crate) fn set(&self, share: Share) {
        self.shared.state().share = share;
    }

    /// How many requests were turned away.
    pub(crate) fn turned_away(&self) -> u64 {
        self.shared.state().turned_away
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        // It waits for one more connection, and sees that it is over.
        let _woken = TcpStream::connect(self.address);
        let ended = self.acceptor.take().map(JoinHandle::join);
        for connection in self.shared.state().connections.drain(..) {
            // It may be gone already.
            let _cut = connection.shutdown(Shutdown::Both);
        }
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the throttle failed");
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while it is locked")
    }

    fn turns_away(&self) -> bool {
        let mut state = self.state();
        state.asked += 1;
        let is_turned_away = match state.share {
            Share::None => false,
            Share::EverySecond => state.asked.is_multiple_of(2),
            Share::All => true,
        };
        state.turned_away += u64::from(is_turned_away);
        is_turned_away
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let (client, _) = listener.accept().expect("a connection");
        if shared.state().ended {
            return;
        }
        // A server that is gone is told to the client by the end of its connection.
        let Ok(server) = TcpStream::connect(&shared.server) else { continue };
        let handles = [&client, &server].map(|it| it.try_clone().expect("a handle"));
        shared.state().connections.extend(handles);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // Either end may go at any time: then this connection is over.
            let _over = serve(&shared, &client, &server);
            let _cut = client.shutdown(Shutdown::Both);
        });
    }
}

/// One connection, request by request.
fn serve(shared: &Shared, mut client: &TcpStream, mut server: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(server));
    while let Some(request) = message(&mut requests)? {
        if shared.turns_away() {
            client.write_all(&turned_away())?;
            continue;
        }
        server.write_all(&request)?;
        let Some(answer) = message(&mut answers)? else { return Ok(()) };
        client.write_all(&answer)?;
    }
    Ok(())
}

/// A request or an answer as it came; none if the other end is done.
fn message(from: &mut BufReader<&TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let (mut all, mut length) = (Vec::new(), 0);
    loop {
        let begin = all.len();
        if from.read_until(b'\n', &mut all)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&all[begin..]).to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let head = all.len();
    all.resize(head + length, 0);
    from.read_exact(&mut all[head..])?;
    Ok(Some(all))
}

fn turned_away() -> Vec<u8> {
    let kind = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
    let body = format!("{{\"__type\":\"{kind}\",\"message\":\"too much for the test\"}}");
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/x-amz-json-1.0\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
