//! Large arrays in memory straight from the kernel. One of the few files with `unsafe`.
use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::mapping::Mapping;

/// As a boxed slice, in a mapping of its own, which goes back to the system when it is dropped.
/// What a database takes in megabytes lies in these: the C library's allocator takes a freed array
/// of that size as a reason to put later ones into its heaps (`mallopt(3)`, `M_MMAP_THRESHOLD`),
/// and a heap's end of another thread than the first stays with the process.
pub struct LargeArray<T> {
    memory: Mapping,
    len: usize,
    of: PhantomData<T>,
}

/// A mapping with room for `len` values.
fn mapping_for<T>(len: usize) -> Mapping {
    const { assert!(align_of::<T>() <= 4096, "a mapping begins at a page") };
    let layout = Layout::array::<T>(len).expect("it fits the address space");
    Mapping::zeroed(layout.size(), false).unwrap_or_else(|_| handle_alloc_error(layout))
}

/// Values that are 0 where all bytes are.
pub trait Zero: sealed::Zero {}
impl<T: sealed::Zero> Zero for T {}

mod sealed {
    /// # Safety
    /// All bytes zero are a value.
    pub unsafe trait Zero {}
    // SAFETY: zero.
    unsafe impl Zero for u8 {}
    // SAFETY: a counter at zero.
    unsafe impl Zero for std::sync::atomic::AtomicU64 {}
}

impl<T: Zero> LargeArray<T> {
    /// An array of `len` zeros, of which none takes memory before it is touched.
    ///
    /// # Panics
    /// As [`LargeArray::new`].
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        LargeArray { memory: mapping_for::<T>(len), len, of: PhantomData }
    }
}

impl<T> LargeArray<T> {
    /// An array of `len` values, each made from its index.
    ///
    /// # Panics
    /// When it is larger than an address space can hold. When there is no memory the process ends,
    /// as it does wherever there is none.
    #[must_use]
    pub fn new(len: usize, mut make: impl FnMut(usize) -> T) -> Self {
        let memory = mapping_for::<T>(len);
        let start: *mut T = memory.start().cast();
        for at in 0..len {
            // SAFETY: the mapping has room for `len` values and begins at a multiple of their
            // alignment; none of them is there yet. If `make` panics, those that are there leak.
            unsafe { start.add(at).write(make(at)) };
        }
        LargeArray { memory, len, of: PhantomData }
    }
}

impl<T> Deref for LargeArray<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were written, or are zeros and allowed to be. They live as long as
        // self, and only `deref_mut` gives them away to be changed.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast(), self.len) }
    }
}

impl<T> DerefMut for LargeArray<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().cast(), self.len) }
    }
}

impl<T> Drop for LargeArray<T> {
    fn drop(&mut self) {
        // SAFETY: the values are there, and nothing sees them afterwards.
        unsafe { std::ptr::drop_in_place(&raw mut **self) };
    }
}

impl<T> Default for LargeArray<T> {
    /// Empty.
    fn default() -> Self {
        LargeArray::new(0, |_| unreachable!("none is asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn values_are_made_changed_and_dropped_once() {
        let shared = Rc::new(());
        let mut array = LargeArray::new(5_000, |at| (at, Rc::clone(&shared)));
        assert_eq!((array.len(), Rc::strong_count(&shared)), (5_000, 5_001));
        assert!(array.iter().enumerate().all(|(at, value)| value.0 == at));
        array[4_999].0 = 7;
        assert_eq!(array.last().map(|value| value.0), Some(7));
        drop(array);
        assert_eq!(Rc::strong_count(&shared), 1);
        assert!(LargeArray::<u8>::default().is_empty());
        let zeros = LargeArray::<u8>::zeroed(10_000);
        assert!(zeros.len() == 10_000 && zeros.iter().all(|byte| *byte == 0));
    }
}
