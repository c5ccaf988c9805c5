//! Metrics for Prometheus over HTTP.
use weir_metrics::endpoint::MetricsServer;

use crate::borrow::{give, shared, taken, weir_bytes};
use crate::db::weir_db;
use crate::outcome::{run, weir_code, wrong};

/// Serves metrics until it is given back.
pub struct weir_endpoint {
    _server: MetricsServer,
}

/// Serves the metrics of a database at http://ADDRESS/metrics to this machine alone. `address`:
/// 127.0.0.1:9600, `[::1]:9600`, :9600 or 9600.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_serve_metrics(
    db: *const weir_db,
    address: weir_bytes,
    out: *mut *mut weir_endpoint,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, address) = unsafe { (shared(db)?.db.clone(), address.text()?) };
        let gather = move || {
            let mut metrics = Vec::new();
            db.visit_metrics(&mut |metric, value| metrics.push((metric, value)));
            metrics
        };
        let server = MetricsServer::start(address, gather);
        let server = server.map_err(|error| wrong(format!("{error:#}")))?;
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_endpoint { _server: server })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Stops serving, before the database is closed. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stop_serving(endpoint: *mut weir_endpoint) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(endpoint) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}
