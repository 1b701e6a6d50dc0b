//! Extended attributes, which neither std nor nix knows.
#![expect(unsafe_code, reason = "fsetxattr has no safe wrapper in std or nix")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// Whether an attribute of an archive is set: those that only the layer's own programs look at, and
/// what a program may do. Above all not those that an overlay obeys.
pub(super) fn is_kept(name: &[u8]) -> bool {
    let is_users = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
    is_users || name == b"security.capability"
}

pub(super) fn set(file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    set_raw(file, &name, value)
}

/// Has an overlay hide what lower directories hold.
pub(super) fn make_opaque(dir: &File) -> io::Result<()> {
    set_raw(dir, c"trusted.overlay.opaque", b"y")
}

fn set_raw(file: &File, name: &CStr, value: &[u8]) -> io::Result<()> {
    // SAFETY: the pointers are valid for the call, the length is that of `value`.
    let done = unsafe {
        libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
