use super::cluster::{Cluster, Kind};
use crate::bench::Bench;

fn host(bench: &Bench, url: &str, more: &[&str]) -> crate::bench::Ran {
    let mut args =
        vec!["host", "--store", url, "--advertise", "127.0.0.1:1", "--listen", "127.0.0.1:0"];
    args.extend(more);
    bench.run(&args).expect(2)
}

#[test]
fn an_unknown_scheme_names_the_known_ones() {
    let bench = Bench::new();
    host(&bench, "redis://h:1", &[])
        .stderr_has("unknown scheme `redis`; known are mem:, file:DIR, etcd://");
    bench.run(&["seats", "--store", "nowhere"]).expect(2).stderr_has("it has no scheme");
    let ran = bench.run(&["seats"]).expect(2);
    ran.stderr_has("no store is named: give --store URL").stderr_has("cassandra://HOST/KEYSPACE");
}

#[test]
fn a_host_on_leases_is_refused_with_what_to_use_instead() {
    let bench = Bench::new();
    host(&bench, "kubernetes://jobs", &[])
        .stderr_has("Leases of Kubernetes hold elections and nothing else")
        .stderr_has("use etcd://HOST:PORT, postgres://USER@HOST/DATABASE, ")
        .stderr_has("cassandra://HOST/KEYSPACE or dynamodb://REGION/TABLE");
}

#[test]
fn a_server_that_is_not_there_is_named_with_what_was_tried() {
    let bench = Bench::new();
    for url in ["etcd://127.0.0.1:1", "postgres://u@127.0.0.1:1/d"] {
        let ran = host(&bench, url, &[]);
        ran.stderr_has("no answer from ").stderr_has("127.0.0.1:1").stderr_has(" after ");
        bench.run(&["seats", "--store", url]).expect(2).stderr_has("no answer from ");
    }
}

#[test]
fn seats_and_leases_out_of_range_are_refused() {
    let bench = Bench::new();
    let url = format!("file:{}", bench.path("db").display());
    host(&bench, &url, &["--seats", "0"]).stderr_has("invalid value '0' for '--seats <N>'");
    host(&bench, &url, &["--seats", "2"]).stderr_has("a file store has one seat, its lock");
    host(&bench, &url, &["--lease", "500ms"]).stderr_has("a lease is 1s to 365d");
    host(&bench, &url, &["--lease", "soon"]).stderr_has("write a duration such as 20s");
    assert!(!bench.exists("db"), "nothing was made");
}

#[test]
fn a_file_store_in_use_is_refused_to_all_but_host_and_seats() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let mut first = cluster.host(&[]);
    first.leads(1);
    let empty = format!("file:{}", cluster.bench.path("empty").display());
    cluster.bench.run(&["store", "copy", "mem:", &empty]).expect(0);
    cluster.bench.run(&["store", "backup", &empty, "whole"]).expect(0);
    let said = format!("pid {} (kapell host, {})", first.running.pid(), first.address);
    for command in [
        &["store", "backup", &cluster.url, "backup"][..],
        &["store", "restore", "whole", &cluster.url],
        &["store", "copy", &cluster.url, "mem:"],
    ] {
        let ran = cluster.bench.run(command).expect(2);
        ran.stderr_has("is in use by").stderr_has(&said);
    }
    assert_eq!(cluster.seat().expect("a seat").epoch, 1);
}

#[test]
fn a_lease_that_the_store_cannot_honour_is_refused() {
    let Ok(cluster) = Cluster::new(Kind::Etcd) else {
        return crate::bench::skip(
            "leadership::wrong::a_lease_that_the_store_cannot_honour_is_refused",
            "there is no etcd server here",
        );
    };
    host(&cluster.bench, &cluster.url, &["--lease", "1s"])
        .stderr_has("a lease of 1s is shorter than")
        .stderr_has("use --lease 2s or longer");
}
