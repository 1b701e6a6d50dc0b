//! Who is known by a certificate, over real TLS.

use std::sync::Arc;

use kapell_api::identity::{Identity, Subject, Trust};
use kapell_core::access::Purpose;
use kapell_core::board::CellId;
use kapell_core::seams::Clock as _;
use kapell_node::access::{Authority, Wanted, request};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::mem::Mem;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::super::{Peers, Vouching};
use super::logs::FakeRep;
use super::*;

const LIFE: Duration = Duration::from_secs(600);

pub(super) fn authority() -> Authority {
    Authority::new(&key()).unwrap()
}

fn peers() -> Peers {
    let made = authority().host(&["127.0.0.1".to_owned()], SystemClock.wall(), LIFE).unwrap();
    let identity = Identity::new(&made.chain, &made.key).unwrap();
    Peers { trust: Trust::new(&authority().pem()).unwrap(), identity }
}

pub(super) fn secure() -> Listen {
    let vouching = Vouching { authority: Arc::new(authority()), life: LIFE };
    Listen { peers: Some(peers()), vouching: Some(vouching), ..listen("127.0.0.1:0") }
}

/// A cell's certificate by some authority, made so long ago.
fn cell(by: &Authority, id: &str, age: Duration) -> Identity {
    let (key, csr) = request().unwrap();
    let made = by.cell(&id.into(), &csr, SystemClock.wall().before(age), LIFE).unwrap();
    Identity::new(&made, &key).unwrap()
}

pub(super) fn fresh(id: &str) -> Identity {
    cell(&authority(), id, Duration::ZERO)
}

/// Asks over TLS, as somebody or nobody; `more` are header lines.
pub(super) async fn ask(
    to: SocketAddr,
    us: Option<&Identity>,
    line: &str,
    more: &str,
    body: &str,
) -> Reply {
    ask_of(to, Subject::Host, us, line, more, body).await.unwrap()
}

async fn ask_of(
    to: SocketAddr,
    whom: Subject,
    us: Option<&Identity>,
    line: &str,
    more: &str,
    body: &str,
) -> std::io::Result<Reply> {
    let trust = Trust::new(&authority().pem()).unwrap();
    let connector = TlsConnector::from(trust.client(whom, us).unwrap());
    let stream = TcpStream::connect(to).await?;
    let stream = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await?;
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{more}\r\n{body}"
    );
    Ok(exchange(stream, &request).await)
}

pub(super) async fn leader() -> (Host, Arc<FakeDesk>, Arc<Ledger>) {
    let host = Host::open(0xa, LIMITS, secure()).await.unwrap();
    host.face.follow(0xa, &format!("https://{}", host.at()));
    let desk = FakeDesk::new();
    *host.face.board.lock().unwrap() = Some(Arc::clone(&desk));
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let ledger = Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap();
    let ledger = Arc::new(ledger);
    *host.face.ledger.lock().unwrap() = Some(Arc::clone(&ledger));
    (host, desk, ledger)
}

pub(super) fn presence(id: &str) -> String {
    format!(
        r#"{{"cell_id":"{id}","url":"https://127.0.0.1:1","zone":"","capacity":{{"memory_mb":1,"disk_mb":1,"containers":1}}}}"#
    )
}

pub(super) fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_cell_is_whom_its_certificate_names_and_nobody_else() {
    let (host, desk, _) = leader().await;
    let one = fresh("one");
    let said = ask(host.at(), Some(&one), "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(said.status, 200, "{}", said.body);
    assert!(desk.cell(&CellId::from("one")).is_some());
    let lied = ask(host.at(), Some(&one), "PUT /v1/cells/two", "", &presence("two")).await;
    assert_eq!(lied.problem(), is(403, "forbidden"));
    assert!(lied.body.contains("cell `one` may not speak for a cell"), "{}", lied.body);
    assert!(lied.body.contains("it would be cell `two`"), "{}", lied.body);
    let mixed = ask(host.at(), Some(&one), "PUT /v1/cells/one", "", &presence("two")).await;
    assert_eq!(mixed.status, 422, "{}", mixed.body);
    for line in [
        "POST /v1/cells/two/reports",
        "POST /v1/cells/two/records",
        "DELETE /v1/cells/two",
        "POST /v1/cells/one/evacuate",
        "POST /v1/tasks",
        "DELETE /v1/tasks/t",
        "GET /v1/tasks",
        "GET /v1/cells",
        "GET /v1/events",
        "POST /v1/tokens",
        "POST /v1/cells/one/join",
        "POST /v1/cells/two/certificate",
        "POST /v1/cells/two/secrets",
        "PUT /v1/secrets/d/a",
        "GET /v1/secrets",
        "DELETE /v1/secrets/d/a",
        "GET /metrics",
    ] {
        let reply = ask(host.at(), Some(&one), line, "", "{}").await;
        assert_eq!(reply.problem(), is(403, "forbidden"), "{line}");
    }
    assert!(desk.cell(&CellId::from("two")).is_none());
    assert!(desk.take_asked().is_empty());
}

#[tokio::test]
async fn a_certificate_that_does_not_count_is_refused_with_the_reason() {
    let (host, ..) = leader().await;
    let expired = cell(&authority(), "one", LIFE * 2);
    let reply = ask(host.at(), Some(&expired), "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(reply.problem(), is(401, "certificate_expired"));
    let other = ClusterKey::new(&"b".repeat(64)).unwrap();
    let foreign = cell(&Authority::new(&other).unwrap(), "one", Duration::ZERO);
    let reply = ask(host.at(), Some(&foreign), "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(reply.problem(), is(401, "certificate_foreign"));
    let nobody = ask(host.at(), None, "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(nobody.problem(), is(401, "unauthorized"));
    // Whoever has a token needs no certificate, and a bad one does no harm then.
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    for us in [None, Some(&expired), Some(&foreign)] {
        assert_eq!(ask(host.at(), us, "GET /v1/tasks", &bearer, "").await.status, 200);
    }
    // A cell is no host to those who ask, whatever its address.
    let dressed = Listen {
        peers: Some(Peers { identity: fresh("one"), ..peers() }),
        ..listen("127.0.0.1:0")
    };
    let dressed = Host::open(0xb, LIMITS, dressed).await.unwrap();
    let told = ask_of(dressed.at(), Subject::Host, None, "GET /healthz", "", "").await.unwrap_err();
    assert!(told.to_string().contains("that of cell `one`, not of a host"), "{told}");
}

#[tokio::test]
async fn a_standby_speaks_for_the_cells_that_come_to_it() {
    let (host, desk, _) = leader().await;
    let standby = Host::open(0xb, LIMITS, secure()).await.unwrap();
    standby.face.follow(0xa, &format!("https://{}", host.at()));
    let one = fresh("one");
    let said = ask(standby.at(), Some(&one), "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(said.status, 200, "{}", said.body);
    assert!(said.has("kapell-served-by: 000000000000000a"), "{}", said.head);
    // Nobody but a host can say for whom it speaks.
    let lie = "kapell-on-behalf-of: two\r\nkapell-forwarded-by: 000000000000000b\r\n";
    for at in [standby.at(), host.at()] {
        let lied = ask(at, Some(&one), "PUT /v1/cells/two", lie, &presence("two")).await;
        assert!([403, 503].contains(&lied.status), "{}", lied.body);
    }
    let lie = "kapell-on-behalf-of: two\r\n";
    let lied = ask(standby.at(), Some(&one), "PUT /v1/cells/two", lie, &presence("two")).await;
    assert_eq!(lied.problem(), is(403, "forbidden"));
    assert!(desk.cell(&CellId::from("two")).is_none());
    let nobody = ask(standby.at(), None, "PUT /v1/cells/two", lie, &presence("two")).await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test]
async fn a_cell_takes_orders_of_hosts_only() {
    let listening = Listen {
        token: Token::drawn().unwrap(),
        key: None,
        peers: Some(Peers { identity: fresh("one"), ..peers() }),
        ..listen("127.0.0.1:0")
    };
    let server = super::super::bind_cell(listening, FakeRep::new()).await.unwrap();
    let at = server.local_addr();
    let whom = || Subject::Cell("one".into());
    let epoch = "kapell-epoch: 7\r\n";
    let host = peers().identity;
    let state = "GET /v1/cell/state";
    let reply = ask_of(at, whom(), Some(&host), state, epoch, "").await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.body);
    let reply = ask_of(at, whom(), Some(&fresh("two")), state, epoch, "").await.unwrap();
    assert_eq!(reply.problem(), is(403, "forbidden"));
    let reply = ask_of(at, whom(), Some(&fresh("one")), state, epoch, "").await.unwrap();
    assert_eq!(reply.problem(), is(403, "forbidden"));
    let bearer = format!("{epoch}authorization: Bearer {TOKEN}\r\n");
    let reply = ask_of(at, whom(), None, state, &bearer, "").await.unwrap();
    assert_eq!(reply.problem(), is(401, "unauthorized"));
    let wrong = Subject::Cell("two".into());
    let told = ask_of(at, wrong, Some(&host), state, epoch, "").await.unwrap_err().to_string();
    assert!(told.contains("that of cell `one`, not of cell `two`"), "{told}");
}

async fn joins(ledger: &Ledger, cell: Option<&str>) -> String {
    let wanted = Wanted {
        purpose: Purpose::CellJoin,
        domains: None,
        name: String::new(),
        ttl: Duration::from_secs(60),
        cell_id: cell.map(Into::into),
    };
    let token = key().sign(&ledger.issue(wanted).await.unwrap().claims);
    format!("authorization: Bearer {token}\r\n")
}

fn wants() -> String {
    serde_json::json!({ "csr": request().unwrap().1 }).to_string()
}

#[tokio::test]
async fn a_token_lets_one_cell_join_once() {
    let (host, desk, ledger) = leader().await;
    let token = joins(&ledger, None).await;
    let at = host.at();
    // What cannot be met does not use it up.
    let bad = ask(at, None, "POST /v1/cells/one/join", &token, r#"{"csr":"no"}"#).await;
    assert_eq!(bad.problem(), is(422, "invalid"));
    desk.cell_at("taken", "https://127.0.0.1:1");
    let there = ask(at, None, "POST /v1/cells/taken/join", &token, &wants()).await;
    assert_eq!(there.problem(), is(409, "exists"));
    let (key, csr) = request().unwrap();
    let body = serde_json::json!({ "csr": csr }).to_string();
    let joined = ask(at, None, "POST /v1/cells/one/join", &token, &body).await;
    assert_eq!(joined.status, 200, "{}", joined.body);
    let joined = joined.json();
    let chain = joined["certificate"].as_str().unwrap();
    assert_eq!(joined["ca"].as_str().unwrap(), authority().pem());
    assert_eq!(joined["renew_in_ms"], 400_000);
    let us = Identity::new(chain, &key).unwrap();
    let said = ask(at, Some(&us), "PUT /v1/cells/one", "", &presence("one")).await;
    assert_eq!(said.status, 200, "{}", said.body);
    for id in ["one", "two"] {
        let line = format!("POST /v1/cells/{id}/join");
        let again = ask(at, None, &line, &token, &wants()).await;
        assert_eq!(again.problem(), is(401, "token_used"), "{id}");
    }
    let next = ask(at, Some(&us), "POST /v1/cells/one/certificate", "", &wants()).await;
    assert_eq!(next.status, 200, "{}", next.body);
    let named = joins(&ledger, Some("two")).await;
    let other = ask(at, None, "POST /v1/cells/three/join", &named, &wants()).await;
    assert_eq!(other.problem(), is(403, "forbidden"));
    let fits = ask(at, None, "POST /v1/cells/two/join", &named, &wants()).await;
    assert_eq!(fits.status, 200, "{}", fits.body);
    // One that is there can be replaced by a token that names it.
    let anew = joins(&ledger, Some("one")).await;
    assert_eq!(ask(at, None, "POST /v1/cells/one/join", &anew, &wants()).await.status, 200);
    let owner = format!("authorization: Bearer {TOKEN}\r\n");
    let owner = ask(at, None, "POST /v1/cells/one/join", &owner, &wants()).await;
    assert_eq!(owner.problem(), is(403, "forbidden"));
}

#[tokio::test]
async fn hosts_without_an_authority_say_what_to_do() {
    let (host, _) = Host::with_board().await;
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let ledger = Ledger::open(store, Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap();
    *host.face.ledger.lock().unwrap() = Some(Arc::new(ledger));
    let reply = host.send("POST", "/v1/tokens", r#"{"role":"cell-join","ttl_ms":1000}"#).await;
    assert_eq!(reply.problem(), is(409, "no_authority"));
    assert!(reply.body.contains("--advertise https://HOST:PORT"), "{}", reply.body);
}
