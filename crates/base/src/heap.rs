//! Freed memory goes back to the system. One of the few files with `unsafe`.

/// Gives back to the system what the C library's heap keeps of freed memory, also between what is
/// in use. The library does so of itself only at a heap's end, and keeps arrays of up to 32 MiB in
/// its heaps once it has seen one freed (`mallopt(3)`, `M_MMAP_THRESHOLD`): of a database that was
/// loaded and closed, 50 MiB stayed in the process that had 0.6 MiB in use. Other threads'
/// allocations wait meanwhile, a few milliseconds. With another C library, or where the program's
/// heap is not the C library's, nothing is done.
pub fn trim_heap() {
    // Miri has a heap of its own.
    #[cfg(all(target_env = "gnu", not(miri)))]
    // SAFETY: malloc_trim(3) may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
