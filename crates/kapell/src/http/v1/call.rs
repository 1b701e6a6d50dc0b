use std::sync::Arc;

use hyper::HeaderMap;
use hyper::StatusCode;
use kapell_core::board::LrpKey;
use kapell_core::seams::Timestamp;
use kapell_core::source::Problem as Fault;
use serde::de::DeserializeOwned;

use super::super::answer::Problem;
use super::super::desk::Desk;
use super::super::query::Query;
use super::super::read::Payload;
use super::super::route::Params;

/// A request that found its route.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) params: Params,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload,
    pub(super) now: Timestamp,
}

impl Call {
    pub(super) fn id<T: for<'a> From<&'a str>>(&self, name: &str) -> T {
        self.params.get(name).into()
    }

    /// A filter, if it was asked for.
    pub(super) fn filter<T: for<'a> From<&'a str>>(&self, name: &str) -> Option<T> {
        self.query.get(name).map(Into::into)
    }

    pub(super) fn lrp(&self) -> Result<LrpKey, Box<Problem>> {
        let index = self.params.get("index");
        let Ok(index) = index.parse() else {
            let text = format!("an instance has a number, not `{index}`");
            return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", text));
        };
        Ok(LrpKey { process_guid: self.id("process_guid"), index })
    }

    /// The body, and all else.
    pub(super) async fn json<T: DeserializeOwned>(self) -> Result<(T, Asked), Box<Problem>> {
        let Self { desk, params, query, headers, payload, .. } = self;
        let body = payload.json(&headers).await?;
        Ok((body, Asked { desk, params, query }))
    }

    /// The same, with all that is wrong with a body that does not fit.
    pub(super) async fn json_judged<T: DeserializeOwned>(
        self,
        faults: fn(&[u8]) -> Vec<Fault>,
    ) -> Result<(T, Asked), Box<Problem>> {
        let Self { desk, params, query, headers, payload, .. } = self;
        let body = payload.json_judged(&headers, faults).await?;
        Ok((body, Asked { desk, params, query }))
    }

    pub(super) async fn json_if_any<T: DeserializeOwned>(
        self,
    ) -> Result<(Option<T>, Asked), Box<Problem>> {
        let Self { desk, params, query, headers, payload, .. } = self;
        let body = payload.json_if_any(&headers).await?;
        Ok((body, Asked { desk, params, query }))
    }
}

/// A [`Call`] whose body was read.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) params: Params,
    pub(super) query: Query,
}

impl Asked {
    pub(super) fn id<T: for<'a> From<&'a str>>(&self, name: &str) -> T {
        self.params.get(name).into()
    }
}
