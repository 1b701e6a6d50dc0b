//! How an instance is written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::actual::{ActualLrp, ActualState, LrpKey, NetInfo, PortMapping};
use super::ids::{InstanceGuid, Names};
use crate::seams::Timestamp;

/// The fields of an instance in the order of [`ActualLrp`], without those that its key says; what was added later is
/// behind the others, and missing in what older versions wrote.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row<'a>(
    #[serde(borrow)] Text<'a>,
    ActualState,
    #[serde(borrow)] Option<Text<'a>>,
    #[serde(borrow)] Option<Text<'a>>,
    #[serde(borrow)] Option<Net<'a>>,
    Timestamp,
    u32,
    #[serde(borrow)] Option<Text<'a>>,
    #[serde(borrow)] Option<Text<'a>>,
    Option<Timestamp>,
    u64,
    u64,
    /// Only where it runs and is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    Option<bool>,
);

#[derive(Debug, Serialize, Deserialize)]
struct Net<'a>(#[serde(borrow)] Text<'a>, Vec<(u16, u16)>);

/// Text that is not copied where it can be helped.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Reads)
    }
}

struct Reads;

impl<'de> Visitor<'de> for Reads {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

fn text(text: &str) -> Text<'_> {
    Text(Cow::Borrowed(text))
}

impl<'a> Row<'a> {
    pub(super) fn of(lrp: &'a ActualLrp) -> Self {
        let net = lrp.net.as_ref().map(|net| {
            let ports = net.ports.iter().map(|port| (port.container_port, port.host_port));
            Net(text(&net.address), ports.collect())
        });
        Self(
            text(lrp.domain.as_str()),
            lrp.state,
            lrp.instance_guid.as_ref().map(|guid| text(guid.as_str())),
            lrp.cell_id.as_ref().map(|cell| text(cell.as_str())),
            net,
            lrp.since,
            lrp.crash_count,
            lrp.crash_reason.as_deref().map(text),
            lrp.placement_error.as_deref().map(text),
            lrp.expires_at,
            lrp.incarnation,
            lrp.version,
            lrp.ready.filter(|ready| !ready),
        )
    }

    /// Whether it has what the first rows did not.
    pub(super) const fn says_more(&self) -> bool {
        self.12.is_some()
    }

    /// The instance, or the evacuating twin, that is written so at `key`.
    pub(super) fn at(self, key: LrpKey, evacuating: bool, names: &mut Names) -> ActualLrp {
        let Self(domain, state, guid, cell, net, since, crash_count, crash, placement, ..) = self;
        let net = net.map(|Net(address, ports)| NetInfo {
            address: address.0.into_owned(),
            ports: ports
                .into_iter()
                .map(|(container_port, host_port)| PortMapping { container_port, host_port })
                .collect(),
        });
        ActualLrp {
            process_guid: key.process_guid,
            index: key.index,
            domain: names.share(&domain.0).into(),
            state,
            instance_guid: guid.map(|guid| InstanceGuid::from(&*guid.0)),
            cell_id: cell.map(|cell| names.share(&cell.0).into()),
            net,
            ready: self.12,
            since,
            crash_count,
            crash_reason: crash.map(|reason| reason.0.into_owned()),
            placement_error: placement.map(|reason| reason.0.into_owned()),
            evacuating,
            expires_at: self.9,
            incarnation: self.10,
            version: self.11,
        }
        .settled()
    }
}
