//! A Kubernetes cluster: Jobs are created, watched together, stopped and deleted; the logs of their pods are read.
//!
//! Calls go at a pace of their own, are tried again while that may come to something, and are counted. Nothing is decided
//! here but that.

mod call;
mod error;
mod lines;
mod pace;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use kapell_core::causes::chain;
use kapell_core::kubernetes::{Access, Cluster, Course, Job, List, Pace, Pod, STOPPED, Stopped};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use url::form_urlencoded;

pub use self::error::Error;
pub use self::lines::{Line, Lines};
use self::pace::Limiter;
pub use self::watch::{Event, watch};

/// How long one try of a call may take.
const TRY: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// So many objects a page.
const PAGE: u32 = 500;

/// Calls to a cluster on behalf of one run.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<AtomicU32>);

impl Calls {
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A cluster that is spoken with.
#[derive(Clone)]
pub struct Client {
    name: Arc<str>,
    inner: kube::Client,
    limiter: Arc<Limiter>,
    pace: Pace,
    default_namespace: Arc<str>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What came of a Job that was to be created.
#[derive(Debug)]
pub enum Created {
    Made(Box<Job>),
    /// Something is there by its name.
    Exists(Box<Job>),
}

impl Client {
    /// Makes ready to speak with a cluster. Nothing is said to it yet.
    pub async fn open(name: &str, cluster: &Cluster) -> Result<Self, Error> {
        let failed = |error: &dyn std::error::Error| {
            Error::settings(format!("cluster `{name}` cannot be used: {}", chain(error)))
        };
        let mut config = match &cluster.access {
            Access::InCluster => kube::Config::incluster().map_err(|error| failed(&error))?,
            Access::Usual { context: None } => {
                kube::Config::infer().await.map_err(|error| failed(&error))?
            }
            Access::Usual { context } => {
                let options =
                    KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
                let made = kube::Config::from_kubeconfig(&options).await;
                made.map_err(|error| failed(&error))?
            }
            Access::Kubeconfig { path, context } => {
                let read = Kubeconfig::read_from(path).map_err(|error| {
                    Error::settings(format!(
                        "cluster `{name}` cannot be used: `{}`: {}",
                        path.display(),
                        chain(&error)
                    ))
                })?;
                let options =
                    KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
                let made = kube::Config::from_custom_kubeconfig(read, &options).await;
                made.map_err(|error| failed(&error))?
            }
        };
        config.connect_timeout = Some(CONNECT);
        // Which calls are tried again, and when, is said here.
        config.default_retry = false;
        let default_namespace = config.default_namespace.clone().into();
        choose_cryptography();
        let inner = kube::Client::try_from(config).map_err(|error| failed(&error))?;
        let limiter = Arc::new(Limiter::new(cluster.pace.calls_per_second));
        Ok(Self { name: name.into(), inner, limiter, pace: cluster.pace, default_namespace })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the access itself is at home.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Creates a Job. Sent again after no answer, it finds what the first one made.
    pub async fn create(
        &self,
        namespace: &str,
        name: &str,
        job: &Json,
        calls: &Calls,
    ) -> Result<Created, Error> {
        let path = format!("{}?fieldValidation=Strict", jobs(namespace));
        let what =
            format!("cannot create the Job in namespace `{namespace}` of cluster `{}`", self.name);
        let body = job.to_string();
        match self.call::<Job>(&what, &request(Method::POST, &path, body), calls).await {
            Ok(made) => Ok(Created::Made(Box::new(made))),
            Err(error) if error.course() == Some(Course::Exists) => {
                // Something is there, whether it can be read or not.
                let found = self.job(namespace, name, calls).await.map_err(Error::after_doubt)?;
                found.map(|job| Created::Exists(Box::new(job))).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    pub async fn job(
        &self,
        namespace: &str,
        name: &str,
        calls: &Calls,
    ) -> Result<Option<Job>, Error> {
        let what = format!("cannot read the Job `{name}` of cluster `{}`", self.name);
        let path = format!("{}/{name}", jobs(namespace));
        there(self.call(&what, &request(Method::GET, &path, String::new()), calls).await)
    }

    /// Has the cluster end the pods of a Job and make no more; the Job stays and says so. None if there is no such Job.
    pub async fn stop(
        &self,
        namespace: &str,
        name: &str,
        when: Stopped,
        calls: &Calls,
    ) -> Result<Option<Job>, Error> {
        let what = format!("cannot stop the Job `{name}` of cluster `{}`", self.name);
        let path = format!("{}/{name}", jobs(namespace));
        let change =
            json!({"metadata": {"annotations": {STOPPED: when.name()}}, "spec": {"suspend": true}});
        let mut request = request(Method::PATCH, &path, change.to_string());
        let kind = HeaderValue::from_static("application/merge-patch+json");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        there(self.call(&what, &request, calls).await)
    }

    /// Deletes a Job, its pods first. False if there is none.
    pub async fn delete_job(
        &self,
        namespace: &str,
        name: &str,
        calls: &Calls,
    ) -> Result<bool, Error> {
        let what = format!("cannot delete the Job `{name}` of cluster `{}`", self.name);
        let path = format!("{}/{name}", jobs(namespace));
        let body = json!({"propagationPolicy": "Foreground"}).to_string();
        let deleted: Result<Json, Error> =
            self.call(&what, &request(Method::DELETE, &path, body), calls).await;
        there(deleted).map(|it| it.is_some())
    }

    /// Deletes a pod. `grace` is the time that it has; none is what the pod says itself.
    pub async fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        grace: Option<Duration>,
        calls: &Calls,
    ) -> Result<bool, Error> {
        let what = format!("cannot delete the pod `{name}` of cluster `{}`", self.name);
        let path = format!("{}/{name}", pods(namespace));
        let body = match grace {
            Some(grace) => json!({"gracePeriodSeconds": grace.as_secs()}),
            None => json!({}),
        };
        let deleted: Result<Json, Error> =
            self.call(&what, &request(Method::DELETE, &path, body.to_string()), calls).await;
        there(deleted).map(|it| it.is_some())
    }

    /// The pods of a Job, as the cluster has them now.
    pub async fn pods(&self, namespace: &str, job: &str, calls: &Calls) -> Result<Vec<Pod>, Error> {
        let what =
            format!("cannot list pods in namespace `{namespace}` of cluster `{}`", self.name);
        let selector = query(&[("labelSelector", &format!("batch.kubernetes.io/job-name={job}"))]);
        let path = format!("{}?{selector}", pods(namespace));
        let list: List<Pod> =
            self.call(&what, &request(Method::GET, &path, String::new()), calls).await?;
        Ok(list.items)
    }

    /// What a container of a pod wrote, with the time of each line; with `follow` until it ends. No more than `most` bytes
    /// of it are sent, times included.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        follow: bool,
        most: Option<u64>,
        calls: &Calls,
    ) -> Result<Lines, Error> {
        let what = format!("cannot read the log of pod `{pod}` of cluster `{}`", self.name);
        let follow = if follow { "true" } else { "false" };
        let most = most.map(|most| most.to_string());
        let mut asked = vec![("container", container), ("timestamps", "true"), ("follow", follow)];
        asked.extend(most.as_deref().map(|most| ("limitBytes", most)));
        let query = query(&asked);
        let path = format!("{}/{pod}/log?{query}", pods(namespace));
        self.stream(&what, &request(Method::GET, &path, String::new()), calls).await
    }
}

/// Says which provider of cryptography this process has: a driver of a store brings a second one, and then a client of clusters
/// cannot choose. One that was chosen before stays.
pub fn choose_cryptography() {
    let _chosen = rustls::crypto::ring::default_provider().install_default();
}

/// What is not there is no error.
fn there<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(it) => Ok(Some(it)),
        Err(error) if error.course() == Some(Course::Missing) => Ok(None),
        Err(error) => Err(error),
    }
}

fn jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn request(method: Method, path: &str, body: String) -> Request<Vec<u8>> {
    let mut request = Request::new(body.into_bytes());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap_or_default();
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    request
}

/// Objects that are watched.
pub trait Watched: Clone + DeserializeOwned + Send + 'static {
    const WHAT: &'static str;
    fn path(namespace: &str) -> String;
    fn version(&self) -> &str;
}

impl Watched for Job {
    const WHAT: &'static str = "Jobs";

    fn path(namespace: &str) -> String {
        jobs(namespace)
    }

    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

impl Watched for Pod {
    const WHAT: &'static str = "pods";

    fn path(namespace: &str) -> String {
        pods(namespace)
    }

    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}
