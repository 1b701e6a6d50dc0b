//! Who may talk to a host, and how a host proves itself to its store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::cluster::{Cluster, Host, Kind, free_port};
use crate::bench::{Bench, Ran, eventually, is_there, skip};

fn file_cluster() -> Cluster {
    Cluster::new(Kind::File).expect("no server needed")
}

fn curl(bench: &Bench, words: &[&str]) -> Ran {
    let mut curl = bench.command("curl");
    curl.args(["-s", "-m", "10", "-w", "\n%{http_code}"]).args(words);
    bench.run_command(curl)
}

/// The status of an answer.
#[track_caller]
fn status(host: &Host, path: &str, headers: &[&str]) -> String {
    let url = format!("http://{}{path}", host.listen);
    let words: Vec<&str> = headers.iter().flat_map(|header| ["-H", header]).collect();
    let ran = curl(&host.bench, &[&words[..], &[&url]].concat()).expect(0);
    ran.stdout.lines().last().unwrap_or_default().to_owned()
}

fn bearer(cluster: &Cluster) -> String {
    let token = fs::read_to_string(cluster.token()).expect("the token");
    format!("Authorization: Bearer {}", token.trim())
}

#[test]
fn a_token_is_made_at_first_and_then_is_everybodys() {
    let cluster = file_cluster();
    let mut first = cluster.host(&[]);
    first.leads(1);
    let mode = fs::metadata(cluster.token()).expect("the token").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let token = bearer(&cluster);
    let mut second = cluster.host(&[]);
    second.listens();
    assert_eq!(bearer(&cluster), token, "made anew");
    let own = format!("Origin: http://{}", first.listen);
    for host in [&first, &second] {
        for path in ["/healthz", "/leader", "/metrics"] {
            assert_eq!(status(host, path, &[&token]), "200", "{path}");
            assert_eq!(status(host, path, &[]), "401", "{path}");
        }
        assert_eq!(status(host, "/leader", &["Authorization: Bearer wrong"]), "401");
        assert_eq!(status(host, "/leader", &[&token, "Host: evil.example"]), "421");
        assert_eq!(status(host, "/leader", &[&token, "Origin: http://evil.example"]), "403");
        assert_eq!(status(host, "/leader", &[&token, "Origin: null"]), "403");
    }
    assert_eq!(status(&first, "/leader", &[&token, &own]), "200");
    let secret = token.rsplit(' ').next().expect("a word").to_owned();
    for host in [first, second] {
        let log = host.stop().expect(0).stderr;
        assert!(!log.contains(&secret), "{log}");
    }
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let cluster = file_cluster();
    let mut host = cluster.host(&[]);
    host.leads(1);
    host.stop().expect(0);
    let token = cluster.token();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("a mode");
    let ran = cluster.host(&[]).running.finish().expect(2);
    let told = format!("run `chmod 600 {}`", token.display());
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a mode");
    let mut host = cluster.host(&[]);
    host.leads(1);
    host.stop().expect(0);
}

#[test]
fn another_address_than_loopback_is_served_by_tls_only() {
    if !is_there("curl") {
        let name = "leadership::access::another_address_than_loopback_is_served_by_tls_only";
        return skip(name, "no curl");
    }
    let cluster = file_cluster();
    let port = free_port();
    let (listen, at) = (format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}"));
    let mut host = cluster.host_at(&cluster.url, &listen, &at, &[]);
    host.leads(1);
    let token = bearer(&cluster);
    assert_ne!(curl(&cluster.bench, &["-H", &token, &format!("http://{at}/leader")]).code(), 0);
    let url = format!("https://{at}/leader");
    assert_ne!(curl(&cluster.bench, &["-H", &token, &url]).code(), 0, "nobody vouches for it");
    let ca = cluster.bench.path("state/ca.pem");
    let ca = ca.to_str().expect("text");
    let ran = curl(&cluster.bench, &["--cacert", ca, "-H", &token, &url]).expect(0);
    assert!(ran.stdout.ends_with("200"), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("https://{at}")), "{}", ran.stdout);
    host.stop().expect(0);
    let cell = cluster.bench.run(&["cell", "--listen", "0.0.0.0:0"]).expect(2);
    cell.stderr_has("needs TLS: give --tls-cert FILE --tls-key FILE");
}

const CERTIFICATES: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1
";

/// Makes an authority and a certificate of it for 127.0.0.1.
fn certify(bench: &Bench) {
    bench.write("config", CERTIFICATES);
    let key = "-config config -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    for words in [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -extensions authority -subj /CN=ca"),
        format!("req -new {key} -keyout host.key -out host.csr -subj /CN=host"),
        "x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out host.pem -days 2 -extfile config -extensions server".to_owned(),
    ] {
        let mut openssl = Command::new("openssl");
        let output = openssl.args(words.split(' ')).current_dir(bench.dir()).output();
        let output = output.expect("openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn hosts_with_tls_are_reached_and_forward() {
    if !is_there("openssl") {
        return skip("leadership::access::hosts_with_tls_are_reached_and_forward", "no openssl");
    }
    let cluster = file_cluster();
    certify(&cluster.bench);
    let file = |name: &str| cluster.bench.path(name).display().to_string();
    let (cert, key, ca) = (file("host.pem"), file("host.key"), file("ca.pem"));
    let more = ["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca];
    let start = || {
        let port = free_port();
        let (listen, advertise) = (format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}"));
        cluster.host_at(&cluster.url, &listen, &advertise, &more)
    };
    let mut first = start();
    first.leads(1);
    let mut second = start();
    second.listens();
    let token = bearer(&cluster);
    let get = |host: &Host, path: &str, more: &[&str]| {
        let url = format!("https://{}{path}", host.address);
        curl(&cluster.bench, &[more, &["-H", &token, &url]].concat())
    };
    let trusting = ["--cacert", &*ca];
    assert!(get(&first, "/leader", &trusting).expect(0).stdout.contains("\"here\":true"));
    // 60: the certificate is nobody's.
    get(&first, "/leader", &[]).expect(60);
    eventually("the standby to forward", || {
        let answer = get(&second, "/v1/nothing", &trusting).stdout;
        answer.contains("\"code\":\"not_found\"").then_some(())
    });
    // Without TLS there is nothing.
    let plain = format!("http://{}/leader", first.address);
    assert_ne!(curl(&cluster.bench, &["-H", &token, &plain]).code(), 0);
}

/// A store that wants a password: its URL with that of the test in place of `PASSWORD`.
fn secured(kind: Kind) -> Result<String, String> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} names no server"));
    let ca = variable("KAPELL_TEST_CA")?;
    let unique = format!("a{}{}", std::process::id(), free_port());
    Ok(match kind {
        Kind::File | Kind::DynamoDb => return Err(format!("{kind:?} has no password in its URL")),
        Kind::Etcd => {
            let server = variable("KAPELL_TEST_ETCD_TLS")?;
            let server = server.trim_start_matches("https://");
            format!("etcds://root:PASSWORD@{server}/{unique}?ca={ca}")
        }
        Kind::Postgres => {
            let server = variable("KAPELL_TEST_POSTGRES")?;
            let server = server.replace("postgres@", "kapell:PASSWORD@");
            format!("{server}?schema={unique}&sslrootcert={ca}")
        }
        Kind::Cassandra => {
            let server = variable("KAPELL_TEST_CASSANDRA")?;
            let server = server.replace(":secret@", ":PASSWORD@");
            format!("{server}/commands/{unique}?replication=1&tls=true&ca={ca}")
        }
    })
}

pub(super) fn a_password_opens_the_store_and_is_not_shown(kind: Kind, name: &str) {
    let url = match secured(kind) {
        Ok(url) => url,
        Err(reason) => return skip(&format!("leadership::access::{name}"), &reason),
    };
    let hides = |ran: &Ran, password: &str| {
        let both = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!both.contains(password), "{both}");
    };
    let bench = Bench::new();
    let wrong = url.replace("PASSWORD", "terces");
    for words in [
        &["host", "--store", &wrong, "--advertise", "127.0.0.1:1", "--listen", "127.0.0.1:0"][..],
        &["seats", "--store", &wrong],
        &["store", "backup", &wrong, "backup"],
        &["store", "copy", "mem:", &wrong],
    ] {
        let ran = bench.run(words).expect(2);
        ran.stderr_has("refused the credentials");
        hides(&ran, "terces");
    }
    let right = url.replace("PASSWORD", "secret");
    let cluster = Cluster { bench: Bench::new().set("KAPELL_STORE", &right), kind, url: right };
    let mut host = cluster.host(&[]);
    host.leads(1);
    assert_eq!(cluster.seat().expect("a seat").epoch, 1);
    hides(&cluster.seats(), "secret");
    hides(&cluster.bench.run(&["seats"]).expect(0), "secret");
    for words in [&["config", "show"][..], &["config", "show", "--output", "json"]] {
        let shown = cluster.bench.run(words).expect(0);
        assert!(shown.stdout.contains("127.0.0.1"), "{}", shown.stdout);
        hides(&shown, "secret");
    }
    let refused = cluster.bench.run(&["store", "copy", "mem:", &cluster.url]).expect(2);
    refused.stderr_has("is held by ");
    hides(&refused, "secret");
    hides(&host.stop().expect(0), "secret");
}

#[test]
fn a_password_opens_etcd_and_is_not_shown() {
    let name = "a_password_opens_etcd_and_is_not_shown";
    a_password_opens_the_store_and_is_not_shown(Kind::Etcd, name);
}

#[test]
fn a_password_opens_postgres_and_is_not_shown() {
    let name = "a_password_opens_postgres_and_is_not_shown";
    a_password_opens_the_store_and_is_not_shown(Kind::Postgres, name);
}
