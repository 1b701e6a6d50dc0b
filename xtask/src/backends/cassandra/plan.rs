//! The files that a server is made of, as text.

use std::path::{Path, PathBuf};

use super::{JAVA, NAME};

pub(super) const DIRECTORIES: [&str; 4] = ["conf", "start", "pids", "logs"];
/// Where the key for TLS is, as Java reads it.
pub(super) const KEYS: &str = "keys.p12";
pub(super) const KEYS_PASSWORD: &str = "kapell";
/// Where a server that makes an archive of its classes puts it.
pub(super) const ARCHIVE: &str = "classes.jsa";

/// What a start does with the archive of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archive {
    Make,
    Use,
}

#[derive(Debug)]
pub(super) struct Ports {
    pub(super) clients: u16,
    pub(super) nodes: u16,
}

#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) dir: &'a Path,
    pub(super) jars: Vec<PathBuf>,
    pub(super) classes: PathBuf,
    pub(super) archive: Archive,
    pub(super) ports: Ports,
}

/// What of Java's own the server reaches into.
const EXPORTS: [&str; 8] = [
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.unsupported/sun.misc",
];
const OPENS: [&str; 16] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
];

impl Plan<'_> {
    /// Every file and what is in it, but for keys.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        vec![
            ("conf/cassandra.yaml", self.settings()),
            ("conf/logback.xml", Self::logging()),
            ("start/cassandra", self.script()),
        ]
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    /// Becomes the program, whose pid and log have their places: whoever ends the program starts it again with this.
    fn script(&self) -> String {
        let pid = self.path(&format!("pids/{NAME}"));
        let log = self.path(&format!("logs/{NAME}.log"));
        let words: Vec<String> = self.words().iter().map(|word| format!("'{word}'")).collect();
        let dir = self.path("");
        format!(
            "cd '{dir}'\necho $$ >'{pid}'\nexec {} </dev/null >>'{log}' 2>&1\n",
            words.join(" \\\n  ")
        )
    }

    /// No directory of classes and no agent may be named, or the archive of classes is not used.
    fn words(&self) -> Vec<String> {
        let mut words = vec![JAVA.to_owned()];
        words.extend(
            [
                "-Xms320M",
                "-Xmx320M",
                "-Xss384k",
                "-XX:+UseSerialGC",
                "-XX:MaxDirectMemorySize=192m",
                "-XX:ReservedCodeCacheSize=96m",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-Xshare:auto",
                "-Djava.awt.headless=true",
                "-Djna.nosys=true",
                "-Djdk.attach.allowAttachSelf=true",
                "-Dio.netty.tryReflectionSetAccessible=true",
                "-Dcassandra-foreground=yes",
                "-Dcassandra.skip_wait_for_gossip_to_settle=0",
                "-Dcassandra.ring_delay_ms=0",
                "-Dcassandra.superuser_setup_delay_ms=0",
                "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4",
                "-Dcassandra.memtable.row_overhead_size=200",
            ]
            .map(str::to_owned),
        );
        words.extend([
            format!("-Djava.io.tmpdir={}", self.path("")),
            format!("-Dlogback.configurationFile={}", self.path("conf/logback.xml")),
            format!("-Dcassandra.config=file://{}", self.path("conf/cassandra.yaml")),
            format!("-Dcassandra.storagedir={}", self.path("")),
            format!("-Dcassandra.logdir={}", self.path("logs")),
        ]);
        for (option, packages) in [("--add-exports", &EXPORTS[..]), ("--add-opens", &OPENS[..])] {
            for package in packages {
                words.extend([option.to_owned(), format!("{package}=ALL-UNNAMED")]);
            }
        }
        words.push(match self.archive {
            Archive::Make => format!("-XX:ArchiveClassesAtExit={}", self.path(ARCHIVE)),
            Archive::Use => format!("-XX:SharedArchiveFile={}", self.classes.display()),
        });
        let jars: Vec<_> = self.jars.iter().map(|jar| jar.to_string_lossy()).collect();
        words.extend(["-cp".to_owned(), jars.join(":")]);
        words.push("org.apache.cassandra.service.CassandraDaemon".to_owned());
        words
    }

    /// What is not said is as it is by default; limits on batches and sizes are not touched. Every write is on the disk
    /// before it is acknowledged. Timeouts are longer, since a machine that also builds is slow. A scan may pass a
    /// fifth of the usual number of deleted rows, so that tests need not delete as many.
    fn settings(&self) -> String {
        let Ports { clients, nodes } = &self.ports;
        let path = |name: &str| self.path(name);
        format!(
            "cluster_name: kapell
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: '127.0.0.1:{nodes}'}}]
listen_address: 127.0.0.1
storage_port: {nodes}
rpc_address: 127.0.0.1
native_transport_port: {clients}
start_native_transport: true
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
client_encryption_options:
  enabled: true
  optional: true
  require_client_auth: false
  keystore: {keys}
  keystore_password: {KEYS_PASSWORD}
  store_type: PKCS12
data_file_directories: ['{data}']
commitlog_directory: {commitlog}
hints_directory: {hints}
saved_caches_directory: {caches}
cdc_raw_directory: {changes}
commitlog_sync: batch
commitlog_total_space: 512MiB
memtable_heap_space: 96MiB
memtable_offheap_space: 64MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
key_cache_size: 4MiB
concurrent_reads: 8
concurrent_writes: 8
concurrent_compactors: 1
hinted_handoff_enabled: false
auto_snapshot: false
tombstone_warn_threshold: 1000
tombstone_failure_threshold: 20000
read_request_timeout: 20s
write_request_timeout: 20s
cas_contention_timeout: 10s
request_timeout: 20s
",
            keys = path(KEYS),
            data = path("data"),
            commitlog = path("commitlog"),
            hints = path("hints"),
            caches = path("caches"),
            changes = path("changes"),
        )
    }

    fn logging() -> String {
        "<configuration><appender name=\"OUT\" class=\"ch.qos.logback.core.ConsoleAppender\">\
         <encoder><pattern>%-5level %date{ISO8601} %F:%L - %msg%n</pattern></encoder></appender>\
         <root level=\"INFO\"><appender-ref ref=\"OUT\"/></root></configuration>\n"
            .to_owned()
    }
}
