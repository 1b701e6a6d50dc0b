use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::slots::Slots;

/// Ports of the machine, each given to one container at a time, also among several cells.
///
/// Between the start of a container and the moment when it listens, nobody sees that its port is
/// taken. So whoever gives a port away holds a name for it that, like the port itself, only one on
/// this machine can have.
#[derive(Debug)]
pub(super) struct Ports {
    slots: Slots,
    claims: BTreeMap<u16, UnixDatagram>,
}

impl Ports {
    pub(super) fn new(range: &Range<u16>) -> Self {
        let slots = Slots::new(u32::from(range.start)..u32::from(range.end));
        Self { slots, claims: BTreeMap::new() }
    }

    pub(super) fn take(&mut self) -> Option<u16> {
        let mut claimed = None;
        self.slots.take(|port| {
            let port = u16::try_from(port).ok();
            claimed = port.and_then(|port| Some((port, claim(port)?))).filter(|it| is_free(it.0));
            claimed.is_some()
        })?;
        let (port, claim) = claimed?;
        self.claims.insert(port, claim);
        Some(port)
    }

    /// Notes a port that a container has already.
    pub(super) fn hold(&mut self, port: u16) {
        self.slots.hold(u32::from(port));
        // Whoever has taken it meanwhile finds out when it listens there.
        self.claims.extend(claim(port).map(|claim| (port, claim)));
    }

    pub(super) fn give_back(&mut self, port: u16) {
        self.slots.give_back(u32::from(port));
        self.claims.remove(&port);
    }
}

/// None if another has it.
fn claim(port: u16) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("kapell-port-{port}")).ok()?;
    UnixDatagram::bind_addr(&name).ok()
}

/// Whether nobody on this machine listens there.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cells_of_a_machine_never_give_the_same_port() {
        let range = 60_100..60_140;
        let (mut one, mut other) = (Ports::new(&range), Ports::new(&range));
        let mut given = std::collections::BTreeSet::new();
        for _ in 0..10 {
            assert!(given.insert(one.take().unwrap()));
            assert!(given.insert(other.take().unwrap()));
        }
        let port = *given.first().unwrap();
        one.give_back(port);
        other.give_back(port);
        let free: Vec<u16> = std::iter::from_fn(|| other.take()).collect();
        assert!(free.contains(&port), "what is given back is given again");
        assert_eq!(one.take(), None);
    }

    #[test]
    fn the_port_of_a_found_container_is_not_given() {
        let range = 60_140..60_160;
        let mut one = Ports::new(&range);
        let port = one.take().unwrap();
        drop(one);
        let (mut after, mut other) = (Ports::new(&range), Ports::new(&range));
        after.hold(port);
        assert!(std::iter::from_fn(|| other.take()).all(|given| given != port));
    }
}
