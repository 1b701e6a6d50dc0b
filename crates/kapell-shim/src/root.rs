//! The files of a container: layers that it shares with others, and what it changes of them.
//!
//! In its directory stand `layers/N`, `upper`, `work`, `root` and `user`, all made by the agent.

#![expect(
    unsafe_code,
    reason = "system calls with numbers, or with pointers to values that outlive the call; there is one thread"
)]

use std::ffi::{CStr, CString, c_int, c_uint, c_ulong};
use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::launch::{Trouble, trouble};
use crate::namespaces::{self, Own};
use crate::{number, sys};

const OPEN_TREE_CLONE: c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Who is who in a container: its users from 0 on are the machine's from `base` on.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) base: u32,
    pub(crate) count: u32,
}

pub(crate) struct Root<'a> {
    /// The topmost first.
    pub(crate) layers: &'a [&'a CStr],
}

/// As the kernel has it.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Mounts all of it in a mount namespace of our own.
pub(crate) fn mount(root: &Root<'_>, own: &Own) -> Result<(), Trouble> {
    // SAFETY: numbers only.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWNS) })
        .map_err(trouble("make a mount namespace"))?;
    // What the machine unmounts is to be unmounted here too, but never the other way.
    call_mount(c"none", c"/", c"", libc::MS_REC | libc::MS_SLAVE, c"")
        .map_err(trouble("keep its mounts to itself"))?;
    let user =
        CString::new(namespaces::of(own.holder, "ns/user").into_os_string().into_encoded_bytes())
            .unwrap_or_default();
    call_mount(&user, c"user", c"", libc::MS_BIND, c"")
        .map_err(trouble("keep its user namespace"))?;
    let mut options = Vec::from(*b"lowerdir=");
    for (at, layer) in root.layers.iter().enumerate() {
        let mut place = Vec::from(*b"layers/");
        number::push(&mut place, at as u64, 0);
        if at > 0 {
            options.push(b':');
        }
        options.extend_from_slice(&place);
        let place = CString::new(place).unwrap_or_default();
        show(layer, &place, &own.user)?;
    }
    // What is lost with the machine is not needed after it: nothing is flushed.
    options.extend_from_slice(b",upperdir=upper,workdir=work,volatile");
    let options = CString::new(options).unwrap_or_default();
    call_mount(c"overlay", c"root", c"overlay", libc::MS_NODEV, &options)
        .map_err(trouble("lay its layers over each other"))
}

/// Shows a layer at `place`, its files belonging to the container's users.
fn show(layer: &CStr, place: &CStr, users: &File) -> Result<(), Trouble> {
    let cloexec = c_uint::try_from(libc::O_CLOEXEC).unwrap_or(0);
    // SAFETY: a text that ends with NUL; the kernel makes a descriptor for us.
    let tree = unsafe {
        let fd = libc::syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            layer.as_ptr(),
            OPEN_TREE_CLONE | cloexec,
        );
        long(fd).map(|fd| OwnedFd::from_raw_fd(fd)).map_err(trouble("open a layer"))?
    };
    let attributes = MountAttributes {
        set: MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
        clear: 0,
        propagation: 0,
        user_namespace: u64::try_from(users.as_raw_fd()).unwrap_or(0),
    };
    let empty = c"".as_ptr();
    // SAFETY: a descriptor, an empty text, and a structure of ours with its size.
    let mapped = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            empty,
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    long(mapped).map_err(trouble("map the owners of a layer's files"))?;
    // SAFETY: descriptors and texts that end with NUL.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            empty,
            libc::AT_FDCWD,
            place.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    long(moved).map(drop).map_err(trouble("mount a layer"))
}

fn long(answer: libc::c_long) -> Result<c_int, i32> {
    c_int::try_from(answer).ok().filter(|answer| *answer >= 0).ok_or_else(sys::errno)
}

fn call_mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: c_ulong,
    options: &CStr,
) -> Result<(), i32> {
    // SAFETY: texts that end with NUL.
    let mounted = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    sys::check(mounted).map(drop)
}
