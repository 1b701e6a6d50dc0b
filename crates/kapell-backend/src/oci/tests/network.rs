//! Who reaches whom.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::containers::{Port, Spec};
use crate::oci::tests::lab::{rig, rig_with};
use crate::oci::{Network, Settings};
use crate::testing::{MAIN, Rig, until};

const SHORT: Duration = Duration::from_secs(2);

/// What whoever listens there says.
fn ask(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, SHORT).ok()?;
    stream.set_read_timeout(Some(SHORT)).unwrap();
    let _closed = stream.write_all(b"\n");
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn serve(rig: &Rig, name: &str, host: u16) {
    let ports = vec![Port { container: 80, host }];
    rig.create(Spec { ports, ..rig.spec(name) }).await;
    let script = format!("exec nc -ll -p 80 -e /bin/echo from {name}");
    rig.run(name, Rig::process(MAIN, &script)).await;
}

/// An address of this machine that is not the loopback's.
fn outer() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[tokio::test]
async fn published_ports_lead_to_their_container_and_are_gone_with_it() {
    let Some(rig) = rig("published_ports_lead_to_their_container_and_are_gone_with_it") else {
        return;
    };
    let (one, two) = (free_port(), free_port());
    serve(&rig, "one", one).await;
    serve(&rig, "two", two).await;
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    until(|| ask(local(one)).as_deref() == Some("from one\n")).await;
    until(|| ask(local(two)).as_deref() == Some("from two\n")).await;
    if let Some(outer) = outer() {
        until(|| ask(SocketAddr::new(outer, one)).as_deref() == Some("from one\n")).await;
    }
    let (rig, found) = rig.restart().await;
    assert_eq!(found.len(), 2);
    until(|| ask(local(two)).as_deref() == Some("from two\n")).await;
    rig.driver.delete(&rig.guid("one")).await.unwrap();
    assert_eq!(ask(local(one)), None);
    until(|| ask(local(two)).as_deref() == Some("from two\n")).await;
    rig.clean_up(&["two"]).await;
}

#[tokio::test]
async fn containers_reach_published_ports_and_nothing_else_of_this_machine() {
    let Some(rig) = rig("containers_reach_published_ports_and_nothing_else_of_this_machine") else {
        return;
    };
    let port = free_port();
    serve(&rig, "server", port).await;
    let own = TcpListener::bind("0.0.0.0:0").unwrap();
    let agent = own.local_addr().unwrap().port();
    until(|| ask(SocketAddr::from(([127, 0, 0, 1], port))).is_some()).await;
    let find = "own=$(ip -4 addr show eth0 | sed -n 's/.*inet \\([0-9.]*\\).*/\\1/p'); \
                gate=$(ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p'); ";
    let server = rig.run_to_end("server-address", &format!("{find} echo $own $gate")).await;
    assert_eq!(server.code, Some(0));
    let text = rig.text("server-address", MAIN);
    let (own_address, gateway) = text.trim().split_once(' ').unwrap();
    // The slot before it is the server's.
    let last: u8 = own_address.rsplit('.').next().unwrap().parse().unwrap();
    let peer = format!("{}.{}", own_address.rsplit_once('.').unwrap().0, last - 1);
    let script = format!(
        "try() {{ echo | timeout 1 nc -w 1 $1 $2 2>/dev/null || echo no; }}; \
         try {gateway} {port}; try {gateway} {agent}; try {peer} 80; try 127.0.0.1 {port}; try 169.254.169.254 80"
    );
    rig.run_to_end("client", &script).await;
    assert_eq!(rig.text("client", MAIN), "from server\nno\nno\nno\nno\n");
    own.set_nonblocking(true).unwrap();
    assert!(own.accept().is_err(), "nobody came");
    rig.clean_up(&["server", "server-address", "client"]).await;
}

#[tokio::test]
async fn with_the_network_of_the_machine_there_is_no_other() {
    let settings = Settings { network: Network::Host, ..Settings::default() };
    let Some(rig) = rig_with("with_the_network_of_the_machine_there_is_no_other", settings) else {
        return;
    };
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = own.local_addr().unwrap().port();
    let exit = rig
        .run_to_end(
            "host",
            &format!("timeout 2 nc -w 1 127.0.0.1 {port} </dev/null; ls /sys; id -u"),
        )
        .await;
    assert_eq!(exit.code, Some(0));
    own.set_nonblocking(true).unwrap();
    assert!(own.accept().is_ok());
    assert_eq!(rig.text("host", MAIN), "fs\n0\n");
    rig.clean_up(&["host"]).await;
}

#[tokio::test]
async fn every_process_of_several_is_in_the_network_of_its_container() {
    let Some(rig) = rig("every_process_of_several_is_in_the_network_of_its_container") else {
        return;
    };
    rig.create(Spec { sole: false, ..rig.spec("web") }).await;
    for name in ["one", "two"] {
        rig.run("web", Rig::process(name, "readlink /proc/self/ns/net; sleep 1000")).await;
        rig.says("web", name, "\n").await;
    }
    let machine = std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    let (one, two) = (rig.text("web", "one"), rig.text("web", "two"));
    assert_eq!(one, two);
    assert_ne!(one.trim(), machine, "which is the machine's own");
    rig.clean_up(&["web"]).await;
}
