//! An authority of our own and a certificate of it for 127.0.0.1, made once by `openssl`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::Cache;
use crate::error::{Result, failed};
use crate::tools;

const DIR: &str = "certificates";
const DAYS: &str = "3650";
/// One that ends within a day is made anew.
const SPARE_SECONDS: &str = "86400";

/// Our own, so that no setting of the machine changes what the certificates say.
const CONFIG: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// What a server needs to show who it is.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Makes the certificates unless there are good ones.
pub(crate) fn provide(cache: &Cache) -> Result<()> {
    tools::require(&[tools::OPENSSL])?;
    let dir = cache.path(DIR);
    if dir.join("server.key").is_file() && lasts(&dir, "ca.pem") && lasts(&dir, "server.pem") {
        return Ok(());
    }
    let part = cache.fresh("certificates.part")?;
    fs::write(part.join("config"), CONFIG)?;
    let key = "-config config -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    for words in [
        format!(
            "req -x509 {key} -keyout ca.key -out ca.pem -days {DAYS} -extensions authority -subj /CN=kapell-test-ca"
        ),
        format!("req -new {key} -keyout server.key -out server.csr -subj /CN=127.0.0.1"),
        format!(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days {DAYS} -extfile config -extensions server"
        ),
    ] {
        openssl(&part, &words)?;
    }
    // Nobody is to sign anything more with it.
    fs::remove_file(part.join("ca.key"))?;
    cache.fresh(DIR)?;
    fs::rename(&part, &dir)?;
    Ok(())
}

/// Puts certificate and key into a server's own directory.
pub(crate) fn install(cache: &Cache, dir: &Path) -> Result<Pair> {
    let copy = |name: &str, mode| -> Result<PathBuf> {
        let (from, to) = (cache.path(DIR).join(name), dir.join(name));
        fs::copy(&from, &to)
            .and_then(|_| fs::set_permissions(&to, fs::Permissions::from_mode(mode)))
            .map_err(|error| failed(format!("{} to {}: {error}", from.display(), to.display())))?;
        Ok(to)
    };
    Ok(Pair { certificate: copy("server.pem", 0o644)?, key: copy("server.key", 0o600)? })
}

fn lasts(dir: &Path, name: &str) -> bool {
    let mut check = Command::new("openssl");
    check.args(["x509", "-noout", "-checkend", SPARE_SECONDS, "-in"]).arg(dir.join(name));
    check.stdout(Stdio::null()).stderr(Stdio::null());
    check.status().is_ok_and(|status| status.success())
}

/// Runs `openssl` in a directory; words have no blanks in them.
pub(super) fn openssl(dir: &Path, words: &str) -> Result<()> {
    let mut openssl = Command::new("openssl");
    let output = openssl.args(words.split(' ')).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("openssl: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("openssl {words}: {}\n{}", output.status, text.trim())))
}
