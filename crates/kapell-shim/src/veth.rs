//! The wire between a container and the machine.

#![expect(
    unsafe_code,
    reason = "system calls with numbers, or with pointers to values that outlive the call; there is one thread"
)]

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::launch::{Trouble, trouble};
use crate::sys;

/// Its name in a container.
const INSIDE: &CStr = c"eth0";
const UP: u32 = libc::IFF_UP as u32;
/// `AF_INET`, as wide as it is in messages.
const INTERNET: u8 = 2;
/// `VETH_INFO_PEER`, which the C library does not name.
const VETH_INFO_PEER: u16 = 1;
/// `RTNH_F_ONLINK`: the gateway is reached over the link, whatever the addresses say.
const ON_LINK: u32 = 4;

pub(crate) struct Veth<'a> {
    /// Its name on the machine.
    pub(crate) name: &'a CStr,
    pub(crate) address: [u8; 4],
    pub(crate) gateway: [u8; 4],
}

/// Makes it, one end here and one in the namespace. It is gone with the namespace.
pub(crate) fn connect(veth: &Veth<'_>, net: &File) -> Result<(), Trouble> {
    let what = "make the wire to its network namespace";
    let socket = open().map_err(trouble(what))?;
    if let Ok(old) = index(veth.name) {
        // Of a container that is gone: the kernel takes its time to clear up.
        let mut request = Request::new(libc::RTM_DELLINK, 0);
        request.link(libc::AF_UNSPEC, old, 0);
        let _gone_already = request.ask(&socket);
    }
    make(veth, net, &socket).map_err(trouble(what))?;
    // Without it, what was sent to 127.0.0.1 cannot leave by the wire. Nothing with such an address comes in by
    // it: that is a rule of the agent's.
    let name = OsStr::from_bytes(veth.name.to_bytes());
    let of = |family: &str, what: &str| {
        Path::new("/proc/sys/net").join(family).join("conf").join(name).join(what)
    };
    fs::write(of("ipv4", "route_localnet"), "1")
        .map_err(|error| trouble(what)(error.raw_os_error().unwrap_or(libc::EIO)))?;
    let _where_there_is_such = fs::write(of("ipv6", "disable_ipv6"), "1");
    let own = index(veth.name).map_err(trouble(what))?;
    let mut request = Request::new(libc::RTM_NEWLINK, 0);
    request.link(libc::AF_UNSPEC, own, UP);
    request.ask(&socket).map_err(trouble(what))?;
    address(own, veth.gateway, &socket).map_err(trouble(what))?;
    let mut request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    request.route(32, libc::RT_SCOPE_LINK, 0);
    request.attribute(libc::RTA_DST, &veth.address);
    request.attribute(libc::RTA_OIF, &own.to_ne_bytes());
    request.ask(&socket).map_err(trouble("make the way to it"))
}

fn make(veth: &Veth<'_>, net: &File, socket: &OwnedFd) -> Result<(), i32> {
    let net = u32::try_from(net.as_raw_fd()).unwrap_or(0);
    let mut request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    request.link(libc::AF_UNSPEC, 0, 0);
    request.text(libc::IFLA_IFNAME, veth.name);
    let about = request.begin(libc::IFLA_LINKINFO);
    request.attribute(libc::IFLA_INFO_KIND, b"veth");
    let data = request.begin(libc::IFLA_INFO_DATA);
    let peer = request.begin(VETH_INFO_PEER);
    request.link(libc::AF_UNSPEC, 0, 0);
    request.text(libc::IFLA_IFNAME, INSIDE);
    request.attribute(libc::IFLA_NET_NS_FD, &net.to_ne_bytes());
    for open in [peer, data, about] {
        request.end(open);
    }
    request.ask(socket)
}

/// Gives the end that is in our namespace its address, and the other end as the way to everywhere.
pub(crate) fn configure(veth: &Veth<'_>) -> Result<(), Trouble> {
    let what = "give it an address";
    // Only the container's own network is in sight here. Of version 6 there is nothing to filter then; and
    // every user of the container may listen on any port of it and send a ping, as nobody else is there.
    for (file, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("ipv4/ping_group_range", "0 2147483647"),
    ] {
        let _where_there_is_such = fs::write(Path::new("/proc/sys/net").join(file), value);
    }
    let socket = open().map_err(trouble(what))?;
    let inside = index(INSIDE).map_err(trouble(what))?;
    // The loopback is always the first.
    for link in [1, inside] {
        let mut request = Request::new(libc::RTM_NEWLINK, 0);
        request.link(libc::AF_UNSPEC, link, UP);
        request.ask(&socket).map_err(trouble(what))?;
    }
    address(inside, veth.address, &socket).map_err(trouble(what))?;
    let mut request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    request.route(0, libc::RT_SCOPE_UNIVERSE, ON_LINK);
    request.attribute(libc::RTA_GATEWAY, &veth.gateway);
    request.attribute(libc::RTA_OIF, &inside.to_ne_bytes());
    request.ask(&socket).map_err(trouble("give it a route"))
}

/// One address, with no network around it.
fn address(link: u32, address: [u8; 4], socket: &OwnedFd) -> Result<(), i32> {
    let mut request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    request.bytes(&[INTERNET, 32, 0, libc::RT_SCOPE_UNIVERSE]);
    request.bytes(&link.to_ne_bytes());
    request.attribute(libc::IFA_LOCAL, &address);
    request.attribute(libc::IFA_ADDRESS, &address);
    request.ask(socket)
}

fn open() -> Result<OwnedFd, i32> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: numbers only; the kernel makes the descriptor for us.
    unsafe {
        sys::check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

fn index(name: &CStr) -> Result<u32, i32> {
    // SAFETY: a text that ends with NUL.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(sys::errno()),
        index => Ok(index),
    }
}

/// A message to the kernel.
struct Request(Vec<u8>);

/// Where an attribute began that others are put into.
#[derive(Clone, Copy)]
struct Begun(usize);

impl Request {
    fn new(kind: u16, flags: i32) -> Self {
        let flags = flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&u16::try_from(flags).unwrap_or(0).to_ne_bytes());
        // A number and a sender, which nobody asks for.
        bytes.extend_from_slice(&[0; 8]);
        Self(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// `struct ifinfomsg`.
    fn link(&mut self, family: i32, index: u32, flags: u32) {
        self.bytes(&[u8::try_from(family).unwrap_or(0), 0, 0, 0]);
        self.bytes(&index.to_ne_bytes());
        self.bytes(&flags.to_ne_bytes());
        // Which flags are changed.
        self.bytes(&flags.to_ne_bytes());
    }

    /// `struct rtmsg`, to a network of so many bits.
    fn route(&mut self, bits: u8, scope: u8, flags: u32) {
        let table = libc::RT_TABLE_MAIN;
        self.bytes(&[INTERNET, bits, 0, 0, table, libc::RTPROT_BOOT, scope, libc::RTN_UNICAST]);
        self.bytes(&flags.to_ne_bytes());
    }

    fn text(&mut self, kind: u16, text: &CStr) {
        self.attribute(kind, text.to_bytes_with_nul());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let begun = self.begin(kind);
        self.bytes(value);
        self.end(begun);
    }

    fn begin(&mut self, kind: u16) -> Begun {
        let begun = Begun(self.0.len());
        self.bytes(&[0; 2]);
        self.bytes(&kind.to_ne_bytes());
        begun
    }

    fn end(&mut self, begun: Begun) {
        let length = u16::try_from(self.0.len() - begun.0).unwrap_or(0);
        self.0[begun.0..begun.0 + 2].copy_from_slice(&length.to_ne_bytes());
        let whole = self.0.len().next_multiple_of(4);
        self.0.resize(whole, 0);
    }

    /// Sends it and hears what became of it.
    fn ask(mut self, socket: &OwnedFd) -> Result<(), i32> {
        let length = u32::try_from(self.0.len()).unwrap_or(0);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        // SAFETY: as many bytes as are said.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), self.0.as_ptr().cast(), self.0.len(), 0) };
        if sent < 0 {
            return Err(sys::errno());
        }
        let mut answer = [0; 4096];
        let length = sys::read(socket, &mut answer)?;
        // A head of 16 bytes, then the number of the error, below zero.
        let error = answer[..length].get(16..20).and_then(|error| error.first_chunk());
        match error.map(|error| i32::from_ne_bytes(*error)) {
            Some(0) => Ok(()),
            Some(errno) => Err(-errno),
            None => Err(libc::EPROTO),
        }
    }
}
