use hyper::StatusCode;
use serde::Deserialize;
use url::Url;

use super::super::error::Error;
use super::http::{Ask, Http, place};

/// What a registry wants to see, and where it is to be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    realm: String,
    service: Option<String>,
}

impl Challenge {
    /// Reads `Bearer realm="…",service="…",scope="…"`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix("Bearer ")?;
        let (mut realm, mut service) = (None, None);
        while let Some((key, value)) = rest.split_once("=\"") {
            let (value, behind) = value.split_once('"')?;
            match key.trim_matches([',', ' ']) {
                "realm" => realm = Some(value.to_owned()),
                "service" => service = Some(value.to_owned()),
                _others => {}
            }
            rest = behind;
        }
        Some(Self { realm: realm?, service })
    }
}

#[derive(Deserialize)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
}

/// A token that allows anybody to pull `name`, as the header that shows it.
///
/// Users who log in would be known here, by a password for this registry.
pub(super) async fn fetch(
    http: &Http,
    challenge: &Challenge,
    registry: &Url,
    name: &str,
) -> Result<String, Error> {
    let damaged = |why: String| Error::damaged(place(registry), why);
    let mut url = registry
        .join(&challenge.realm)
        .map_err(|error| damaged(format!("it sends us to `{}`: {error}", challenge.realm)))?;
    if url.origin() != registry.origin() && url.scheme() != "https" {
        let what = format!("to fetch a token from {}", place(&url));
        return Err(Error::Forbidden { what, instead: "it must be https".to_owned() });
    }
    if let Some(service) = &challenge.service {
        url.query_pairs_mut().append_pair("service", service);
    }
    url.query_pairs_mut().append_pair("scope", &format!("repository:{name}:pull"));
    let doing = "fetching a token";
    let ask = Ask { url: &url, accept: "application/json", authorization: None, doing };
    let answer = http.get(ask).await?;
    if answer.status != StatusCode::OK {
        let (place, status) = (place(&url), answer.status.as_u16());
        return Err(Error::Status { place, doing: doing.to_owned(), status, hint: "" });
    }
    let bytes = answer.whole(http.settings.limits.document_bytes).await?;
    let given: Given =
        serde_json::from_slice(&bytes).map_err(|error| Error::damaged("the token", error))?;
    let token =
        given.token.or(given.access_token).ok_or_else(|| damaged("it gives no token".into()))?;
    Ok(format!("Bearer {token}"))
}
