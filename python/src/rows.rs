//! Rows of a snapshot, as Python's iterators take them.
use std::collections::VecDeque;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::octets::Bound_;
use crate::{ROWS, Row, exception, held};

/// Rows of a snapshot, in order; some are taken at once, without the interpreter's lock.
#[pyclass(frozen)]
pub(crate) struct Rows {
    inner: Mutex<Taken>,
    reverse: bool,
}

struct Taken {
    /// None: it was closed.
    rows: Option<weirdb::Rows<'static>>,
    /// Rows that may still be taken from it.
    left: usize,
    ready: VecDeque<Row>,
    /// Raised when the rows before it have been shown.
    failed: Option<weirdb::Error>,
}

impl Rows {
    /// At most `limit` of the rows.
    pub(crate) fn of(rows: weirdb::Rows<'static>, reverse: bool, limit: Option<usize>) -> Self {
        let (rows, left) = match limit {
            Some(limit) => (rows.expect_rows(limit), limit),
            None => (rows, usize::MAX),
        };
        let inner = Taken { rows: Some(rows), left, ready: VecDeque::new(), failed: None };
        Rows { inner: Mutex::new(inner), reverse }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &pyo3::Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    /// Gives the snapshot up. What is asked for afterwards is refused.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut inner = held(&self.inner);
            (inner.rows, inner.failed) = (None, None);
            inner.ready.clear();
        });
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound_<'py>, Bound_<'py>)>> {
        let row = py.detach(|| -> Result<Option<Row>, weirdb::Error> {
            let mut inner = held(&self.inner);
            let Taken { rows, left, ready, failed } = &mut *inner;
            let rows = rows.as_mut().ok_or(weirdb::Error::TransactionOver)?;
            while ready.len() < ROWS && *left > 0 && failed.is_none() {
                *left -= 1;
                let row = if self.reverse { rows.next_back() } else { rows.next() };
                match row {
                    Some(Ok(row)) => ready.push_back(row),
                    Some(Err(e)) => *failed = Some(e),
                    None => break,
                }
            }
            if ready.is_empty()
                && let Some(e) = failed.take()
            {
                return Err(e);
            }
            Ok(ready.pop_front())
        });
        let row = row.map_err(exception)?;
        Ok(row.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}
