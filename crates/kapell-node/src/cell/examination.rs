use std::time::Duration;

use kapell_core::board::{Action, Check};
use kapell_core::recipe::Wait;

use super::settings::CellSettings;
use super::tag::Tag;

/// How it is found out whether an instance is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Examination {
    Monitor(Action),
    /// Ports are those of this machine.
    Tcp {
        port: u16,
        limit: Duration,
    },
    Http {
        port: u16,
        path: String,
        limit: Duration,
    },
    /// It never can be, for this reason.
    Unreachable(String),
}

impl Examination {
    pub(super) fn of_health(tag: &Tag, usual: Wait) -> Option<(Self, Wait)> {
        if let Some(check) = &tag.check {
            return Some((Self::by(check, tag), usual.asked(check.every_ms, tag.start_timeout_ms)));
        }
        let monitor = tag.monitor.clone()?;
        Some((Self::Monitor(monitor), usual.asked(0, tag.start_timeout_ms)))
    }

    pub(super) fn of_readiness(tag: &Tag, usual: Wait) -> Option<(Self, Wait)> {
        let check = tag.readiness.as_ref()?;
        Some((Self::by(check, tag), usual.asked(check.every_ms, 0)))
    }

    fn by(check: &Check, tag: &Tag) -> Self {
        let limit = check.timeout();
        let asked = check.http.as_ref().map(|http| http.port).or(check.tcp.map(|tcp| tcp.port));
        let found = tag.ports.iter().find(|port| Some(port.container_port) == asked);
        let Some(port) = found.map(|port| port.host_port) else {
            return Self::Unreachable(match asked {
                Some(port) => format!("port {port} is not among its ports: name it there"),
                None => "its check asks for nothing: name `http` or `tcp`".to_owned(),
            });
        };
        match &check.http {
            Some(http) => Self::Http { port, path: http.path.clone(), limit },
            None => Self::Tcp { port, limit },
        }
    }

    /// How long it may take.
    pub(super) const fn limit(&self, settings: &CellSettings) -> Duration {
        match self {
            Self::Monitor(_) | Self::Unreachable(_) => settings.monitor_limit,
            Self::Tcp { limit, .. } | Self::Http { limit, .. } => *limit,
        }
    }
}
