//! A database's metrics in the text format of OpenMetrics, and the HTTP server that Prometheus asks
//! for them.
#![forbid(unsafe_code)]
pub mod endpoint;
pub mod openmetrics;
pub mod serve;
