//! Starts a container's first process by `runc`, in a child of the shim.
//!
//! What a container needs of the machine is made here, in namespaces of our own, and then we become
//! `runc`: so mounts, network and user namespace belong to the container's processes alone, and are
//! gone with the last of them whoever is killed, at whatever moment.

use std::ffi::{CStr, OsStr, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::hidden::DOCUMENT;
use crate::root::{self, Ids, Root};
use crate::texts::Texts;
use crate::veth::{self, Veth};
use crate::{namespaces, sys};

const MAGIC: &[u8] = b"kapell-launch-1";
const END: &[u8] = b"end";

/// What the agent wrote: texts that each end with a NUL byte.
struct Launch<'a> {
    /// The container's directory; all paths of ours are relative to it.
    home: &'a CStr,
    ids: Ids,
    layers: Vec<&'a CStr>,
    veth: Option<Veth<'a>>,
    program: &'a CStr,
    /// With the null pointers at their ends.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

impl<'a> Launch<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut texts = Texts(bytes);
        if texts.next()?.to_bytes() != MAGIC {
            return None;
        }
        let home = texts.next()?;
        let ids = Ids { base: number(&mut texts)?, count: number(&mut texts)? };
        let layers = texts.list()?;
        let veth = match texts.next()?.to_bytes() {
            b"host" => None,
            b"own" => Some(Veth {
                name: texts.next()?,
                address: address(&mut texts)?,
                gateway: address(&mut texts)?,
            }),
            _ => return None,
        };
        let pointers = |texts: Vec<&'a CStr>| {
            texts.into_iter().map(CStr::as_ptr).chain([std::ptr::null()]).collect()
        };
        let arguments = texts.list()?;
        let program = *arguments.first()?;
        let (arguments, environment) = (pointers(arguments), pointers(texts.list()?));
        (texts.next()?.to_bytes() == END).then_some(())?;
        Some(Self { home, ids, layers, veth, program, arguments, environment })
    }
}

fn number(texts: &mut Texts<'_>) -> Option<u32> {
    u32::try_from(texts.number()?).ok()
}

/// Of the Internet, as one number.
fn address(texts: &mut Texts<'_>) -> Option<[u8; 4]> {
    number(texts).map(u32::to_be_bytes)
}

/// What could not be done, and why. The agent shows it as it stands.
pub(crate) struct Trouble {
    pub(crate) what: &'static str,
    pub(crate) errno: i32,
}

/// For `map_err`.
pub(crate) fn trouble(what: &'static str) -> impl FnOnce(i32) -> Trouble {
    move |errno| Trouble { what, errno }
}

/// Returns only if the container could not be started.
pub(crate) fn run(file: &[u8]) -> i32 {
    let Trouble { what, errno } = match launch(file) {
        Ok(never) => match never {},
        Err(trouble) => trouble,
    };
    // As `runc` tells of its own failures: in the file for that, one after the other.
    let mut line = Vec::from(*b"kapell-launch ");
    crate::number::push(&mut line, u64::from(errno.unsigned_abs()), 0);
    line.push(b' ');
    line.extend_from_slice(what.as_bytes());
    line.push(b'\n');
    let _best_effort = fs::write("trouble", &line);
    1
}

fn launch(file: &[u8]) -> Result<std::convert::Infallible, Trouble> {
    let no_spec = || Trouble { what: "read its own instructions", errno: libc::EINVAL };
    let text = fs::read(OsStr::from_bytes(file)).map_err(|_| no_spec())?;
    let Launch { home, ids, layers, veth, program, arguments, environment } =
        Launch::parse(&text).ok_or_else(no_spec)?;
    sys::change_dir(home).map_err(trouble("enter its directory"))?;
    let mut own = namespaces::make(ids, veth.is_some())?;
    // Meanwhile its network namespace is being made, which takes longer than all else.
    root::mount(&Root { layers: &layers }, &own)?;
    let net = own.net()?;
    own.release();
    if let (Some(veth), Some(net)) = (&veth, &net) {
        veth::connect(veth, net)?;
        namespaces::enter_net(net)?;
        veth::configure(veth)?;
    }
    drop((own, net));
    sys::close_rest_on_exec();
    sys::keep_on_exec(DOCUMENT);
    let errno = sys::execute(program, &arguments, &environment);
    Err(Trouble { what: "execute `runc`", errno })
}
