//! Metrics as Prometheus reads them: the text format of OpenMetrics 1.0, with help texts and units.
use std::fmt::Write;
use weir::{Metric, MetricKind};

/// What a server says that this is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The exposition of these metrics.
#[must_use]
pub fn exposition(metrics: &[(Metric, f64)]) -> String {
    let mut text = String::new();
    for (metric, value) in metrics {
        let (name, unit, help) = (&metric.name, metric.unit, metric.help);
        let (kind, suffix) = match metric.kind {
            MetricKind::Counter => ("counter", "_total"),
            MetricKind::Gauge => ("gauge", ""),
        };
        let value = if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() };
        // A String takes all that is written to it.
        let _ = write!(
            text,
            "# TYPE {name} {kind}\n# UNIT {name} {unit}\n# HELP {name} {help}\n\
             {name}{suffix} {value}\n"
        );
    }
    text.push_str("# EOF\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_end_in_total_and_all_have_units() {
        let metric = |name: &str, kind, unit| Metric {
            name: name.to_owned(),
            kind,
            unit,
            help: "what it tells",
        };
        let text = exposition(&[
            (metric("weir_redo_bytes", MetricKind::Counter, "bytes"), 12.0),
            (metric("weir_limit_bytes", MetricKind::Gauge, "bytes"), f64::INFINITY),
        ]);
        assert_eq!(
            text,
            "# TYPE weir_redo_bytes counter\n# UNIT weir_redo_bytes bytes\n\
             # HELP weir_redo_bytes what it tells\nweir_redo_bytes_total 12\n\
             # TYPE weir_limit_bytes gauge\n# UNIT weir_limit_bytes bytes\n\
             # HELP weir_limit_bytes what it tells\nweir_limit_bytes +Inf\n# EOF\n"
        );
    }
}
