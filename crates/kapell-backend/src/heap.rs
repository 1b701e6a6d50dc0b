//! How the C library divides memory among threads.

/// Lets all threads share so few heaps. What a thread frees in a heap of its own no other can use, so that with one a
/// thread a program that lives long holds a quarter more than it needs.
pub fn share(heaps: u16) {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "sets a number of the allocator")]
        // SAFETY: it may be set at any time.
        let _kept_as_it_was = unsafe { libc::mallopt(libc::M_ARENA_MAX, heaps.into()) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _there_is_but_one = heaps;
}

/// Has the heap keep what is freed. By itself it gives much of it back to the system, and whoever needs as much again pays
/// for each page once more: more than for most of what a benchmark measures.
pub fn keep() {
    #[cfg(target_env = "gnu")]
    for limit in [libc::M_TRIM_THRESHOLD, libc::M_MMAP_THRESHOLD] {
        #[expect(unsafe_code, reason = "sets a number of the allocator")]
        // SAFETY: it may be set at any time.
        let _kept_as_it_was = unsafe { libc::mallopt(limit, MOST_KEPT) };
    }
}

/// The most that the allocator takes for such a limit.
#[cfg(target_env = "gnu")]
const MOST_KEPT: libc::c_int = 32 << 20;
