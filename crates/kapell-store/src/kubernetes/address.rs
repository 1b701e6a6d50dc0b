//! Where Leases are, as a user writes it.

use std::str::FromStr;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use url::Url;

use crate::error::Error;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) namespace: String,
    pub(super) name: String,
    kubeconfig: Option<String>,
    context: Option<String>,
}

const USUAL: &str = "kapell";
/// With a key behind it, it is the name of a Lease.
const LONGEST_NAME: usize = 63;

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why: String| Error::BadUrl { url: text.to_owned(), why };
        let url = Url::parse(text).map_err(|error| refused(error.to_string()))?;
        let name = url.path().trim_matches('/');
        let mut address = Self {
            namespace: url.host_str().unwrap_or_default().to_owned(),
            name: if name.is_empty() { USUAL } else { name }.to_owned(),
            kubeconfig: None,
            context: None,
        };
        for (what, name) in [("namespace", &address.namespace), ("name", &address.name)] {
            if !is_name(name) {
                let right =
                    "1 to 63 lower-case letters, digits or `-`, a letter or digit at both ends";
                return Err(refused(format!("the {what} must be {right}, not `{name}`")));
            }
        }
        if url.port().is_some() || !url.username().is_empty() {
            return Err(refused("write `kubernetes://NAMESPACE`: no user and no port".to_owned()));
        }
        for (key, value) in url.query_pairs() {
            match &*key {
                "kubeconfig" => address.kubeconfig = Some(value.into_owned()),
                "context" => address.context = Some(value.into_owned()),
                unknown => {
                    let why =
                        format!("unknown option `{unknown}`; there are kubeconfig and context");
                    return Err(refused(why));
                }
            }
        }
        Ok(address)
    }
}

fn is_name(text: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let ends = [text.as_bytes().first(), text.as_bytes().last()];
    ends.into_iter().all(|end| end.is_some_and(|&letter| fits(letter)))
        && text.len() <= LONGEST_NAME
        && text.bytes().all(|letter| fits(letter) || letter == b'-')
}

impl Address {
    /// How the cluster is reached.
    pub(super) async fn config(&self) -> Result<Config, String> {
        let context = self.context.clone();
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => {
                let read =
                    Kubeconfig::read_from(path).map_err(|error| format!("`{path}`: {error}"))?;
                Config::from_custom_kubeconfig(read, &options).await
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await,
            None => return Config::infer().await.map_err(|error| error.to_string()),
        };
        config.map_err(|error| error.to_string())
    }
}
