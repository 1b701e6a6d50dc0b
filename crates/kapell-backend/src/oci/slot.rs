//! The numbers that a container has to itself: its place among those of its agent, and what follows from it.

use std::net::Ipv4Addr;

/// Users and groups of a container.
pub(super) const IDS: u32 = 65_536;
/// The first of all such users. From here to the end of what fits into 31 bits nobody else has any: those of
/// people are below 65,536, and system tools that make containers begin at 524,288 and go upwards.
const FIRST_ID: u32 = 0x4000_0000;
/// Containers of one agent.
pub(super) const SLOTS: u16 = 1_021;
/// As many addresses has the network of an agent; of these, the first, the gateway's and the last are nobody's.
const NETWORK: u32 = 1 << (32 - PREFIX);
pub(super) const PREFIX: u8 = 22;
/// Agents on one machine.
pub(super) const REALMS: u8 = 16;

/// Whom the users of a container are on the machine: `base` is its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) base: u32,
}

impl Ids {
    pub(super) fn has(self, uid: u32) -> bool {
        (self.base..self.base + IDS).contains(&uid)
    }
}

/// What tells the agents of a machine apart, from 0 to [`REALMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Realm {
    pub(super) number: u8,
    /// Where the networks of all agents begin.
    pub(super) networks: Ipv4Addr,
}

impl Realm {
    /// Of its table in the packet filter.
    pub(super) fn table(self) -> String {
        format!("kapell{}", self.number)
    }

    /// What the names of all wires of its containers begin with.
    pub(super) fn wires(self) -> String {
        format!("kap{}-", self.number)
    }

    pub(super) fn network(self) -> Ipv4Addr {
        self.at(0)
    }

    pub(super) fn gateway(self) -> Ipv4Addr {
        self.at(1)
    }

    fn at(self, number: u32) -> Ipv4Addr {
        let first = u32::from(self.networks) + u32::from(self.number) * NETWORK;
        Ipv4Addr::from(first + number)
    }
}

/// A place of a container, from 0 to [`SLOTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u16);

impl Slot {
    pub(super) fn ids(self, realm: Realm) -> Ids {
        let slot = u32::from(realm.number) * NETWORK + u32::from(self.0);
        Ids { base: FIRST_ID + slot * IDS }
    }

    pub(super) fn address(self, realm: Realm) -> Ipv4Addr {
        realm.at(2 + u32::from(self.0))
    }

    /// The end of its wire that is on the machine.
    pub(super) fn wire(self, realm: Realm) -> String {
        format!("{}{}", realm.wires(), self.0)
    }

    /// The next that is free, beginning after the last one given out: what the kernel still clears away of an
    /// earlier container is not in the way then.
    pub(super) fn next_free(after: Self, is_used: impl Fn(Self) -> bool) -> Option<Self> {
        (1..=SLOTS).map(|step| Self((after.0 + step) % SLOTS)).find(|slot| !is_used(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_containers_share_a_user_or_an_address() {
        let mut last = (0, Ipv4Addr::UNSPECIFIED);
        for number in 0..REALMS {
            let realm = Realm { number, networks: Ipv4Addr::new(10, 214, 0, 0) };
            assert!(realm.gateway() > last.1);
            for slot in (0..SLOTS).map(Slot) {
                let now = (slot.ids(realm).base, slot.address(realm));
                assert!(now.0 >= last.0 + IDS && now.1 > last.1, "{number} {slot:?}");
                assert!(slot.wire(realm).len() < libc::IFNAMSIZ);
                last = now;
            }
        }
        assert!(last.0.checked_add(IDS).is_some_and(|end| end <= 0x8000_0000), "{last:?}");
        assert_eq!(last.1, Ipv4Addr::new(10, 214, 63, 254), "the last but one of the last network");
    }

    #[test]
    fn a_slot_is_used_again_as_late_as_possible() {
        assert_eq!(Slot::next_free(Slot(3), |slot| slot.0 == 4), Some(Slot(5)));
        assert_eq!(Slot::next_free(Slot(SLOTS - 1), |_| false), Some(Slot(0)));
        assert_eq!(Slot::next_free(Slot(7), |slot| slot.0 != 7), Some(Slot(7)));
        assert_eq!(Slot::next_free(Slot(7), |_| true), None);
    }
}
