//! What pods may not do unless the settings of their cluster allow it.

use serde_json::Value as Json;

/// What is allowed; nothing of it by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Privileged containers, namespaces of the node, capabilities beyond the usual ones.
    pub privileged: bool,
    /// Directories of the node.
    pub host_path: bool,
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// Capabilities that anybody may add.
const HARMLESS: [&str; 1] = ["NET_BIND_SERVICE"];

impl Policy {
    /// What of a pod is not allowed, each with its field below `at`.
    pub fn refuses(&self, pod: &Json, at: &str) -> Vec<String> {
        let mut found = Vec::new();
        if !self.privileged {
            privileged(pod, at, &mut found);
        }
        if !self.host_path {
            for (number, volume) in items(&pod["volumes"]) {
                if !volume["hostPath"].is_null() {
                    found.push(refused(&format!("{at}.volumes[{number}].hostPath"), "host_path"));
                }
            }
        }
        found
    }
}

fn privileged(pod: &Json, at: &str, found: &mut Vec<String>) {
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod[key] == true {
            found.push(refused(&format!("{at}.{key}"), "privileged"));
        }
    }
    if pod["securityContext"]["windowsOptions"]["hostProcess"] == true {
        let field = format!("{at}.securityContext.windowsOptions.hostProcess");
        found.push(refused(&field, "privileged"));
    }
    for list in CONTAINERS {
        for (number, container) in items(&pod[list]) {
            let context = &container["securityContext"];
            let field = format!("{at}.{list}[{number}].securityContext");
            if context["privileged"] == true {
                found.push(refused(&format!("{field}.privileged"), "privileged"));
            }
            if context["procMount"] == "Unmasked" {
                found.push(refused(&format!("{field}.procMount"), "privileged"));
            }
            if context["windowsOptions"]["hostProcess"] == true {
                found.push(refused(&format!("{field}.windowsOptions.hostProcess"), "privileged"));
            }
            for (number, capability) in items(&context["capabilities"]["add"]) {
                let name = capability.as_str().unwrap_or_default();
                if !HARMLESS.contains(&name.trim_start_matches("CAP_")) {
                    let field = format!("{field}.capabilities.add[{number}]");
                    found.push(refused(&field, "privileged"));
                }
            }
        }
    }
}

fn refused(field: &str, key: &str) -> String {
    format!("{field}: is not allowed (the cluster's settings would need `allow: [{key}]`)")
}

fn items(list: &Json) -> impl Iterator<Item = (usize, &Json)> {
    list.as_array().into_iter().flatten().enumerate()
}
