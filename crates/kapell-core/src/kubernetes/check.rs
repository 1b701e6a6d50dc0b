//! What is wrong with work for a cluster, before anything is sent there.

use serde_json::{Map, Value as Json};

use super::payload::KubernetesPayload;
use crate::board::validate::quoted;
use crate::source::closest;

const AT: &str = "kubernetes";
const LONGEST_NAME: usize = 63;

/// Those of a PodSpec. What is like one of them is a slip; what is like none may be new: the cluster judges it.
const POD: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];
const CONTAINER: &[&str] = &[
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];

/// Everything that is wrong with it, each with its field.
pub fn faults(payload: &KubernetesPayload) -> Vec<String> {
    let mut found = Found(Vec::new());
    if !payload.namespace.is_empty() && !is_name(&payload.namespace) {
        found.name(&format!("{AT}.namespace"), &payload.namespace);
    }
    match &payload.pod_spec {
        Some(spec) => {
            for key in payload.beside_pod_spec() {
                found.add(&format!("{AT}.{key}"), "stands beside `pod_spec`, which says all of it");
            }
            let at = format!("{AT}.pod_spec");
            match spec.as_object() {
                Some(pod) => found.pod(pod, &at),
                None => found.add(&at, format!("must be a mapping, not {}", what(spec))),
            }
        }
        None => found.short(payload),
    }
    found.0
}

struct Found(Vec<String>);

impl Found {
    fn add(&mut self, field: &str, text: impl AsRef<str>) {
        self.0.push(format!("{field}: {}", text.as_ref()));
    }

    fn name(&mut self, field: &str, text: &str) {
        let right = "must be 1 to 63 lower-case letters, digits or `-`, beginning and ending with a letter or digit";
        self.add(field, format!("{right}, not {}", quoted(text)));
    }

    fn short(&mut self, payload: &KubernetesPayload) {
        match &payload.image {
            None => self.add(AT, "must have `pod_spec` or `image`"),
            Some(image) if image.trim().is_empty() => {
                self.add(&format!("{AT}.image"), "must not be empty");
            }
            Some(_) => {}
        }
        for (at, variable) in payload.env.iter().enumerate() {
            if variable.secret.is_some() {
                let why = "a secret of Kapell does not leave it; use `env_from_secret`, a secret of the cluster";
                self.add(&format!("{AT}.env[{at}].secret"), why);
            }
        }
        for (at, secret) in payload.env_from_secret.iter().enumerate() {
            if !is_subdomain(secret) {
                self.name(&format!("{AT}.env_from_secret[{at}]"), secret);
            }
        }
        if let Some(account) = payload.service_account.as_ref().filter(|it| !is_subdomain(it)) {
            self.name(&format!("{AT}.service_account"), account);
        }
        if let Some(resources) = &payload.resources {
            self.resources(resources, &format!("{AT}.resources"));
        }
    }

    fn pod(&mut self, pod: &Map<String, Json>, at: &str) {
        if let Some(whole) = ["spec", "template"].iter().find(|key| pod.contains_key(**key)) {
            return self
                .add(&format!("{at}.{whole}"), "write only what stands below `spec` of a pod");
        }
        self.keys(pod, POD, at);
        match pod.get("restartPolicy").and_then(Json::as_str) {
            None | Some("Never") => {}
            Some(other) => {
                let text =
                    format!("must be `Never`, not {}: Kapell tries again itself", quoted(other));
                self.add(&format!("{at}.restartPolicy"), text);
            }
        }
        if pod.contains_key("activeDeadlineSeconds") {
            let text = "leave it out: use `max_allowed_run_time` of a job, or `timeout` of a step";
            self.add(&format!("{at}.activeDeadlineSeconds"), text);
        }
        let mut names = Vec::new();
        match pod.get("containers") {
            None => self.add(&format!("{at}.containers"), "must be there, with at least one"),
            Some(Json::Array(items)) if items.is_empty() => {
                self.add(&format!("{at}.containers"), "must hold at least one");
            }
            Some(list) => self.containers(list, &format!("{at}.containers"), &mut names),
        }
        if let Some(list) = pod.get("initContainers") {
            self.containers(list, &format!("{at}.initContainers"), &mut names);
        }
        if let Some(volumes) = pod.get("volumes") {
            self.each(volumes, &format!("{at}.volumes"), |this, volume, at| {
                this.named(volume, at);
            });
        }
    }

    fn containers(&mut self, list: &Json, at: &str, names: &mut Vec<String>) {
        self.each(list, at, |this, container, at| {
            this.keys(container, CONTAINER, at);
            if let Some(name) = this.named(container, at) {
                if names.contains(&name) {
                    this.add(
                        &format!("{at}.name"),
                        format!("{} stands there twice", quoted(&name)),
                    );
                }
                names.push(name);
            }
            match container.get("image") {
                None => this.add(&format!("{at}.image"), "must be there"),
                Some(Json::String(image)) if image.trim().is_empty() => {
                    this.add(&format!("{at}.image"), "must not be empty");
                }
                Some(Json::String(_)) => {}
                Some(other) => this.not_text(&format!("{at}.image"), other),
            }
            for key in ["command", "args"] {
                if let Some(words) = container.get(key) {
                    this.texts(words, &format!("{at}.{key}"));
                }
            }
            if let Some(env) = container.get("env") {
                this.variables(env, &format!("{at}.env"));
            }
            if let Some(resources) = container.get("resources") {
                this.resources(resources, &format!("{at}.resources"));
            }
        });
    }

    fn variables(&mut self, env: &Json, at: &str) {
        self.each(env, at, |this, variable, at| {
            match variable.get("name") {
                Some(Json::String(name)) if !name.is_empty() => {}
                Some(Json::String(_)) | None => this.add(&format!("{at}.name"), "must be there"),
                Some(other) => this.not_text(&format!("{at}.name"), other),
            }
            match variable.get("value") {
                None | Some(Json::Null | Json::String(_)) => {}
                Some(other) => this.not_text(&format!("{at}.value"), other),
            }
        });
    }

    fn resources(&mut self, resources: &Json, at: &str) {
        let Json::Object(parts) = resources else {
            return self.add(at, format!("must be a mapping, not {}", what(resources)));
        };
        self.keys(parts, &["requests", "limits", "claims"], at);
        for part in ["requests", "limits"] {
            let Some(amounts) = parts.get(part) else { continue };
            let Json::Object(amounts) = amounts else {
                self.add(
                    &format!("{at}.{part}"),
                    format!("must be a mapping, not {}", what(amounts)),
                );
                continue;
            };
            for (name, amount) in amounts {
                let text = match amount {
                    Json::String(text) => text.clone(),
                    Json::Number(number) => number.to_string(),
                    Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => String::new(),
                };
                if !is_quantity(&text) {
                    let right = "must be a quantity such as `250m` or `64Mi`";
                    self.add(&format!("{at}.{part}.{name}"), format!("{right}, not {amount}"));
                }
            }
        }
    }

    /// A key that is like one of those that there are, but none of them.
    fn keys(&mut self, object: &Map<String, Json>, known: &[&str], at: &str) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            if let Some(meant) = closest(key, known.iter().copied()) {
                self.add(&format!("{at}.{key}"), format!("is no field; did you mean `{meant}`?"));
            }
        }
    }

    fn named(&mut self, object: &Map<String, Json>, at: &str) -> Option<String> {
        let field = format!("{at}.name");
        match object.get("name") {
            Some(Json::String(name)) if is_name(name) => return Some(name.clone()),
            Some(Json::String(name)) => self.name(&field, name),
            Some(other) => self.not_text(&field, other),
            None => self.add(&field, "must be there"),
        }
        None
    }

    fn texts(&mut self, list: &Json, at: &str) {
        let Json::Array(items) = list else {
            return self.add(at, format!("must be a list, not {}", what(list)));
        };
        for (number, item) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
            self.not_text(&format!("{at}[{number}]"), item);
        }
    }

    fn not_text(&mut self, field: &str, value: &Json) {
        self.add(field, format!("must be text, not {}; put it in quotes", what(value)));
    }

    fn each(
        &mut self,
        list: &Json,
        at: &str,
        mut judge: impl FnMut(&mut Self, &Map<String, Json>, &str),
    ) {
        let Json::Array(items) = list else {
            return self.add(at, format!("must be a list, not {}", what(list)));
        };
        for (number, item) in items.iter().enumerate() {
            let at = format!("{at}[{number}]");
            match item.as_object() {
                Some(object) => judge(self, object, &at),
                None => self.add(&at, format!("must be a mapping, not {}", what(item))),
            }
        }
    }
}

fn what(value: &Json) -> String {
    match value {
        Json::Null => "nothing".to_owned(),
        Json::Bool(_) | Json::Number(_) => format!("{value}"),
        Json::String(_) => "text".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "a mapping".to_owned(),
    }
}

/// A name that may be part of a host name.
pub(super) fn is_name(text: &str) -> bool {
    let inner =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Such names with dots between them.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_name)
}

/// A number with a unit of Kubernetes.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 15] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let digits =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let exponent = unit.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty());
    let is_unit = UNITS.contains(&unit)
        || unit == "Ei"
        || exponent.is_some_and(|rest| rest.trim_start_matches(['+', '-']).parse::<u8>().is_ok());
    number.parse::<f64>().is_ok() && is_unit
}
