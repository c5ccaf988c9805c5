//! What comes over the border as a pointer, and how it is looked at.
//!
//! The contract, for every function of the interface:
//! - A handle is one that the interface has made and that was not given back; NULL is refused. A
//!   handle is used by one thread at a time, except `weir_db`, `weir_tree` and, for
//!   `weir_txn_interrupt` and `weir_txn_number` alone, `weir_txn`.
//! - `weir_bytes` name memory that can be read for the call; `data` may be NULL if `len` is 0.
//! - Where a result is put can be written. NULL is refused.
use std::ffi::c_void;

use crate::outcome::{Failure, wrong};

/// Borrowed bytes. As a result: good until the next call with the handle that they came from,
/// unless the function says otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_bytes {
    /// The first byte; anything if there is none.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

impl weir_bytes {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        weir_bytes { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes. Refuses what cannot be: no address where there are bytes, or more of them than
    /// memory has.
    ///
    /// # Safety
    /// The contract above, for as long as the slice is used.
    pub(crate) unsafe fn given<'a>(self) -> Result<&'a [u8], Failure> {
        if self.len > 0 && self.data.is_null() {
            return Err(wrong(format!("{} bytes at NULL", self.len)));
        }
        if isize::try_from(self.len).is_err() {
            return Err(wrong(format!("no memory has {} bytes", self.len)));
        }
        if self.len == 0 {
            return Ok(&[]);
        }
        // SAFETY: the caller of the interface says that these bytes can be read.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }

    /// # Safety
    /// As [`weir_bytes::given`].
    pub(crate) unsafe fn text<'a>(self) -> Result<&'a str, Failure> {
        // SAFETY: as the caller's.
        let bytes = unsafe { self.given()? };
        std::str::from_utf8(bytes).map_err(|_| wrong("a name is not UTF-8"))
    }
}

/// Is shown one thing after the other. It must not unwind, and what it is shown is gone when it
/// returns.
pub type weir_visit = Option<unsafe extern "C" fn(context: *mut c_void, bytes: weir_bytes)>;

/// # Safety
/// The contract above.
pub(crate) unsafe fn shared<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: NULL is found here; all else the caller of the interface vouches for.
    unsafe { handle.as_ref() }.ok_or_else(|| wrong("a handle is NULL"))
}

/// # Safety
/// The contract above; no other caller uses the handle now.
pub(crate) unsafe fn alone<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: NULL is found here; all else the caller of the interface vouches for.
    unsafe { handle.as_mut() }.ok_or_else(|| wrong("a handle is NULL"))
}

/// Takes a handle back. `None`: it was NULL.
///
/// # Safety
/// The contract above; no caller uses the handle any more.
pub(crate) unsafe fn taken<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: handles are made by `give` alone.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}

/// Whether there is a place for a result: asked before what cannot be undone is done.
pub(crate) fn place<T>(out: *const T) -> Result<(), Failure> {
    if out.is_null() { Err(wrong("there is no place for a result")) } else { Ok(()) }
}

/// Makes a handle of something and puts it where the caller wants it.
///
/// # Safety
/// The contract above.
pub(crate) unsafe fn give<T>(out: *mut *mut T, what: T) -> Result<(), Failure> {
    place(out)?;
    // SAFETY: as the caller's.
    unsafe { put(out, Box::into_raw(Box::new(what))) }
}

/// Puts a result where the caller wants it.
///
/// # Safety
/// The contract above.
pub(crate) unsafe fn put<T>(out: *mut T, what: T) -> Result<(), Failure> {
    place(out)?;
    // SAFETY: the caller of the interface says that it can be written; it may hold no value yet.
    unsafe { out.write(what) };
    Ok(())
}

/// A list as a slice. No address where there are values, and more of them than memory has, are
/// refused.
///
/// # Safety
/// `first` begins `count` values that can be read for as long as the slice is used.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(wrong(format!("a list of {count} at NULL")));
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(wrong(format!("no memory has a list of {count}")));
    }
    // SAFETY: as the caller's.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Shows bytes to a visitor.
///
/// # Safety
/// The contract above.
pub(crate) unsafe fn show(visit: weir_visit, context: *mut c_void, bytes: &[u8]) {
    if let Some(visit) = visit {
        // SAFETY: the caller of the interface has given a function of this kind.
        unsafe { visit(context, weir_bytes::of(bytes)) };
    }
}
