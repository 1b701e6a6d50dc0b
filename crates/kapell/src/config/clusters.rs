//! The file of Kubernetes clusters: a mapping of names, the first of which is that of jobs that name none.

use std::path::{Path, PathBuf};

use kapell_core::kubernetes::{Access, Cluster, Clusters, Leftovers, Policy};
use kapell_core::source::{Problem, closest};
use kapell_core::workflow::parse_duration;
use kapell_core::yaml::{self, Node, Value};

use super::Error;
use crate::problems::BadFile;

const KEYS: [&str; 9] = [
    "kubeconfig",
    "context",
    "in_cluster",
    "namespaces",
    "calls_per_second",
    "patience",
    "followed_logs",
    "leftovers",
    "allow",
];

/// All clusters of a file. Relative paths in it count from where it is.
pub(crate) fn read(path: &Path) -> Result<Clusters, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::Unreadable(path.to_owned(), error))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (mut clusters, mut problems) = (Clusters::default(), Vec::new());
    match yaml::parse(&text) {
        Err(problem) => problems.push(problem),
        Ok(documents) => {
            for document in &documents {
                take(document, path, &mut clusters, &mut problems);
            }
        }
    }
    if problems.is_empty() {
        return Ok(clusters);
    }
    Err(Error::File(BadFile { path: path.display().to_string(), problems, bytes }))
}

fn take(document: &Node<'_>, path: &Path, clusters: &mut Clusters, problems: &mut Vec<Problem>) {
    let Value::Map(entries) = &document.value else {
        let problem = Problem::error(document.span, "clusters must be a mapping");
        return problems
            .push(problem.help("write `main: {kubeconfig: /etc/kapell/main.kubeconfig}`"));
    };
    for (key, value) in entries {
        let name = key.scalar().map_or("", |scalar| &scalar.text);
        if name.is_empty() || clusters.all.contains_key(name) {
            let problem =
                Problem::error(key.span, format!("`{name}` cannot be the name of a cluster here"));
            problems.push(problem.help("give each cluster a name of its own"));
            continue;
        }
        let read = Reading { path, problems }.cluster(value);
        if let Some(cluster) = read {
            if clusters.all.is_empty() {
                name.clone_into(&mut clusters.first);
            }
            clusters.all.insert(name.to_owned(), cluster);
        }
    }
}

struct Reading<'a> {
    path: &'a Path,
    problems: &'a mut Vec<Problem>,
}

impl Reading<'_> {
    fn wrong(&mut self, node: &Node<'_>, what: impl Into<String>, right: &str) {
        self.problems.push(Problem::error(node.span, what).help(right));
    }

    fn cluster(&mut self, node: &Node<'_>) -> Option<Cluster> {
        let Value::Map(entries) = &node.value else {
            self.wrong(
                node,
                "a cluster must be a mapping",
                "write `{kubeconfig: FILE}` or `{in_cluster: true}`",
            );
            return None;
        };
        let (mut kubeconfig, mut context, mut inside) = (None, None, false);
        let mut cluster = Cluster::new(Access::InCluster);
        for (key, value) in entries {
            let text = value.scalar().map_or("", |scalar| &scalar.text);
            match key.scalar().map_or("", |scalar| &scalar.text) {
                "kubeconfig" if !text.is_empty() => kubeconfig = Some(self.whole(Path::new(text))),
                "context" if !text.is_empty() => context = Some(text.to_owned()),
                "in_cluster" if matches!(text, "true" | "false") => inside = text == "true",
                "namespaces" => cluster.namespaces = self.words(value, "a namespace"),
                "calls_per_second" if text.parse::<u32>().is_ok_and(|it| it > 0) => {
                    cluster.pace.calls_per_second = text.parse().unwrap_or(1);
                }
                "patience" if parse_duration(text).is_some() => {
                    cluster.pace.patience = parse_duration(text).unwrap_or_default();
                }
                "followed_logs" if text.parse::<usize>().is_ok() => {
                    cluster.followed_logs = text.parse().unwrap_or_default();
                }
                "leftovers" if text == "delete" => cluster.leftovers = Leftovers::Delete,
                "leftovers" if text == "keep" => cluster.leftovers = Leftovers::Keep,
                "allow" => cluster.policy = self.policy(value),
                known if KEYS.contains(&known) => {
                    self.wrong(value, format!("`{text}` is no value of `{known}`"), right(known));
                }
                unknown => {
                    let meant = closest(unknown, KEYS).map(|it| format!("did you mean `{it}`?"));
                    let right = meant.unwrap_or_else(|| format!("keys are {}", KEYS.join(", ")));
                    self.wrong(key, format!("unknown key `{unknown}` of a cluster"), &right);
                }
            }
        }
        match (kubeconfig, inside) {
            (Some(path), false) => cluster.access = Access::Kubeconfig { path, context },
            (None, true) if context.is_none() => {}
            (Some(_) | None, _) => {
                let right = "a `context` belongs to a `kubeconfig`";
                self.wrong(
                    node,
                    "a cluster needs either `kubeconfig` or `in_cluster: true`",
                    right,
                );
            }
        }
        Some(cluster)
    }

    fn whole(&self, path: &Path) -> PathBuf {
        self.path.parent().map_or_else(|| path.to_owned(), |dir| dir.join(path))
    }

    fn words(&mut self, node: &Node<'_>, what: &str) -> Vec<String> {
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            Value::Scalar(_) | Value::Map(_) => std::slice::from_ref(node),
        };
        let mut words = Vec::new();
        for item in items {
            match item.scalar().filter(|scalar| !scalar.text.is_empty()) {
                Some(scalar) => words.push(scalar.text.clone().into_owned()),
                None => self.wrong(
                    item,
                    format!("{what} must be text"),
                    "write a name, or a list of them",
                ),
            }
        }
        words
    }

    fn policy(&mut self, node: &Node<'_>) -> Policy {
        let mut policy = Policy::default();
        for word in self.words(node, "what is allowed") {
            match word.as_str() {
                "privileged" => policy.privileged = true,
                "host_path" => policy.host_path = true,
                other => {
                    let what = format!("`{other}` is nothing that can be allowed");
                    self.wrong(node, what, "write `[privileged, host_path]`, or one of them");
                }
            }
        }
        policy
    }
}

fn right(key: &str) -> &'static str {
    match key {
        "in_cluster" => "write true or false",
        "calls_per_second" => "write a number above 0",
        "followed_logs" => "write a number",
        "leftovers" => "write delete or keep",
        "patience" => "write a duration such as 30s",
        _ => "write text",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read_text(text: &str) -> (PathBuf, Result<Clusters, Vec<String>>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("clusters.yaml");
        std::fs::write(&file, text).unwrap();
        let told = read(&file).map_err(|error| match error {
            Error::File(bad) => bad.problems.into_iter().map(|it| it.message).collect(),
            other @ (Error::Unreadable(..) | Error::Variable { .. }) => vec![other.to_string()],
        });
        (dir.path().to_owned(), told)
    }

    #[test]
    fn clusters_have_names_and_the_first_is_that_of_jobs_that_name_none() {
        let (dir, clusters) = read_text(
            "main: {kubeconfig: main.kubeconfig, context: prod, namespaces: [jobs, reports], calls_per_second: 7, \
             patience: 5s, followed_logs: 0, leftovers: keep, allow: [privileged, host_path]}\nalso: {in_cluster: true, namespaces: x}\n",
        );
        let clusters = clusters.unwrap();
        assert_eq!(clusters.first, "main");
        let main = &clusters.all["main"];
        let path = dir.join("main.kubeconfig");
        assert_eq!(main.access, Access::Kubeconfig { path, context: Some("prod".to_owned()) });
        assert_eq!(main.namespaces, ["jobs", "reports"]);
        assert_eq!((main.pace.calls_per_second, main.pace.patience), (7, Duration::from_secs(5)));
        assert_eq!(
            (main.followed_logs, main.policy),
            (0, Policy { privileged: true, host_path: true })
        );
        assert_eq!(main.leftovers, Leftovers::Keep);
        let also = &clusters.all["also"];
        assert_eq!(also.leftovers, Leftovers::Delete);
        assert_eq!(
            (&also.access, also.namespaces.as_slice()),
            (&Access::InCluster, ["x".to_owned()].as_slice())
        );
        assert_eq!(also.policy, Policy::default(), "nothing is allowed that nobody allowed");
    }

    #[test]
    fn what_is_wrong_with_a_file_of_clusters_is_told_all_at_once() {
        let (_, told) = read_text(
            "a: {kubeconfg: x}\nb: {kubeconfig: x, in_cluster: true}\nc: {in_cluster: true, patience: soon, leftovers: burn, allow: [root]}\nd: 3\n",
        );
        let neither = "a cluster needs either `kubeconfig` or `in_cluster: true`";
        let want = [
            "unknown key `kubeconfg` of a cluster",
            neither,
            neither,
            "`soon` is no value of `patience`",
            "`burn` is no value of `leftovers`",
            "`root` is nothing that can be allowed",
            "a cluster must be a mapping",
        ];
        assert_eq!(told.unwrap_err(), want);
        assert_eq!(read_text("[]").1.unwrap_err(), ["clusters must be a mapping"]);
    }
}
