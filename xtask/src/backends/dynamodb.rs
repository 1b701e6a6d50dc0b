use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::cache::Cache;
use super::process;
use super::table::{Launch, Recipe};
use crate::command;
use crate::error::{Result, failed};
use crate::tools::{self, Tool};

const VERSION: &str = "3.1.0";
const INSTALLED: &str = "dynamodb-local-3.1.0";
/// In the directory of the installed version: takes the options of DynamoDB Local and becomes it.
const SCRIPT: &str = "dynamodb-local";
const TOOLS: &[Tool] = &[
    Tool { program: "java", package: "openjdk-17-jdk-headless" },
    Tool { program: "javac", package: "openjdk-17-jdk-headless" },
    Tool { program: "jar", package: "openjdk-17-jdk-headless" },
    Tool { program: "mvn", package: "maven" },
];
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
/// What the server wants it to be called, without the version in the name.
const NATIVE: &str = "libsqlite4java-linux-amd64.so";
/// Classes as they are in memory: with it the server is up in half of the time.
const ARCHIVE: &str = "classes.jsa";
const LAUNCHER: &str = include_str!("Loopback.java");
const PATIENCE: Duration = Duration::from_secs(2);
const FIRST_START: Duration = Duration::from_secs(60);

/// Amazon's own emulator, from Maven Central, in memory; it reports to nobody.
#[derive(Debug)]
pub(crate) struct DynamoDb;

impl Recipe for DynamoDb {
    fn install(&self, cache: &Cache) -> Result<()> {
        tools::require(&TOOLS[..1])?;
        if cache.path(INSTALLED).join(ARCHIVE).is_file() {
            return Ok(());
        }
        tools::require(TOOLS)?;
        eprintln!("backends: downloading DynamoDB Local {VERSION} from Maven Central");
        let kept = cache.fresh("dynamodb.kept")?;
        download(&kept)?;
        make_launcher(&kept)?;
        let home = cache.path(INSTALLED);
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        // An archive is good only for classes that lie where they lay.
        fs::rename(&kept, &home)?;
        fs::write(home.join(SCRIPT), script(&home)?)?;
        fs::set_permissions(home.join(SCRIPT), fs::Permissions::from_mode(0o755))?;
        make_archive(&home)
    }

    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch> {
        let [port] = process::free_ports()?;
        let mut command = process::detached(cache.path(INSTALLED).join(SCRIPT));
        command.args(["-port", &port.to_string(), "-inMemory", "-sharedDb", "-disableTelemetry"]);
        command.env("TMPDIR", dir);
        Ok(Launch { command, endpoint: format!("http://127.0.0.1:{port}") })
    }

    fn programs(&self, cache: &Cache) -> Result<PathBuf> {
        let script = cache.path(INSTALLED).join(SCRIPT);
        let missing = || failed("no DynamoDB Local: `cargo xtask backends up dynamodb` brings it");
        script.is_file().then_some(script).ok_or_else(missing)
    }

    fn answers(&self, _: &Cache, endpoint: &str) -> bool {
        ask(endpoint).is_some_and(|answer| answer.contains(" 200 "))
    }

    fn furnish(&self, _: &Cache, _: &str) -> Result<()> {
        Ok(())
    }
}

fn download(into: &Path) -> Result<()> {
    let pom = into.join("pom.xml");
    let wanted = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kapell</groupId>\
         <artifactId>tests</artifactId><version>1</version><dependencies><dependency>\
         <groupId>software.amazon.dynamodb</groupId><artifactId>DynamoDBLocal</artifactId>\
         <version>{VERSION}</version></dependency></dependencies></project>\n"
    );
    fs::write(&pom, wanted)?;
    let lib = into.join("lib");
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(&pom).arg(PLUGIN).arg("-DincludeScope=runtime");
    maven.arg(format!("-DoutputDirectory={}", lib.display()));
    command::output(&mut maven)?;
    let mut natives = files(&lib)?.into_iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libsqlite4java-linux-amd64") && name.ends_with(".so")
    });
    let native = natives.next().ok_or_else(|| failed("Maven brought no libsqlite4java"))?;
    fs::copy(native, lib.join(NATIVE))?;
    Ok(())
}

fn make_launcher(home: &Path) -> Result<()> {
    let (source, out) = (home.join("Loopback.java"), home.join("out"));
    fs::write(&source, LAUNCHER)?;
    let mut compile = Command::new("javac");
    compile.args(["-proc:none", "-cp"]).arg(format!("{}/*", home.join("lib").display()));
    compile.arg("-d").arg(&out).arg(&source);
    command::output(&mut compile)?;
    // The manifest of the server's own jar names the directory that it lies in as a place of classes, of which there can be
    // no archive then: the classes move into a jar without one.
    let own = home.join("lib").join(format!("DynamoDBLocal-{VERSION}.jar"));
    command::output(
        Command::new("jar").arg("--extract").arg("--file").arg(&own).current_dir(&out),
    )?;
    fs::remove_file(own)?;
    fs::remove_file(out.join("META-INF/MANIFEST.MF"))?;
    let mut pack = Command::new("jar");
    pack.arg("--create").arg("--no-manifest").arg("--file").arg(home.join("loopback.jar"));
    command::output(pack.arg("-C").arg(&out).arg("."))?;
    Ok(fs::remove_dir_all(out)?)
}

/// A command of its own, so that tests can start a server that they may kill.
fn script(home: &Path) -> Result<String> {
    let lib = home.join("lib");
    let mut jars: Vec<PathBuf> = files(&lib)?;
    jars.retain(|path| path.extension().is_some_and(|name| name == "jar"));
    jars.sort();
    jars.insert(0, home.join("loopback.jar"));
    let jars: Vec<String> = jars.iter().map(|jar| jar.display().to_string()).collect();
    let (lib, archive, jars) = (lib.display(), home.join(ARCHIVE), jars.join(":"));
    Ok(format!(
        "#!/bin/sh\n\
         # DynamoDB Local on 127.0.0.1; what it writes besides its database goes to TMPDIR.\n\
         archive='{}'\n\
         if [ -n \"$KAPELL_ARCHIVE\" ]; then how=\"-XX:ArchiveClassesAtExit=$KAPELL_ARCHIVE\"\n\
         else how=\"-XX:SharedArchiveFile=$archive\"; fi\n\
         DDB_LOCAL_TELEMETRY=0 exec java -Xms64m -Xmx512m -Xss512k -XX:+UseSerialGC \
         -XX:TieredStopAtLevel=1 -XX:-UsePerfData \"$how\" -Djava.library.path='{lib}' \
         -Dsqlite4java.library.path='{lib}' -Djava.io.tmpdir=\"${{TMPDIR:-/tmp}}\" \
         -cp '{jars}' Loopback \"$@\"\n",
        archive.display()
    ))
}

/// Runs it once: the archive is written when it ends.
fn make_archive(home: &Path) -> Result<()> {
    let [port] = process::free_ports()?;
    let (unfinished, endpoint) = (home.join("part"), format!("http://127.0.0.1:{port}"));
    let mut first = Command::new(home.join(SCRIPT));
    first.args(["-port", &port.to_string(), "-inMemory", "-sharedDb", "-disableTelemetry"]);
    first.env("KAPELL_ARCHIVE", &unfinished).env("TMPDIR", home).current_dir(home);
    first.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = first.spawn()?;
    let answered = process::poll(FIRST_START, || ask(&endpoint).is_some());
    process::kill(first.id(), libc::SIGTERM)?;
    first.wait()?;
    if !answered {
        return Err(failed(format!(
            "DynamoDB Local did not answer at {endpoint}; is {VERSION} whole?"
        )));
    }
    // In place only when it is complete: its name is the proof that all the rest is.
    Ok(fs::rename(unfinished, home.join(ARCHIVE))?)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// The first line of the answer to a question that only a whole server can answer. It does not look at signatures.
fn ask(endpoint: &str) -> Option<String> {
    let address: SocketAddr = endpoint.strip_prefix("http://")?.parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 2\r\n\
         Content-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: DynamoDB_20120810.ListTables\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=local/20200101/local/dynamodb/aws4_request, \
         SignedHeaders=host, Signature=0\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer).ok()?;
    Some(answer.lines().next()?.to_owned())
}
