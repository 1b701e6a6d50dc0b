//! What a run on a cluster does: all of a pod, or what most of them say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::policy::Policy;
use crate::board::Variable;
use crate::job::JobDefinition;

/// The name of the only container of the short form.
pub(super) const MAIN: &str = "main";

/// Either `pod_spec`, or `image` with what stands beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesPayload {
    /// One of the clusters of the settings; without it, the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// One of those of the cluster; without it, the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// A PodSpec of Kubernetes as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_spec: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Instead of the entry point of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    /// Secrets of the cluster, each key of which is a variable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from_secret: Vec<String>,
    /// `requests` and `limits` of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

impl KubernetesPayload {
    /// Which of the keys that a `pod_spec` says itself stand beside it.
    pub(super) fn beside_pod_spec(&self) -> Vec<&'static str> {
        let there = [
            ("image", self.image.is_some()),
            ("command", !self.command.is_empty()),
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("env_from_secret", !self.env_from_secret.is_empty()),
            ("resources", self.resources.is_some()),
            ("service_account", self.service_account.is_some()),
        ];
        there.into_iter().filter(|(_, there)| *there).map(|(key, _)| key).collect()
    }

    /// The pod of either form, as it was written.
    pub(super) fn pod(&self) -> Map<String, Json> {
        match &self.pod_spec {
            Some(Json::Object(spec)) => spec.clone(),
            Some(_) => Map::new(),
            None => self.short(),
        }
    }

    fn short(&self) -> Map<String, Json> {
        let mut container = Map::new();
        container.insert("name".to_owned(), MAIN.into());
        container.insert("image".to_owned(), self.image.clone().unwrap_or_default().into());
        for (key, words) in [("command", &self.command), ("args", &self.args)] {
            if !words.is_empty() {
                container.insert(key.to_owned(), words.clone().into());
            }
        }
        if !self.env.is_empty() {
            let value = |it: &Variable| json!({"name": it.name, "value": it.value});
            container.insert("env".to_owned(), self.env.iter().map(value).collect());
        }
        if !self.env_from_secret.is_empty() {
            let secret = |name: &String| json!({"secretRef": {"name": name}});
            let all = self.env_from_secret.iter().map(secret).collect();
            container.insert("envFrom".to_owned(), all);
        }
        if let Some(resources) = &self.resources {
            container.insert("resources".to_owned(), resources.clone());
        }
        let mut pod = Map::new();
        pod.insert("containers".to_owned(), json!([container]));
        if let Some(account) = &self.service_account {
            pod.insert("serviceAccountName".to_owned(), account.clone().into());
        }
        pod
    }

    /// What people read of it.
    pub fn tell(&self) -> String {
        let pod = self.pod();
        let containers = pod.get("containers").and_then(Json::as_array).into_iter().flatten();
        let images: Vec<&str> = containers.filter_map(|it| it["image"].as_str()).collect();
        let cluster = if self.cluster.is_empty() { "a Kubernetes cluster" } else { &self.cluster };
        format!("{} on {cluster}", images.join(", "))
    }

    /// What of it is not allowed, each with its field.
    pub fn refused_by(&self, policy: Policy) -> Vec<String> {
        policy.refuses(&Json::Object(self.pod()), self.at())
    }

    /// What its pod is called in messages.
    pub(super) const fn at(&self) -> &'static str {
        if self.pod_spec.is_some() { "kubernetes.pod_spec" } else { "kubernetes" }
    }

    /// The images of its containers.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        let lists = ["initContainers", "containers"].into_iter();
        let lists = lists.filter_map(|list| self.pod_spec.as_ref()?.get(list)?.as_array());
        let images = lists.flatten().filter_map(|container| container.get("image")?.as_str());
        self.image.as_deref().into_iter().chain(images)
    }

    /// The same with other images.
    pub fn with_images<E>(
        &self,
        mut image: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Self, E> {
        let mut changed = self.clone();
        if let Some(text) = &mut changed.image {
            *text = image(text)?;
        }
        for list in ["initContainers", "containers"] {
            let spec = changed.pod_spec.as_mut().and_then(|spec| spec.get_mut(list));
            for container in spec.and_then(Json::as_array_mut).into_iter().flatten() {
                if let Some(Json::String(text)) = container.get_mut("image") {
                    *text = image(text)?;
                }
            }
        }
        Ok(changed)
    }

    /// Whether it says what its first container runs.
    pub fn has_command(&self) -> bool {
        let pod = self.pod();
        let first = pod.get("containers").and_then(|list| list.get(0));
        first.is_some_and(|it| !it["command"].is_null() || !it["args"].is_null())
    }

    /// Whether a container of it sets this variable itself.
    pub fn sets(&self, name: &str) -> bool {
        let pod = self.pod();
        let containers = pod.get("containers").and_then(Json::as_array).into_iter().flatten();
        let mut env = containers.filter_map(|it| it["env"].as_array()).flatten();
        env.any(|it| it["name"] == name)
    }
}

/// The payload of a job that runs on a cluster.
pub(super) fn of(definition: &JobDefinition) -> Option<&KubernetesPayload> {
    definition.kubernetes.as_deref()
}
