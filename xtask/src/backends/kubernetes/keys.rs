//! Who is who in a cluster: an authority of its own, and what it has signed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::certificates::openssl;
use crate::command;
use crate::error::Result;

/// The address at which pods find the API server.
pub(super) const SERVICE: &str = "10.96.0.1";
/// The one node; a kubelet takes its address from such a name, and no other way lets it have this address.
pub(super) const NODE: &str = "127.0.0.1";
const NEW: &str = "-config config -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
const DAYS: &str = "3650";

/// A certificate that the authority signs.
#[derive(Debug)]
struct Signed {
    name: &'static str,
    subject: &'static str,
    /// Which section of the configuration says what it is for.
    section: &'static str,
    days: &'static str,
}

const fn client(name: &'static str, subject: &'static str) -> Signed {
    Signed { name, subject, section: "client", days: DAYS }
}

#[rustfmt::skip]
const SIGNED: &[Signed] = &[
    Signed { name: "server", subject: "/CN=server", section: "server", days: DAYS },
    // What the API server itself asks others with.
    client("server-client",      "/O=system:masters/CN=kube-apiserver"),
    client("admin",              "/O=system:masters/CN=admin"),
    // Of the masters, so that its controllers need no accounts before they start.
    client("controller-manager", "/O=system:masters/CN=system:kube-controller-manager"),
    client("scheduler",          "/CN=system:kube-scheduler"),
    client("kubelet",            "/O=system:nodes/CN=system:node:127.0.0.1"),
    client("stranger",           "/CN=stranger"),
    Signed { name: "expired", subject: "/O=system:masters/CN=admin", section: "client", days: "-1" },
];

/// Who has a file to go to the cluster with: the file, and the certificate that it shows.
#[rustfmt::skip]
const CONFIGS: &[(&str, &str)] = &[
    ("kubeconfig",              "admin"),
    ("stranger.kubeconfig",     "stranger"),
    ("expired.kubeconfig",      "expired"),
    ("controller-manager.conf", "controller-manager"),
    ("scheduler.conf",          "scheduler"),
    ("kubelet.conf",            "kubelet"),
];

fn config() -> String {
    let common = "basicConstraints = critical, CA:FALSE\nkeyUsage = critical, digitalSignature\n";
    let names = "DNS:localhost, DNS:kubernetes, DNS:kubernetes.default, DNS:kubernetes.default.svc";
    format!(
        "[req]\ndistinguished_name = name\nprompt = no\n[name]\n\
         [authority]\nbasicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign, cRLSign\n\
         subjectKeyIdentifier = hash\n\
         [server]\n{common}extendedKeyUsage = serverAuth, clientAuth\n\
         subjectAltName = IP:127.0.0.1, IP:{SERVICE}, {names}\n\
         [client]\n{common}extendedKeyUsage = clientAuth\n"
    )
}

/// Makes all keys and certificates in `keys` below `dir`, and the files of those who go to `server` with them.
///
/// The authority's own key stays there: tests may sign what they like.
pub(super) fn make(dir: &Path, server: &str) -> Result<()> {
    let keys = dir.join("keys");
    fs::create_dir(&keys)?;
    fs::write(keys.join("config"), config())?;
    let authority = "-keyout ca.key -out ca.pem -extensions authority -subj /CN=kapell-cluster";
    openssl(&keys, &format!("req -x509 {NEW} {authority} -days {DAYS}"))?;
    openssl(
        &keys,
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out accounts.key",
    )?;
    openssl(&keys, "pkey -in accounts.key -pubout -out accounts.pub")?;
    for Signed { name, subject, section, days } in SIGNED {
        openssl(
            &keys,
            &format!("req -new {NEW} -keyout {name}.key -out {name}.csr -subj {subject}"),
        )?;
        let what = format!("-days {days} -extfile config -extensions {section}");
        let by = "-CA ca.pem -CAkey ca.key -CAcreateserial";
        openssl(&keys, &format!("x509 -req -in {name}.csr {by} -out {name}.pem {what}"))?;
    }
    for (file, name) in CONFIGS {
        let inline = |name: String| inline(&keys.join(name));
        let (authority, certificate, key) = (
            inline("ca.pem".to_owned())?,
            inline(format!("{name}.pem"))?,
            inline(format!("{name}.key"))?,
        );
        let config = kubeconfig(name, server, &authority, &certificate, &key);
        fs::write(dir.join(file), format!("{config:#}\n"))?;
    }
    Ok(())
}

fn inline(path: &Path) -> Result<String> {
    command::output(std::process::Command::new("base64").arg("--wrap=0").arg(path))
}

fn kubeconfig(user: &str, server: &str, authority: &str, certificate: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": server, "certificate-authority-data": authority,
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": certificate, "client-key-data": key,
        }}],
        "contexts": [{"name": "test", "context": {
            "cluster": "test", "user": user, "namespace": "default",
        }}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::process::Command;

    fn look(scratch: &Scratch, words: &str) -> String {
        let mut openssl = Command::new("openssl");
        let openssl = openssl.args(words.split(' ')).current_dir(scratch.path().join("keys"));
        String::from_utf8(openssl.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn everyone_is_known_to_the_authority_and_has_a_file_of_their_own() {
        let scratch = Scratch::new("keys").unwrap();
        make(scratch.path(), "https://127.0.0.1:1").unwrap();
        for Signed { name, .. } in SIGNED.iter().filter(|signed| signed.days == DAYS) {
            let words = format!("verify -CAfile ca.pem {name}.pem");
            assert_eq!(look(&scratch, &words), format!("{name}.pem: OK\n"));
        }
        let names = look(&scratch, "x509 -in server.pem -noout -ext subjectAltName");
        assert!(names.contains("IP Address:127.0.0.1, IP Address:10.96.0.1, DNS:local"), "{names}");
        let subject = look(&scratch, "x509 -in kubelet.pem -noout -subject");
        assert_eq!(subject, "subject=O = system:nodes, CN = system:node:127.0.0.1\n");
        for (file, name) in CONFIGS {
            let text = fs::read_to_string(scratch.path().join(file)).unwrap();
            let config: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(config["users"][0]["name"], *name);
            assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");
        }
    }

    #[test]
    fn one_certificate_has_expired_before_it_is_made() {
        let scratch = Scratch::new("keys").unwrap();
        make(scratch.path(), "https://127.0.0.1:1").unwrap();
        let told = look(&scratch, "x509 -in expired.pem -noout -checkend 0");
        assert_eq!(told, "Certificate will expire\n");
        let told = look(&scratch, "x509 -in admin.pem -noout -checkend 86400");
        assert_eq!(told, "Certificate will not expire\n");
    }
}
