//! Trees made dense while others read and write them.
use std::cell::RefCell;
use std::ffi::c_void;

use weir::{CompactOptions, Compacted};

use crate::borrow::{place, put, shared, weir_bytes};
use crate::outcome::{run, weir_code};
use crate::tree::weir_tree;

thread_local! {
    /// Where the last compaction was ended.
    static NEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How to compact. All zero: from the first row on, at a pace that leaves the work nine tenths of
/// the disk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_compact_options {
    /// It begins at the leaf that has this key: `next` of a call that was ended.
    pub from: weir_bytes,
    /// Bytes of pages to read and change per second at most; 0: by itself; UINT64_MAX: as fast as
    /// can be.
    pub bytes_per_second: u64,
}

/// What a compaction has done so far.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_compacted {
    /// Leaves that are as full as can be.
    pub leaves: u64,
    /// Pages that are free.
    pub pages_freed: u64,
    /// Pages whose content has moved to one further in front in the file.
    pub pages_moved: u64,
    /// Whether all of the tree was gone through.
    pub is_whole: bool,
    /// Where another call goes on, if not: good during the callback, and when it is put out by the
    /// call, until this thread's next one.
    pub next: weir_bytes,
}

/// Is shown what a compaction has done, after each step; `false` ends it. NULL: it goes on. It must
/// not unwind.
pub type weir_compact_goes_on =
    Option<unsafe extern "C" fn(context: *mut c_void, at: *const weir_compacted) -> bool>;

fn seen(done: &Compacted, next: &[u8]) -> weir_compacted {
    let Compacted { leaves, pages_freed, pages_moved, next: ref rest } = *done;
    let (is_whole, next) = (rest.is_none(), weir_bytes::of(next));
    weir_compacted { leaves, pages_freed, pages_moved, is_whole, next }
}

/// Makes a tree dense: leaves that deletions have left half empty are joined, and lie at the
/// beginning of the file, as far as there is room, while others read and write. What is free goes
/// back to the file system some seconds after the next checkpoint. Older versions, and the values
/// that are the longest, stay where they are. `options` and `out` may be NULL. WEIR_INTERRUPTED
/// when `goes_on` ended it: what is done stays, and `out` says where another call goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tree_compact(
    tree: *const weir_tree,
    options: *const weir_compact_options,
    goes_on: weir_compact_goes_on,
    context: *mut c_void,
    out: *mut weir_compacted,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, given) = unsafe { (&shared(tree)?.tree, options.as_ref()) };
        let mut options = CompactOptions::default();
        if let Some(given) = given {
            // SAFETY: the contract of `borrow`.
            options.from = unsafe { given.from.given()? }.to_vec();
            options.bytes_per_second = Some(given.bytes_per_second).filter(|&bytes| bytes > 0);
        }
        let mut progress = |done: &Compacted| {
            let at = seen(done, done.next.as_deref().unwrap_or_default());
            // SAFETY: the embedder's function, as `weir_compact_goes_on` describes it.
            goes_on.is_none_or(|ask| unsafe { ask(context, &raw const at) })
        };
        let done = tree.compact(&options, &mut progress)?;
        if place(out).is_ok() {
            NEXT.with_borrow_mut(|next| {
                *next = done.next.clone().unwrap_or_default();
                // SAFETY: the contract of `borrow`.
                unsafe { put(out, seen(&done, next)) }
            })?;
        }
        Ok(if done.next.is_none() { weir_code::WEIR_OK } else { weir_code::WEIR_INTERRUPTED })
    })
}
