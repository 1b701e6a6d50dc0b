//! Which hosts to ask, and what lets us in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Options, Token};

use super::args::Reach;
use super::sign::Sign;
use crate::http;

/// Where `kapell up` and `kapell host` listen unless told otherwise.
pub(crate) const LOCAL: &str = "http://127.0.0.1:7070";

/// What flags, the environment and the state directory say together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) urls: String,
    pub(crate) token: Option<Token>,
    pub(crate) ca: Option<PathBuf>,
}

impl Resolved {
    /// `env` tells the value of an environment variable.
    pub(crate) fn new(
        flags: &Reach,
        state_dir: &Path,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Self> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let urls = match (&flags.url, set("KAPELL_URL")) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => url.into_string().ok().context("KAPELL_URL is not text")?,
            (None, None) => Sign::read(state_dir).unwrap_or_else(|| LOCAL.to_owned()),
        };
        let ca = flags.ca.clone().or_else(|| set("KAPELL_CA").map(PathBuf::from));
        let token = match (&flags.token_file, set("KAPELL_TOKEN")) {
            (Some(path), _) => Some(load(path)?),
            (None, Some(token)) => {
                let token = token.into_string().ok().context("KAPELL_TOKEN is not text")?;
                Some(Token::new(token.trim()))
            }
            (None, None) => {
                let path = state_dir.join("token");
                if path.exists() { Some(load(&path)?) } else { None }
            }
        };
        Ok(Self { urls, token, ca })
    }

    pub(crate) fn client(self, options: &Options) -> anyhow::Result<Client> {
        let Self { urls, token, ca } = self;
        Ok(Client::new(&urls, Options { token, ca, ..options.clone() })?)
    }
}

fn load(path: &Path) -> anyhow::Result<Token> {
    match http::Token::load(path) {
        Ok(token) => Ok(Token::new(token.as_str())),
        Err(error) => bail!("{:#}", anyhow::Error::new(error)),
    }
}
