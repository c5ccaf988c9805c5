//! Bytes across the border: what Python code gives, and what it is lent.
use std::ffi::{c_int, c_void};
use std::ops::Deref;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use pyo3::{Borrowed, ffi};
use weirdb::Slice;

/// Bytes that were given: those of a `bytes` as they lie, since they never change; all else is
/// copied while the interpreter's lock is held, since another thread may change it afterwards.
pub(crate) enum Octets {
    Lent(PyBackedBytes),
    Copied(Vec<u8>),
}

impl Deref for Octets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Octets::Lent(bytes) => bytes,
            Octets::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'py> FromPyObject<'_, 'py> for Octets {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBytes>() {
            return Ok(Octets::Lent(object.extract()?));
        }
        let wrong = |_| {
            let kind = object.get_type();
            PyTypeError::new_err(format!("bytes, bytearray or a memoryview of bytes, not {kind}"))
        };
        let buffer = PyBuffer::<u8>::get(&object).map_err(wrong)?;
        Ok(Octets::Copied(buffer.to_vec(object.py())?))
    }
}

/// A copy of a value, if there is one.
pub(crate) fn bytes<'py>(py: Python<'py>, slice: Option<Slice>) -> Option<Bound_<'py>> {
    slice.map(|slice| PyBytes::new(py, &slice))
}

pub(crate) type Bound_<'py> = pyo3::Bound<'py, PyBytes>;
pub(crate) type Many<'py> = Vec<Option<Bound_<'py>>>;

pub(crate) fn many(py: Python<'_>, values: Vec<Option<Slice>>) -> Many<'_> {
    values.into_iter().map(|value| bytes(py, value)).collect()
}

/// What was read, where the engine has put it: `memoryview` shows it without another copy.
#[pyclass(frozen, module = "weirdb._weirdb")]
pub(crate) struct Value {
    bytes: Slice,
}

impl Value {
    pub(crate) fn of(bytes: Slice) -> Self {
        Value { bytes }
    }
}

#[pymethods]
impl Value {
    /// # Safety
    /// The interpreter's: `view` can be written, and what it is filled with is given back.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes: &[u8] = &slf.get().bytes;
        let (first, len) = (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len() as isize);
        // SAFETY: `view` is the interpreter's. The bytes stay where they are, and as they are, for
        // as long as this object lives, which the view keeps alive; they are shown read-only.
        let done = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first, len, 1, flags) };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }
}
