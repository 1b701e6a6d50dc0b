//! The program: a hundred archives from Maven Central.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::super::cache::Cache;
use crate::command;
use crate::error::{Result, failed};
use crate::tools::{self, Tool};

const VERSION: &str = "5.0.9";
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
const RUN: Tool = Tool { program: "java", package: "openjdk-17-jre-headless" };
const FETCH: Tool = Tool { program: "mvn", package: "maven" };

pub(super) fn directory(cache: &Cache) -> PathBuf {
    cache.path(&format!("cassandra-{VERSION}"))
}

/// The classes of a server that has run, as the Java machine loads them fastest.
pub(super) fn archive(cache: &Cache) -> PathBuf {
    cache.path(&format!("cassandra-{VERSION}.jsa"))
}

/// Downloads everything, or changes nothing.
pub(super) fn provide(cache: &Cache) -> Result<()> {
    tools::require(&[RUN])?;
    if directory(cache).is_dir() {
        return Ok(());
    }
    tools::require(&[FETCH])?;
    eprintln!("backends: downloading Cassandra {VERSION} from Maven Central");
    let part = cache.fresh("cassandra.part")?;
    fs::write(part.join("pom.xml"), manifest())?;
    let jars = part.join("jars");
    let mut fetch = Command::new(FETCH.program);
    fetch.args(["--quiet", "--batch-mode", "--file"]).arg(part.join("pom.xml")).arg(COPY);
    fetch.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", jars.display()));
    command::output(&mut fetch)?;
    fs::rename(&jars, directory(cache))?;
    fs::remove_dir_all(&part)?;
    Ok(())
}

fn manifest() -> String {
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kapell</groupId><artifactId>servers</artifactId>\
         <version>1</version><dependencies><dependency><groupId>org.apache.cassandra</groupId>\
         <artifactId>cassandra-all</artifactId><version>{VERSION}</version></dependency></dependencies></project>\n"
    )
}

/// Always in the same order: an archive of classes is for one order only.
pub(super) fn list(cache: &Cache) -> Result<Vec<PathBuf>> {
    let dir = directory(cache);
    let found =
        fs::read_dir(&dir).map_err(|error| failed(format!("{}: {error}", dir.display())))?;
    let paths = found.filter_map(|entry| Some(entry.ok()?.path()));
    let mut jars: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|name| name == "jar")).collect();
    jars.sort();
    Ok(jars)
}
