use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::keys::NODE;

/// Asks the API server of the cluster in a directory, as its administrator.
#[derive(Debug)]
pub(super) struct Api<'a> {
    dir: &'a Path,
}

impl<'a> Api<'a> {
    pub(super) const fn of(dir: &'a Path) -> Self {
        Self { dir }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// Whether the node takes pods.
    pub(super) fn has_node(&self) -> bool {
        let node = self.get(&format!("/api/v1/nodes/{NODE}"));
        node.and_then(|text| serde_json::from_str(&text).ok()).is_some_and(|node| is_ready(&node))
    }

    /// Whether a pod that names no account would have one.
    pub(super) fn has_account(&self) -> bool {
        self.get("/api/v1/namespaces/default/serviceaccounts/default").is_some()
    }

    fn get(&self, path: &str) -> Option<String> {
        let config = fs::read_to_string(self.dir.join("kubeconfig")).ok()?;
        let config: Value = serde_json::from_str(&config).ok()?;
        let server = config["clusters"][0]["cluster"]["server"].as_str()?;
        let keys = self.dir.join("keys");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--max-time", "5"]);
        curl.arg("--cacert").arg(keys.join("ca.pem"));
        curl.arg("--cert").arg(keys.join("admin.pem")).arg("--key").arg(keys.join("admin.key"));
        let output = curl.arg(format!("{server}{path}")).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let is_good = |each: &Value| each["type"] == "Ready" && each["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_good))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_ready_when_it_says_so() {
        let node = |status: &str| {
            json!({"status": {"conditions": [
                {"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status},
            ]}})
        };
        assert!(is_ready(&node("True")));
        assert!(!is_ready(&node("Unknown")));
        assert!(!is_ready(&json!({"status": {}})));
    }
}
