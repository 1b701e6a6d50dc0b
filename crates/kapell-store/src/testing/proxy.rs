//! A wire that can be cut: a TCP proxy on loopback between a client and a server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// What happens to what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Everything passes.
    Pass,
    /// Everything passes so much later.
    Delay(Duration),
    /// Connections are taken and nothing passes until this changes; then it does.
    Hang,
    /// Once something was sent to the server, its n-th answer from then on (from 1) is thrown
    /// away, and the connection with it; then everything passes.
    CutAnswer(u32),
    /// That answer instead and all that follows is held back until this changes.
    HoldAnswer(u32),
    /// What is sent next is thrown away, and the connection with it; then everything passes.
    CutRequest,
    /// Connections are reset at once.
    Reset,
}

/// A proxy; it ends with all of its connections when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    cuts: watch::Sender<u64>,
    held: watch::Sender<u64>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub async fn open(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let wire = watch::Sender::new(Wire::Pass);
        let (cuts, held) = (watch::Sender::new(0), watch::Sender::new(0));
        let told = Told {
            wire: wire.subscribe(),
            mend: wire.clone(),
            cuts: cuts.clone(),
            held: held.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, told));
        Ok(Self { address, wire, cuts, held, _tasks: tasks })
    }

    /// Where clients find it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, also for connections that are open.
    pub fn set(&self, wire: Wire) {
        self.wire.send_replace(wire);
    }

    /// How many connections it has broken.
    pub fn cuts(&self) -> u64 {
        *self.cuts.borrow()
    }

    /// Waits until it has held an answer back so many times since it was opened.
    pub async fn held(&self, times: u64) {
        // It cannot close: this very proxy has the other end.
        let _ = self.held.subscribe().wait_for(|held| *held >= times).await;
    }
}

/// What a connection is told and what it tells.
#[derive(Debug, Clone)]
struct Told {
    wire: watch::Receiver<Wire>,
    mend: watch::Sender<Wire>,
    cuts: watch::Sender<u64>,
    held: watch::Sender<u64>,
}

async fn accept(listener: TcpListener, server: SocketAddr, told: Told) {
    let mut lines = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return };
                let told = told.clone();
                lines.spawn(async move {
                    // Only this connection ends; that is what its ends are told.
                    let _ = line(client, server, told).await;
                });
            }
            Some(_) = lines.join_next() => {}
        }
    }
}

/// One connection until either end closes it or it is cut.
async fn line(mut client: TcpStream, server: SocketAddr, mut told: Told) -> io::Result<()> {
    if passes(&mut told.wire).await == Wire::Reset {
        told.cuts.send_modify(|cuts| *cuts += 1);
        return client.set_zero_linger();
    }
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let asked = watch::Sender::new(false);
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            cut = there(from_client, to_server, told.wire.clone(), asked.clone()) => cut?,
            cut = back(from_server, to_client, told.clone(), asked.subscribe()) => cut?,
            () = reset(told.wire.clone()) => true,
        }
    };
    if cut {
        client.set_zero_linger()?;
        told.mend.send_if_modified(|wire| {
            let once = matches!(wire, Wire::CutAnswer(_) | Wire::CutRequest);
            if once {
                *wire = Wire::Pass;
            }
            once
        });
        told.cuts.send_modify(|cuts| *cuts += 1);
    }
    Ok(())
}

async fn reset(mut wire: watch::Receiver<Wire>) {
    // A proxy that is gone resets nothing: its tasks end with it.
    if wire.wait_for(|wire| *wire == Wire::Reset).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits as long as the wire demands and says how it stands then.
async fn passes(wire: &mut watch::Receiver<Wire>) -> Wire {
    let now = wire.wait_for(|wire| *wire != Wire::Hang).await.map_or(Wire::Reset, |wire| *wire);
    if let Wire::Delay(by) = now {
        sleep_until(Instant::now() + by).await;
    }
    now
}

/// From the client to the server; true if it was cut.
async fn there(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut wire: watch::Receiver<Wire>,
    asked: watch::Sender<bool>,
) -> io::Result<bool> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut bytes).await?;
        if length == 0 {
            to.shutdown().await?;
            return Ok(false);
        }
        let now = passes(&mut wire).await;
        // What was read before the line was told of its end must not pass either.
        if matches!(now, Wire::CutRequest | Wire::Reset) {
            return Ok(true);
        }
        asked.send_replace(matches!(now, Wire::CutAnswer(_) | Wire::HoldAnswer(_)));
        to.write_all(&bytes[..length]).await?;
    }
}

/// From the server to the client; true if it was cut.
async fn back(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut told: Told,
    asked: watch::Receiver<bool>,
) -> io::Result<bool> {
    let mut bytes = vec![0; 64 << 10];
    let mut answers = 0;
    loop {
        let length = from.read(&mut bytes).await?;
        if length == 0 {
            to.shutdown().await?;
            return Ok(false);
        }
        let now = passes(&mut told.wire).await;
        match now {
            Wire::CutAnswer(last) | Wire::HoldAnswer(last) if *asked.borrow() => {
                answers += 1;
                if answers >= last && now == Wire::CutAnswer(last) {
                    return Ok(true);
                }
                if answers >= last {
                    told.held.send_modify(|held| *held += 1);
                    // A proxy that is gone has ended this task.
                    let _ = told.wire.wait_for(|wire| *wire != now).await;
                }
            }
            Wire::CutAnswer(_) | Wire::HoldAnswer(_) => {}
            Wire::Reset => return Ok(true),
            Wire::Pass | Wire::Delay(_) | Wire::Hang | Wire::CutRequest => answers = 0,
        }
        to.write_all(&bytes[..length]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back whatever it gets.
    async fn echo() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                lines.spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        (address, tasks)
    }

    async fn ask(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(text).await?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn a_wire_passes_hangs_and_breaks() {
        let (server, _tasks) = echo().await;
        let proxy = Proxy::open(server).await.unwrap();
        let connect = || TcpStream::connect(proxy.address());
        let mut stream = connect().await.unwrap();
        assert_eq!(ask(&mut stream, b"one").await.unwrap(), b"one");

        proxy.set(Wire::CutAnswer(2));
        assert_eq!(ask(&mut stream, b"two").await.unwrap(), b"two");
        assert_eq!(
            ask(&mut stream, b"three").await.unwrap_err().kind(),
            io::ErrorKind::ConnectionReset
        );
        assert_eq!(proxy.cuts(), 1);

        proxy.set(Wire::Hang);
        let mut stream = connect().await.unwrap();
        stream.write_all(b"four").await.unwrap();
        let mut answer = [0; 4];
        let limit = Duration::from_millis(100);
        assert!(tokio::time::timeout(limit, stream.read_exact(&mut answer)).await.is_err());
        proxy.set(Wire::Delay(limit));
        let began = Instant::now();
        stream.read_exact(&mut answer).await.unwrap();
        assert!(answer == *b"four" && began.elapsed() >= limit);

        proxy.set(Wire::CutRequest);
        assert!(ask(&mut stream, b"five").await.is_err());
        proxy.set(Wire::Pass);
        let mut stream = connect().await.unwrap();
        assert_eq!(ask(&mut stream, b"six").await.unwrap(), b"six");
        proxy.set(Wire::Reset);
        assert!(ask(&mut stream, b"seven").await.is_err());
        let mut stream = connect().await.unwrap();
        assert!(ask(&mut stream, b"eight").await.is_err());
        assert_eq!(proxy.cuts(), 4);
    }
}
