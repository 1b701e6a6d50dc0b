//! How a cell finds out whether an instance is well, or ready, without running anything in it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::desired::is_zero_long;

/// A question that is asked of an instance over and over: exactly one of `http` and `tcp`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpCheck>,
    /// Between two checks of one that is well; 0 is the usual.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub every_ms: u64,
    /// How long an answer may take; 0 is the usual.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub timeout_ms: u64,
}

/// Well if it is answered with a status from 200 to 399.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpCheck {
    /// As the instance sees it.
    pub port: u16,
    #[serde(default = "slash", skip_serializing_if = "is_slash")]
    pub path: String,
}

/// Well if it takes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpCheck {
    /// As the instance sees it.
    pub port: u16,
}

impl Check {
    /// How long an answer takes at most where a check does not say.
    pub const USUAL_TIMEOUT: Duration = Duration::from_secs(5);

    pub const fn timeout(&self) -> Duration {
        if self.timeout_ms == 0 {
            Self::USUAL_TIMEOUT
        } else {
            Duration::from_millis(self.timeout_ms)
        }
    }
}

fn slash() -> String {
    "/".to_owned()
}

fn is_slash(path: &str) -> bool {
    path == "/"
}
