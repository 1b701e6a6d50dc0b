//! What may be desired. All problems of a request are told at once, each with its field.

mod actions;
pub(crate) mod url;

use std::collections::BTreeSet;

use super::action::Variable;
use super::check::Check;
use super::desired::DesiredLrp;
use super::ids::{Domain, SecretName};
use super::task::TaskDefinition;

pub(crate) use url::scheme;

const LONGEST_NAME: usize = 200;
const LONGEST_ANNOTATION: usize = 10 * 1024;
const LARGEST_ROUTES: usize = 128 * 1024;
/// What the board adds to a record later must fit as well.
const LARGEST_RECORD: usize = 200 * 1024;
const MOST_INSTANCES: u32 = 100_000;

/// Everything that is wrong with a DesiredLRP; nothing if it may be desired.
pub fn desired(lrp: &DesiredLrp) -> Vec<String> {
    let mut found = Problems::default();
    found.guid("process_guid", lrp.process_guid.as_str(), lrp.process_guid.is_valid());
    found.domain(&lrp.domain);
    if lrp.instances > MOST_INSTANCES {
        found.add("instances", format!("must be at most {MOST_INSTANCES}, not {}", lrp.instances));
    }
    found.rootfs(lrp.rootfs.as_deref());
    found.tags(&lrp.placement_tags);
    found.env("env", &lrp.env);
    if let Some(setup) = &lrp.setup {
        found.actions("setup", setup);
    }
    found.actions("action", &lrp.action);
    if let Some(monitor) = &lrp.monitor {
        found.actions("monitor", monitor);
    }
    if lrp.monitor.is_some() && lrp.check.is_some() {
        found.add("check", "cannot stand beside `monitor`; leave one of them out");
    }
    for (field, check) in [("check", &lrp.check), ("readiness", &lrp.readiness)] {
        if let Some(check) = check {
            found.check(field, check, &lrp.ports);
        }
    }
    found.ports(&lrp.ports);
    found.annotation(&lrp.annotation);
    found.size("routes", written(&lrp.routes), LARGEST_ROUTES);
    found.size("the whole DesiredLRP", written(lrp), LARGEST_RECORD);
    found.texts
}

/// Everything that is wrong with a task; nothing if it may be created.
pub fn task(def: &TaskDefinition) -> Vec<String> {
    let mut found = Problems::default();
    found.guid("task_guid", def.task_guid.as_str(), def.task_guid.is_valid());
    found.domain(&def.domain);
    found.rootfs(def.rootfs.as_deref());
    found.tags(&def.placement_tags);
    found.env("env", &def.env);
    found.actions("action", &def.action);
    found.no_nul("result_file", &def.result_file);
    let callback = &def.completion_callback_url;
    if url::has_credentials(callback) {
        found.add("completion_callback_url", url::NO_CREDENTIALS);
    } else if !callback.is_empty() && !url::is_http(callback) {
        let right = "must be a URL such as `http://host:port/path` or `https://host/path`";
        found.add("completion_callback_url", format!("{right}, not {}", quoted(callback)));
    }
    found.annotation(&def.annotation);
    found.size("the whole task", written(def), LARGEST_RECORD);
    found.texts
}

/// Everything that is wrong with the name of a domain.
pub fn domain(domain: &Domain) -> Vec<String> {
    let mut found = Problems::default();
    found.domain(domain);
    found.texts
}

/// Everything that is wrong with the name of a secret.
pub fn secret_name(name: &SecretName) -> Vec<String> {
    let mut found = Problems::default();
    found.guid("name", name.as_str(), name.is_valid());
    found.texts
}

/// Everything that is wrong with the variables of a program.
pub(crate) fn variables(field: &str, env: &[Variable]) -> Vec<String> {
    let mut found = Problems::default();
    found.env(field, env);
    found.texts
}

/// Everything that is wrong with the name of a root file system.
pub fn rootfs(rootfs: &str) -> Vec<String> {
    let mut found = Problems::default();
    found.rootfs(Some(rootfs));
    found.texts
}

#[derive(Debug, Default)]
struct Problems {
    texts: Vec<String>,
}

impl Problems {
    fn add(&mut self, field: &str, text: impl AsRef<str>) {
        self.texts.push(format!("{field}: {}", text.as_ref()));
    }

    fn guid(&mut self, field: &str, text: &str, valid: bool) {
        if !valid {
            let right = "must be 1 to 200 letters, digits, `-` or `_`";
            self.add(field, format!("{right}, not {}", quoted(text)));
        }
    }

    fn domain(&mut self, domain: &Domain) {
        let text = domain.as_str();
        let fits = (1..=LONGEST_NAME).contains(&text.len())
            && !text.contains(|letter: char| letter == '/' || letter.is_control());
        if !fits {
            let right = "must be 1 to 200 bytes of printable text without `/`";
            self.add("domain", format!("{right}, not {}", quoted(text)));
        }
    }

    fn rootfs(&mut self, rootfs: Option<&str>) {
        let Some(rootfs) = rootfs else { return };
        let has_scheme = scheme(rootfs).is_some_and(|scheme| rootfs.len() > scheme.len() + 1);
        if !has_scheme || rootfs.contains(char::is_control) {
            let right = "must be a URL with a scheme such as `oci:///path` or `docker:///image`";
            self.add("rootfs", format!("{right}, not {}", quoted(rootfs)));
        }
    }

    fn tags(&mut self, tags: &[String]) {
        if tags.iter().any(String::is_empty) {
            self.add("placement_tags", "must not hold an empty tag");
        }
    }

    fn env(&mut self, field: &str, env: &[Variable]) {
        for (place, var) in env.iter().enumerate() {
            let fits = !var.name.is_empty() && !var.name.contains(['=', '\0']);
            if !fits {
                let right = "must be non-empty, without `=` and without a NUL byte";
                let text = format!("{right}, not {}", quoted(&var.name));
                self.add(&format!("{field}[{place}].name"), text);
            }
            match (&var.value, &var.secret) {
                (Some(value), None) => self.no_nul(&format!("{field}[{place}].value"), value),
                (None, Some(secret)) => {
                    let field = format!("{field}[{place}].secret");
                    self.guid(&field, secret.as_str(), secret.is_valid());
                }
                (Some(_), Some(_)) | (None, None) => {
                    let text = "must have exactly one of `value` and `secret`";
                    self.add(&format!("{field}[{place}]"), text);
                }
            }
        }
    }

    fn needed(&mut self, field: &str, text: &str) {
        if text.is_empty() {
            self.add(field, "must not be empty");
        }
        self.no_nul(field, text);
    }

    fn no_nul(&mut self, field: &str, text: &str) {
        if text.contains('\0') {
            self.add(field, "must not contain a NUL byte");
        }
    }

    fn ports(&mut self, ports: &[u16]) {
        let mut seen = BTreeSet::new();
        for port in ports {
            if *port == 0 {
                self.add("ports", "must be 1 to 65535, not 0");
            } else if !seen.insert(port) {
                self.add("ports", format!("must name each port once, not {port} again"));
            }
        }
    }

    fn check(&mut self, field: &str, check: &Check, ports: &[u16]) {
        if check.http.is_some() == check.tcp.is_some() {
            self.add(field, "must have exactly one of `http` and `tcp`");
        }
        let http = check.http.as_ref().map(|http| ("http", http.port));
        let tcp = check.tcp.map(|tcp| ("tcp", tcp.port));
        for (kind, port) in http.into_iter().chain(tcp).filter(|(_, port)| !ports.contains(port)) {
            let text = format!("must be one of `ports`, not {port}");
            self.add(&format!("{field}.{kind}.port"), text);
        }
        if let Some(http) = check.http.as_ref().filter(|http| !url::is_path(&http.path)) {
            let text =
                format!("must begin with `/` and have no spaces, not {}", quoted(&http.path));
            self.add(&format!("{field}.http.path"), text);
        }
    }

    fn annotation(&mut self, annotation: &str) {
        self.size("annotation", annotation.len(), LONGEST_ANNOTATION);
    }

    fn size(&mut self, field: &str, bytes: usize, most: usize) {
        if bytes > most {
            self.add(field, format!("must be at most {} KiB, not {bytes} bytes", most / 1024));
        }
    }
}

/// How many bytes it takes in a record; what cannot be written takes too many.
pub(crate) fn written(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// A text as a message shows it: short, and with nothing that could garble a terminal.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}
