//! Who may speak with whom: the rules of the packet filter, as text for `nft`.
//!
//! A container reaches the world, and published ports of this machine. It reaches neither other containers nor
//! anything else that listens on this machine, nor link-local addresses, where clouds keep secrets.

use super::slot::{PREFIX, Realm};
use crate::containers::Port;
use std::net::Ipv4Addr;

/// Ports of this machine that lead to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) address: Ipv4Addr,
    pub(super) ports: Vec<Port>,
}

/// Puts a new table in the place of the old one, in one step.
pub(super) fn table(realm: Realm, published: &[Published], forbid_others: bool) -> String {
    let (name, wires) = (realm.table(), realm.wires());
    let network = format!("{}/{PREFIX}", realm.network());
    let elements: Vec<String> = published.iter().flat_map(elements).collect();
    let elements = if elements.is_empty() {
        String::new()
    } else {
        format!("elements = {{ {} }}", elements.join(", "))
    };
    // Who had no forwarding before gets it for containers only.
    let others = if forbid_others { "iifname != \"kap*\" oifname != \"kap*\" drop" } else { "" };
    format!(
        "table inet {name}
delete table inet {name}
table inet {name} {{
    map ports {{
        type inet_service : ipv4_addr . inet_service
        {elements}
    }}
    chain first {{
        type filter hook prerouting priority raw
        iifname \"{wires}*\" meta nfproto ipv6 drop
        iifname \"{wires}*\" ip saddr != {network} drop
        iifname \"{wires}*\" ip daddr 127.0.0.0/8 drop
    }}
    chain from-outside {{
        type nat hook prerouting priority dstnat
        fib daddr type local dnat ip to tcp dport map @ports
    }}
    chain from-here {{
        type nat hook output priority -100
        fib daddr type local dnat ip to tcp dport map @ports
    }}
    chain leave {{
        type nat hook postrouting priority srcnat
        ip saddr 127.0.0.0/8 oifname \"{wires}*\" masquerade
        ip saddr {network} masquerade
    }}
    chain to-here {{
        type filter hook input priority filter
        iifname \"{wires}*\" ct state established,related accept
        iifname \"{wires}*\" drop
    }}
    chain through {{
        type filter hook forward priority filter
        oifname \"{wires}*\" ct state established,related accept
        oifname \"{wires}*\" ct status dnat accept
        oifname \"{wires}*\" drop
        iifname \"{wires}*\" ip daddr 169.254.0.0/16 drop
        {others}
    }}
}}
"
    )
}

pub(super) fn publish(realm: Realm, published: &Published) -> String {
    let elements: Vec<String> = elements(published).collect();
    format!("add element inet {} ports {{ {} }}\n", realm.table(), elements.join(", "))
}

/// Can be repeated: what is not there cannot be deleted, but nothing keeps it from being there before.
pub(super) fn withdraw(realm: Realm, published: &Published) -> String {
    let ports: Vec<String> = published.ports.iter().map(|port| port.host.to_string()).collect();
    let table = realm.table();
    publish(realm, published)
        + &format!("delete element inet {table} ports {{ {} }}\n", ports.join(", "))
}

fn elements(published: &Published) -> impl Iterator<Item = String> {
    let Published { address, ports } = published;
    ports.iter().map(move |port| format!("{} : {address} . {}", port.host, port.container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_lead_to_their_containers() {
        let realm = Realm { number: 3, networks: Ipv4Addr::new(10, 214, 0, 0) };
        let ports = vec![Port { container: 80, host: 8080 }, Port { container: 22, host: 2222 }];
        let published = Published { address: Ipv4Addr::new(10, 214, 12, 2), ports };
        let added = publish(realm, &published);
        assert_eq!(
            added,
            "add element inet kapell3 ports { 8080 : 10.214.12.2 . 80, 2222 : 10.214.12.2 . 22 }\n"
        );
        assert_eq!(
            withdraw(realm, &published),
            added + "delete element inet kapell3 ports { 8080, 2222 }\n"
        );
        let all = table(realm, &[published], false);
        assert!(all.contains("elements = { 8080 : 10.214.12.2 . 80, 2222"), "{all}");
        assert!(all.contains("ip saddr != 10.214.12.0/22 drop"), "{all}");
        assert!(!table(realm, &[], false).contains("elements"));
    }
}
