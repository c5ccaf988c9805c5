//! What the C library's heaps take beside what is in use. One of the few files with `unsafe`.
use crate::AlignedBuf;

/// Heaps of the C library's where the address space is limited.
#[cfg(all(target_env = "gnu", not(miri)))]
const HEAPS_LIMITED: libc::c_int = 2;

/// Whether this process may have so much address space and no more (`ulimit -v`). There, from now
/// on, its threads share a few of the C library's heaps: otherwise each of the first eight for each
/// processor gets one, which reserves 64 MiB (`mallopt(3)`, `M_ARENA_MAX`), and what is left is or
/// is not enough for the stacks of the others. Where `MALLOC_ARENA_MAX` says how many, or the
/// program has many threads already, that stays as it is; what it has set by `mallopt(3)` does not.
pub fn spare_address_space() -> bool {
    // Miri has a heap of its own, and no limits.
    #[cfg(not(miri))]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call fills the structure, which is this thread's.
        let code = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
        let is_limited = code == 0 && limit.rlim_cur != libc::RLIM_INFINITY;
        #[cfg(target_env = "gnu")]
        if is_limited && std::env::var_os("MALLOC_ARENA_MAX").is_none() {
            // SAFETY: mallopt(3) may be called by any thread at any time.
            unsafe {
                libc::mallopt(libc::M_ARENA_MAX, HEAPS_LIMITED);
            }
        }
        is_limited
    }
    #[cfg(miri)]
    false
}

/// Gives back to the system what the C library's heap keeps of freed memory, also between what is
/// in use. The library does so of itself only at a heap's end, and keeps arrays of up to 32 MiB in
/// its heaps once it has seen one freed (`mallopt(3)`, `M_MMAP_THRESHOLD`): of a database that was
/// loaded and closed, 50 MiB stayed in the process that had 0.6 MiB in use. Buffers at rest
/// ([`crate::AlignedBuf`]) go, too. Other threads' allocations wait meanwhile, a few milliseconds.
/// With another C library, or where the program's heap is not the C library's, only those go.
pub fn trim_heap() {
    AlignedBuf::free_spare();
    // Miri has a heap of its own.
    #[cfg(all(target_env = "gnu", not(miri)))]
    // SAFETY: malloc_trim(3) may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
