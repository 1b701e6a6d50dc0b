//! What an agent must know again of a container besides what the shim's side knows. Written last.

use serde_json::{Value, json};

use super::rootfs::Rootfs;
use super::slot::{Ids, Slot};
use crate::containers::{Port, User};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) slot: Slot,
    pub(super) ids: Ids,
    pub(super) sole: bool,
    /// Its own directory as it sees it, without any link in it.
    pub(super) dir: String,
    pub(super) ports: Vec<Port>,
    /// Whom its processes run as, if not whom the image says.
    pub(super) user: Option<User>,
    pub(super) rootfs: Rootfs,
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let ports: Vec<[u16; 2]> =
            self.ports.iter().map(|port| [port.container, port.host]).collect();
        let record = json!({
            "version": 1, "slot": self.slot.0, "base": self.ids.base, "sole": self.sole,
            "dir": self.dir, "ports": ports,
            "user": self.user.as_ref().map(user_to_json), "rootfs": self.rootfs.to_json(),
        });
        record.to_string().into_bytes()
    }

    /// None if it is not whole.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        (value.get("version")? == 1).then_some(())?;
        let number = |value: &Value| u16::try_from(value.as_u64()?).ok();
        let port = |value: &Value| {
            Some(Port { container: number(value.get(0)?)?, host: number(value.get(1)?)? })
        };
        let user = value.get("user")?;
        Some(Self {
            user: if user.is_null() { None } else { Some(user_from_json(user)?) },
            slot: Slot(number(value.get("slot")?)?),
            ids: Ids { base: u32::try_from(value.get("base")?.as_u64()?).ok()? },
            sole: value.get("sole")?.as_bool()?,
            dir: value.get("dir")?.as_str()?.to_owned(),
            ports: value.get("ports")?.as_array()?.iter().map(port).collect::<Option<_>>()?,
            rootfs: Rootfs::from_json(value.get("rootfs")?)?,
        })
    }
}

/// A pair of numbers or a name.
fn user_to_json(user: &User) -> Value {
    match user {
        User::Id { uid, gid, .. } => json!([uid, gid]),
        User::Named(name) => json!(name),
        User::Same => Value::Null,
    }
}

fn user_from_json(value: &Value) -> Option<User> {
    if let Some(name) = value.as_str() {
        return Some(User::Named(name.to_owned()));
    }
    let id = |at: usize| u32::try_from(value.get(at)?.as_u64()?).ok();
    Some(User::Id { uid: id(0)?, gid: id(1)?, own: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_nothing() {
        let rootfs = Rootfs {
            layers: vec!["/a".into(), "/b".into()],
            env: vec!["A=b".to_owned()],
            user: "web".to_owned(),
            ..Rootfs::default()
        };
        let record = Record {
            slot: Slot(7),
            ids: Ids { base: 0x4000_0000 },
            sole: true,
            dir: "/work".to_owned(),
            ports: vec![Port { container: 80, host: 8080 }],
            user: Some(User::Id { uid: 1, gid: 2, own: false }),
            rootfs,
        };
        let named = Record { user: Some(User::Named("web:log".to_owned())), ..record.clone() };
        let nobody = Record { user: None, ..record.clone() };
        for record in [record, named, nobody] {
            let bytes = record.encode();
            assert_eq!(Record::parse(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Record::parse(&bytes), Some(record));
        }
        assert_eq!(Record::parse(b""), None);
    }
}
