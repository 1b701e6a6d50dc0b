//! The hard way out.

/// Ends the process at once: no destructor, no exit handler, no other thread gets a word in.
pub fn exit_now(code: i32) -> ! {
    #[expect(unsafe_code, reason = "std has no exit that skips what could hang")]
    // SAFETY: it takes no pointers and does not return.
    unsafe {
        libc::_exit(code)
    }
}
