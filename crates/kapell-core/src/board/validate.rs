//! What may be desired. All problems of a request are told at once, each with its field.

use std::collections::BTreeSet;

use super::action::{Action, EnvVar, Run};
use super::desired::DesiredLrp;
use super::ids::Domain;
use super::task::TaskDefinition;

const LONGEST_NAME: usize = 200;
const LONGEST_ANNOTATION: usize = 10 * 1024;
const LARGEST_ROUTES: usize = 128 * 1024;
/// What the board adds to a record later must fit as well.
const LARGEST_RECORD: usize = 200 * 1024;
const MOST_INSTANCES: u32 = 100_000;
const DEEPEST_ACTION: usize = 16;

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
        found.action("setup", setup, 1);
    }
    found.action("action", &lrp.action, 1);
    if let Some(monitor) = &lrp.monitor {
        found.action("monitor", monitor, 1);
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
    found.action("action", &def.action, 1);
    found.no_nul("result_file", &def.result_file);
    let callback = &def.completion_callback_url;
    if !callback.is_empty() && !is_http_url(callback) {
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

/// Everything that is wrong with the name of a root file system.
pub fn rootfs(rootfs: &str) -> Vec<String> {
    let mut found = Problems::default();
    found.rootfs(Some(rootfs));
    found.texts
}

/// What cells cannot run yet of an action.
pub fn unsupported(action: &Action) -> Vec<String> {
    if action.as_run().is_some() {
        return Vec::new();
    }
    vec![format!("action: `{}` cannot be run by cells yet; use `run`", name(action))]
}

/// What cells cannot do yet of a DesiredLRP.
pub fn unsupported_in_desired(lrp: &DesiredLrp) -> Vec<String> {
    let mut texts = unsupported(&lrp.action);
    let parts = [("setup", lrp.setup.is_some()), ("monitor", lrp.monitor.is_some())];
    for (part, _) in parts.into_iter().filter(|(_, there)| *there) {
        texts.push(format!("{part}: cannot be run by cells yet; leave it out"));
    }
    texts.extend(unsupported_rootfs(lrp.rootfs.as_deref()));
    texts
}

/// What cells cannot do yet of a task.
pub fn unsupported_in_task(def: &TaskDefinition) -> Vec<String> {
    let mut texts = unsupported(&def.action);
    texts.extend(unsupported_rootfs(def.rootfs.as_deref()));
    texts
}

fn unsupported_rootfs(rootfs: Option<&str>) -> Option<String> {
    rootfs.map(|_| "rootfs: only the process driver is there; leave rootfs out".to_owned())
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

    fn env(&mut self, field: &str, env: &[EnvVar]) {
        for (place, var) in env.iter().enumerate() {
            let fits = !var.name.is_empty() && !var.name.contains(['=', '\0']);
            if !fits {
                let right = "must be non-empty, without `=` and without a NUL byte";
                let text = format!("{right}, not {}", quoted(&var.name));
                self.add(&format!("{field}[{place}].name"), text);
            }
            self.no_nul(&format!("{field}[{place}].value"), &var.value);
        }
    }

    fn action(&mut self, field: &str, action: &Action, depth: usize) {
        if depth > DEEPEST_ACTION {
            self.add(field, format!("must be nested at most {DEEPEST_ACTION} deep"));
            return;
        }
        let field = format!("{field}.{}", name(action));
        match action {
            Action::Run(run) => self.run(&field, run),
            Action::Download(download) => {
                self.needed(&format!("{field}.from"), &download.from);
                self.needed(&format!("{field}.to"), &download.to);
            }
            Action::Upload(upload) => {
                self.needed(&format!("{field}.from"), &upload.from);
                self.needed(&format!("{field}.to"), &upload.to);
            }
            Action::Timeout(timeout) => {
                if timeout.timeout_ms == 0 {
                    self.add(&format!("{field}.timeout_ms"), "must be more than 0");
                }
                self.action(&field, &timeout.action, depth + 1);
            }
            Action::Try(nested) => self.action(&field, &nested.action, depth + 1),
            Action::EmitProgress(progress) => self.action(&field, &progress.action, depth + 1),
            Action::Parallel(several) | Action::Serial(several) | Action::Codependent(several) => {
                if several.actions.is_empty() {
                    self.add(&format!("{field}.actions"), "must hold at least one action");
                }
                for (place, action) in several.actions.iter().enumerate() {
                    self.action(&format!("{field}.actions[{place}]"), action, depth + 1);
                }
            }
        }
    }

    fn run(&mut self, field: &str, run: &Run) {
        self.needed(&format!("{field}.path"), &run.path);
        for (place, arg) in run.args.iter().enumerate() {
            self.no_nul(&format!("{field}.args[{place}]"), arg);
        }
        for (part, text) in [("dir", &run.dir), ("user", &run.user)] {
            if let Some(text) = text {
                self.needed(&format!("{field}.{part}"), text);
            }
        }
        self.env(&format!("{field}.env"), &run.env);
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

    fn annotation(&mut self, annotation: &str) {
        self.size("annotation", annotation.len(), LONGEST_ANNOTATION);
    }

    fn size(&mut self, field: &str, bytes: usize, most: usize) {
        if bytes > most {
            self.add(field, format!("must be at most {} KiB, not {bytes} bytes", most / 1024));
        }
    }
}

const fn name(action: &Action) -> &'static str {
    match action {
        Action::Run(_) => "run",
        Action::Download(_) => "download",
        Action::Upload(_) => "upload",
        Action::Timeout(_) => "timeout",
        Action::Try(_) => "try",
        Action::Parallel(_) => "parallel",
        Action::Serial(_) => "serial",
        Action::Codependent(_) => "codependent",
        Action::EmitProgress(_) => "emit_progress",
    }
}

/// How many bytes it takes in a record; what cannot be written takes too many.
fn written(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// A text as a message shows it: short, and with nothing that could garble a terminal.
fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// What stands before the first colon of a URL, if it can be a scheme.
pub(crate) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let mut letters = scheme.bytes();
    let fits = letters.next()?.is_ascii_alphabetic()
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    fits.then_some(scheme)
}

fn is_http_url(url: &str) -> bool {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let rest = ["http://", "https://"]
        .into_iter()
        .find(|scheme| lower.starts_with(scheme))
        .and_then(|scheme| url.get(scheme.len()..));
    let clean = !url.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    clean && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']))
}
